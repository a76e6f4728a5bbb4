//! The log in PostgreSQL 15 and later, for societies that several machines may own in turn, and what those share beside it:
//! artifacts, the texts of memories, and small documents.
//!
//! ```no_run
//! # async fn open() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use polis_ports::ArtifactLimits;
//! use polis_store_postgres::{Options, PostgresLog};
//!
//! let options = Options::parse("postgres://polis:secret@db1,db2/polis?sslmode=verify-full")?;
//! let log = PostgresLog::open(options).await?;
//! let (artifacts, memory_texts) = (log.artifacts(ArtifactLimits::default()), log.memory_texts());
//! let log: Arc<dyn polis_ports::Log> = Arc::new(log);
//! # Ok(())
//! # }
//! ```
//!
//! # One statement
//!
//! The row of a society has its head, its epoch, its owner and the end of the lease, so an append, its fence and the check of the
//! lease are one statement (`append` in `sql.rs`): it moves the heads that are where they are expected to be, and adds the events of
//! those. One statement writes what is queued of all societies (`writer.rs`); a society whose head is elsewhere has a conflict, and
//! the others are written all the same. The statement calls a function that is part of the tables, so the server plans what it does once
//! for each of its sessions.
//!
//! # Doubt
//!
//! When a connection is lost, nobody knows whether its last statement was executed, or still will be: it may wait for a lock, in
//! the network or in a pooler. So the next use of these societies raises their epochs first. That waits for a statement that has
//! begun, and what has not begun finds another epoch and writes nothing. Only then [`polis_ports::Log::head`] answers.
//!
//! # Poolers
//!
//! All statements are unnamed (`query_typed`): parse, bind and execute are one message, so nothing of a session is needed
//! between two statements, and poolers in transaction mode work, also those that know no prepared statements. The price is that
//! the server parses and plans a statement each time; that of an append is the call of a function, which is little.
//!
//! # Time
//!
//! Leases end by the clock of the database. A lease that this side holds ([`PostgresLog::hold`]) ends here a quarter earlier, by a
//! clock that goes on while the machine is suspended; the two clocks are never compared.

mod artifacts;
mod connection;
mod database;
mod documents;
mod error;
mod fork;
mod leases;
mod memory_texts;
pub mod moving;
mod nodes;
mod options;
mod placement;
mod pool;
mod postgres_log;
mod queue;
mod reader;
mod redaction;
mod schema;
mod snapshot;
mod sql;
mod tls;
mod writer;

pub use artifacts::PostgresArtifacts;
pub use documents::PostgresDocuments;
pub use memory_texts::PostgresMemoryTexts;
pub use nodes::Listing;
pub use options::{BadUrl, Options};
pub use placement::{Claim, Owner};
pub use postgres_log::PostgresLog;
