//! Roles that embedders add to the workflow. Each is asked when the todos of a plan are done, before the verifier: what it wants
//! better goes back to the planner, what it says is there for the verifier to read.

use std::fmt;
use std::sync::Arc;

use polis_ports::Format;
use serde_json::{Map, Value};

use super::{AgentAction, AgentType, Evidence, Language, Plan, TaskJudgement};

/// A type of agent that the workflow does not have by itself, such as a reviewer. Its core template is set at the engine's
/// [`super::PromptManager`]; this says when it is asked, what, and what its reply means.
pub trait WorkflowRole: fmt::Debug + Send + Sync + 'static {
    /// Its type. Its prompt, its sub-thread and what is seen of it have this name.
    fn agent(&self) -> AgentType;

    /// The `component` of its reply, such as `reviewer-response`.
    fn component(&self) -> &'static str;

    /// What it is told when the todos of a plan are done; none when it has nothing to do with this one.
    fn message(&self, state: &WorkflowState<'_>) -> Option<String>;

    /// Reads the fields of its reply. The error lists what is wrong, one line each, and the model is asked again with it.
    fn read(&self, reply: &Map<String, Value>) -> Result<RoleReply, Vec<String>>;

    /// The names of its fields: a reply without `component` is known by them.
    fn fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// The shape that vendors can hold the reply to. Not used by a role with tools.
    fn format(&self) -> Option<Arc<Format>> {
        None
    }

    /// Whether it may use the executor's tools.
    fn has_tools(&self) -> bool {
        false
    }

    /// Rounds that it may have; each call of tools takes one.
    fn rounds(&self) -> usize {
        if self.has_tools() { 10 } else { 1 }
    }

    /// What it is seen doing.
    fn action(&self) -> AgentAction {
        AgentAction::Verifying
    }
}

/// The state of the workflow when a role is asked.
#[derive(Debug, Clone, Copy)]
pub struct WorkflowState<'a> {
    /// The language of the request.
    pub language: Language,
    /// What the person wants.
    pub request: &'a str,
    /// The plan, with what came of its todos.
    pub plan: &'a Plan,
    /// What happened.
    pub evidence: &'a Evidence,
}

/// The parsed reply of a role.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RoleReply {
    /// What it says, for people and for the verifier.
    pub text: String,
    /// What it wants better. If there is anything, the planner is next instead of the verifier.
    pub improvements: Vec<String>,
    /// What it thinks of todos. Those that it does not call completed are open again.
    pub tasks: Vec<TaskJudgement>,
}

/// The role of a type, if somebody has added it.
pub(super) fn find<'a>(roles: &'a [Arc<dyn WorkflowRole>], agent: &AgentType) -> Option<&'a dyn WorkflowRole> {
    roles.iter().map(|role| &**role).find(|role| role.agent() == *agent)
}
