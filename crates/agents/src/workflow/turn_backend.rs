//! A turn of the engine as a backend: what is said stands in the turn's thread, each order is a unit in a sub-thread of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use polis_domain::{
    Artifact, CallResult, Failure, Message, MessageId, MessagePatch, Meta, Phase, Reply, Sender, SubThreadRequest, Timestamp,
    ToolCall, Usage, Verdict,
};
use polis_engine::{BatchUpdate, FindTools, NewMessage, SubThreadGroup, SubThreadResult, Turn};
use polis_ports::{ModelRequest, ToolSpec};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::backend::{Activity, AgentBackend, AiMessage, ChatOptions, Listeners, Speaker, ToolScope, Watcher};
use super::format::changed_plan_format;
use super::truncate::{MOST_MESSAGE_BYTES, clipped};
use super::{Done, Order, RoleOutcome, WorkflowRole};
use crate::conversation::GET_ARTIFACT;
use crate::environment::Environment;

/// What the meta of an order's sub-thread says.
#[derive(Serialize, Deserialize)]
pub(super) struct Ordered {
    #[serde(rename = "workflow")]
    pub(super) order: Order,
    /// How much whoever gave the order had heard of what the person says.
    #[serde(rename = "workflowHeard", default)]
    pub(super) heard: Option<usize>,
}

/// The meta of a message.
#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct MessageMeta<T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<Meta>,
    #[serde(rename = "workflow")]
    data: T,
    #[serde(skip_serializing_if = "is_nothing")]
    usage: Usage,
}

fn is_nothing(usage: &Usage) -> bool {
    *usage == Usage::default()
}

/// Most characters of a tool's result in a message. The whole of it stands in the log, as what came of the call.
const RESULT_CHARS: usize = 4_000;

/// A turn that runs a workflow, or one order of it.
pub(super) struct TurnBackend<'t> {
    turn: &'t mut Turn,
    listeners: Listeners,
    /// What is to be said with the next append, and what changes in messages that stand.
    unsaved: Vec<AiMessage>,
    changes: Vec<BatchUpdate>,
    /// Whether a model was asked already: what was said before the first reply is said together with it.
    has_asked: bool,
    /// The messages that may be replaced.
    named: BTreeMap<String, MessageId>,
    /// How much was heard of what the person says in the task; none before anybody has listened.
    heard: Option<usize>,
    /// The orders that have begun, and the todos that they are about.
    group: SubThreadGroup,
    todos: Vec<String>,
    /// The todo that its own order is about.
    todo: Option<Arc<str>>,
    /// Where the roles work, and what they are told about the files there.
    environment: Environment,
    told: Arc<str>,
    callable: Mutex<Option<CallableTools>>,
}

/// The tools that a model can call, and the lists of the turn that they were made of.
struct CallableTools {
    shown: Arc<[ToolSpec]>,
    all: Arc<[ToolSpec]>,
    tools: Arc<[ToolSpec]>,
}

/// What the last message of an order says beside its text.
#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Report {
    outcome: Option<RoleOutcome>,
    duration_ms: u64,
    rounds: usize,
}

impl<'t> TurnBackend<'t> {
    pub(super) fn new(turn: &'t mut Turn) -> Self {
        Self {
            turn,
            listeners: Listeners::default(),
            unsaved: Vec::new(),
            changes: Vec::new(),
            has_asked: false,
            named: BTreeMap::new(),
            heard: None,
            group: SubThreadGroup::default(),
            todos: Vec::new(),
            todo: None,
            environment: Environment::default(),
            told: "".into(),
            callable: Mutex::default(),
        }
    }

    /// The same backend, whose roles work here and were told this.
    pub(super) fn within(self, environment: Environment, told: &str) -> Self {
        Self { environment, told: told.into(), ..self }
    }

    /// The same backend, for an order about this todo, if it is about one.
    pub(super) fn about(self, todo: &str) -> Self {
        Self { todo: (!todo.is_empty()).then(|| todo.into()), ..self }
    }

    /// The same backend; so much of what the person says is known.
    pub(super) fn having_heard(self, heard: Option<usize>) -> Self {
        Self { heard, ..self }
    }

    fn request(&self, order: Order) -> SubThreadRequest {
        let request = SubThreadRequest::new(order.agent.name(), order.title.as_str()).showing(order.title.as_str());
        let order = Order { tools: None, ..order };
        SubThreadRequest { meta: Meta::of(&Ordered { order, heard: Some(self.heard.unwrap_or_default()) }), ..request }
    }

    /// Keeps the record of a run for agents that can read it later.
    pub(super) async fn keep_record(&mut self, record: &str) -> Option<Artifact> {
        let can_read = self.turn.has_tool(GET_ARTIFACT) && !record.is_empty();
        // Which tools there are may change, and a run of older code kept none.
        self.turn.note("record", || can_read.then(|| "kept".to_owned())).await?;
        self.turn.put_artifact("workflow.md", "text/markdown", record.as_bytes()).await.ok()
    }

    /// Says what is to be said, and this as the last bot message; the phase follows, where there is one. Gives the message as
    /// it stands in the thread.
    pub(super) async fn conclude(&mut self, text: String, meta: Meta, phase: Option<Phase>) -> Result<Arc<Message>, Failure> {
        if !self.changes.is_empty() {
            self.flush().await?;
        }
        let mut messages: Vec<_> = std::mem::take(&mut self.unsaved).into_iter().map(to_new_message).collect();
        messages.push(NewMessage { sender: Sender::Bot, text: truncated(text), meta });
        self.turn.conclude(messages, phase).await
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        let (messages, changes) = (std::mem::take(&mut self.unsaved), std::mem::take(&mut self.changes));
        let names: Vec<_> = messages.iter().map(|message| message.id.clone()).collect();
        let added = self.turn.add_messages(messages.into_iter().map(to_new_message).collect(), changes).await?;
        self.named.extend(names.into_iter().zip(added).filter(|(name, _)| !name.is_empty()));
        Ok(())
    }

    /// Begins orders, with what changes in messages that stand.
    async fn begin(&mut self, orders: Vec<Order>, group: &mut SubThreadGroup) -> Result<(), Failure> {
        if !self.unsaved.is_empty() {
            self.flush().await?;
        }
        let requests = orders.into_iter().map(|order| self.request(order)).collect();
        self.turn.join_sub_threads(group, std::mem::take(&mut self.changes), requests).await
    }

    /// What came of an order, from its sub-thread.
    async fn done(&mut self, result: SubThreadResult) -> Result<Done, Failure> {
        let address = result.path.to_string();
        let mut messages = match &result.failure {
            None => result.messages,
            Some(_) => self.turn.thread(&result.path).await?.messages,
        };
        let last: MessageMeta<Report> = messages.last().map(|last| read(last)).unwrap_or_default();
        let MessageMeta { data: Report { outcome, duration_ms, rounds }, usage, .. } = last;
        if outcome.is_some() {
            messages.pop();
        }
        let transcript = messages.iter().map(|message| to_ai_message(message)).collect();
        let outcome = match (result.failure, outcome) {
            (Some(failure), _) => RoleOutcome::Failed { failure },
            (None, Some(outcome)) => outcome,
            (None, None) => return Err(Failure::new("no_outcome", "the order left no outcome")),
        };
        Ok(Done { outcome, transcript, address, usage, duration_ms, rounds })
    }
}

impl AgentBackend for TurnBackend<'_> {
    async fn chat_completion(&mut self, options: ChatOptions) -> Result<Reply, Failure> {
        if self.has_asked {
            self.flush().await?;
        }
        self.has_asked = true;
        let ChatOptions { event_id, model, system, messages, tools, tool_choice, format } = options;
        let purpose = event_id.as_str().into();
        let request = ModelRequest { model, system, messages, tools, tool_choice, format, purpose, ..ModelRequest::default() };
        let Self { turn, listeners, .. } = self;
        turn.model_streaming(request, &mut |delta| listeners.tell(&event_id, delta)).await
    }

    /// The turn finds the server by the tool's whole name, and its request carries the context.
    async fn execute_tool(
        &mut self,
        server_name: &str,
        tool_name: &str,
        arguments: Value,
        _context: &Map<String, Value>,
    ) -> CallResult {
        let name = if server_name.is_empty() { tool_name.to_owned() } else { format!("{server_name}__{tool_name}") };
        let call = ToolCall { id: tool_name.into(), name: name.into(), arguments: arguments.to_string().into() };
        self.turn.call_tool(call).await
    }

    async fn execute_tools(&mut self, calls: Vec<ToolCall>, _scope: &ToolScope) -> Vec<CallResult> {
        self.turn.call_tools(calls).await
    }

    async fn save_message(&mut self, message: AiMessage) -> Result<(), Failure> {
        if let Some(id) = self.named.get(&message.id).cloned() {
            let NewMessage { text, meta, .. } = to_new_message(message);
            let patch = MessagePatch { text: Some(text), meta };
            self.changes.push(BatchUpdate::UpdateMessage { path: self.turn.path(), message: id, patch });
            return Ok(());
        }
        let is_named = !message.id.is_empty();
        self.unsaved.push(message);
        if is_named { self.flush().await } else { Ok(()) }
    }

    fn listeners(&mut self) -> &mut Listeners {
        &mut self.listeners
    }

    fn reuses_results(&self) -> bool {
        true
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        self.turn.tools()
    }

    fn callable_tools(&self) -> Arc<[ToolSpec]> {
        let (shown, all) = (self.turn.tools(), self.turn.callable_tools());
        let mut callable = self.callable.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) =
            callable.as_ref().filter(|known| Arc::ptr_eq(&known.shown, &shown) && Arc::ptr_eq(&known.all, &all))
        {
            return known.tools.clone();
        }
        let more = all.iter().filter(|tool| shown.iter().all(|other| other.name != tool.name));
        let is_search = |tool: &&ToolSpec| matches!(&*tool.name, FindTools::NAME | ToolCall::USE_TOOL);
        let tools: Arc<[ToolSpec]> = shown.iter().chain(more).filter(|tool| !is_search(tool)).cloned().collect();
        *callable = Some(CallableTools { shown, all, tools: tools.clone() });
        tools
    }

    async fn environment_change(&mut self) -> Option<String> {
        let changed = self.turn.note("files", || self.environment.changed_files(&self.told)).await?;
        self.told = changed.clone();
        Some(changed.to_string())
    }

    fn now(&self) -> Timestamp {
        self.turn.now()
    }

    fn watcher(&self) -> Option<Watcher> {
        let steps = self.turn.step_sink()?.about_todo(self.todo.clone());
        Some(Arc::new(move |activity: Activity| {
            let Activity { agent, action, component, chunk, duration_ms, usage } = activity;
            match duration_ms {
                Some(duration_ms) => steps.publish_end(agent.name(), action.name(), component.as_deref(), duration_ms, usage),
                None => steps.publish(agent.name(), action.name(), component.as_deref(), chunk),
            }
        }))
    }

    async fn steering(&mut self) -> Result<Vec<String>, Failure> {
        if self.has_asked {
            // The last result and what is said of it go into the log together; whoever listens first waits for each.
            self.flush().await?;
        }
        if self.heard.is_some_and(|heard| self.turn.has_read_all(heard.min(1))) {
            return Ok(Vec::new());
        }
        let mut envelopes = self.turn.take_messages().await?;
        let (said, before) = self.turn.person_messages().await;
        let known = self.heard.replace(said.len()).unwrap_or(before);
        for envelope in said.into_iter().skip(known) {
            if envelopes.iter().all(|taken| taken.id != envelope.id) {
                envelopes.push(envelope);
            }
        }
        Ok(envelopes.iter().map(|envelope| envelope.payload.text.to_string()).collect())
    }

    async fn begin_orders(&mut self, orders: Vec<Order>) -> Result<Vec<Order>, Failure> {
        if !orders.is_empty() {
            let todos: Vec<_> = orders.iter().map(|order| order.todo.clone()).collect();
            let mut group = std::mem::take(&mut self.group);
            let begun = self.begin(orders, &mut group).await;
            self.group = group;
            begun?;
            self.todos.extend(todos);
        }
        Ok(Vec::new())
    }

    async fn next_done(&mut self) -> Result<Option<(String, Done)>, Failure> {
        if self.group.is_running() {
            self.flush().await?;
        }
        let Some((place, result)) = self.turn.next_sub_thread(&mut self.group).await else { return Ok(None) };
        let done = self.done(result).await?;
        Ok(self.todos.get(place).map(|todo| (todo.clone(), done)))
    }

    async fn approve_plan(&mut self, question: &str, plan: Value) -> Result<Verdict, Failure> {
        self.turn.approve_or_change(question, plan, changed_plan_format()).await
    }

    async fn run_orders(&mut self, _roles: &[Arc<dyn WorkflowRole>], orders: Vec<Order>) -> Result<Vec<Done>, Failure> {
        let mut group = SubThreadGroup::default();
        self.begin(orders, &mut group).await?;
        let mut results = Vec::new();
        while let Some(result) = self.turn.next_sub_thread(&mut group).await {
            results.push(result);
        }
        results.sort_by_key(|(place, _)| *place);
        let mut done = Vec::with_capacity(results.len());
        for (_, result) in results {
            done.push(self.done(result).await?);
        }
        Ok(done)
    }
}

/// What the last message of an order says beside its text.
pub(super) fn report(done: Done) -> Meta {
    let Done { outcome, usage, duration_ms, rounds, .. } = done;
    Meta::of(&MessageMeta { component: None, data: Report { outcome: Some(outcome), duration_ms, rounds }, usage })
}

/// A message as people read it in the thread.
fn to_new_message(mut message: AiMessage) -> NewMessage {
    let mut text = std::mem::take(&mut message.content);
    if let Some((end, _)) = text.char_indices().nth(RESULT_CHARS).filter(|_| message.role == Speaker::Tool) {
        let rest = text.len() - end;
        text.truncate(end);
        text += &format!(" … ({rest} more bytes)");
    }
    for call in &message.tool_calls {
        text += &format!("{}→ {} {}", if text.is_empty() { "" } else { "\n" }, call.name, call.arguments);
    }
    let text = truncated(text);
    let sender = if message.role == Speaker::Assistant { Sender::Bot } else { Sender::User };
    let component = message.component.take();
    let meta = Meta::of(&MessageMeta { component, data: message, usage: Usage::default() });
    NewMessage { sender, text, meta }
}

/// A text that the log takes, whatever was said: what was paid for is not lost for its length.
fn truncated(text: String) -> String {
    if text.len() <= MOST_MESSAGE_BYTES { text } else { clipped(&text, MOST_MESSAGE_BYTES).into_owned() }
}

/// A message of the thread as the workflow has it.
fn to_ai_message(message: &Message) -> AiMessage {
    let MessageMeta::<AiMessage> { data: said, .. } = read(message);
    AiMessage { content: message.text.clone(), timestamp: Some(message.timestamp), ..said }
}

/// What a message says beside its text, as far as that can be read.
fn read<T: Default + DeserializeOwned>(message: &Message) -> T {
    message.meta.read().unwrap_or_default()
}
