//! A check whether a file that controls agents may be used.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

type Decide = dyn Fn(&Path, &[u8]) -> bool + Send + Sync;

/// Decides whether the content of a file may be used. It gets the bytes that will be used, so that the file cannot be
/// exchanged between the check and the use.
#[derive(Clone)]
pub struct FileGuard(Arc<Decide>);

impl FileGuard {
    /// A guard that asks this function.
    pub fn new(decide: impl Fn(&Path, &[u8]) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(decide))
    }

    /// Whether these bytes of this file may be used.
    pub fn admits(&self, path: &Path, bytes: &[u8]) -> bool {
        (self.0)(path, bytes)
    }
}

/// Admits every file.
impl Default for FileGuard {
    fn default() -> Self {
        Self::new(|_, _| true)
    }
}

impl fmt::Debug for FileGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileGuard")
    }
}
