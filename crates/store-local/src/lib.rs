//! The log in SQLite: the embedded default.
//!
//! ```no_run
//! # fn main() -> Result<(), polis_ports::LogError> {
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! let log: Arc<dyn polis_ports::Log> = Arc::new(polis_store_local::LocalLog::open(Path::new("data"))?);
//! # Ok(())
//! # }
//! ```
//!
//! A data directory holds
//!
//! | file | what |
//! |---|---|
//! | `polis.db` and its `-wal` and `-shm` | the events, in SQLite (WAL, `synchronous=FULL`) |
//! | `witness` | the last commit that was acknowledged and what the indexes should list, so that a loss is noticed |
//! | `artifacts/ab/cdef…` | contents that the log names by their SHA-256; `artifacts/drafts/` has those that are being written |
//! | `snapshots/` | folded states: a cache, safe to delete |
//! | `lock` | held by the process that has the directory open; its text says who that is |
//! | `DAMAGED`, `damaged-…/` | what was wrong, and the files as they were found (D14) |
//!
//! One thread writes, for all societies: it commits everything that is queued as one group and answers after the fsync.
//! A few threads read. An error while writing leaves it unknown whether the group is there; nobody is told that it is,
//! and the next append settles it before it goes on.
//!
//! Every event has a checksum that is verified whenever it is read. A small database, and any after an unclean stop, is checked whole
//! before it is used. A large one that was closed well is used at once: its names are checked at opening, its indexes before the
//! first read by thread, and every event in the background. Once damage is met, nothing more is written.
//!
//! Never put the directory on a network file system: neither its locks nor its fsync can be relied upon there.

mod artifacts;
mod background;
mod check;
mod damage;
mod error;
mod lineage;
mod local_log;
mod lock;
mod queue;
mod reader;
mod row;
mod schema;
mod snapshot;
mod sums;
mod witness;
mod writer;

pub use artifacts::{ArtifactLimits, LocalArtifacts, Swept};
pub use local_log::{LocalLog, Options};
pub use lock::read_note;
