//! Reads whole text files of the workspace; a file that is too large or not text is an error of its own.

use std::io::Read;

use crate::workspace::{RelativePath, Workspace, WorkspaceError};

/// Largest file that is read, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 16 << 20;

/// Why the text of a file cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TextError {
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error("`{0}` is larger than {MAX_FILE_BYTES} bytes")]
    TooLarge(RelativePath),
    #[error("`{0}` is not a text file (no UTF-8)")]
    Binary(RelativePath),
}

/// Reads a whole text file.
pub(crate) fn text_of(workspace: &Workspace, path: &RelativePath) -> Result<String, TextError> {
    let file = workspace.read(path)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| path.refused(error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(TextError::TooLarge(path.clone()));
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        Ok(_) | Err(_) => Err(TextError::Binary(path.clone())),
    }
}
