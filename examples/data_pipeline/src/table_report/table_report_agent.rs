//! The agent: a sub-thread in two steps, for one table after another.

use polis::prelude::*;

use super::data_pipeline::DataPipelineAgent;
use super::table_report_state_handlers::ReportDeliveryHandler;

/// Takes a table and gives a report on it.
#[derive(Debug, Clone, Copy, Default)]
pub struct TableReportAgent {
    /// Does the work.
    pub pipeline: DataPipelineAgent,
}

impl Agent for TableReportAgent {
    fn phases(&self) -> Phases {
        Phases::new()
            .on("prepare_subthread", PrepareSubThread::default())
            .then("execute_subthread")
            .on("execute_subthread", ReportDeliveryHandler::of(self.pipeline))
            .then("prepare_subthread")
    }
}
