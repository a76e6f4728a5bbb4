//! Translates the events of one request to an AG-UI run: nested sub-agents, streamed replies, tool calls and their results.
//!
//! It is a fold over watch events, without a clock or a store. Its output follows the rules that clients check: each item is
//! opened once, grows, and is closed before the run ends. Ids are derived from the sequence numbers of events, so that two
//! clients of one request get the same ids.

mod components;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use polis_api::{TaskStatus, unshown};
use polis_domain::{
    AgentId, Behaviour, Call, Effect, EffectId, Envelope, Event as LogEvent, Finish, MessageId, MessageKind, Origin,
    Outcome as EffectOutcome, Recorded, Reply, ReplyTo, Seq, Settlement, Task, TaskId, ThreadId, Timestamp, ToolCall, TurnId,
    Usage, Wanted,
};
use polis_engine::WatchEvent;
use polis_ports::{Delta, StreamedDelta};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::event::{Body, Event, Interrupt, Outcome, Patch, Role, SubagentOutcome, TokenUsage, VERSION};
use super::reply_stream::{ReplyEvent, ReplyStream};
use super::run::RunContext;
use components::{Activity, Draft};

/// Maximum length of a sub-agent's description, in characters.
const BRIEF_CHARS: usize = 200;

/// Follows one request.
pub(crate) struct EventTranslator {
    task: TaskId,
    thread_id: Arc<str>,
    run_id: Arc<str>,
    /// The message whose answer ends the run; none when the next answer does.
    envelope: Option<MessageId>,
    /// Whether that message is being worked on.
    is_started: bool,
    /// Only tracks state; emits nothing.
    quiet: bool,
    over: bool,
    /// Replies that started up to here are emitted when they are complete: a client that joins late has missed their start.
    joined: Seq,
    at: Timestamp,
    out: Vec<Event>,
    turns: BTreeMap<TurnId, OpenTurn>,
    replies: HashMap<EffectId, ReplyStream>,
    /// Models that are asked for the turn alone.
    asides: HashSet<EffectId>,
    /// Effects that stand for a tool call, with the call as it was emitted.
    calls: HashMap<EffectId, EmittedCall>,
    /// Activities by the place of their message, and those that grow before their message is there.
    activities: HashMap<(ThreadId, u32), Activity>,
    growing: HashMap<(ThreadId, Arc<str>), Activity>,
    grown: u64,
    drafts: HashMap<ThreadId, Draft>,
    usage: BTreeMap<Arc<str>, Usage>,
    state: Map<String, Value>,
    /// The last text of the main agent that was emitted.
    last_text: String,
    answer: Option<Arc<str>>,
    /// Why the model stopped before its answer was whole.
    stopped_early: Option<Finish>,
    /// The names by which people know agents.
    names: HashMap<AgentId, Arc<str>>,
}

/// A turn that is not settled yet.
struct OpenTurn {
    /// The sub-agent's name in this run; none for the main agent.
    owner: Option<Arc<str>>,
    /// Where the sub-agent hangs, to open it again in another run.
    started: Option<Body>,
    step: Option<Arc<str>>,
    thread: ThreadId,
    is_unit: bool,
    /// Names of the client's own tools.
    client_tools: Vec<Arc<str>>,
    /// Calls that the last reply asked for and that are not stated yet.
    wanted: Vec<(Arc<str>, ToolCall)>,
    /// Calls that the turn does itself, innermost last.
    own: Vec<(EffectId, Arc<str>)>,
}

/// A tool call that was emitted.
struct EmittedCall {
    id: Arc<str>,
    call: Option<Call>,
    /// Whether a person is asked about it, and whether for words.
    asks: Option<Wanted>,
    /// Whether the client runs it.
    is_client_tool: bool,
    /// Whether its result is emitted here.
    has_result: bool,
}

impl EventTranslator {
    /// Follows a request; an answer to `message` ends the run, or any answer where there is none.
    pub(crate) fn new(task: TaskId, context: &RunContext) -> Self {
        let mut state = context.state.clone();
        state.extend([("taskId".to_owned(), task.as_str().into()), ("todos".to_owned(), json!([]))]);
        Self {
            state,
            task,
            thread_id: context.thread.clone(),
            run_id: context.run.clone(),
            envelope: None,
            is_started: true,
            quiet: false,
            over: false,
            joined: Seq(0),
            at: Timestamp(0),
            out: Vec::new(),
            turns: BTreeMap::new(),
            replies: HashMap::new(),
            asides: HashSet::new(),
            calls: HashMap::new(),
            activities: HashMap::new(),
            growing: HashMap::new(),
            grown: 0,
            drafts: HashMap::new(),
            usage: BTreeMap::new(),
            last_text: String::new(),
            answer: None,
            stopped_early: None,
            names: HashMap::new(),
        }
    }

    /// Whether the shown name of an agent is known.
    pub(crate) fn knows(&self, agent: &AgentId) -> bool {
        self.names.contains_key(agent)
    }

    /// Notes the name by which people know an agent.
    pub(crate) fn name(&mut self, agent: AgentId, name: Arc<str>) {
        self.names.insert(agent, name);
    }

    fn shown_name(&self, agent: &AgentId) -> Arc<str> {
        self.names.get(agent).cloned().unwrap_or_else(|| agent.as_str().into())
    }

    /// Goes on after the end of a run with the next one of the same thread.
    pub(crate) fn reopen(&mut self) {
        self.over = false;
        self.answer = None;
        self.last_text.clear();
    }

    /// The same, ended by the answer to this message only.
    pub(crate) fn answering(self, envelope: MessageId) -> Self {
        Self { envelope: Some(envelope), is_started: false, ..self }
    }

    /// The same, joined when the log ended there.
    pub(crate) fn joined(self, at: Seq) -> Self {
        Self { joined: at, ..self }
    }

    /// The same, but it only tracks state until it begins.
    pub(crate) fn quiet(self) -> Self {
        Self { quiet: true, ..self }
    }

    /// Opens the run, with everything that is already in progress.
    pub(crate) fn begin(&mut self, before: Vec<Body>) {
        self.quiet = false;
        self.usage.clear();
        self.out.clear();
        let (thread_id, run_id) = (self.thread_id.clone(), self.run_id.clone());
        self.emit(None, Body::RunStarted { thread_id, run_id, protocol_version: VERSION.to_owned(), parent_run_id: None });
        before.into_iter().for_each(|body| self.emit(None, body));
        self.emit(None, Body::StateSnapshot { snapshot: Value::Object(self.state.clone()) });
        let open: Vec<_> =
            self.turns.values().map(|turn| (turn.owner.clone(), turn.started.clone(), turn.step.clone())).collect();
        for (owner, started, step) in open {
            started.into_iter().for_each(|started| self.emit(owner.clone(), started));
            step.into_iter().for_each(|step_name| self.emit(None, Body::StepStarted { step_name }));
        }
    }

    /// Takes the events emitted since the last call.
    pub(crate) fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.out)
    }

    /// Whether the run has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// The text that ended it.
    pub(crate) fn answer(&self) -> Option<&Arc<str>> {
        self.answer.as_ref()
    }

    /// Why the model stopped before the answer was whole; none if it is whole.
    pub(crate) fn stopped_early(&self) -> Option<&Finish> {
        self.stopped_early.as_ref()
    }

    /// The tool call id of an effect, and the sub-agent that made the call.
    pub(crate) fn call(&self, id: EffectId) -> Option<(Arc<str>, Option<Arc<str>>)> {
        let owner = self.turns.get(&id.turn).and_then(|turn| turn.owner.clone());
        self.calls.get(&id).map(|emitted| (emitted.id.clone(), owner))
    }

    /// Client tool calls that wait for the client: the effect, the tool call id, and the call.
    pub(crate) fn client_tool_calls(&self) -> Vec<(EffectId, Arc<str>, Call)> {
        let waits = self.calls.iter().filter(|(_, emitted)| emitted.is_client_tool && emitted.asks.is_some());
        let mut waits: Vec<_> =
            waits.filter_map(|(id, emitted)| Some((*id, emitted.id.clone(), emitted.call.clone()?))).collect();
        waits.sort_by_key(|(id, ..)| *id);
        waits
    }

    /// Hears the next thing that a watcher sees.
    pub(crate) fn on_watch_event(&mut self, seen: &WatchEvent) {
        if self.over {
            return;
        }
        match seen {
            WatchEvent::Event(recorded) => self.on_event(recorded),
            WatchEvent::Delta(delta) => self.on_delta(delta),
            WatchEvent::Step(chunk) => self.on_step(chunk),
        }
        if self.quiet {
            self.out.clear();
        }
    }

    /// Ends the run because a person must act.
    pub(crate) fn interrupt(&mut self, interrupts: Vec<Interrupt>) {
        let ids: Vec<String> = interrupts.iter().map(|interrupt| interrupt.id.clone()).collect();
        self.close(&ids);
        self.emit(None, Body::StateSnapshot { snapshot: Value::Object(self.state.clone()) });
        self.finish(Outcome::Interrupt { interrupts });
    }

    /// Ends the run because the client must run its own tools.
    pub(crate) fn finish_with_client_calls(&mut self, pending_tool_call_ids: Vec<Arc<str>>) {
        self.close(&[]);
        self.emit(None, Body::StateSnapshot { snapshot: Value::Object(self.state.clone()) });
        self.finish(Outcome::Success { pending_tool_call_ids });
    }

    /// Ends the run.
    pub(crate) fn succeed(&mut self) {
        self.close(&[]);
        self.finish(Outcome::Success { pending_tool_call_ids: Vec::new() });
    }

    /// Ends the run with an error.
    pub(crate) fn fail(&mut self, code: &str, message: impl Into<String>) {
        self.close(&[]);
        let usage = self.usage();
        self.emit(None, Body::RunError { message: message.into(), code: Some(code.to_owned()), usage });
        self.over = true;
    }

    fn finish(&mut self, outcome: Outcome) {
        let (thread_id, run_id, usage) = (self.thread_id.clone(), self.run_id.clone(), self.usage());
        let result = self.answer.as_ref().map(|answer| json!({ "answer": answer }));
        self.emit(None, Body::RunFinished { thread_id, run_id, result, outcome, usage });
        self.over = true;
    }

    /// What was used so far, by model.
    pub(crate) fn usage(&self) -> Vec<TokenUsage> {
        self.usage.iter().map(|(model, usage)| TokenUsage::new(model, *usage)).collect()
    }

    fn emit(&mut self, owner: Option<Arc<str>>, body: Body) {
        let event = Event { subagent_run_id: owner, ..Event::new(body) };
        self.out.push(if self.at.0 > 0 { event.at(self.at) } else { event });
    }

    fn owner(&self, turn: TurnId) -> Option<Arc<str>> {
        self.turns.get(&turn)?.owner.clone()
    }

    /// Closes whatever is open, the innermost first.
    fn close(&mut self, interrupts: &[String]) {
        let open: Vec<_> = self.replies.keys().copied().collect();
        for id in open {
            self.end_reply(id);
        }
        let drafts: Vec<_> = self.drafts.keys().cloned().collect();
        for thread in drafts {
            self.end_draft(&thread);
        }
        let turns: Vec<_> = self.turns.values().rev().map(|turn| (turn.owner.clone(), turn.step.clone())).collect();
        for (owner, step) in turns {
            if owner.is_some() {
                let interrupt_ids = interrupts.to_vec();
                self.emit(owner, Body::SubagentFinished { outcome: SubagentOutcome::Suspended { interrupt_ids } });
            }
            step.into_iter().for_each(|step_name| self.emit(None, Body::StepFinished { step_name }));
        }
    }

    fn on_event(&mut self, recorded: &Recorded) {
        self.at = recorded.at;
        match &recorded.event {
            LogEvent::TurnStarted { agent, behaviour, phase, task, origin, reply_to, message, .. } if task.id == self.task => {
                if message.is_some() && *message == self.envelope {
                    self.is_started = true;
                }
                let Some(thread) = &recorded.thread else { return };
                let source = TurnSource { agent, behaviour, phase: phase.as_str(), thread };
                self.start(TurnId(recorded.seq), &source, task, *origin, *reply_to);
            }
            LogEvent::TurnSettled { turn, settlement, message, index, .. } => {
                let component = message.as_ref().and_then(|message| message.meta.get("component"));
                if let (Some(message), Some(component), Some(thread)) = (message, component, &recorded.thread)
                    && self.turns.contains_key(turn)
                {
                    self.show_component(*turn, (thread.clone(), *index), Some(&message.id), component);
                }
                if self.turns.get(turn).is_some_and(|turn| turn.owner.is_none() && !turn.is_unit) {
                    let finish = message.as_ref().and_then(|message| message.meta.get(Finish::META));
                    self.stopped_early = finish.and_then(|finish| Finish::deserialize(finish).ok());
                }
                self.settle(*turn, settlement);
            }
            LogEvent::MessagesTaken { envelopes, .. } => {
                self.is_started |= envelopes.iter().any(|envelope| Some(&envelope.id) == self.envelope.as_ref());
            }
            LogEvent::MessageSent { envelope, .. } if envelope.task_id == self.task => self.on_envelope(envelope),
            LogEvent::EffectStarted { id, effect, .. } if self.turns.contains_key(&id.turn) => {
                self.begin_effect(*id, effect, recorded.seq);
            }
            LogEvent::EffectRetried { id, .. } => {
                if let Some(mut stream) = self.replies.remove(id) {
                    let events = stream.restart();
                    self.emit_reply(id.turn, events);
                    self.replies.insert(*id, stream);
                }
            }
            LogEvent::EffectEnded { id, outcome, .. } if self.turns.contains_key(&id.turn) => self.end_effect(*id, outcome),
            LogEvent::EffectRefused { id, failure } => {
                let wanted = self.turns.get_mut(&id.turn).filter(|turn| !turn.wanted.is_empty());
                if let Some((call, _)) = wanted.map(|turn| turn.wanted.remove(0)) {
                    self.emit_result(*id, call, failure.to_string());
                }
            }
            LogEvent::MessageAdded { by, index, message } if self.turns.contains_key(&by.turn) => {
                if let Some(thread) = &recorded.thread {
                    self.show_message(by.turn, thread, *index, message);
                }
            }
            LogEvent::MessageUpdated { by, index, patch } if self.turns.contains_key(&by.turn) => {
                let Some(thread) = &recorded.thread else { return };
                let place = (thread.clone(), *index);
                if let Some(component) = patch.meta.get("component") {
                    self.show_component(by.turn, place, None, component);
                } else if let Some(text) = &patch.text {
                    self.update_text(&place, text);
                }
            }
            LogEvent::PlanSet { by, plan } if self.owner(by.turn).is_none() && self.turns.contains_key(&by.turn) => {
                self.set_state("todos", serde_json::to_value(&plan.steps).unwrap_or_default());
            }
            _ => {}
        }
    }

    fn start(&mut self, id: TurnId, source: &TurnSource<'_>, task: &Task, origin: Origin, reply_to: ReplyTo) {
        let asked_by = match (origin, reply_to) {
            (Origin::Unit(effect), _) | (Origin::Inbox, ReplyTo::Effect(effect)) => Some(Some(effect)),
            (Origin::Inbox, ReplyTo::Nobody) => Some(None),
            (Origin::Inbox, ReplyTo::User) => None,
        };
        let is_unit = matches!(origin, Origin::Unit(_));
        let name: Arc<str> = if is_unit { unit_name(source) } else { self.shown_name(source.agent) };
        let owner: Option<Arc<str>> = asked_by.map(|_| format!("run_{id}").into());
        let started = asked_by.map(|by| Body::SubagentStarted {
            name: name.clone(),
            description: brief(&task.message),
            parent_subagent_run_id: by.and_then(|by| self.owner(by.turn)),
            parent_tool_call_id: by.and_then(|by| self.calls.get(&by)).map(|emitted| emitted.id.clone()),
        });
        let step: Option<Arc<str>> = asked_by.is_none().then(|| format!("{name}: {}", source.phase).into());
        let client_tools = task.meta.get(Task::CLIENT_TOOLS).and_then(Value::as_array);
        let client_tools =
            client_tools.into_iter().flatten().filter_map(|tool| tool.get("name")?.as_str()).map(Into::into).collect();
        started.clone().into_iter().for_each(|started| self.emit(owner.clone(), started));
        if let Some(step_name) = step.clone() {
            self.emit(None, Body::StepStarted { step_name });
            self.set_state("phase", source.phase.into());
        }
        let open_turn = OpenTurn {
            owner,
            started,
            step,
            thread: source.thread.clone(),
            is_unit,
            client_tools,
            wanted: Vec::new(),
            own: Vec::new(),
        };
        self.turns.insert(id, open_turn);
    }

    fn settle(&mut self, id: TurnId, settlement: &Settlement) {
        let open: Vec<_> = self.replies.keys().filter(|effect| effect.turn == id).copied().collect();
        for effect in open {
            self.end_reply(effect);
        }
        let Some(turn) = self.turns.remove(&id) else { return };
        self.end_draft(&turn.thread);
        self.drafts.remove(&turn.thread);
        if turn.owner.is_some() {
            let body = match settlement {
                Settlement::Done => Body::SubagentFinished { outcome: SubagentOutcome::Success },
                Settlement::Failed(failure) | Settlement::Cancelled(failure) => {
                    Body::SubagentError { message: failure.message.clone(), code: Some(failure.code.to_string()) }
                }
            };
            self.emit(turn.owner, body);
        }
        turn.step.into_iter().for_each(|step_name| self.emit(None, Body::StepFinished { step_name }));
    }

    fn on_envelope(&mut self, envelope: &Envelope) {
        if !envelope.to.is_user() {
            let between = !envelope.from.is_user();
            let value = json!({ "from": envelope.from, "to": envelope.to, "text": &*envelope.payload.text });
            between.then(|| self.emit(None, Body::Custom { name: "org.message".to_owned(), value }));
            return;
        }
        match &envelope.kind {
            MessageKind::Message => self.emit_text(envelope.id.as_str().into(), Some(&envelope.from), &envelope.payload.text),
            MessageKind::Answer => {
                let left = unshown(&envelope.payload.text, &self.last_text).to_owned();
                if !left.is_empty() {
                    self.emit_text(envelope.id.as_str().into(), None, &left);
                }
                if self.is_final_answer() {
                    self.answer = Some(envelope.payload.text.clone());
                    self.succeed();
                }
            }
            MessageKind::Failure(failure) if TaskStatus::after(failure) == TaskStatus::Cancelled => {
                self.close(&[]);
                self.finish(Outcome::Cancelled);
            }
            MessageKind::Failure(failure) if self.is_final_answer() => self.fail(&failure.code, failure.message.clone()),
            MessageKind::Failure(failure) => self.emit_text(envelope.id.as_str().into(), None, &failure.to_string()),
        }
    }

    /// Whether an answer is the one that the run is for, and not to an earlier message of the thread.
    fn is_final_answer(&self) -> bool {
        self.is_started
    }

    fn begin_effect(&mut self, id: EffectId, effect: &Effect, seq: Seq) {
        match effect {
            // What a turn asks a model for itself alone is no reply of the agent; only what it cost counts.
            Effect::Model { aside: true, .. } => {
                self.asides.insert(id);
            }
            Effect::Model { .. } => {
                let is_unit = self.turns.get(&id.turn).is_some_and(|turn| turn.is_unit);
                self.replies.insert(id, ReplyStream::new(id, is_unit, seq <= self.joined));
            }
            Effect::Tool(call) if call.is_environment() => {}
            Effect::Tool(call) => self.name_call(id, call, None),
            Effect::Approval { call: Some(call), wanted, .. } => self.name_call(id, call, Some(wanted.clone())),
            Effect::Ask { envelope, .. } => self.delegate(id, envelope.to.as_str(), &envelope.payload.text),
            Effect::Unit { task, behaviour, thread } => {
                let agent = AgentId::from("");
                let name = unit_name(&TurnSource { agent: &agent, behaviour, phase: "", thread });
                self.delegate(id, &name, &task.message);
            }
            Effect::Approval { call: None, .. }
            | Effect::Grant { .. }
            | Effect::Terminate { .. }
            | Effect::Sleep { .. }
            | Effect::Keep(_) => {}
        }
    }

    /// Finds the id under which a call was emitted when the model asked for it; a call that no model asked for is emitted now.
    fn name_call(&mut self, id: EffectId, call: &Call, asks: Option<Wanted>) {
        let Some(turn) = self.turns.get_mut(&id.turn) else { return };
        let name = call.wrote.as_ref().unwrap_or(&call.tool);
        let place = turn.wanted.iter().position(|(_, wanted)| wanted.id == call.call_id && wanted.name == *name);
        let found = place.map(|place| turn.wanted.remove(place).0);
        let is_client_tool = turn.client_tools.contains(&call.tool);
        let emitted = match found {
            Some(found) => found,
            None => {
                let emitted: Arc<str> = format!("call_{}_{}", id.turn, id.n).into();
                let owner = turn.owner.clone();
                self.emit_call(owner, emitted.clone(), call.tool.clone(), None, call.arguments.to_string());
                emitted
            }
        };
        if let Some(turn) = self.turns.get_mut(&id.turn).filter(|_| call.own && asks.is_none()) {
            turn.own.push((id, emitted.clone()));
        }
        self.calls.insert(id, EmittedCall { id: emitted, call: Some(call.clone()), asks, is_client_tool, has_result: true });
    }

    /// Asking another agent is a tool call as well: the one that asks, or a call of its own.
    fn delegate(&mut self, id: EffectId, to: &str, text: &str) {
        let Some(turn) = self.turns.get(&id.turn) else { return };
        let emitted = match turn.own.last() {
            Some((_, own)) => EmittedCall { id: own.clone(), call: None, asks: None, is_client_tool: false, has_result: false },
            None => {
                let emitted: Arc<str> = format!("call_{}_{}", id.turn, id.n).into();
                let arguments = json!({ "to": to, "text": text }).to_string();
                self.emit_call(turn.owner.clone(), emitted.clone(), "delegate".into(), None, arguments);
                EmittedCall { id: emitted, call: None, asks: None, is_client_tool: false, has_result: true }
            }
        };
        self.calls.insert(id, emitted);
    }

    fn end_effect(&mut self, id: EffectId, outcome: &EffectOutcome) {
        match outcome {
            EffectOutcome::Reply(reply) => self.end_model(id, reply),
            EffectOutcome::Failed(_) if self.replies.contains_key(&id) => self.end_reply(id),
            _ => {}
        }
        if let Some(turn) = self.turns.get_mut(&id.turn) {
            turn.own.retain(|(own, _)| *own != id);
        }
        let Some(emitted) = self.calls.remove(&id).filter(|emitted| emitted.has_result) else { return };
        let content = match (outcome, &emitted.asks) {
            (EffectOutcome::Result(result), _) => result.content.to_string(),
            (EffectOutcome::Answer(text), _) => text.to_string(),
            (EffectOutcome::Failed(failure), _) => failure.to_string(),
            (EffectOutcome::Verdict(verdict), Some(Wanted::Agreement)) if verdict.approved => {
                // The call itself follows, under the same name.
                let wanted = emitted.call.map(|call| ToolCall {
                    id: call.call_id,
                    name: call.wrote.unwrap_or(call.tool),
                    arguments: call.arguments,
                });
                if let (Some(wanted), Some(turn)) = (wanted, self.turns.get_mut(&id.turn)) {
                    turn.wanted.insert(0, (emitted.id, wanted));
                }
                return;
            }
            (EffectOutcome::Verdict(verdict), _) => match &verdict.answer {
                Some(Value::String(text)) if verdict.approved => text.clone(),
                Some(other) if verdict.approved => other.to_string(),
                _ if verdict.reason.is_empty() => "a person did not agree".to_owned(),
                _ => format!("a person did not agree: {}", verdict.reason),
            },
            (EffectOutcome::Reply(_) | EffectOutcome::Slept | EffectOutcome::Kept(_), _) => return,
        };
        self.emit_result(id, emitted.id, content);
    }

    fn end_model(&mut self, id: EffectId, reply: &Reply) {
        self.count(reply);
        if self.asides.remove(&id) {
            return;
        }
        let mut stream = self.replies.remove(&id).unwrap_or_else(|| ReplyStream::new(id, false, true));
        let events = stream.complete(reply);
        self.emit_reply(id.turn, events);
        let (text, calls) = stream.into_parts();
        let Some(turn) = self.turns.get_mut(&id.turn) else { return };
        turn.wanted = calls.into_iter().zip(reply.tool_calls.iter().cloned()).collect();
        if turn.owner.is_none() && !text.trim().is_empty() {
            self.last_text = text;
        }
    }

    fn count(&mut self, reply: &Reply) {
        let used = self.usage.entry(reply.model.clone()).or_default();
        used.input_tokens = used.input_tokens.saturating_add(reply.usage.input_tokens);
        used.output_tokens = used.output_tokens.saturating_add(reply.usage.output_tokens);
        used.cached_tokens = used.cached_tokens.saturating_add(reply.usage.cached_tokens);
        used.reasoning_tokens = used.reasoning_tokens.saturating_add(reply.usage.reasoning_tokens);
        used.cache_write_tokens = used.cache_write_tokens.saturating_add(reply.usage.cache_write_tokens);
    }

    fn on_delta(&mut self, delta: &StreamedDelta) {
        let Some(mut stream) = self.replies.remove(&delta.effect) else { return };
        let events = match &delta.delta {
            Delta::Content(text) => stream.text(text),
            Delta::Reasoning(text) => stream.reasoning(text),
            Delta::ToolCall { index, name, arguments, .. } => stream.call(*index, name.as_ref(), arguments),
            Delta::Stopped | Delta::Error(_) => stream.restart(),
            Delta::Usage(_) | Delta::Echo(_) | Delta::VendorCall(_) | Delta::Citation(_) | Delta::Model(_) | Delta::Done(_) => {
                Vec::new()
            }
        };
        self.emit_reply(delta.effect.turn, events);
        self.replies.insert(delta.effect, stream);
    }

    /// Closes a reply that did not become whole.
    fn end_reply(&mut self, id: EffectId) {
        if let Some(mut stream) = self.replies.remove(&id) {
            let events = stream.restart();
            self.emit_reply(id.turn, events);
        }
    }

    fn emit_reply(&mut self, turn: TurnId, events: Vec<ReplyEvent>) {
        let owner = self.owner(turn);
        for events in events {
            match events {
                ReplyEvent::Body(body) => self.emit(owner.clone(), body),
                ReplyEvent::Dropped(call) => {
                    let body = Body::ToolCallResult {
                        message_id: format!("result_{call}").into(),
                        tool_call_id: call,
                        content: "the reply was interrupted; this call is not run".to_owned(),
                        role: Role::Tool,
                    };
                    self.emit(owner.clone(), body);
                }
            }
        }
    }

    fn emit_text(&mut self, message_id: Arc<str>, from: Option<&AgentId>, text: &str) {
        let name = from.map(|from| self.shown_name(from));
        self.emit(None, Body::TextMessageStart { message_id: message_id.clone(), role: Role::Assistant, name });
        if !text.is_empty() {
            self.emit(None, Body::TextMessageContent { message_id: message_id.clone(), delta: text.to_owned() });
        }
        self.emit(None, Body::TextMessageEnd { message_id });
    }

    fn emit_call(
        &mut self,
        owner: Option<Arc<str>>,
        id: Arc<str>,
        name: Arc<str>,
        parent: Option<Arc<str>>,
        arguments: String,
    ) {
        let start = Body::ToolCallStart { tool_call_id: id.clone(), tool_call_name: name, parent_message_id: parent };
        self.emit(owner.clone(), start);
        if !arguments.is_empty() {
            self.emit(owner.clone(), Body::ToolCallArgs { tool_call_id: id.clone(), delta: arguments });
        }
        self.emit(owner, Body::ToolCallEnd { tool_call_id: id });
    }

    fn emit_result(&mut self, id: EffectId, tool_call_id: Arc<str>, content: String) {
        let message_id = format!("result_{}_{}", id.turn, id.n).into();
        let owner = self.owner(id.turn);
        self.emit(owner, Body::ToolCallResult { message_id, tool_call_id, content, role: Role::Tool });
    }

    fn set_state(&mut self, name: &str, value: Value) {
        let known = self.state.insert(name.to_owned(), value.clone());
        if known.as_ref() == Some(&value) {
            return;
        }
        let path = format!("/{name}");
        let patch = if known.is_some() { Patch::Replace { path, value } } else { Patch::Add { path, value } };
        self.emit(None, Body::StateDelta { delta: vec![patch] });
    }
}

/// Who begins a turn, and where.
struct TurnSource<'a> {
    agent: &'a AgentId,
    behaviour: &'a Behaviour,
    phase: &'a str,
    thread: &'a ThreadId,
}

/// What a unit is called: the sub-thread that it belongs to, without the names of phases.
fn unit_name(source: &TurnSource<'_>) -> Arc<str> {
    let mut parts: Vec<&str> = source.behaviour.as_str().split('/').collect();
    if parts.len() > 1 {
        parts.pop();
    }
    parts.last().copied().unwrap_or("unit").into()
}

fn brief(text: &str) -> Option<String> {
    let line = text.lines().next().unwrap_or_default();
    let brief: String = line.chars().take(BRIEF_CHARS).collect();
    Some(brief).filter(|brief| !brief.trim().is_empty())
}
