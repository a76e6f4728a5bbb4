//! A type of agent that Polis does not have: a reviewer, who looks whether what the executors wrote keeps the house style. It
//! uses what anybody can use. Three things make it: a core template, a business context (`prompts/reviewer.md` of whoever
//! runs it), and this role, which says when it is asked, what, and what its reply means.

mod remarks;

use polis::workflow::{
    AgentType, AgentWorkflowEngine, BadAgentType, Language, PromptError, PromptManager, RoleReply, TodoStatus, WorkflowRole,
    WorkflowState,
};
use serde_json::{Map, Value};

const CORE_TEMPLATE: [(Language, &str); 2] =
    [(Language::En, include_str!("../prompts/reviewer.en.md")), (Language::Zh, include_str!("../prompts/reviewer.zh.md"))];

/// Looks whether the house style is kept.
#[derive(Debug, Clone)]
pub struct Reviewer {
    agent: AgentType,
}

impl Reviewer {
    /// The reviewer.
    pub fn new() -> Result<Self, BadAgentType> {
        Ok(Self { agent: AgentType::new("reviewer")? })
    }

    /// The workflow with a reviewer before the verifier.
    pub fn joining(self, mut prompts: PromptManager) -> Result<AgentWorkflowEngine, PromptError> {
        for (language, template) in CORE_TEMPLATE {
            prompts.set_core_template_in(self.agent.clone(), language, template)?;
        }
        Ok(AgentWorkflowEngine::new(prompts).with_role(self))
    }
}

impl WorkflowRole for Reviewer {
    fn agent(&self) -> AgentType {
        self.agent.clone()
    }

    fn component(&self) -> &'static str {
        "reviewer-response"
    }

    fn fields(&self) -> &'static [&'static str] {
        &["verdict", "remarks"]
    }

    /// The results that there are. Where nothing was done there is nothing to review.
    fn message(&self, state: &WorkflowState<'_>) -> Option<String> {
        let done = state.plan.todos().iter().filter(|todo| todo.status == TodoStatus::Completed);
        let results: Vec<String> = done.map(|todo| format!("## {}\n\n{}", todo.id, todo.result)).collect();
        (!results.is_empty()).then(|| format!("{}\n\n{}", state.request, results.join("\n\n")))
    }

    fn read(&self, reply: &Map<String, Value>) -> Result<RoleReply, Vec<String>> {
        remarks::read(reply)
    }
}
