//! Small documents that all nodes of a store share, such as the list of access tokens.

use async_trait::async_trait;

/// Stores small documents by name. One that is written is durable when the call returns.
#[async_trait]
pub trait Documents: Send + Sync {
    /// Reads a document, if it is there.
    async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, DocumentError>;

    /// The names of all documents in a folder, such as `logins/`, in order.
    async fn names(&self, folder: &str) -> Result<Vec<String>, DocumentError>;

    /// Replaces a document, or removes it. `old` is what was read before; if something else is there now, nothing changes.
    async fn replace(&self, name: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> Result<(), DocumentError>;
}

/// Why a document cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// Another process has changed it since it was read.
    #[error("{0} was changed at the same time; try again")]
    Changed(String),
    /// Any other error.
    #[error("{0}")]
    Failed(String),
}
