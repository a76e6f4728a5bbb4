//! The units: each saves the code of its phase, runs it, and reports what really came of it (R151).

use polis::domain::Sender;
use polis::prelude::*;

use super::carrying::carry_out;
use super::code::Interpreter;
use super::stage::{ANALYSIS, FORMATTING, PREPARATION, TRANSFORMATION};

/// Reads the table and cleans it.
pub(super) struct DataPreparationUnit(pub(super) Interpreter);

impl InteractionUnit for DataPreparationUnit {
    async fn user_message(&self, bot: &Message, turn: &mut Turn) -> Result<String, Failure> {
        carry_out(&PREPARATION, &self.0, bot, turn).await
    }
}

/// Gives each record an id, a value and a category.
pub(super) struct DataTransformationUnit(pub(super) Interpreter);

impl InteractionUnit for DataTransformationUnit {
    async fn user_message(&self, bot: &Message, turn: &mut Turn) -> Result<String, Failure> {
        carry_out(&TRANSFORMATION, &self.0, bot, turn).await
    }
}

/// Works out the figures.
pub(super) struct DataAnalysisUnit(pub(super) Interpreter);

impl InteractionUnit for DataAnalysisUnit {
    async fn user_message(&self, bot: &Message, turn: &mut Turn) -> Result<String, Failure> {
        carry_out(&ANALYSIS, &self.0, bot, turn).await
    }
}

/// Makes the report.
pub(super) struct ResultFormattingUnit(pub(super) Interpreter);

impl InteractionUnit for ResultFormattingUnit {
    async fn user_message(&self, bot: &Message, turn: &mut Turn) -> Result<String, Failure> {
        carry_out(&FORMATTING, &self.0, bot, turn).await
    }

    /// The report is made here, so there is something to say after the last message too.
    async fn execute(&self, turn: &mut Turn) -> Result<Interaction, Failure> {
        let round = turn.interact(self).await?;
        let report = self.user_message(&round.bot, turn).await?;
        let user = turn.add_message(&turn.path(), Sender::User, report).await?;
        Ok(Interaction { user: Some(user), ..round })
    }
}
