//! MCP servers: one of ours that behaves as badly as it is told to, and those of others.

mod actor;
mod asking;
mod bad;
mod calls;
mod conformance;
mod http;
mod logins;
mod others;
pub(crate) mod remote;
mod resource_tools;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use polis_domain::CallResult;
use polis_ports::{ServerState, ToolError, Toolbox};
use polis_tools::mcp::{McpOptions, McpServers, ServerSettings, ServerTransport};
use serde_json::Value;

use crate::bench::context;

/// How long anything may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// This program again, as a server that acts a part.
fn acting(part: &str) -> ServerSettings {
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let args = ["--exact", "mcp::actor::acts_its_part", "--nocapture", "--test-threads=1"].map(str::to_owned).to_vec();
    let env = BTreeMap::from([(actor::PART.to_owned(), part.to_owned())]);
    ServerSettings::new(part, ServerTransport::Command { command: program, args, env, cwd: None })
}

fn options() -> McpOptions {
    McpOptions { first_pause: Duration::from_millis(1), pulse: Duration::from_millis(300), ..McpOptions::default() }
}

/// Servers that have come up or failed once.
async fn open(settings: impl IntoIterator<Item = ServerSettings>) -> Arc<McpServers> {
    open_with(settings, options()).await
}

async fn open_with(settings: impl IntoIterator<Item = ServerSettings>, options: McpOptions) -> Arc<McpServers> {
    let servers = McpServers::open(settings, options);
    servers.settled(PATIENCE).await;
    Arc::new(servers)
}

async fn call(servers: &McpServers, tool: &str, arguments: Value) -> Result<CallResult, ToolError> {
    let context = context();
    let text = arguments.to_string();
    let call = servers.call(tool, &text, &context);
    tokio::time::timeout(PATIENCE, call).await.expect("a call always ends")
}

async fn good(servers: &McpServers, tool: &str, arguments: Value) -> String {
    let result = call(servers, tool, arguments).await.unwrap();
    assert!(!result.is_error, "{}", result.content);
    result.content.to_string()
}

async fn bad(servers: &McpServers, tool: &str, arguments: Value) -> String {
    match call(servers, tool, arguments).await {
        Ok(result) => {
            assert!(result.is_error, "{}", result.content);
            result.content.to_string()
        }
        Err(error) => error.to_string(),
    }
}

fn names(servers: &McpServers) -> Vec<String> {
    servers.tools().iter().map(|spec| spec.name.to_string()).collect()
}

fn states(servers: &McpServers) -> Vec<(String, ServerState)> {
    servers.servers().into_iter().map(|server| (server.name, server.state)).collect()
}

/// Asks until it is so.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let asking = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.unwrap_or_else(|_| panic!("it never came to this: {what}"));
}
