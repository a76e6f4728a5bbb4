//! The handlers: each has the code of its phase written, and says what to do with it (R150).

use polis::prelude::*;

use super::code::Interpreter;
use super::stage::{ANALYSIS, FORMATTING, PREPARATION, TRANSFORMATION};
use super::writing::code_message;

/// Reads the table and cleans it.
pub(super) struct DataPreparationHandler(pub(super) Interpreter);

impl StateHandler for DataPreparationHandler {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        code_message(&PREPARATION, &self.0, turn).await
    }
}

/// Gives each record an id, a value and a category.
pub(super) struct DataTransformationHandler(pub(super) Interpreter);

impl StateHandler for DataTransformationHandler {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        code_message(&TRANSFORMATION, &self.0, turn).await
    }
}

/// Works out the figures.
pub(super) struct DataAnalysisHandler(pub(super) Interpreter);

impl StateHandler for DataAnalysisHandler {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        code_message(&ANALYSIS, &self.0, turn).await
    }
}

/// Makes the report.
pub(super) struct ResultFormattingHandler(pub(super) Interpreter);

impl StateHandler for ResultFormattingHandler {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        code_message(&FORMATTING, &self.0, turn).await
    }
}
