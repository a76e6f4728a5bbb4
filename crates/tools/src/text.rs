//! Reads whole text files of the workspace; a file that is too large or not text is an error of its own.

use std::io::Read;

use polis_ports::TextChange;
use tokio::sync::Semaphore;

use crate::workspace::{RelativePath, Workspace, WorkspaceError};

/// Largest file that is read, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 16 << 20;

/// Why the text of a file cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TextError {
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error("`{0}` is larger than {1} bytes")]
    TooLarge(RelativePath, u64),
    #[error("`{0}` is not a text file (no UTF-8)")]
    Binary(RelativePath),
}

/// One file at a time is read and edited for a comparison: both texts are in memory. The comparison itself has a limit in `polis-api`.
static COMPARING: Semaphore = Semaphore::const_new(1);

/// Compares a file with what a call makes of it, unless either text is too large. The permit is held until that is done, even if
/// nobody waits for the result any more.
pub(crate) async fn compared(
    compare: impl FnOnce() -> Result<TextChange, String> + Send + 'static,
) -> Option<Result<TextChange, String>> {
    let permit = COMPARING.acquire().await.ok()?;
    let compared = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let change = compare()?;
        let TextChange { path, after, .. } = &change;
        match after.len() > TextChange::MAX_BYTES {
            true => Err(format!("`{path}` would be larger than {} bytes", TextChange::MAX_BYTES)),
            false => Ok(change),
        }
    });
    compared.await.ok()
}

/// Reads a whole text file that is to be compared.
pub(crate) fn text_to_compare(workspace: &Workspace, path: &RelativePath) -> Result<String, TextError> {
    text_up_to(workspace, path, TextChange::MAX_BYTES as u64)
}

/// Reads a whole text file.
pub(crate) fn text_of(workspace: &Workspace, path: &RelativePath) -> Result<String, TextError> {
    text_up_to(workspace, path, MAX_FILE_BYTES)
}

fn text_up_to(workspace: &Workspace, path: &RelativePath, limit: u64) -> Result<String, TextError> {
    let file = workspace.read(path)?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| path.refused(error))?;
    if bytes.len() as u64 > limit {
        return Err(TextError::TooLarge(path.clone(), limit));
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        Ok(_) | Err(_) => Err(TextError::Binary(path.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_comparison_keeps_the_next_one_waiting_even_if_nobody_waits_for_it_any_more() {
        let (begins, begun) = tokio::sync::oneshot::channel();
        let (ends, end) = std::sync::mpsc::channel::<()>();
        let mut first = Box::pin(compared(move || {
            begins.send(()).unwrap();
            end.recv().unwrap();
            Err("first".to_owned())
        }));
        tokio::select! {
            _ = &mut first => panic!("it has not ended"),
            begun = begun => begun.unwrap(),
        }
        drop(first);
        assert_eq!(COMPARING.available_permits(), 0);
        ends.send(()).unwrap();
        assert_eq!(compared(|| Err("next".to_owned())).await, Some(Err("next".to_owned())));
    }

    #[tokio::test]
    async fn a_text_that_would_become_too_large_is_not_shown() {
        let becomes = async |bytes: usize| {
            let after = "x".repeat(bytes);
            compared(move || Ok(TextChange { path: "a".to_owned(), before: None, after })).await.unwrap()
        };
        assert!(becomes(TextChange::MAX_BYTES).await.is_ok());
        assert_eq!(becomes(TextChange::MAX_BYTES + 1).await, Err("`a` would be larger than 1048576 bytes".to_owned()));
    }
}
