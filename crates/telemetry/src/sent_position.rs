//! The position in the log up to which a society's spans were sent: one small file each. Losing it costs spans, nothing else.

use std::io;
use std::path::{Path, PathBuf};

use polis_domain::{Seq, SocietyId};
use serde::{Deserialize, Serialize};

/// A position in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SentPosition {
    /// The seed of the society then. After a fork or a rewind it is another one, and the place means nothing.
    pub(crate) seed: u64,
    /// Whatever was under way at `sent` began after this.
    pub(crate) from: Seq,
    /// Whatever ended up to here was sent.
    pub(crate) sent: Seq,
}

impl SentPosition {
    /// The place of before, if there is one.
    pub(crate) fn read(folder: &Path, society: &SocietyId) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(file(folder, society)).ok()?).ok()
    }

    /// Replaces the place of before. Whoever reads sees one of the two.
    pub(crate) fn write(&self, folder: &Path, society: &SocietyId) -> io::Result<()> {
        let (path, text) = (file(folder, society), serde_json::to_vec(self)?);
        let new = path.with_extension("new");
        match std::fs::write(&new, &text) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                std::fs::create_dir_all(folder)?;
                std::fs::write(&new, &text)?;
            }
            written => written?,
        }
        std::fs::rename(new, path)
    }
}

/// A society's name is a file's name too; the ending keeps `a.json` apart from `a`.
fn file(folder: &Path, society: &SocietyId) -> PathBuf {
    folder.join(format!("{society}.json"))
}
