//! Who takes part in a workflow, and what one is seen doing. The set is open: anybody can add a type of agent.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A type of agent, such as `planner`. Types of others are names like these.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentType(Cow<'static, str>);

/// A name that no type of agent can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be a type of agent; write 1 to 32 of a-z, 0-9, `_` and `-`, beginning with a letter, such as `reviewer`")]
pub struct BadAgentType(String);

impl AgentType {
    /// Splits a request into todos.
    pub const PLANNER: Self = Self(Cow::Borrowed("planner"));
    /// Does a todo.
    pub const EXECUTOR: Self = Self(Cow::Borrowed("executor"));
    /// Judges what was done and answers.
    pub const VERIFIER: Self = Self(Cow::Borrowed("verifier"));

    /// Answers a request for which no plan can be read.
    pub const FALLBACK: Self = Self(Cow::Borrowed("fallback"));

    /// A type with this name. Files are named after it, so it is a plain word.
    pub fn new(name: impl Into<String>) -> Result<Self, BadAgentType> {
        let name = name.into();
        let is_plain = name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'));
        let is_good = is_plain && name.len() <= 32 && name.starts_with(|c: char| c.is_ascii_lowercase());
        if is_good { Ok(Self(name.into())) } else { Err(BadAgentType(name)) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for AgentType {
    type Error = BadAgentType;

    fn try_from(name: String) -> Result<Self, BadAgentType> {
        Self::new(name)
    }
}

impl From<AgentType> for String {
    fn from(agent: AgentType) -> Self {
        agent.0.into_owned()
    }
}

/// What an agent of a workflow is seen doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentAction {
    /// A model reasons.
    Thinking,
    /// The planner writes todos.
    Planning,
    /// The executor works on a todo.
    Executing,
    /// A tool is used.
    CallingTool,
    /// The verifier judges.
    Verifying,
    /// The answer is written.
    Summarizing,
    /// A person is waited for.
    Waiting,
}

impl AgentAction {
    /// The name that JSON has for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Thinking => "thinking",
            Self::Planning => "planning",
            Self::Executing => "executing",
            Self::CallingTool => "calling_tool",
            Self::Verifying => "verifying",
            Self::Summarizing => "summarizing",
            Self::Waiting => "waiting",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_are_plain_words() {
        assert_eq!(AgentType::new("planner").unwrap(), AgentType::PLANNER);
        assert_eq!(AgentType::new("code-reviewer_2").unwrap().name(), "code-reviewer_2");
        let long = "a".repeat(33);
        for bad in ["", "Planner", "../planner", "a/b", "a.b", "2nd", "-x", "审查", &*long] {
            assert!(AgentType::new(bad).is_err(), "{bad}");
            assert!(serde_json::from_value::<AgentType>(bad.into()).is_err(), "{bad}");
        }
        assert_eq!(serde_json::to_value(AgentType::VERIFIER).unwrap(), "verifier");
    }

    #[test]
    fn actions_have_the_names_that_json_has() {
        let names = [AgentAction::Thinking, AgentAction::Planning, AgentAction::CallingTool]
            .map(|action| serde_json::to_value(action).unwrap());
        assert_eq!(names, ["thinking", "planning", "calling_tool"]);
        for action in [AgentAction::Executing, AgentAction::CallingTool, AgentAction::Verifying, AgentAction::Summarizing] {
            assert_eq!(serde_json::to_value(action).unwrap(), action.name());
        }
    }
}
