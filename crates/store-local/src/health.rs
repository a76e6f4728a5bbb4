//! The state of the writer that other threads read.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// Flags and a counter; only the writer sets them, except for `damage_seen`.
#[derive(Default)]
pub(crate) struct Health {
    /// A group failed, and it is unknown whether it is in the database.
    pub(crate) unsettled: AtomicBool,
    /// A read has found damage; nothing more is written.
    pub(crate) damage_seen: AtomicBool,
    /// Counts renames of societies. Readers drop their caches when it changes.
    pub(crate) renamed: AtomicU64,
}
