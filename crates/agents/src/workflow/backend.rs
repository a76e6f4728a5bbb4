//! What the workflow needs from whoever runs it: the seam for embedding it alone in another application. A turn of the
//! engine is one backend, [`super::PlainBackend`] another; the loops are written once, over this.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use polis_domain::{CallResult, Failure, Finish, Meta, Reply, Text, Timestamp, ToolCall, ToolChoice, Usage, Verdict};
use polis_ports::{ChatMessage, ComponentChunk, Delta, Format, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::application::{McpTool, find_tool_server};
use super::work::work;
use super::{AgentAction, AgentType, Done, Order, RunOptions, WorkflowCallbacks, WorkflowRole};

/// Runs models and tools for a workflow, and keeps what is said.
pub trait AgentBackend: Send {
    /// Asks a model and gives its whole reply. Listeners to the request's `event_id` get it chunk by chunk.
    fn chat_completion(&mut self, options: ChatOptions) -> impl Future<Output = Result<Reply, Failure>> + Send;

    /// Calls one tool (R268). `server_name` is the server of [`super::RunOptions::mcp_servers`] that offers it, empty where none
    /// does: the tool is the backend's own, or unknown. `arguments` is an object, and `context` is that of the run.
    fn execute_tool(
        &mut self,
        server_name: &str,
        tool_name: &str,
        arguments: Value,
        context: &Map<String, Value>,
    ) -> impl Future<Output = CallResult> + Send;

    /// Calls the tools that a reply asks for: exactly one result for each, in order (D22). A backend overrides it if it can do more
    /// than one call after another.
    fn execute_tools(&mut self, calls: Vec<ToolCall>, scope: &ToolScope) -> impl Future<Output = Vec<CallResult>> + Send {
        async move {
            let mut results = Vec::with_capacity(calls.len());
            for call in &calls {
                results.push(match arguments_of(call) {
                    Ok(arguments) => {
                        self.execute_tool(scope.server_of(&call.name), &call.name, arguments, &scope.context).await
                    }
                    Err(result) => result,
                });
            }
            results
        }
    }

    /// A run begins, for the conversation of this name (the documents' chatId): what is said from now on belongs to it.
    fn begin_chat(&mut self, _chat_id: &str) {}

    /// Keeps a message. One whose `id` was saved before takes the place of that one.
    fn save_message(&mut self, message: AiMessage) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Whoever listens to streams.
    fn listeners(&mut self) -> &mut Listeners;

    /// Has a stream heard, until [`AgentBackend::unlisten`].
    fn listen_to_stream(&mut self, event_id: &str, callbacks: Box<dyn StreamCallbacks>) {
        self.listeners().listen(event_id, callbacks);
    }

    /// Has a stream heard no more.
    fn unlisten(&mut self, event_id: &str) {
        self.listeners().unlisten(event_id);
    }

    /// Whether an earlier result may answer a call, which the argument `_fresh` prevents. Otherwise no call has that argument.
    fn reuses_results(&self) -> bool {
        false
    }

    /// The tools that an executor's requests list.
    fn tools(&self) -> Arc<[ToolSpec]>;

    /// The tools that an executor can call. Where they are many, it finds some of them by a search.
    fn callable_tools(&self) -> Arc<[ToolSpec]> {
        self.tools()
    }

    /// What has changed of the environment that the roles are told since the run began or this last said so; none where nothing has.
    fn environment_change(&mut self) -> impl Future<Output = Option<String>> + Send {
        async { None }
    }

    /// The time; where runs are repeated, the same in each.
    fn now(&self) -> Timestamp;

    /// Whether somebody has called it off.
    fn is_stopped(&self) -> bool {
        false
    }

    /// Who is told what is seen meanwhile; none while nobody watches.
    fn watcher(&self) -> Option<Watcher> {
        None
    }

    /// What somebody has said to the work since this one last asked, oldest first. Each that works on it is told.
    fn steering(&mut self) -> impl Future<Output = Result<Vec<String>, Failure>> + Send {
        async { Ok(Vec::new()) }
    }

    /// Asks a person about a plan. Agreement with `arguments` is agreement to those todos instead.
    fn approve_plan(&mut self, _question: &str, _plan: Value) -> impl Future<Output = Result<Verdict, Failure>> + Send {
        async { Ok(Verdict::yes()) }
    }

    /// Begins orders beside those that are under way, where the backend can; gives back those that it does not take, which
    /// are then carried out one after another. [`AgentBackend::next_done`] tells what came of the others.
    fn begin_orders(&mut self, orders: Vec<Order>) -> impl Future<Output = Result<Vec<Order>, Failure>> + Send {
        async { Ok(orders) }
    }

    /// What came of the order that ended first, of those that were begun: its todo, and that. None when none is under way.
    fn next_done(&mut self) -> impl Future<Output = Result<Option<(String, Done)>, Failure>> + Send {
        async { Ok(None) }
    }

    /// Carries out orders that do not depend on each other; what came of each, in order. Some may be for these roles.
    fn run_orders(
        &mut self,
        roles: &[Arc<dyn WorkflowRole>],
        orders: Vec<Order>,
    ) -> impl Future<Output = Result<Vec<Done>, Failure>> + Send
    where
        Self: Sized,
    {
        async move {
            let mut done = Vec::with_capacity(orders.len());
            for order in &orders {
                done.push(work(self, roles, order).await);
            }
            Ok(done)
        }
    }
}

/// What a run's calls of tools go with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolScope {
    /// The names of the servers, by the tools that they offer.
    pub servers: BTreeMap<String, String>,
    /// The context of the run ([`super::RunOptions::context`]).
    pub context: Map<String, Value>,
}

impl ToolScope {
    pub(super) fn of(options: &RunOptions) -> Self {
        let tools = options.mcp_servers.iter().flat_map(|server| &server.tools);
        let server_of = |tool: &McpTool| {
            let server = find_tool_server(&options.mcp_servers, &tool.name)?;
            let name = if server.key.is_empty() { &server.name } else { &server.key };
            Some((tool.name.clone(), name.clone()))
        };
        Self { servers: tools.filter_map(server_of).collect(), context: options.context.clone() }
    }

    /// The server that offers this tool, empty where none does.
    pub fn server_of(&self, tool: &str) -> &str {
        self.servers.get(tool).map_or("", String::as_str)
    }
}

/// The arguments of a call, or the result of one that has none that can be read (D22).
fn arguments_of(call: &ToolCall) -> Result<Value, CallResult> {
    let text = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
    match serde_json::from_str(text) {
        Ok(arguments @ Value::Object(_)) => Ok(arguments),
        Ok(_) => Err(CallResult::failed(format!("{} was not called: its arguments are no JSON object", call.name))),
        Err(error) => Err(CallResult::failed(format!("{} was not called: its arguments are no JSON: {error}", call.name))),
    }
}

/// Is told what is seen.
pub type Watcher = Arc<dyn Fn(Activity) + Send + Sync>;

/// What somebody is seen doing.
#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    /// The role that acts.
    pub agent: AgentType,
    /// What the role is doing.
    pub action: AgentAction,
    /// The component that is being written, or the tool that is called.
    pub component: Option<Arc<str>>,
    /// What the component grows by.
    pub chunk: Option<ComponentChunk>,
    /// How long the step took, when it is over.
    pub duration_ms: Option<u64>,
    /// What the step used, when a model's reply is whole.
    pub usage: Option<Usage>,
}

impl Activity {
    /// Somebody begins to do something.
    pub fn new(agent: &AgentType, action: AgentAction) -> Self {
        Self { agent: agent.clone(), action, component: None, chunk: None, duration_ms: None, usage: None }
    }
}

/// What a model is asked.
#[derive(Debug, Clone, Default)]
pub struct ChatOptions {
    /// Whoever listens to this hears the reply.
    pub event_id: String,
    /// Which model, as `vendor/name`; empty for the backend's own choice.
    pub model: Arc<str>,
    /// What it is told about itself.
    pub system: Text,
    /// The conversation so far.
    pub messages: Vec<ChatMessage>,
    /// The tools that it may ask for.
    pub tools: Arc<[ToolSpec]>,
    /// Whether it may ask for them now. Vendors want tools that were used to be listed until the end.
    pub tool_choice: ToolChoice,
    /// The shape that the reply must have.
    pub format: Option<Arc<Format>>,
}

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// The person, or the workflow in their place.
    #[default]
    User,
    /// A model.
    Assistant,
    /// A tool.
    Tool,
}

/// A message of a workflow, with the documents' fields.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AiMessage {
    /// Its name, if it may be replaced later.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The author of the message.
    pub role: Speaker,
    /// What is said.
    pub content: String,
    /// When the message was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
    /// For which role.
    #[serde(rename = "agentType", skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<AgentType>,
    /// What the model thought before, if the vendor shows it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// The calls that it asks for.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "super::call_shape")]
    pub tool_calls: Vec<ToolCall>,
    /// The call that this is the result of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<Arc<str>>,
    /// The tool's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// Whether the result tells of a failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The arguments of the call where a person gave others than the model wrote.
    #[serde(rename = "changedArguments", skip_serializing_if = "Option::is_none")]
    pub changed: Option<Arc<str>>,
    /// How a page shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<Meta>,
}

impl AiMessage {
    /// Said to a model.
    pub fn user(content: impl Into<String>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }

    /// Said by a model.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self { role: Speaker::Assistant, content: content.into(), ..Self::default() }
    }

    /// What a model said, with its calls.
    pub fn said(reply: &Reply) -> Self {
        // What counts as evidence is the tool that was called, also if the model called it by another.
        let tool_calls = reply.tool_calls.iter().map(|call| call.meant().into_owned()).collect();
        Self { reasoning: reply.reasoning.clone(), tool_calls, ..Self::assistant(reply.text.clone()) }
    }

    /// What came of a call.
    pub fn result(call: &ToolCall, result: &CallResult) -> Self {
        Self {
            role: Speaker::Tool,
            content: result.content.to_string(),
            tool_call_id: Some(call.id.clone()),
            name: Some(call.name.clone()),
            is_error: result.is_error,
            changed: result.changed.clone(),
            ..Self::default()
        }
    }

    /// The same message, of this role.
    pub fn of(self, agent: &AgentType) -> Self {
        Self { agent_type: Some(agent.clone()), ..self }
    }

    /// As a model is shown it.
    pub fn to_chat(&self) -> ChatMessage {
        match self.role {
            Speaker::User => ChatMessage::user(&*self.content),
            Speaker::Assistant => ChatMessage::Assistant {
                text: self.content.as_str().into(),
                reasoning: self.reasoning.as_str().into(),
                tool_calls: self.tool_calls.clone(),
                echo: None,
            },
            Speaker::Tool => {
                let result = CallResult {
                    is_error: self.is_error,
                    changed: self.changed.clone(),
                    ..CallResult::good(self.content.as_str())
                };
                ChatMessage::Tool {
                    call_id: self.tool_call_id.clone().unwrap_or_default(),
                    name: self.name.clone().unwrap_or_default(),
                    content: result.for_model(),
                    is_error: self.is_error,
                    media: Vec::new(),
                }
            }
        }
    }
}

/// Hears a reply as it comes. Nothing that counts may depend on it: a second run does not hear it again.
pub trait StreamCallbacks: Send {
    /// More text.
    fn on_content(&mut self, _text: &str) {}
    /// More of the call with this place among the reply's: its name when it is known, and more of its arguments.
    fn on_tool_calls(&mut self, _index: u32, _name: Option<&str>, _arguments: &str) {}
    /// More reasoning.
    fn on_reasoning(&mut self, _text: &str) {}
    /// The reply is whole.
    fn on_done(&mut self, _finish: &Finish) {}
    /// The reply came to nothing; another may follow.
    fn on_error(&mut self, _failure: &Failure) {}
    /// Nobody waits for the rest any more (D21).
    fn on_stopped(&mut self) {}
}

/// Whoever listens: to streams, by their names; and to the whole run.
#[derive(Default)]
pub struct Listeners {
    listening: Vec<(String, Box<dyn StreamCallbacks>)>,
    follower: Option<RunFollower>,
}

/// Whoever hears of the whole run, and the messages so far.
struct RunFollower {
    callbacks: Box<dyn WorkflowCallbacks>,
    messages: Vec<AiMessage>,
}

impl Listeners {
    /// One more listens.
    pub fn listen(&mut self, event_id: &str, callbacks: Box<dyn StreamCallbacks>) {
        self.listening.push((event_id.to_owned(), callbacks));
    }

    /// Those who listened to this listen no more.
    pub fn unlisten(&mut self, event_id: &str) {
        self.listening.retain(|(id, _)| id != event_id);
    }

    /// Somebody hears of the whole run from now on, in place of whoever did.
    pub fn follow(&mut self, callbacks: Box<dyn WorkflowCallbacks>) {
        self.follower = Some(RunFollower { callbacks, messages: Vec::new() });
    }

    /// Nobody hears of the run any more.
    pub fn unfollow(&mut self) {
        self.follower = None;
    }

    /// Tells of a message. One with the name of another takes its place.
    pub(super) fn said(&mut self, message: &AiMessage) {
        let Some(RunFollower { callbacks, messages }) = &mut self.follower else { return };
        match messages.iter_mut().find(|known| !known.id.is_empty() && known.id == message.id) {
            Some(known) => known.clone_from(message),
            None => messages.push(message.clone()),
        }
        callbacks.on_message_update(messages);
    }

    /// Tells of a step.
    pub(super) fn log(&mut self, line: impl FnOnce() -> String) {
        if let Some(follower) = &mut self.follower {
            follower.callbacks.on_log(&line());
        }
    }

    /// Tells of a failure.
    pub(super) fn failed(&mut self, failure: &Failure) {
        if let Some(follower) = &mut self.follower {
            follower.callbacks.on_error(failure);
        }
    }

    /// Tells those who listen to this of one more chunk.
    pub fn tell(&mut self, event_id: &str, delta: &Delta) {
        for (_, callbacks) in self.listening.iter_mut().filter(|(id, _)| id == event_id) {
            match delta {
                Delta::Content(text) => callbacks.on_content(text),
                Delta::Reasoning(text) => callbacks.on_reasoning(text),
                Delta::ToolCall { index, name, arguments, .. } => callbacks.on_tool_calls(*index, name.as_deref(), arguments),
                Delta::Done(finish) => callbacks.on_done(finish),
                Delta::Error(failure) => callbacks.on_error(failure),
                Delta::Stopped => callbacks.on_stopped(),
                Delta::Usage(_) | Delta::Echo(_) | Delta::VendorCall(_) | Delta::Citation(_) | Delta::Model(_) => {}
            }
        }
    }
}
