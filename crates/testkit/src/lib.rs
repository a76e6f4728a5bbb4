//! Everything that tests need and no program does: a whole society in one line, scripted model and tools, a log in memory, a
//! clock that moves when told, a crash after every commit, a kill at every event, a conformance suite for logs, a hostile HTTP
//! server, PostgreSQL servers, links that are cut, a checker of histories, and the simulator.

pub mod artifact_conformance;
mod artifacts;
mod clock;
pub mod conformance;
pub mod crash;
pub mod document_conformance;
mod documents;
pub mod equivalence;
mod gated_log;
pub mod history;
pub mod hostile;
pub mod kill;
pub mod link;
pub mod memory_conformance;
mod memory_log;
mod memory_texts;
mod model;
pub mod outage;
#[cfg(unix)]
pub mod postgres;
mod program;
pub mod sim;
mod society;
mod tools;
pub mod world;

pub use artifacts::MemoryArtifacts;
pub use clock::ManualClock;
pub use documents::MemoryDocuments;
pub use gated_log::{FullDisk, Gate, GatedLog, Lease, Questions};
pub use memory_log::MemoryLog;
pub use memory_texts::{InMemoryTexts, TopicEmbedder};
pub use model::{ScriptedModel, ScriptedReply};
pub use program::{Op, Program, ProgrammedAgent, expected, worker_role};
pub use society::{ask, open, society, whole_state};
pub use tools::ScriptedTools;
