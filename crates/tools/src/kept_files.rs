//! The files that a command leaves in its folder `$ARTIFACTS`: each becomes an artifact.
//!
//! This reads outside the sandbox what the command wrote inside, so it opens by file descriptor, follows no link, and takes only
//! regular files with one name: otherwise a command could have a file kept that it may not read.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use polis_domain::Artifact;
use polis_ports::{Artifacts, MediaKind};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat};

use crate::artifacts::{is_text, media_type};
use crate::results::on_one_line;

/// The folder's name in the private folder of a command.
pub(crate) const FOLDER: &str = "artifacts";

/// Most files of one command that are kept.
const MAX_FILES: usize = 20;

/// What became of the files.
#[derive(Default)]
pub(crate) struct KeptFiles {
    pub(crate) artifacts: Vec<Artifact>,
    /// Names of files that were not kept, with the reason.
    pub(crate) left: Vec<String>,
}

impl KeptFiles {
    /// Those that a model may be shown.
    pub(crate) fn media(&self) -> Vec<Artifact> {
        self.artifacts.iter().filter(|artifact| MediaKind::of(&artifact.media_type).is_some()).cloned().collect()
    }

    /// A line for each file.
    pub(crate) fn text(&self) -> String {
        let kept = self.artifacts.iter().map(|artifact| format!("\nkept {artifact}"));
        kept.chain(self.left.iter().map(|left| format!("\nnot kept: {left}"))).collect()
    }
}

/// Keeps the files in the folder of this private folder, in the order of their names. Blocks.
pub(crate) fn keep(home: &Path, store: &Arc<dyn Artifacts>) -> KeptFiles {
    let mut kept = KeptFiles::default();
    let (folder, names) = match listed(home) {
        Ok(listed) => listed,
        Err(error) => {
            kept.left.push(format!("the files in $ARTIFACTS: {error}"));
            return kept;
        }
    };
    for (n, name) in names.iter().enumerate() {
        let shown = on_one_line(name);
        if n >= MAX_FILES {
            kept.left.push(format!("{shown} and {} more; at most {MAX_FILES} are", names.len() - n - 1));
            break;
        }
        match kept_file(&folder, name, store) {
            Ok(artifact) => kept.artifacts.push(artifact),
            Err(reason) => kept.left.push(format!("{shown}: {reason}")),
        }
    }
    kept
}

fn listed(home: &Path) -> io::Result<(OwnedFd, Vec<String>)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let home = openat(CWD, home, flags, Mode::empty())?;
    let folder = openat(&home, FOLDER, flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    names.sort();
    Ok((folder, names))
}

fn kept_file(folder: &OwnedFd, name: &str, store: &Arc<dyn Artifacts>) -> Result<Artifact, String> {
    // A pipe without a writer would be waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let file = openat(folder, name, flags, Mode::empty()).map_err(|error| failed(&error))?;
    let found = fstat(&file).map_err(|error| failed(&error))?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err("it is not a file".to_owned());
    }
    if found.st_nlink != 1 {
        return Err("it has other names".to_owned());
    }
    let mut file = File::from(file);
    let mut draft = store.draft().map_err(|error| failed(&error))?;
    let (mut buffer, mut is_all_text) = (vec![0; 256 << 10], true);
    loop {
        let read = file.read(&mut buffer).map_err(|error| failed(&error))?;
        if read == 0 {
            break;
        }
        is_all_text &= is_text(&buffer[..read]);
        draft.write(&buffer[..read]).map_err(|error| failed(&error))?;
    }
    let (id, bytes) = draft.keep().map_err(|error| failed(&error))?;
    Ok(Artifact::new(id, name, media_type(name, is_all_text), bytes))
}
