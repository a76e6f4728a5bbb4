//! Tells what happens for one request as a run of AG-UI: nested sub-agents, replies as they grow, calls and what came of them.
//!
//! It is a fold over what a watcher sees, without a clock or a store. What it tells follows the rules that clients check: each
//! thing is opened once, grows, and is closed before the run ends. Names are derived from the places of events in the log, so
//! that two watchers of one request tell the same.

mod components;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use polis_api::TaskStatus;
use polis_domain::{
    AgentId, Behaviour, Call, Effect, EffectId, Envelope, Event as Happened, MessageId, MessageKind, Origin, Outcome as Came,
    Recorded, Reply, ReplyTo, Seq, Settlement, Task, TaskId, ThreadId, Timestamp, ToolCall, TurnId, Usage, Wanted,
};
use polis_engine::WatchEvent;
use polis_ports::{Delta, StreamedDelta};
use serde_json::{Map, Value, json};

use super::event::{Body, Event, Interrupt, Outcome, Patch, Role, SubagentOutcome, TokenUsage, VERSION};
use super::reply::{Replying, Told};
use components::{Activity, Draft};

/// Most characters of what a sub-agent is asked that are told with its name.
const BRIEF_CHARS: usize = 200;

/// Follows one request.
pub(crate) struct Narrator {
    task: TaskId,
    thread_id: Arc<str>,
    run_id: Arc<str>,
    /// The message whose answer ends the run; none when the next answer does.
    envelope: Option<MessageId>,
    /// Whether that message is being worked on.
    is_due: bool,
    /// What is heard is remembered, and not told.
    quiet: bool,
    over: bool,
    /// Replies that began no later than this are told when they are whole: who joins late has not heard their beginning.
    joined: Seq,
    at: Timestamp,
    out: Vec<Event>,
    turns: BTreeMap<TurnId, Acting>,
    replies: HashMap<EffectId, Replying>,
    /// Models that are asked for the turn alone.
    asides: HashSet<EffectId>,
    /// Effects that stand for a call, and the name that the call was told under.
    calls: HashMap<EffectId, Named>,
    /// Activities by the place of their message, and those that grow before their message is there.
    activities: HashMap<(ThreadId, u32), Activity>,
    growing: HashMap<(ThreadId, Arc<str>), Activity>,
    grown: u64,
    drafts: HashMap<ThreadId, Draft>,
    usage: BTreeMap<Arc<str>, Usage>,
    state: Map<String, Value>,
    /// The last text of the main agent that was told.
    last_text: String,
    answer: Option<Arc<str>>,
}

/// A turn that is under way.
struct Acting {
    /// The sub-agent's name in this run; none for the main agent.
    owner: Option<Arc<str>>,
    /// Where the sub-agent hangs, to open it again in another run.
    started: Option<Body>,
    step: Option<Arc<str>>,
    thread: ThreadId,
    is_unit: bool,
    /// Names of the tools that whoever asks has brought along.
    lent: Vec<Arc<str>>,
    /// Calls that the last reply asked for and that are not stated yet.
    wanted: Vec<(Arc<str>, ToolCall)>,
    /// Calls that the turn does itself, innermost last.
    own: Vec<(EffectId, Arc<str>)>,
}

/// A call that was told.
struct Named {
    id: Arc<str>,
    call: Option<Call>,
    /// Whether a person is asked about it, and whether for words.
    asks: Option<Wanted>,
    /// Whether it is one of the tools of whoever asks.
    lent: bool,
    /// Whether what comes of it is told here.
    tells: bool,
}

impl Narrator {
    /// Follows a request; an answer to `message` ends the run, or any answer where there is none.
    pub(crate) fn new(task: TaskId, thread_id: &str, run_id: &str) -> Self {
        Self {
            state: Map::from_iter([("taskId".to_owned(), task.as_str().into()), ("todos".to_owned(), json!([]))]),
            task,
            thread_id: thread_id.into(),
            run_id: run_id.into(),
            envelope: None,
            is_due: true,
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
        }
    }

    /// The same, ended by the answer to this message only.
    pub(crate) fn answering(self, envelope: MessageId) -> Self {
        Self { envelope: Some(envelope), is_due: false, ..self }
    }

    /// The same, joined when the log ended there.
    pub(crate) fn joined(self, at: Seq) -> Self {
        Self { joined: at, ..self }
    }

    /// The same, which only remembers what it hears until it begins.
    pub(crate) fn quiet(self) -> Self {
        Self { quiet: true, ..self }
    }

    /// Opens the run, with everything in it that is under way.
    pub(crate) fn begin(&mut self, before: Vec<Body>) {
        self.quiet = false;
        self.usage.clear();
        self.out.clear();
        let (thread_id, run_id) = (self.thread_id.clone(), self.run_id.clone());
        self.tell(None, Body::RunStarted { thread_id, run_id, protocol_version: VERSION.to_owned(), parent_run_id: None });
        before.into_iter().for_each(|body| self.tell(None, body));
        self.tell(None, Body::StateSnapshot { snapshot: Value::Object(self.state.clone()) });
        let open: Vec<_> =
            self.turns.values().map(|turn| (turn.owner.clone(), turn.started.clone(), turn.step.clone())).collect();
        for (owner, started, step) in open {
            started.into_iter().for_each(|started| self.tell(owner.clone(), started));
            step.into_iter().for_each(|step_name| self.tell(None, Body::StepStarted { step_name }));
        }
    }

    /// What is to be told since anybody last asked.
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

    /// The call that an effect was told as, and who made it.
    pub(crate) fn call(&self, id: EffectId) -> Option<(Arc<str>, Option<Arc<str>>)> {
        let owner = self.turns.get(&id.turn).and_then(|turn| turn.owner.clone());
        self.calls.get(&id).map(|named| (named.id.clone(), owner))
    }

    /// Calls of tools of whoever asks that wait for them: what they were told as, and what is called.
    pub(crate) fn lent_calls(&self) -> Vec<(EffectId, Arc<str>, Call)> {
        let waits = self.calls.iter().filter(|(_, named)| named.lent && named.asks.is_some());
        let mut waits: Vec<_> = waits.filter_map(|(id, named)| Some((*id, named.id.clone(), named.call.clone()?))).collect();
        waits.sort_by_key(|(id, ..)| *id);
        waits
    }

    /// Hears the next thing that a watcher sees.
    pub(crate) fn hear(&mut self, seen: &WatchEvent) {
        if self.over {
            return;
        }
        match seen {
            WatchEvent::Event(recorded) => self.hear_event(recorded),
            WatchEvent::Delta(delta) => self.hear_delta(delta),
            WatchEvent::Step(chunk) => self.hear_step(chunk),
        }
        if self.quiet {
            self.out.clear();
        }
    }

    /// Ends the run because a person must act.
    pub(crate) fn interrupt(&mut self, interrupts: Vec<Interrupt>) {
        let ids: Vec<String> = interrupts.iter().map(|interrupt| interrupt.id.clone()).collect();
        self.close(&ids);
        self.tell(None, Body::StateSnapshot { snapshot: Value::Object(self.state.clone()) });
        self.finish(Outcome::Interrupt { interrupts });
    }

    /// Ends the run because whoever asks must call tools of their own.
    pub(crate) fn hand_over(&mut self, pending_tool_call_ids: Vec<Arc<str>>) {
        self.close(&[]);
        self.tell(None, Body::StateSnapshot { snapshot: Value::Object(self.state.clone()) });
        self.finish(Outcome::Success { pending_tool_call_ids });
    }

    /// Ends the run without more to tell.
    pub(crate) fn succeed(&mut self) {
        self.close(&[]);
        self.finish(Outcome::Success { pending_tool_call_ids: Vec::new() });
    }

    /// Ends the run with an error.
    pub(crate) fn fail(&mut self, code: &str, message: impl Into<String>) {
        self.close(&[]);
        let usage = self.used();
        self.tell(None, Body::RunError { message: message.into(), code: Some(code.to_owned()), usage });
        self.over = true;
    }

    fn finish(&mut self, outcome: Outcome) {
        let (thread_id, run_id, usage) = (self.thread_id.clone(), self.run_id.clone(), self.used());
        let result = self.answer.as_ref().map(|answer| json!({ "answer": answer }));
        self.tell(None, Body::RunFinished { thread_id, run_id, result, outcome, usage });
        self.over = true;
    }

    /// What was used so far, by model.
    pub(crate) fn used(&self) -> Vec<TokenUsage> {
        self.usage.iter().map(|(model, usage)| TokenUsage::new(model, *usage)).collect()
    }

    fn tell(&mut self, owner: Option<Arc<str>>, body: Body) {
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
                self.tell(owner, Body::SubagentFinished { outcome: SubagentOutcome::Suspended { interrupt_ids } });
            }
            step.into_iter().for_each(|step_name| self.tell(None, Body::StepFinished { step_name }));
        }
    }

    fn hear_event(&mut self, recorded: &Recorded) {
        self.at = recorded.at;
        match &recorded.event {
            Happened::TurnStarted { agent, behaviour, phase, task, origin, reply_to, message, .. } if task.id == self.task => {
                if message.is_some() && *message == self.envelope {
                    self.is_due = true;
                }
                let Some(thread) = &recorded.thread else { return };
                let who = Who { agent, behaviour, phase: phase.as_str(), thread };
                self.start(TurnId(recorded.seq), &who, task, *origin, *reply_to);
            }
            Happened::TurnSettled { turn, settlement, message, index, .. } => {
                let component = message.as_ref().and_then(|message| message.meta.get("component"));
                if let (Some(message), Some(component), Some(thread)) = (message, component, &recorded.thread)
                    && self.turns.contains_key(turn)
                {
                    self.show_component(*turn, (thread.clone(), *index), Some(&message.id), component);
                }
                self.settle(*turn, settlement);
            }
            Happened::MessagesTaken { envelopes, .. } => {
                self.is_due |= envelopes.iter().any(|envelope| Some(&envelope.id) == self.envelope.as_ref());
            }
            Happened::MessageSent { envelope, .. } if envelope.task_id == self.task => self.hear_envelope(envelope),
            Happened::EffectStarted { id, effect, .. } if self.turns.contains_key(&id.turn) => {
                self.begin_effect(*id, effect, recorded.seq);
            }
            Happened::EffectRetried { id, .. } => {
                if let Some(mut replying) = self.replies.remove(id) {
                    let told = replying.again();
                    self.tell_reply(id.turn, told);
                    self.replies.insert(*id, replying);
                }
            }
            Happened::EffectEnded { id, outcome, .. } if self.turns.contains_key(&id.turn) => self.end_effect(*id, outcome),
            Happened::EffectRefused { id, failure } => {
                let wanted = self.turns.get_mut(&id.turn).filter(|turn| !turn.wanted.is_empty());
                if let Some((call, _)) = wanted.map(|turn| turn.wanted.remove(0)) {
                    self.tell_result(*id, call, failure.to_string());
                }
            }
            Happened::MessageAdded { by, index, message } if self.turns.contains_key(&by.turn) => {
                if let Some(thread) = &recorded.thread {
                    self.show(by.turn, thread, *index, message);
                }
            }
            Happened::MessageUpdated { by, index, patch } if self.turns.contains_key(&by.turn) => {
                let Some(thread) = &recorded.thread else { return };
                let place = (thread.clone(), *index);
                if let Some(component) = patch.meta.get("component") {
                    self.show_component(by.turn, place, None, component);
                } else if let Some(text) = &patch.text {
                    self.reword(&place, text);
                }
            }
            Happened::PlanSet { by, plan } if self.owner(by.turn).is_none() && self.turns.contains_key(&by.turn) => {
                self.set_state("todos", serde_json::to_value(&plan.steps).unwrap_or_default());
            }
            _ => {}
        }
    }

    fn start(&mut self, id: TurnId, who: &Who<'_>, task: &Task, origin: Origin, reply_to: ReplyTo) {
        let asked_by = match (origin, reply_to) {
            (Origin::Unit(effect), _) | (Origin::Inbox, ReplyTo::Effect(effect)) => Some(Some(effect)),
            (Origin::Inbox, ReplyTo::Nobody) => Some(None),
            (Origin::Inbox, ReplyTo::User) => None,
        };
        let is_unit = matches!(origin, Origin::Unit(_));
        let name: Arc<str> = if is_unit { unit_name(who) } else { who.agent.as_str().into() };
        let owner: Option<Arc<str>> = asked_by.map(|_| format!("run_{id}").into());
        let started = asked_by.map(|by| Body::SubagentStarted {
            name: name.clone(),
            description: brief(&task.message),
            parent_subagent_run_id: by.and_then(|by| self.owner(by.turn)),
            parent_tool_call_id: by.and_then(|by| self.calls.get(&by)).map(|named| named.id.clone()),
        });
        let step: Option<Arc<str>> = asked_by.is_none().then(|| format!("{}: {}", who.agent, who.phase).into());
        let lent = task.meta.get(Task::CLIENT_TOOLS).and_then(Value::as_array);
        let lent = lent.into_iter().flatten().filter_map(|tool| tool.get("name")?.as_str()).map(Into::into).collect();
        started.clone().into_iter().for_each(|started| self.tell(owner.clone(), started));
        if let Some(step_name) = step.clone() {
            self.tell(None, Body::StepStarted { step_name });
            self.set_state("phase", who.phase.into());
        }
        let acting =
            Acting { owner, started, step, thread: who.thread.clone(), is_unit, lent, wanted: Vec::new(), own: Vec::new() };
        self.turns.insert(id, acting);
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
            self.tell(turn.owner, body);
        }
        turn.step.into_iter().for_each(|step_name| self.tell(None, Body::StepFinished { step_name }));
    }

    fn hear_envelope(&mut self, envelope: &Envelope) {
        if !envelope.to.is_user() {
            let between = !envelope.from.is_user();
            let value = json!({ "from": envelope.from, "to": envelope.to, "text": &*envelope.payload.text });
            between.then(|| self.tell(None, Body::Custom { name: "org.message".to_owned(), value }));
            return;
        }
        match &envelope.kind {
            MessageKind::Message => self.tell_text(envelope.id.as_str().into(), Some(&envelope.from), &envelope.payload.text),
            MessageKind::Answer => {
                if self.last_text.trim() != envelope.payload.text.trim() {
                    self.tell_text(envelope.id.as_str().into(), None, &envelope.payload.text);
                }
                if self.ends() {
                    self.answer = Some(envelope.payload.text.clone());
                    self.succeed();
                }
            }
            MessageKind::Failure(failure) if TaskStatus::after(failure) == TaskStatus::Cancelled => {
                self.close(&[]);
                self.finish(Outcome::Cancelled);
            }
            MessageKind::Failure(failure) if self.ends() => self.fail(&failure.code, failure.message.clone()),
            MessageKind::Failure(failure) => self.tell_text(envelope.id.as_str().into(), None, &failure.to_string()),
        }
    }

    /// Whether an answer is the one that the run is for. Nobody answers a message that nobody works on, but the answer to it may
    /// have begun before anybody could see that.
    fn ends(&self) -> bool {
        self.is_due || self.turns.values().all(|turn| turn.owner.is_some())
    }

    fn begin_effect(&mut self, id: EffectId, effect: &Effect, seq: Seq) {
        match effect {
            // What a turn asks a model for itself alone is no reply of the agent; only what it cost counts.
            Effect::Model { aside: true, .. } => {
                self.asides.insert(id);
            }
            Effect::Model { .. } => {
                let is_unit = self.turns.get(&id.turn).is_some_and(|turn| turn.is_unit);
                self.replies.insert(id, Replying::new(id, is_unit, seq <= self.joined));
            }
            Effect::Tool(call) => self.name_call(id, call, None),
            Effect::Approval { call: Some(call), wanted, .. } => self.name_call(id, call, Some(wanted.clone())),
            Effect::Ask { envelope, .. } => self.delegate(id, envelope.to.as_str(), &envelope.payload.text),
            Effect::Unit { task, behaviour, thread } => {
                let agent = AgentId::from("");
                let name = unit_name(&Who { agent: &agent, behaviour, phase: "", thread });
                self.delegate(id, &name, &task.message);
            }
            Effect::Approval { call: None, .. }
            | Effect::Grant { .. }
            | Effect::Terminate { .. }
            | Effect::Sleep { .. }
            | Effect::Keep(_) => {}
        }
    }

    /// Finds the name that a call was told under when the model asked for it; one that no model asked for is told now.
    fn name_call(&mut self, id: EffectId, call: &Call, asks: Option<Wanted>) {
        let Some(turn) = self.turns.get_mut(&id.turn) else { return };
        let name = call.wrote.as_ref().unwrap_or(&call.tool);
        let place = turn.wanted.iter().position(|(_, wanted)| wanted.id == call.call_id && wanted.name == *name);
        let found = place.map(|place| turn.wanted.remove(place).0);
        let lent = turn.lent.contains(&call.tool);
        let named = match found {
            Some(found) => found,
            None => {
                let named: Arc<str> = format!("call_{}_{}", id.turn, id.n).into();
                let owner = turn.owner.clone();
                self.tell_call(owner, named.clone(), call.tool.clone(), None, call.arguments.to_string());
                named
            }
        };
        if let Some(turn) = self.turns.get_mut(&id.turn).filter(|_| call.own && asks.is_none()) {
            turn.own.push((id, named.clone()));
        }
        self.calls.insert(id, Named { id: named, call: Some(call.clone()), asks, lent, tells: true });
    }

    /// Asking somebody is a call as well: that of the tool that asks, or one of its own.
    fn delegate(&mut self, id: EffectId, to: &str, text: &str) {
        let Some(turn) = self.turns.get(&id.turn) else { return };
        let named = match turn.own.last() {
            Some((_, own)) => Named { id: own.clone(), call: None, asks: None, lent: false, tells: false },
            None => {
                let named: Arc<str> = format!("call_{}_{}", id.turn, id.n).into();
                let arguments = json!({ "to": to, "text": text }).to_string();
                self.tell_call(turn.owner.clone(), named.clone(), "delegate".into(), None, arguments);
                Named { id: named, call: None, asks: None, lent: false, tells: true }
            }
        };
        self.calls.insert(id, named);
    }

    fn end_effect(&mut self, id: EffectId, outcome: &Came) {
        match outcome {
            Came::Reply(reply) => self.end_model(id, reply),
            Came::Failed(_) if self.replies.contains_key(&id) => self.end_reply(id),
            _ => {}
        }
        if let Some(turn) = self.turns.get_mut(&id.turn) {
            turn.own.retain(|(own, _)| *own != id);
        }
        let Some(named) = self.calls.remove(&id).filter(|named| named.tells) else { return };
        let content = match (outcome, &named.asks) {
            (Came::Result(result), _) => result.content.to_string(),
            (Came::Answer(text), _) => text.to_string(),
            (Came::Failed(failure), _) => failure.to_string(),
            (Came::Verdict(verdict), Some(Wanted::Agreement)) if verdict.approved => {
                // The call itself follows, under the same name.
                let wanted = named.call.map(|call| ToolCall {
                    id: call.call_id,
                    name: call.wrote.unwrap_or(call.tool),
                    arguments: call.arguments,
                });
                if let (Some(wanted), Some(turn)) = (wanted, self.turns.get_mut(&id.turn)) {
                    turn.wanted.insert(0, (named.id, wanted));
                }
                return;
            }
            (Came::Verdict(verdict), _) => match &verdict.answer {
                Some(Value::String(text)) if verdict.approved => text.clone(),
                Some(other) if verdict.approved => other.to_string(),
                _ if verdict.reason.is_empty() => "a person did not agree".to_owned(),
                _ => format!("a person did not agree: {}", verdict.reason),
            },
            (Came::Reply(_) | Came::Slept | Came::Kept(_), _) => return,
        };
        self.tell_result(id, named.id, content);
    }

    fn end_model(&mut self, id: EffectId, reply: &Reply) {
        self.count(reply);
        if self.asides.remove(&id) {
            return;
        }
        let mut replying = self.replies.remove(&id).unwrap_or_else(|| Replying::new(id, false, true));
        let told = replying.whole(reply);
        self.tell_reply(id.turn, told);
        let (text, calls) = replying.ended();
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

    fn hear_delta(&mut self, delta: &StreamedDelta) {
        let Some(mut replying) = self.replies.remove(&delta.effect) else { return };
        let told = match &delta.delta {
            Delta::Content(text) => replying.text(text),
            Delta::Reasoning(text) => replying.reasoning(text),
            Delta::ToolCall { index, name, arguments, .. } => replying.call(*index, name.as_ref(), arguments),
            Delta::Stopped | Delta::Error(_) => replying.again(),
            Delta::Usage(_) | Delta::Echo(_) | Delta::Model(_) | Delta::Done(_) => Vec::new(),
        };
        self.tell_reply(delta.effect.turn, told);
        self.replies.insert(delta.effect, replying);
    }

    /// Closes a reply that did not become whole.
    fn end_reply(&mut self, id: EffectId) {
        if let Some(mut replying) = self.replies.remove(&id) {
            let told = replying.again();
            self.tell_reply(id.turn, told);
        }
    }

    fn tell_reply(&mut self, turn: TurnId, told: Vec<Told>) {
        let owner = self.owner(turn);
        for told in told {
            match told {
                Told::Body(body) => self.tell(owner.clone(), body),
                Told::Dropped(call) => {
                    let body = Body::ToolCallResult {
                        message_id: format!("result_{call}").into(),
                        tool_call_id: call,
                        content: "the reply was interrupted; this call is not run".to_owned(),
                        role: Role::Tool,
                    };
                    self.tell(owner.clone(), body);
                }
            }
        }
    }

    fn tell_text(&mut self, message_id: Arc<str>, from: Option<&AgentId>, text: &str) {
        let name = from.map(|from| from.as_str().into());
        self.tell(None, Body::TextMessageStart { message_id: message_id.clone(), role: Role::Assistant, name });
        if !text.is_empty() {
            self.tell(None, Body::TextMessageContent { message_id: message_id.clone(), delta: text.to_owned() });
        }
        self.tell(None, Body::TextMessageEnd { message_id });
    }

    fn tell_call(
        &mut self,
        owner: Option<Arc<str>>,
        id: Arc<str>,
        name: Arc<str>,
        parent: Option<Arc<str>>,
        arguments: String,
    ) {
        let start = Body::ToolCallStart { tool_call_id: id.clone(), tool_call_name: name, parent_message_id: parent };
        self.tell(owner.clone(), start);
        if !arguments.is_empty() {
            self.tell(owner.clone(), Body::ToolCallArgs { tool_call_id: id.clone(), delta: arguments });
        }
        self.tell(owner, Body::ToolCallEnd { tool_call_id: id });
    }

    fn tell_result(&mut self, id: EffectId, tool_call_id: Arc<str>, content: String) {
        let message_id = format!("result_{}_{}", id.turn, id.n).into();
        let owner = self.owner(id.turn);
        self.tell(owner, Body::ToolCallResult { message_id, tool_call_id, content, role: Role::Tool });
    }

    fn set_state(&mut self, name: &str, value: Value) {
        let known = self.state.insert(name.to_owned(), value.clone());
        if known.as_ref() == Some(&value) {
            return;
        }
        let path = format!("/{name}");
        let patch = if known.is_some() { Patch::Replace { path, value } } else { Patch::Add { path, value } };
        self.tell(None, Body::StateDelta { delta: vec![patch] });
    }
}

/// Who begins a turn, and where.
struct Who<'a> {
    agent: &'a AgentId,
    behaviour: &'a Behaviour,
    phase: &'a str,
    thread: &'a ThreadId,
}

/// What a unit is called: the sub-thread that it belongs to, without the names of phases.
fn unit_name(who: &Who<'_>) -> Arc<str> {
    let mut parts: Vec<&str> = who.behaviour.as_str().split('/').collect();
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
