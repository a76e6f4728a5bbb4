//! The sub-thread: which unit serves which phase, what the model is told in it, and what it all comes to.

use std::sync::Arc;

use polis::domain::Sender;
use polis::prelude::*;

use super::code::Interpreter;
use super::data_pipeline_interaction_units::{
    DataAnalysisUnit, DataPreparationUnit, DataTransformationUnit, ResultFormattingUnit,
};
use super::data_pipeline_state_handlers::{
    DataAnalysisHandler, DataPreparationHandler, DataTransformationHandler, ResultFormattingHandler,
};
use super::stage::{FORMATTING, STAGES};
use super::writing::MAX_TRIALS;

/// Who the model is, in every phase (R148).
const SYSTEM_PROMPT: &str =
    "你是一个数据处理助手，负责数据准备、转换、分析和结果格式化。\n请按照流水线步骤处理数据并生成结果报告。";

/// Prepares a table, transforms it, analyses it and makes a report (R147).
#[derive(Debug, Clone, Copy)]
pub struct DataPipelineAgent {
    /// What runs the code that the model writes.
    pub interpreter: Interpreter,
}

impl Default for DataPipelineAgent {
    fn default() -> Self {
        Self { interpreter: Interpreter::SHELL }
    }
}

impl SubThreadAgent for DataPipelineAgent {
    fn units(&self) -> Units {
        let with = self.interpreter;
        Units::new()
            .on("initial_phase", DataPreparationUnit(with))
            .with_handler(DataPreparationHandler(with))
            .then("data_transformation")
            .on("data_transformation", DataTransformationUnit(with))
            .with_handler(DataTransformationHandler(with))
            .then("data_analysis")
            .on("data_analysis", DataAnalysisUnit(with))
            .with_handler(DataAnalysisHandler(with))
            .then("result_formatting")
            .on("result_formatting", ResultFormattingUnit(with))
            .with_handler(ResultFormattingHandler(with))
            .then("completed")
    }

    /// Each phase may be gone through again as often as the model may try, and once more with the built-in script.
    fn max_interactions(&self) -> usize {
        STAGES.len() * (MAX_TRIALS + 1)
    }

    async fn system_prompt(&self, turn: &mut Turn) -> Result<Arc<str>, Failure> {
        let phase = match turn.phase().as_str() {
            "data_transformation" => include_str!("prompt/data_transformation_system_prompt.md"),
            "data_analysis" => include_str!("prompt/data_analysis_system_prompt.md"),
            "result_formatting" => include_str!("prompt/result_formatting_system_prompt.md"),
            _ => include_str!("prompt/initial_phase_system_prompt.md"),
        };
        Ok(format!("{SYSTEM_PROMPT}\n\n{phase}").into())
    }

    /// What stands after the mark of the last phase (R149); without one, what the bot said last.
    async fn summarize(&self, progress: &Progress, _turn: &mut Turn) -> Result<String, Failure> {
        let marks = [FORMATTING.mark.zh, FORMATTING.mark.en].map(str::trim_end);
        let reports = progress.thread.messages.iter().filter(|message| message.sender == Sender::User);
        let after = |text: &str| marks.iter().find_map(|mark| Some(text.split_once(mark)?.1.trim().to_owned()));
        let found = reports.filter_map(|message| after(&message.text)).find(|text| !text.is_empty());
        Ok(found.unwrap_or_else(|| progress.last_bot_text().to_owned()))
    }
}
