//! What the operator adds to the page, and the rules that it shows.

use std::path::PathBuf;

use polis_ports::FileGuard;
use schemars::JsonSchema;
use serde::Serialize;

/// What the operator adds to the page.
#[derive(Debug, Clone, Default)]
pub struct PageOptions {
    /// The folder with the scripts; none are loaded without it.
    pub components: Option<PathBuf>,
    /// Decides which of them may be served.
    pub guard: FileGuard,
    /// Whether documents of models may run scripts, in a frame that reaches nothing.
    pub live_html: bool,
    /// The operator's rules for calls, for whoever looks at the settings.
    pub policy: Vec<PolicyRule>,
}

/// One rule. What it does not name fits anything.
#[derive(Debug, Clone, Serialize, JsonSchema)]
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
    /// Why, for whoever reads it.
    pub why: String,
    /// Whether it holds also after outside content was read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tainted: bool,
}

/// What a rule says.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyThen {
    /// The call is made.
    Allow,
    /// A person is asked.
    Ask,
    /// The call is not made.
    Deny,
}
