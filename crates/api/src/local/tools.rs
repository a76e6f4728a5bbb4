//! Listing tools and the servers that provide them.

use polis_ports::{ServerState, ToolServer as Server, ToolSpec, Toolbox};

use super::Local;
use crate::paging::numbered;
use crate::{ApiError, Paging, Scope, Tool, ToolServer, ToolServerState, Tools};

impl Local {
    /// Which tools can be called, and the state of their servers.
    pub async fn tools(&self, paging: &Paging) -> Result<Tools, ApiError> {
        self.caller.needs(Scope::Read)?;
        let Tools { tools, servers, .. } = all_tools(&**self.society.toolbox(), &self.society.own_tools());
        let (page, next) = paging.cut(tools.into_iter().enumerate(), |(place, _)| numbered(*place as u64));
        Ok(Tools { tools: page.into_iter().map(|(_, tool)| tool).collect(), servers, next })
    }
}

/// The tools of a toolbox and those that run inside turns, on one page.
pub fn all_tools(toolbox: &dyn Toolbox, own: &[ToolSpec]) -> Tools {
    let servers = toolbox.servers();
    let tool = |ToolSpec { name, description, parameters, class, volatile }: &ToolSpec| Tool {
        name: name.to_string(),
        server: servers.iter().find(|server| server.tools.contains(name)).map(|server| server.name.to_string()),
        effect: *class,
        volatile: *volatile,
        description: description.to_string(),
        parameters: (*parameters).clone(),
    };
    let tools = toolbox.tools().iter().chain(own).map(tool).collect();
    Tools { tools, servers: servers.iter().map(server).collect(), next: None }
}

fn server(Server { name, reach, state, detail, trusted, tools }: &Server) -> ToolServer {
    let state = match state {
        ServerState::Off => ToolServerState::Off,
        ServerState::Starting => ToolServerState::Starting,
        ServerState::Connected => ToolServerState::Connected,
        ServerState::Down => ToolServerState::Down,
    };
    let (name, reach, detail) = (name.to_string(), reach.to_string(), detail.to_string());
    ToolServer { name, reach, state, detail, trusted: *trusted, tools: tools.len() }
}
