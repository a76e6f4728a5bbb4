//! What a running call may ask of whoever makes it.

use std::fmt;

use async_trait::async_trait;
use polis_domain::{Failure, Question, Reply, Verdict};

use crate::ModelRequest;

/// Answers what a running call needs to know before it can go on. What is asked and answered stands in the log beside the call.
#[async_trait]
pub trait Host: fmt::Debug + Send + Sync {
    /// Puts a question to the person, for the server `by`. None when nobody answers: the person turned away, or the call is over.
    async fn ask_person(&self, by: &str, question: Question) -> Option<Verdict>;

    /// Asks a model for the server `by`, as the policy allows it, on the account of whoever calls.
    async fn ask_model(&self, by: &str, request: ModelRequest) -> Result<Reply, Failure>;
}
