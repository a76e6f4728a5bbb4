//! Tools that can be called, and the servers that provide some of them.

use polis_domain::EffectClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which tools can be called.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Tools {
    /// The tools of this page.
    pub tools: Vec<Tool>,
    /// The servers that provide tools, whether they are connected or not.
    pub servers: Vec<ToolServer>,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A tool.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Tool {
    /// The name that models call it by.
    pub name: String,
    /// The server that brings it; none when it is our own.
    pub server: Option<String>,
    /// What repeating a call would mean.
    pub effect: EffectClass,
    /// Whether an identical call may have another answer.
    pub volatile: bool,
    /// What it does, for models.
    pub description: String,
    /// The schema of its arguments.
    pub parameters: Value,
}

/// A server that provides tools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ToolServer {
    /// Its name in the configuration.
    pub name: String,
    /// How it is reached: its command or its address.
    pub reach: String,
    /// The state of the connection.
    pub state: ToolServerState,
    /// More about the state, for people.
    pub detail: String,
    /// Whether the operator trusts what it says about its tools.
    pub trusted: bool,
    /// How many tools it brings.
    pub tools: usize,
}

/// The state of a server connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ServerState")]
pub enum ToolServerState {
    /// It is disabled.
    Off,
    /// It is being connected for the first time.
    Starting,
    /// Its tools can be called.
    Connected,
    /// The connection failed and is being retried.
    Down,
}
