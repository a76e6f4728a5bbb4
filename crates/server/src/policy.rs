//! The rules by which calls are judged, as the operator wrote them. They are only shown here; whoever judges has them too.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::page_options::PolicyRule;
use crate::state::SocietyState;

/// The operator's rules, in order; the first that fits counts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Policy {
    rules: Vec<PolicyRule>,
}

pub(crate) async fn policy(State(state): State<SocietyState>) -> axum::Json<Policy> {
    axum::Json(Policy { rules: state.page.policy.clone() })
}
