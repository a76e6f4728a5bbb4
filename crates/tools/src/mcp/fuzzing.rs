//! What an MCP server sends, read without the server: its messages behind the limit on open requests, and its list of tools.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use polis_ports::ToolSpec;
use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;

use super::ServerSettings;
use super::limited_transport::LimitedTransport;
use super::tools::server_tools;

/// A server that has said all that it will say.
struct ScriptedServer(VecDeque<ServerJsonRpcMessage>);

impl Transport<RoleClient> for ScriptedServer {
    type Error = Infallible;

    fn send(&mut self, _: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.0.pop_front()
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Reads lines as messages and gives those that come through, each as JSON and with whether it is a request.
pub fn received(lines: &[&[u8]]) -> Vec<(Value, bool)> {
    let messages = lines.iter().filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let mut server = LimitedTransport::new(ScriptedServer(messages), Arc::default());
    let mut received = Vec::new();
    while let Poll::Ready(Some(message)) = pin!(server.receive()).poll(&mut Context::from_waker(Waker::noop())) {
        let is_request = matches!(message, JsonRpcMessage::Request(_));
        received.push((serde_json::to_value(&message).unwrap_or_default(), is_request));
    }
    received
}

/// The tools in a server's list, as models are shown them.
pub fn mcp_tools(settings: &ServerSettings, entries: Vec<Value>) -> Vec<ToolSpec> {
    server_tools(settings, entries).into_iter().map(|tool| tool.spec).collect()
}
