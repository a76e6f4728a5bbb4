//! Questions that a running tool call may ask the engine.

use std::fmt;

use async_trait::async_trait;
use polis_domain::{Failure, Question, Reply, Verdict};

use crate::ModelRequest;

/// Answers questions of a running call. Question and answer are logged beside the call.
#[async_trait]
pub trait Host: fmt::Debug + Send + Sync {
    /// Asks the person a question for the server `by`. None if there is no answer: the person declined, or the call has ended.
    async fn ask_person(&self, by: &str, question: Question) -> Option<Verdict>;

    /// Calls a model for the server `by`, if policy allows it, within the budgets of the calling agent.
    async fn ask_model(&self, by: &str, request: ModelRequest) -> Result<Reply, Failure>;
}
