//! What the operator adds to the page.

use std::path::PathBuf;

use polis_ports::FileGuard;

/// What the operator adds to the page.
#[derive(Debug, Clone, Default)]
pub struct PageOptions {
    /// The folder with the scripts; none are loaded without it.
    pub components: Option<PathBuf>,
    /// Decides which of them may be served.
    pub guard: FileGuard,
    /// Whether documents of models may run scripts, in a frame that reaches nothing.
    pub live_html: bool,
}
