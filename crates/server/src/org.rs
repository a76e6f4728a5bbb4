//! The organisation as one document: to look at, to keep, to bring in.

use axum::extract::State;
use polis_domain::{AgentId, Children, Org, OrgRole};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::body::Json;
use crate::once::Keyed;
use crate::problem::Problem;
use crate::state::SocietyState;
use crate::wanted::{Name, Wanted};
use polis_api::Paging;

/// The roles, by name.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Roles {
    roles: Vec<OrgRole>,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// How an agent goes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Terminate {
    /// What becomes of its children.
    #[serde(default)]
    children: Children,
    #[serde(default)]
    reason: String,
    /// Whether it goes with its work undone.
    #[serde(default)]
    now: bool,
}

/// Whether the agent is gone already; else it goes when it has done what waits for it (R181).
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Terminated {
    ok: bool,
    terminated_agent_id: AgentId,
}

/// How a document is brought in.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ImportRequest")]
pub(crate) struct How {
    /// Whether root's role becomes what the document says.
    #[serde(default)]
    root: bool,
}

/// How much of it is new.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Imported {
    roles: usize,
    agents: usize,
    /// Roles that were here and are others now.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<usize>,
    /// What of the document did not come in, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left: Vec<String>,
}

pub(crate) async fn org(State(state): State<SocietyState>) -> Result<axum::Json<Org>, Problem> {
    Ok(axum::Json(state.society.look(Org::of).await?))
}

pub(crate) async fn roles(
    State(state): State<SocietyState>,
    Wanted(paging): Wanted<Paging>,
) -> Result<axum::Json<Roles>, Problem> {
    let mut roles = state.society.look(Org::of).await?.roles;
    roles.sort_by(|a, b| a.role.id.cmp(&b.role.id));
    let (roles, next) = paging.cut(roles, |role| role.role.id.to_string());
    Ok(axum::Json(Roles { roles, next }))
}

pub(crate) async fn terminate(
    Keyed(state): Keyed,
    Name(id): Name,
    Json(request): Json<Terminate>,
) -> Result<axum::Json<Terminated>, Problem> {
    let agent = state.society.addressee(AgentId::from(id)).await?;
    state.society.terminate(agent.clone(), request.children, &request.reason, request.now).await?;
    let gone = agent.clone();
    let ok = state.society.look(move |spine| spine.terminated.contains_key(&gone)).await?;
    Ok(axum::Json(Terminated { ok, terminated_agent_id: agent }))
}

pub(crate) async fn import(
    Keyed(state): Keyed,
    Wanted(how): Wanted<How>,
    Json(written): Json<Value>,
) -> Result<axum::Json<Imported>, Problem> {
    let org = Org::read(written).map_err(|bad| Problem::bad_request("bad_org", bad.to_string()))?;
    let made = state.society.import(org, how.root).await?;
    let changed = Some(made.changed).filter(|count| *count > 0);
    Ok(axum::Json(Imported { roles: made.roles, agents: made.agents, changed, left: made.left }))
}
