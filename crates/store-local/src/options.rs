//! Options of a local log.

/// Options of a local log. The defaults suit everything but tests.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The WAL is copied into the database when it is longer than this.
    pub checkpoint_bytes: u64,
    /// A database up to this size is checked completely at every opening; a larger one only after an unclean stop, otherwise
    /// in the background.
    pub check_up_to_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { checkpoint_bytes: 8 * 1024 * 1024, check_up_to_bytes: 64 * 1024 * 1024 }
    }
}
