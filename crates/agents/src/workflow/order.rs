//! An order to one role, with everything that it depends on; and what came of it. Both stand in the log, so that whoever
//! carries an order out again is told the same, whatever files and tools are there by then.

use std::sync::Arc;

use polis_domain::{Failure, Text, Usage};
use polis_ports::ToolSpec;
use serde::{Deserialize, Serialize};

use super::{
    AgentType, AiMessage, ExecutorResponse, Language, Plan, PlannerResponse, RunSettings, TaskJudgement, TodoStatus, ToolScope,
    VerifierResponse,
};

/// What one role is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// Which role.
    pub agent: AgentType,
    /// Its system message as it was rendered, or why it could not be.
    pub prompt: Result<Text, Failure>,
    /// The language that it is spoken to in.
    pub language: Language,
    /// What it is told.
    pub messages: Vec<AiMessage>,
    /// The todo that it is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub todo: String,
    /// Whether the vendor is to hold the model to the shape of its answer. Several vendors take either tools or a shape.
    pub is_shaped: bool,
    /// What a list shows while it is carried out.
    pub title: String,
    /// Rounds that it may have.
    pub rounds: usize,
    /// How often a reply that cannot be read is asked for again.
    pub repairs: usize,
    /// The model to ask, if not the usual one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// The plan that a new one takes the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// What the whole run keeps to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<RunSettings>,
    /// The tools that it may use, if not those of the backend. An application gives them; they are not kept.
    #[serde(skip)]
    pub tools: Option<Arc<[ToolSpec]>>,
    /// What its calls of tools go with. A society has it with each request, so it is not kept here.
    #[serde(skip)]
    pub scope: Arc<ToolScope>,
    /// Whether it may only use tools that read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads_only: bool,
    /// How many calls the verifier has made in this run before, which its next ones are numbered after.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub looks: usize,
    /// Tools that write, which a plan may name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writers: Vec<String>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What came of an order.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// What it comes to.
    pub outcome: RoleOutcome,
    /// What was said and called.
    pub transcript: Vec<AiMessage>,
    /// Where that is found.
    pub address: String,
    /// Tokens and money.
    pub usage: Usage,
    /// How long it took.
    pub duration_ms: u64,
    /// How many rounds it took.
    pub rounds: usize,
}

/// What an order comes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RoleOutcome {
    /// The planner has planned as far as it could.
    Planned {
        /// What it said last.
        response: PlannerResponse,
        /// What of it may write: tools that it names, todos that say so or do not say.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        writes: Vec<String>,
        /// What the whole run keeps to, as the order said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        settings: Option<RunSettings>,
    },
    /// An executor is done with its todo, one way or the other.
    Executed {
        /// Where the todo stands now.
        status: TodoStatus,
        /// The result, or why there is none.
        result: String,
        /// What it said last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response: Option<ExecutorResponse>,
    },
    /// The verifier has judged.
    Verified {
        /// Its judgement.
        response: VerifierResponse,
    },
    /// A role that others have added has said its word.
    Said {
        /// What it says.
        text: String,
        /// What it wants better.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        improvements: Vec<String>,
        /// What it thinks of todos.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<TaskJudgement>,
    },
    /// The request was answered without a plan.
    Answered {
        /// The answer.
        text: String,
        /// Whether it was written before the rounds were used up.
        is_finished: bool,
    },
    /// It came to nothing.
    Failed {
        /// The failure of the order.
        failure: Failure,
    },
}

impl Done {
    /// What came to nothing before anybody began.
    pub fn failed(failure: Failure) -> Self {
        Self {
            outcome: RoleOutcome::Failed { failure },
            transcript: Vec::new(),
            address: String::new(),
            usage: Usage::default(),
            duration_ms: 0,
            rounds: 0,
        }
    }

    /// What it comes to, for people.
    pub fn text(&self) -> &str {
        match &self.outcome {
            RoleOutcome::Planned { response, .. } => &response.summary,
            RoleOutcome::Executed { result, .. } => result,
            RoleOutcome::Verified { response } if response.is_final() => &response.summary,
            RoleOutcome::Verified { response } => &response.overall_feedback,
            RoleOutcome::Said { text, .. } | RoleOutcome::Answered { text, .. } => text,
            RoleOutcome::Failed { failure } => &failure.message,
        }
    }
}
