//! Which tools can be called, and how the servers stand that bring some of them.

use axum::extract::State;
use polis_ports::{ToolServer, ToolSpec, Toolbox};
use serde_json::{Value, json};

use crate::desk::Desk;

pub(crate) async fn tools(State(desk): State<Desk>) -> axum::Json<Value> {
    axum::Json(all_tools(&**desk.society.toolbox(), &desk.society.own_tools()))
}

/// The tools of a toolbox and those that turns do themselves, as `/api/tools` says it.
pub fn all_tools(toolbox: &dyn Toolbox, own: &[ToolSpec]) -> Value {
    let servers = toolbox.servers();
    let tool = |ToolSpec { name, description, parameters, class, volatile }: &ToolSpec| {
        let server = servers.iter().find(|server| server.tools.contains(name)).map(|server| &server.name);
        json!({ "name": name, "server": server, "effect": class, "volatile": volatile, "description": description, "parameters": parameters })
    };
    let server = |ToolServer { name, reach, state, detail, trusted, tools }: &ToolServer| json!({ "name": name, "reach": reach, "state": state, "detail": detail, "trusted": trusted, "tools": tools.len() });
    let tools: Vec<Value> = toolbox.tools().iter().chain(own).map(tool).collect();
    json!({ "tools": tools, "servers": servers.iter().map(server).collect::<Vec<_>>() })
}
