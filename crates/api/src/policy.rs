//! The operator's rules for calls, as they are shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operator's rules, in order; the first that fits counts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Policy {
    /// The rules.
    pub rules: Vec<PolicyRule>,
}

/// One rule. What it does not name fits anything.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct PolicyRule {
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The server that the tool comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The agent that calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The arguments, as JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// What holds then.
    pub then: PolicyThen,
    /// The reason, for people.
    pub why: String,
    /// Whether it holds also after outside content was read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tainted: bool,
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyThen {
    /// The call is made.
    Allow,
    /// A person is asked.
    Ask,
    /// The call is not made.
    Deny,
}
