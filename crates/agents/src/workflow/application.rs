//! The layer above the engine, for embedding the workflow alone in another application (the documents' `useAgentWorkflow`): it
//! collects the tools of MCP servers, starts the run, and tells the application what happens.

use std::sync::Arc;

use polis_domain::{EffectClass, Failure};
use polis_ports::ToolSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::backend::{AgentBackend, AiMessage};
use super::{AgentWorkflowEngine, RunOptions, WorkflowResult};

/// Hears what happens in a run.
pub trait WorkflowCallbacks: Send {
    /// A message is new or was replaced; these are all of them.
    fn on_message_update(&mut self, _messages: &[AiMessage]) {}
    /// A step was taken, in words.
    fn on_log(&mut self, _line: &str) {}
    /// Something went wrong. The run may go on without it.
    fn on_error(&mut self, _failure: &Failure) {}
}

/// An MCP server as an application knows it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct McpServerInfo {
    /// Its key among the servers.
    pub key: String,
    /// Its name.
    pub name: String,
    /// How it is set up.
    #[serde(default)]
    pub config: McpServerConfig,
    /// How it stands: `connected`, or anything else.
    #[serde(default)]
    pub status: String,
    /// What it offers.
    #[serde(default)]
    pub tools: Vec<McpTool>,
}

/// How an MCP server is set up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct McpServerConfig {
    /// Whether it may be used; it may where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether what it says about its own tools is believed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trusted: bool,
}

/// A tool as an MCP server lists it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpTool {
    /// Its name.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// JSON schema of its arguments.
    #[serde(default = "any_object")]
    pub input_schema: Value,
    /// What the server says about its effects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<McpHints>,
}

/// What an MCP server says about the effects of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct McpHints {
    /// It changes nothing.
    pub read_only_hint: Option<bool>,
    /// A second call like the first changes nothing more.
    pub idempotent_hint: Option<bool>,
    /// It may destroy something.
    pub destructive_hint: Option<bool>,
    /// It looks at things that change by themselves, such as the web.
    pub open_world_hint: Option<bool>,
}

fn any_object() -> Value {
    json!({ "type": "object" })
}

impl McpServerInfo {
    /// What a call of a tool changes: what a trusted server says, and anything where nobody says.
    fn class_of(&self, tool: &McpTool) -> EffectClass {
        let hints = tool.annotations.filter(|hints| self.config.trusted && hints.destructive_hint != Some(true));
        match hints.map(|hints| (hints.read_only_hint, hints.idempotent_hint)) {
            Some((Some(true), _)) => EffectClass::Read,
            Some((_, Some(true))) => EffectClass::Idempotent,
            _ => EffectClass::Write,
        }
    }

    /// Whether its tools may be used now: it is enabled and connected.
    pub fn is_available(&self) -> bool {
        self.config.enabled.unwrap_or(true) && self.status == "connected"
    }
}

/// The tools of all servers that are enabled and connected. Of two with one name the first counts. They count as writing, unless
/// a trusted server says otherwise.
pub fn available_tools(servers: &[McpServerInfo]) -> Vec<ToolSpec> {
    let mut tools: Vec<ToolSpec> = Vec::new();
    let available = servers.iter().filter(|server| server.is_available());
    for (server, tool) in available.flat_map(|server| server.tools.iter().map(move |tool| (server, tool))) {
        if tools.iter().all(|known| *known.name != *tool.name) {
            tools.push(ToolSpec {
                name: tool.name.as_str().into(),
                description: tool.description.clone(),
                parameters: tool.input_schema.clone(),
                class: server.class_of(tool),
                volatile: tool.annotations.is_some_and(|hints| hints.open_world_hint == Some(true)),
            });
        }
    }
    tools
}

/// The server that a call of this tool goes to. There is none for a tool that nobody offers: such a call fails and says so
/// (D22).
pub fn find_tool_server<'a>(servers: &'a [McpServerInfo], tool: &str) -> Option<&'a McpServerInfo> {
    servers.iter().find(|server| server.is_available() && server.tools.iter().any(|known| known.name == tool))
}

/// Collects the tools, runs the workflow and tells the application what happens.
pub async fn run_agent_workflow<B: AgentBackend>(
    engine: &AgentWorkflowEngine,
    backend: &mut B,
    mut options: RunOptions,
    callbacks: Box<dyn WorkflowCallbacks>,
) -> Result<WorkflowResult, Failure> {
    let more = available_tools(&options.mcp_servers);
    if !more.is_empty() {
        let known = options.tools.take().unwrap_or_else(|| backend.tools());
        let own = known.iter().cloned();
        let new = more.into_iter().filter(|tool| known.iter().all(|own| own.name != tool.name));
        options.tools = Some(own.chain(new).collect::<Arc<[_]>>());
    }
    backend.listeners().follow(callbacks);
    let result = engine.run(backend, options).await;
    if let Err(failure) = &result {
        backend.listeners().failed(failure);
    }
    backend.listeners().unfollow();
    result
}
