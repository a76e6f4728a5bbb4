//! The pipeline: code is written, saved, run in the sandbox and checked, phase by phase, until there is a report.

mod bench;
mod carrying;
mod code;
mod data_pipeline_agent;
mod data_pipeline_interaction_units;
mod data_pipeline_state_handlers;
mod feedback;
mod report;
mod said;
mod source;
mod stage;
mod trial;
mod writing;

pub use code::Interpreter;
pub use data_pipeline_agent::DataPipelineAgent;
