//! Tools: what agents can do to the world.

use std::sync::Arc;

use async_trait::async_trait;
use polis_domain::{
    AgentId, CallResult, EffectId, Flow, Question, ReadTool, RoleId, Ruling, SocietyId, SubThreadPath, TaskId, ThreadId,
};
use serde::Serialize;

use crate::{ArtifactStore, Host, ToolSpec};

/// Holds the tools of a society and runs them.
#[async_trait]
pub trait Toolbox: Send + Sync {
    /// The tools that can be called now.
    fn tools(&self) -> Arc<[ToolSpec]>;

    /// The name under which a tool is listed that a model calls so; otherwise why there is none.
    fn listed(&self, tool: &str) -> Result<Arc<str>, ToolError> {
        let found = self.tools().iter().find(|spec| &*spec.name == tool).map(|spec| spec.name.clone());
        found.ok_or_else(|| ToolError::Unknown(tool.to_owned()))
    }

    /// The server that a listed tool comes from, and its name there; none for our own.
    fn origin(&self, _tool: &str) -> Option<ToolOrigin> {
        None
    }

    /// Whether a call may be made. Asked once, before the call is stated; what was said is in the log.
    fn ruling(&self, _tool: &str, _arguments: &str, _who: &Caller<'_>) -> Ruling {
        Ruling::Allow
    }

    /// Where the content of a call comes from and goes. Asked before the call is stated.
    fn flow(&self, _tool: &str, _arguments: &str, _who: &Caller<'_>) -> Flow {
        Flow::default()
    }

    /// What tells the definition of a server's tool from any other; none for our own.
    fn identity(&self, _tool: &str) -> Option<ToolIdentity> {
        None
    }

    /// Whether a server may have a model's words while a call of ours runs there.
    fn sampling_ruling(&self, _server: &str, _who: &Caller<'_>) -> Ruling {
        Ruling::Ask(String::new())
    }

    /// Runs one call. Dropping the future stops it as far as that can be done.
    ///
    /// A failure that the model should read is a result with `is_error`; an error here means that nothing was done at all.
    async fn call(&self, tool: &str, arguments: &str, context: &CallContext) -> Result<CallResult, ToolError>;

    /// The servers that bring tools from outside, and how each of them stands.
    fn servers(&self) -> Vec<ToolServer> {
        Vec::new()
    }
}

/// Where a tool comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOrigin {
    /// The server, by the name that the operator gave it.
    pub server: String,
    /// The server's own name for the tool.
    pub tool: String,
}

/// A tool of a server, as the server defines it just now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolIdentity {
    /// A cryptographic digest of the definition and of how the server is reached.
    pub digest: Arc<str>,
    /// The definition in words, without secrets.
    pub definition: Arc<str>,
    /// The tools of the same server that only read, by its word.
    pub reads: Vec<ReadTool>,
}

/// A server that brings tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolServer {
    /// Its name.
    pub name: String,
    /// How it is reached, without anything secret.
    pub reach: String,
    /// How it stands.
    pub state: ServerState,
    /// What it calls itself, or why it is not there.
    pub detail: String,
    /// Whether what it says about its own tools counts.
    pub trusted: bool,
    /// The names of its tools that can be called now.
    pub tools: Vec<Arc<str>>,
}

/// How a server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ServerState {
    /// It is not wanted.
    Off,
    /// It has not come up yet.
    Starting,
    /// Its tools can be called.
    Connected,
    /// It failed and is tried again.
    Down,
}

/// One tool: what it is and how it runs.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What it is.
    fn spec(&self) -> ToolSpec;

    /// The question that the person answers in its place, if it is one: then it is never run.
    fn question(&self, _arguments: &str) -> Option<Question> {
        None
    }

    /// Where the content of a call comes from and goes.
    fn flow(&self, _arguments: &str) -> Flow {
        Flow::default()
    }

    /// Why a person must be asked about each of its calls, whatever rules say; none where rules decide.
    fn caution(&self) -> Option<String> {
        None
    }

    /// Runs it.
    async fn call(&self, arguments: &str, context: &CallContext) -> Result<CallResult, ToolError>;
}

/// Who wants to make a call.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// The agent.
    pub agent: &'a AgentId,
    /// Its role.
    pub role: Option<&'a RoleId>,
    /// The request that it works on.
    pub task: &'a TaskId,
    /// Which of these names a model chose.
    pub chosen: Chosen,
}

/// Which names of an agent were chosen by another agent. A rule that allows something by name does not mean these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Chosen {
    /// The agent's own.
    pub agent: bool,
    /// Its role's.
    pub role: bool,
}

/// On whose behalf a call is made.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// The society.
    pub society: SocietyId,
    /// Where the society's ids came from when the call was stated; no two societies have the same, forks neither.
    pub seed: u64,
    /// The call: the same after a crash, never used for another.
    pub effect: EffectId,
    /// Who calls.
    pub agent: AgentId,
    /// In which thread.
    pub thread: ThreadId,
    /// For which request of a person.
    pub task: TaskId,
    /// Where it keeps what is too long to be told.
    pub artifacts: ArtifactStore,
    /// Whom the call may ask while it runs; nobody where there is none.
    pub host: Option<Arc<dyn Host>>,
    /// The address of the thread, from the agent's main thread.
    pub path: SubThreadPath,
    /// What the request is about, where its meta says so (`currentResourceId`).
    pub resource: Option<Arc<str>>,
}

impl CallContext {
    /// The key under which a receiver can tell a repetition from a new call. A call that was open when its society was forked
    /// has the same key in both, one that was stated after it has not.
    pub fn idempotency_key(&self) -> String {
        format!("{:016x}/{}", self.seed, self.effect)
    }
}

/// Why a call did not begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// No such tool.
    #[error("there is no tool `{0}`")]
    Unknown(String),
    /// Its server is not there.
    #[error("{0}; nothing was done")]
    Absent(String),
    /// The arguments cannot be used.
    #[error("the arguments cannot be used: {0}")]
    BadArguments(String),
}
