//! Actions and tools by name (R329, R355).

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use polis_domain::{AgentId, CallResult, Failure, FailureCode, RoleId, ToolCall};
use polis_engine::{OpenRequest, Request, Turn};
use serde_json::{Map, Value};

use crate::PlanTool;

/// The action that asks another agent (R342). Its parameters are `target_name`, `subtask_description`, `context`, `timeout_ms`,
/// `plan_id` and `task_id`, and what else the step has.
pub const REQUEST_COLLABORATION: &str = "RequestCollaboration";

/// The action that does what a step says with the model and tools.
pub const WORK: &str = "Work";

/// The action that goes on with the whole conversation: the simple strategy.
pub const CONVERSE: &str = "Converse";

/// The tool that keeps plans, by the name that roles have for it. It also records how each task ends (R349).
pub const PLAN_TOOL: &str = "PlanTool";

/// Something that an agent can do by name. Like a handler, it must depend on the turn and its parameters alone.
///
/// Write `async fn run(&self, turn: &mut Turn, params: &Map<String, Value>) -> Result<ActionResult, Failure>`.
pub trait Action: Send + Sync + 'static {
    /// Does it, and says what came of it.
    fn run(&self, turn: &mut Turn, params: &Map<String, Value>) -> impl Future<Output = Result<ActionResult, Failure>> + Send;
}

/// What came of an action. A text is the result: `Ok("done".into())`.
pub enum ActionResult {
    /// It is done, with this result.
    Completed(String),
    /// Another agent was asked. The step ends with its answer, and other steps may begin before.
    Pending(OpenRequest),
}

impl From<String> for ActionResult {
    fn from(text: String) -> Self {
        Self::Completed(text)
    }
}

impl From<&str> for ActionResult {
    fn from(text: &str) -> Self {
        Self::Completed(text.to_owned())
    }
}

type Done<'a> = Pin<Box<dyn Future<Output = Result<ActionResult, Failure>> + Send + 'a>>;

/// [`Action`] behind a pointer.
pub(super) trait AnyAction: Send + Sync {
    fn run<'a>(&'a self, turn: &'a mut Turn, params: &'a Map<String, Value>) -> Done<'a>;
}

impl<A: Action> AnyAction for A {
    fn run<'a>(&'a self, turn: &'a mut Turn, params: &'a Map<String, Value>) -> Done<'a> {
        Box::pin(Action::run(self, turn, params))
    }
}

/// The action behind [`REQUEST_COLLABORATION`] unless a role replaces it: sends the request and does not wait. An agent that does
/// not exist is created, if there is a role of its name.
#[derive(Debug, Clone, Copy, Default)]
pub struct AskAgent;

impl Action for AskAgent {
    async fn run(&self, turn: &mut Turn, params: &Map<String, Value>) -> Result<ActionResult, Failure> {
        let word = |key: &str| params.get(key).and_then(Value::as_str).unwrap_or_default();
        let target: AgentId = word("target_name").into();
        let ids = [("planId", "plan_id"), ("taskId", "task_id")];
        let meta: Map<_, _> = ids.iter().map(|(key, param)| ((*key).to_owned(), word(param).into())).collect();
        let context = Some(word("context")).filter(|context| !context.is_empty());
        let text = [word("subtask_description")].into_iter().chain(context).collect::<Vec<_>>().join("\n\n");
        let patience = params.get("timeout_ms").and_then(Value::as_u64).map_or(super::options::PATIENCE, Duration::from_millis);
        let request = Request { to: target.clone(), text, patience, meta: meta.into() };
        let mut sent = send(turn, request.clone()).await;
        if matches!(&sent, Err(failure) if failure.code == FailureCode::UnknownAgent)
            && turn.spawn_agent(&target, &RoleId::from(target.as_str())).await.is_ok()
        {
            sent = send(turn, request).await;
        }
        sent.map(ActionResult::Pending)
    }
}

async fn send(turn: &mut Turn, request: Request) -> Result<OpenRequest, Failure> {
    let sent = turn.request(vec![request]).await.pop();
    sent.unwrap_or_else(|| Err(Failure::new("collaboration_rejected", "the request was not sent")))
}

/// The actions of a role. Three are always there: [`REQUEST_COLLABORATION`], [`WORK`] and [`CONVERSE`]. Each can be replaced.
#[derive(Clone)]
pub struct Actions {
    by_name: BTreeMap<Arc<str>, Entry>,
}

/// What a name stands for.
#[derive(Clone)]
pub(super) enum Entry {
    Work,
    Converse,
    Own(Arc<dyn AnyAction>),
}

impl Default for Actions {
    fn default() -> Self {
        let own = [(WORK, Entry::Work), (CONVERSE, Entry::Converse)];
        let by_name = own.into_iter().map(|(name, entry)| (name.into(), entry)).collect();
        Self { by_name }.with(REQUEST_COLLABORATION, AskAgent)
    }
}

impl Actions {
    /// The same actions with one more. It takes the place of any other of its name.
    pub fn with(mut self, name: &str, action: impl Action) -> Self {
        self.by_name.insert(name.into(), Entry::Own(Arc::new(action)));
        self
    }

    /// Their names, in order.
    pub fn names(&self) -> Vec<&str> {
        self.by_name.keys().map(|name| &**name).collect()
    }

    pub(super) fn find(&self, name: &str) -> Option<Entry> {
        self.by_name.get(name).cloned()
    }
}

/// The tools of a role by the names that its steps have for them. A name that is not here is a tool of the society.
#[derive(Clone)]
pub struct Tools {
    by_name: BTreeMap<Arc<str>, ToolEntry>,
}

/// What the name of a tool stands for.
#[derive(Clone)]
pub(super) enum ToolEntry {
    /// A tool of the society, called like any other.
    Society(Arc<str>),
    /// Code of the role.
    Own(Arc<dyn AnyAction>),
}

impl Default for Tools {
    fn default() -> Self {
        Self { by_name: BTreeMap::new() }.with(PLAN_TOOL, PlanTool)
    }
}

impl Tools {
    /// The same tools with one more, which the role's own code carries out. It takes the place of any other of its name.
    pub fn with(mut self, name: &str, tool: impl Action) -> Self {
        self.by_name.insert(name.into(), ToolEntry::Own(Arc::new(tool)));
        self
    }

    /// The same tools with another name for a tool of the society.
    pub fn with_alias(mut self, name: &str, tool: &str) -> Self {
        self.by_name.insert(name.into(), ToolEntry::Society(tool.into()));
        self
    }

    /// Their names, in order.
    pub fn names(&self) -> Vec<&str> {
        self.by_name.keys().map(|name| &**name).collect()
    }

    pub(super) fn find(&self, name: &str) -> ToolEntry {
        self.by_name.get(name).cloned().unwrap_or_else(|| ToolEntry::Society(name.into()))
    }

    /// `PlanTool.update_task_status`: records how a task ended.
    pub(super) async fn update_task_status(&self, turn: &mut Turn, params: Map<String, Value>) -> Result<(), Failure> {
        match self.find(PLAN_TOOL) {
            ToolEntry::Own(tool) => tool.run(turn, &params).await.map(drop),
            ToolEntry::Society(name) => call(turn, "update_task_status".into(), name, &params).await.map(drop),
        }
    }
}

/// Calls a tool of the society. An error result is a failure.
pub(super) async fn call(
    turn: &mut Turn,
    id: Arc<str>,
    name: Arc<str>,
    params: &Map<String, Value>,
) -> Result<CallResult, Failure> {
    let arguments = Value::Object(params.clone()).to_string().into();
    let result = turn.call_tool(ToolCall { id, name: name.clone(), arguments }).await;
    if result.is_error { Err(Failure::new("tool_failed", format!("{name}: {}", result.content))) } else { Ok(result) }
}
