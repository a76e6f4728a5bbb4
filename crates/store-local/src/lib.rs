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
//! | `witness` | the last acknowledged commit and checksums of the indexes, so that a loss is noticed (`last_ack.rs`) |
//! | `artifacts/ab/cdef…` | artifacts by their SHA-256; `artifacts/drafts/` has those that are being written |
//! | `memory.db` | the texts of memories, and their embeddings (`memory_texts.rs`) |
//! | `snapshots/` | folded states: a cache, safe to delete |
//! | `lock` | locked by the process that has the directory open; its text says which |
//! | `DAMAGED`, `damaged-…/` | what was wrong, and the files as they were found (D14) |
//!
//! One thread writes for all societies: it commits everything that is queued as one group and answers after the fsync. A few
//! threads read. After a write error it is unknown whether the group is on the disk; it is not acknowledged, and the next
//! append first finds out.
//!
//! Every event has a checksum that is verified whenever it is read. A small database, and any database after an unclean stop,
//! is checked completely before it is used. A large one that was closed cleanly is used at once: its list of societies is
//! checked at opening, its indexes before the first read by thread, and its events in the background. Once damage is found,
//! nothing more is written.
//!
//! [`backup`] copies a directory that may be in use into one file, [`restore`] makes a directory of it, and [`Inspection`] looks
//! through either.
//!
//! Never put the directory on a network file system: neither its locks nor its fsync can be relied upon there.

mod artifacts;
mod background;
mod backup;
mod backup_file;
mod check;
mod damage;
mod documents;
mod error;
mod extent;
mod health;
mod inspect;
mod keys;
mod last_ack;
mod lineage;
mod local_log;
mod lock;
mod memory_texts;
mod moving;
mod options;
mod plain_file;
mod queue;
mod reader;
mod redaction;
mod restore;
mod row;
mod schema;
mod segment;
mod snapshot;
mod sums;
mod writer;

pub use artifacts::LocalArtifacts;
pub use backup::{BackupError, BackupReport, backup};
pub use documents::LocalDocuments;
pub use inspect::{InspectedSociety, Inspection};
pub use local_log::LocalLog;
pub use lock::{DataDirectory, read_note};
pub use memory_texts::LocalMemoryTexts;
pub use moving::{ComingLog, LeavingLog};
pub use options::Options;
pub use plain_file::{unfinished, write_private};
pub use polis_ports::ArtifactLimits;
use polis_stored_event::body;
pub use restore::restore;
