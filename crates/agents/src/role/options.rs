//! What a role is made of: its actions and tools by name, its model settings, its SOPs, and its workflow (R329).

use std::sync::Arc;
use std::time::Duration;

use polis_engine::{SubThreadAgent, SubThreads, Turn};

use super::action::{Action, Actions, Tools};
use super::sop::Sops;
use crate::conversation::View;
use crate::{ContextLimits, Environment};

/// How long another agent's answer is waited for, unless a step says otherwise.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);

/// What a role is made of.
#[derive(Clone)]
pub struct RoleParts {
    /// Its name, for people; what a role of the society is called counts above it.
    pub name: Arc<str>,
    /// What it can do, by name.
    pub actions: Actions,
    /// Its tools by name; they include the one that records how tasks end.
    pub tools: Tools,
    /// How the model is asked.
    pub llm_config: LlmConfig,
    /// Procedures that people have written.
    pub sops: Sops,
    /// What its agents are told about where they work.
    pub environment: Environment,
    /// Whom it may ask when it plans freely, and what for.
    pub collaborators: Vec<(Arc<str>, String)>,
    /// How long an answer is waited for.
    pub patience: Duration,
    pub(super) workflow: Option<SubThreads>,
}

/// How a role asks the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LlmConfig {
    /// How freely it chooses its words, where it works on a step.
    pub temperature: Option<f64>,
    /// Rounds of tool use before a step must end.
    pub max_rounds: usize,
    /// How much of the conversation it is shown.
    pub context: ContextLimits,
    /// Whether it may decide that a task is complex and has to be planned.
    pub judges: bool,
}

impl Default for LlmConfig {
    fn default() -> Self {
        Self { temperature: None, max_rounds: 25, context: ContextLimits::default(), judges: true }
    }
}

impl Default for RoleParts {
    fn default() -> Self {
        Self {
            name: "role".into(),
            actions: Actions::default(),
            tools: Tools::default(),
            llm_config: LlmConfig::default(),
            sops: Sops::default(),
            environment: Environment::default(),
            collaborators: Vec::new(),
            patience: PATIENCE,
            workflow: None,
        }
    }
}

impl RoleParts {
    /// A role of this name with what every role has.
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The same role, whose complex tasks go to this agent, in a sub-thread.
    pub fn with_workflow(self, agent: impl SubThreadAgent) -> Self {
        Self { workflow: Some(SubThreads::new().with(super::strategy::WORKFLOW, agent)), ..self }
    }

    /// The same role with one more action.
    pub fn with_action(self, name: &str, action: impl Action) -> Self {
        Self { actions: self.actions.with(name, action), ..self }
    }

    /// The same role with one more tool, which its own code carries out.
    pub fn with_tool(self, name: &str, tool: impl Action) -> Self {
        Self { tools: self.tools.with(name, tool), ..self }
    }

    /// The same role with these procedures.
    pub fn with_sops(self, sops: Sops) -> Self {
        Self { sops, ..self }
    }

    /// The same role, told this about where it works.
    pub fn with_environment(self, environment: Environment) -> Self {
        Self { environment, ..self }
    }

    /// The same role, which may ask this agent for what is said.
    pub fn with_collaborator(mut self, agent: &str, what_for: impl Into<String>) -> Self {
        self.collaborators.push((agent.into(), what_for.into()));
        self
    }

    /// What an agent of the role is shown of its conversation.
    pub(super) fn view(&self, turn: &Turn) -> View<'_> {
        View::of(turn, self.llm_config.context, self.llm_config.max_rounds, &self.environment)
    }
}
