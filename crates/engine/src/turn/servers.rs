//! Waiting for tool servers that are still starting, and telling the person and the model which ones are missing. Which tools there
//! are is not part of the log, so none of this is.

use futures_util::future::join_all;
use polis_ports::{ServerState, ServerWait, ToolServer};

use super::Turn;

impl Turn {
    /// Waits until the servers whose tools this turn may be offered have started, each as long as its settings say. Watchers are
    /// told what the turn waits for, and which servers are missing in the end.
    pub(super) async fn wait_for_offered_servers(&self) {
        let starting: Vec<_> = self.offered_servers().filter(|server| server.state == ServerState::Starting).collect();
        self.wait_for_servers(&starting, ServerWait::Turn).await;
        for server in self.offered_servers().filter(|server| server.missing().is_some()) {
            self.publish_server(ToolServer::MISSING, &server.name);
        }
    }

    /// Waits for the servers that these calls need. Agents remember tools of servers from earlier turns.
    pub(super) async fn wait_for_called_servers<'a>(&self, tools: impl Iterator<Item = &'a str>) {
        let toolbox = &self.start.shared.ports.toolbox;
        let unknown: Vec<_> = tools.filter(|tool| toolbox.listed(tool).is_err()).collect();
        if unknown.is_empty() {
            return;
        }
        let is_called = |server: &ToolServer| unknown.iter().any(|tool| tool.starts_with(&server.tool_prefix()));
        let starting = self.offered_servers().filter(|server| server.state == ServerState::Starting && is_called(server));
        self.wait_for_servers(&starting.collect::<Vec<_>>(), ServerWait::Call).await;
    }

    /// What a model is told about servers whose tools it does not have; nothing if there are none. What a server has said itself
    /// is left out: it would stand among the instructions.
    pub(super) fn missing_servers_note(&self) -> Option<String> {
        let missing = self.offered_servers().filter(|server| server.missing().is_some()).map(|server| {
            let state = if server.state == ServerState::Starting { "starting" } else { "not running" };
            format!("`{}` ({state})", server.name)
        });
        let missing = missing.collect::<Vec<_>>().join(", ");
        (!missing.is_empty()).then(|| {
            format!(
                "The tools of these MCP servers are missing at present: {missing}. If you need them, say so in your answer."
            )
        })
    }

    /// The servers of which the roles of this turn may allow tools.
    fn offered_servers(&self) -> impl Iterator<Item = ToolServer> {
        let servers = self.start.shared.ports.toolbox.servers().into_iter();
        servers.filter(|server| {
            let prefix = server.tool_prefix();
            self.start.limiting_roles.iter().all(|role| role.may_have_tool_beginning(&prefix))
        })
    }

    async fn wait_for_servers(&self, servers: &[ToolServer], purpose: ServerWait) {
        for server in servers {
            tracing::info!(server = server.name, agent = %self.start.agent, "waiting for an MCP server that is still starting");
            self.publish_server(ToolServer::AWAITED, &server.name);
        }
        let toolbox = &self.start.shared.ports.toolbox;
        join_all(servers.iter().map(|server| toolbox.wait_for_server(&server.name, purpose))).await;
    }

    fn publish_server(&self, action: &str, server: &str) {
        if let Some(sink) = self.step_sink() {
            sink.publish("tools", action, Some(server), None);
        }
    }
}
