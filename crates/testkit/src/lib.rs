//! Everything that tests need and no program does: scripted model and tools, a log in memory, a clock that moves when told,
//! a conformance suite for logs, a hostile HTTP server, and the simulator.

pub mod alike;
pub mod artifact_conformance;
mod artifacts;
mod clock;
pub mod conformance;
mod gated_log;
pub mod hostile;
mod memory_log;
mod model;
mod program;
pub mod sim;
mod tools;
pub mod world;

pub use artifacts::MemoryArtifacts;
pub use clock::ManualClock;
pub use gated_log::{Gate, GatedLog};
pub use memory_log::MemoryLog;
pub use model::{Line, ScriptedModel};
pub use program::{Op, Program, Programmed, expected, worker_role};
pub use tools::ScriptedTools;
