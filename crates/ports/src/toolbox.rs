//! Tools: how agents act on the world.

use std::sync::Arc;

use async_trait::async_trait;
use polis_domain::{
    AgentId, CallResult, EffectId, Flow, Question, ReadTool, RoleId, Ruling, SocietyId, SubThreadPath, TaskId, ThreadId,
};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{ArtifactStore, Host, ToolSpec};

/// Lists the tools of a society and runs them.
#[async_trait]
pub trait Toolbox: Send + Sync {
    /// The tools that can be called at present.
    fn tools(&self) -> Arc<[ToolSpec]>;

    /// Resolves the name that a model used to the listed name of a tool, or returns why there is none.
    fn listed(&self, tool: &str) -> Result<Arc<str>, ToolError> {
        let found = self.tools().iter().find(|spec| &*spec.name == tool).map(|spec| spec.name.clone());
        found.ok_or_else(|| ToolError::Unknown(tool.to_owned()))
    }

    /// The server that a listed tool comes from, and its name there; none for built-in tools.
    fn origin(&self, _tool: &str) -> Option<ToolOrigin> {
        None
    }

    /// Whether models need not see a tool in each request where they have many: they find it by a search.
    fn is_deferred(&self, tool: &str) -> bool {
        self.origin(tool).is_some()
    }

    /// Whether policy allows a call. Called once, before the call is stated; the log keeps the ruling.
    fn ruling(&self, _tool: &str, _arguments: &str, _who: &Caller<'_>) -> Ruling {
        Ruling::Allow
    }

    /// Where the content of a call comes from and goes to. Called before the call is stated.
    fn flow(&self, _tool: &str, _arguments: &str, _who: &Caller<'_>) -> Flow {
        Flow::default()
    }

    /// The identity of a server tool's definition; none for built-in tools.
    fn identity(&self, _tool: &str) -> Option<ToolIdentity> {
        None
    }

    /// Whether policy lets a server call a model while it runs a call of ours (MCP sampling).
    fn sampling_ruling(&self, _server: &str, _who: &Caller<'_>) -> Ruling {
        Ruling::Ask(String::new())
    }

    /// What a call would do to a text file, or why that cannot be shown; none if it changes no text file. Nothing is changed.
    ///
    /// Called while a person decides about the call. The comparison shows what is in the file, so a policy allows it only where
    /// the caller may read the file without a decision.
    async fn change(&self, _tool: &str, _arguments: &str, _who: &Caller<'_>) -> Option<Result<TextChange, String>> {
        None
    }

    /// Runs one call. Dropping the future stops it as far as possible.
    ///
    /// A failure that the model should read is a result with `is_error`; an `Err` means that the call was not started.
    async fn call(&self, tool: &str, arguments: &str, context: &CallContext) -> Result<CallResult, ToolError>;

    /// Waits while a server is being connected for the first time, as long as its settings allow for this purpose.
    async fn wait_for_server(&self, _server: &str, _purpose: ServerWait) {}

    /// The servers that provide tools, and their state.
    fn servers(&self) -> Vec<ToolServer> {
        Vec::new()
    }
}

/// What a server is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerWait {
    /// A turn begins that may be offered its tools.
    Turn,
    /// One of its tools is called.
    Call,
}

/// Where a tool comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOrigin {
    /// The name that the operator gave the server.
    pub server: String,
    /// The server's own name for the tool.
    pub tool: String,
}

/// The present definition of a server tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolIdentity {
    /// A cryptographic digest of the definition and of the connection to the server.
    pub digest: Arc<str>,
    /// The definition as text, without secrets.
    pub definition: Arc<str>,
    /// The tools of the same server that it declares as read-only.
    pub reads: Vec<ReadTool>,
}

/// A server that provides tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolServer {
    /// The name that the operator gave it.
    pub name: String,
    /// Its address or command, without secrets.
    pub reach: String,
    /// The state of the connection.
    pub state: ServerState,
    /// The name that it reports, or why it is not connected.
    pub detail: String,
    /// Whether its own statements about its tools are trusted.
    pub trusted: bool,
    /// The names of its tools that can be called at present.
    pub tools: Vec<Arc<str>>,
}

impl ToolServer {
    /// The action of a live step that says that a turn waits for this server; its component is the name of the server.
    pub const AWAITED: &'static str = "waiting_for_server";

    /// The action of a live step that says that a turn goes on without the tools of this server.
    pub const MISSING: &'static str = "server_missing";

    /// How the names of its tools begin.
    pub fn tool_prefix(&self) -> String {
        format!("{}__", self.name)
    }

    /// Why its tools cannot be called although it is enabled; none if they can.
    pub fn missing(&self) -> Option<&str> {
        matches!(self.state, ServerState::Starting | ServerState::Down).then_some(&*self.detail)
    }
}

/// The state of a server connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ServerState {
    /// It is disabled.
    Off,
    /// It is being connected for the first time.
    Starting,
    /// Its tools can be called.
    Connected,
    /// The connection failed and is being retried.
    Down,
}

/// One tool: its description and how it runs.
#[async_trait]
pub trait Tool: Send + Sync {
    /// The description for models and the engine.
    fn spec(&self) -> ToolSpec;

    /// Whether models need not see it in each request where they have many tools.
    fn is_deferred(&self) -> bool {
        false
    }

    /// The question to the person that stands for this tool, if it is one; such a tool is never run.
    fn question(&self, _arguments: &str) -> Option<Question> {
        None
    }

    /// Where the content of a call comes from and goes to.
    fn flow(&self, _arguments: &str) -> Flow {
        Flow::default()
    }

    /// Why a person must approve each of its calls, whatever the policy says; none if the policy decides.
    fn caution(&self) -> Option<String> {
        None
    }

    /// What a call would do to a text file, or why that cannot be shown; none for tools that change no text files.
    async fn change(&self, _arguments: &str) -> Option<Result<TextChange, String>> {
        None
    }

    /// Runs one call.
    async fn call(&self, arguments: &str, context: &CallContext) -> Result<CallResult, ToolError>;
}

/// What a call would do to a text file, compared with the file as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextChange {
    /// The file, from the workspace's root.
    pub path: String,
    /// The whole text now; none if there is no such file.
    pub before: Option<String>,
    /// The whole text afterwards.
    pub after: String,
}

impl TextChange {
    /// Most bytes of a text that is compared.
    pub const MAX_BYTES: usize = 1 << 20;
}

/// Who wants to make a call, for the policy.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// The calling agent.
    pub agent: &'a AgentId,
    /// The role of the agent.
    pub role: Option<&'a RoleId>,
    /// The request that the agent works on.
    pub task: &'a TaskId,
    /// Which of these names were chosen by an agent.
    pub chosen: Chosen,
}

/// Which names were chosen by an agent. A policy rule that allows something by name must not match these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Whether an agent chose the name of the agent.
    pub agent: bool,
    /// Whether an agent chose the name of the role.
    pub role: bool,
}

/// On whose behalf a call is made.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// The society that the call belongs to.
    pub society: SocietyId,
    /// The seed of the society's ids when the call was stated. No two societies share one, not even forks.
    pub seed: u64,
    /// The id of the call: the same after a crash, and never used for another.
    pub effect: EffectId,
    /// The calling agent.
    pub agent: AgentId,
    /// The thread of the calling turn.
    pub thread: ThreadId,
    /// The request that the call belongs to.
    pub task: TaskId,
    /// Where it stores contents that are too long for a result.
    pub artifacts: ArtifactStore,
    /// Answers questions of the call while it runs; none if it cannot ask.
    pub host: Option<Arc<dyn Host>>,
    /// The address of the thread, from the agent's main thread.
    pub path: SubThreadPath,
    /// The resource that the request is about, if its meta names one (`currentResourceId`).
    pub resource: Option<Arc<str>>,
    /// What the application says about the request.
    pub application: Map<String, Value>,
}

impl CallContext {
    /// The idempotency key, by which a receiver recognises a repetition of the call. A call that was open when its society
    /// was forked has the same key in both societies; later calls have different keys.
    pub fn idempotency_key(&self) -> String {
        format!("{:016x}/{}", self.seed, self.effect)
    }
}

/// Why a call was not started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// There is no such tool.
    #[error("there is no tool `{0}`")]
    Unknown(String),
    /// Its server is not connected.
    #[error("{0}; nothing was done")]
    Absent(String),
    /// The arguments cannot be used.
    #[error("the arguments cannot be used: {0}")]
    BadArguments(String),
}
