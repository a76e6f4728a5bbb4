//! The rules by which calls are judged, as the operator wrote them. They are only shown here; whoever judges has them too.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::state::SocietyState;

/// The operator's rules, in order; the first that fits counts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Policy {
    rules: Vec<PolicyRule>,
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

pub(crate) async fn policy(State(state): State<SocietyState>) -> axum::Json<Policy> {
    axum::Json(Policy { rules: state.page.policy.clone() })
}
