//! Which tools can be called, and how the servers stand that bring some of them.

use axum::extract::State;
use polis_domain::EffectClass;
use polis_ports::{ServerState, ToolServer, ToolSpec, Toolbox};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::problem::Problem;
use crate::state::SocietyState;
use crate::wanted::Wanted;
use polis_api::Paging;

/// Which tools can be called.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Tools {
    tools: Vec<Tool>,
    servers: Vec<Server>,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Tool {
    name: String,
    /// The server that brings it; none when it is our own.
    server: Option<String>,
    /// What repeating a call would mean.
    effect: EffectClass,
    /// Whether an identical call may have another answer.
    volatile: bool,
    description: String,
    /// The schema of its arguments.
    parameters: Value,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ToolServer")]
struct Server {
    name: String,
    reach: String,
    state: ServerState,
    detail: String,
    trusted: bool,
    /// How many tools it brings.
    tools: usize,
}

pub(crate) async fn tools(
    State(state): State<SocietyState>,
    Wanted(paging): Wanted<Paging>,
) -> Result<axum::Json<Tools>, Problem> {
    let Tools { tools, servers, .. } = Tools::of(&**state.society.toolbox(), &state.society.own_tools());
    let places: Vec<(usize, Tool)> = tools.into_iter().enumerate().collect();
    let (page, next) = paging.cut(places, |(place, _)| polis_api::paging::numbered(*place as u64));
    Ok(axum::Json(Tools { tools: page.into_iter().map(|(_, tool)| tool).collect(), servers, next }))
}

/// The tools of a toolbox and those that turns do themselves, as `/api/tools` says it.
pub fn all_tools(toolbox: &dyn Toolbox, own: &[ToolSpec]) -> Value {
    serde_json::to_value(Tools::of(toolbox, own)).unwrap_or_default()
}

impl Tools {
    fn of(toolbox: &dyn Toolbox, own: &[ToolSpec]) -> Self {
        let servers = toolbox.servers();
        let tool = |ToolSpec { name, description, parameters, class, volatile }: &ToolSpec| Tool {
            name: name.to_string(),
            server: servers.iter().find(|server| server.tools.contains(name)).map(|server| server.name.to_string()),
            effect: *class,
            volatile: *volatile,
            description: description.to_string(),
            parameters: (*parameters).clone(),
        };
        let server = |ToolServer { name, reach, state, detail, trusted, tools }: &ToolServer| Server {
            name: name.to_string(),
            reach: reach.to_string(),
            state: *state,
            detail: detail.to_string(),
            trusted: *trusted,
            tools: tools.len(),
        };
        let tools = toolbox.tools().iter().chain(own).map(tool).collect();
        Self { tools, servers: servers.iter().map(server).collect(), next: None }
    }
}
