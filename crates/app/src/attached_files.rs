//! Files that go with a request: each is stored as an artifact, and the message names it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use futures_util::stream;
use polis_api::{Api, ArtifactName, Attachment};
use polis_ports::media_type_of;

use crate::error::CliError;

/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;

/// Opens the files, so that one that cannot be read is refused before anything is stored.
pub(crate) fn open(paths: &[PathBuf]) -> Result<Vec<AttachedFile>, CliError> {
    paths.iter().map(|path| AttachedFile::open(path)).collect()
}

/// A file that is open, and its first bytes.
pub(crate) struct AttachedFile {
    name: String,
    media_type: &'static str,
    first: Vec<u8>,
    file: File,
}

impl AttachedFile {
    fn open(path: &Path) -> Result<Self, CliError> {
        let unreadable = |error: io::Error| {
            CliError::usage("unreadable_file", format!("the file {} cannot be read: {error}", path.display()))
        };
        let mut file = File::open(path).map_err(unreadable)?;
        // A folder can be opened, but not read.
        let first = read_chunk(&mut file).map_err(unreadable)?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let media_type = match polis_tools::media_type(&name, is_text(&first)) {
            "application/octet-stream" => media_type_of(&first).unwrap_or("application/octet-stream"),
            known => known,
        };
        Ok(Self { name, media_type, first, file })
    }

    /// Stores it, for a message to name.
    pub(crate) async fn store(self, api: &dyn Api) -> Result<Attachment, CliError> {
        let Self { name, media_type, first, mut file } = self;
        let rest = std::iter::from_fn(move || match read_chunk(&mut file) {
            Ok(bytes) if bytes.is_empty() => None,
            read => Some(read),
        });
        let content = Box::pin(stream::iter(std::iter::once(Ok(first)).chain(rest)));
        let stored = api.store_artifact(ArtifactName { name: name.clone() }, media_type, content).await?;
        let (id, media_type) = (stored.id.to_string(), Some(media_type.to_owned()));
        Ok(Attachment { id, name: Some(name), media_type, bytes: None })
    }
}

fn read_chunk(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(CHUNK);
    file.take(CHUNK as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether these are the first bytes of a text; the last character may be cut.
fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).err().is_none_or(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_may_be_cut_within_a_character() {
        assert!(is_text("长".as_bytes()) && is_text(&"长".as_bytes()[..2]) && is_text(b""));
        assert!(!is_text(b"\xff\xfe") && !is_text(b"a\0b"));
    }
}
