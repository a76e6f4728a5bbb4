//! The organisation as one document: to look at, to keep, to bring in.

use axum::extract::State;
use polis_domain::{AgentId, Children, Org, OrgRole};
use serde::{Deserialize, Serialize};

use crate::body::Json;
use crate::desk::Desk;
use crate::problem::Problem;
use crate::wanted::Name;

#[derive(Serialize)]
pub(crate) struct Roles {
    roles: Vec<OrgRole>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Terminate {
    #[serde(default)]
    children: Children,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    now: bool,
}

/// Whether the agent is gone already; else it goes when it has done what waits for it (R181).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Terminated {
    ok: bool,
    terminated_agent_id: AgentId,
}

/// How much of it is new.
#[derive(Serialize)]
pub(crate) struct Imported {
    roles: usize,
    agents: usize,
}

pub(crate) async fn org(State(desk): State<Desk>) -> Result<axum::Json<Org>, Problem> {
    Ok(axum::Json(desk.society.look(Org::of).await?))
}

pub(crate) async fn roles(State(desk): State<Desk>) -> Result<axum::Json<Roles>, Problem> {
    Ok(axum::Json(Roles { roles: desk.society.look(Org::of).await?.roles }))
}

pub(crate) async fn terminate(
    State(desk): State<Desk>,
    Name(id): Name,
    Json(wish): Json<Terminate>,
) -> Result<axum::Json<Terminated>, Problem> {
    let agent = AgentId::from(id);
    desk.society.terminate(agent.clone(), wish.children, &wish.reason, wish.now).await?;
    let gone = agent.clone();
    let ok = desk.society.look(move |spine| spine.terminated.contains_key(&gone)).await?;
    Ok(axum::Json(Terminated { ok, terminated_agent_id: agent }))
}

pub(crate) async fn import(State(desk): State<Desk>, Json(org): Json<Org>) -> Result<axum::Json<Imported>, Problem> {
    let (roles, agents) = desk.society.import(org).await?;
    Ok(axum::Json(Imported { roles, agents }))
}
