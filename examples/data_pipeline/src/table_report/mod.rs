//! Whoever wants a report on a table talks to this agent. It shows a placeholder at once and has the pipeline fill it.

mod data_pipeline;
mod table_report_agent;
mod table_report_state_handlers;

pub use data_pipeline::{DataPipelineAgent, Interpreter};
pub use table_report_agent::TableReportAgent;
