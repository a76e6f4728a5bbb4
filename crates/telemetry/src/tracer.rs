//! The fold of events into spans. It holds what is under way and gives each span when it ends; it reads and sends nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use polis_domain::{
    AgentId, Effect, EffectId, Envelope, Event, Failure, InquiryId, MessageKind, MetaPath, Origin, Recorded, ReplyTo, Seq,
    SocietyId, Spent, SubThreadPath, TaskId, ThreadId, Timestamp, TurnId, Usage,
};

use crate::agent_tree::AgentTree;
use crate::ids::Ids;
use crate::otlp::{Attributes, INTERNAL, SERVER, Span, SpanEvent, nanos, usd};
use crate::requests::Requests;
use crate::spans::{self, ModelCall, SpanEnd, SpanStart};

/// Most things that a span says have happened within it.
const MAX_EVENTS: usize = 128;

/// Most places of sub-threads that are remembered; others are looked up.
const MAX_PLACES: usize = 16_384;

/// Makes spans of one society's events.
#[derive(Debug)]
pub(crate) struct Tracer {
    ids: Ids,
    society: SocietyId,
    content: bool,
    tree: AgentTree,
    /// What models were asked, if spans carry content.
    asked: Arc<Requests>,
    requests: BTreeMap<TaskId, Request>,
    turns: BTreeMap<TurnId, Turn>,
    places: HashMap<ThreadId, SubThreadPlace>,
    done: Vec<FinishedSpan>,
}

/// A span that has ended.
#[derive(Debug, Clone)]
pub(crate) struct FinishedSpan {
    pub(crate) span: Span,
    /// What it was, if it was a model call.
    pub(crate) chat: Option<ModelCall>,
}

/// The parent and slot of a sub-thread.
#[derive(Debug, Clone)]
pub(crate) struct SubThreadPlace {
    pub(crate) parent: ThreadId,
    pub(crate) index: u32,
    pub(crate) slot: MetaPath,
}

/// A span that has not ended yet.
#[derive(Debug)]
struct OpenSpan {
    since: Timestamp,
    trace: String,
    id: String,
    parent: Option<String>,
    beginning: SpanStart,
    events: Vec<SpanEvent>,
}

#[derive(Debug)]
struct Request {
    seq: Seq,
    /// The conversation that it was asked in.
    conversation: AgentId,
    span: OpenSpan,
    totals: Totals,
}

#[derive(Debug)]
struct Turn {
    span: OpenSpan,
    /// Who, where and what for: all spans of the turn say so.
    about: Attributes,
    agent: AgentId,
    task: TaskId,
    totals: Totals,
    effects: BTreeMap<u32, OpenEffect>,
}

/// An effect that has not ended yet.
#[derive(Debug)]
struct OpenEffect {
    span: OpenSpan,
    /// What attempts in vain have cost.
    spent: Spent,
    /// Whether the turn does it by effects of its own.
    own: bool,
    inquiries: BTreeMap<Seq, OpenSpan>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Totals {
    usage: Usage,
    cost_nanos: u64,
    models: u64,
    tools: u64,
}

impl Tracer {
    pub(crate) fn new(ids: Ids, tree: AgentTree, content: bool, asked: Arc<Requests>) -> Self {
        let (requests, turns, places, done) = Default::default();
        Self { society: ids.society().clone(), ids, content, tree, asked, requests, turns, places, done }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.ids.seed()
    }

    /// How many requests and turns have not ended yet.
    pub(crate) fn open_counts(&self) -> (usize, usize) {
        (self.requests.len(), self.turns.len())
    }

    /// The first event of whatever is under way.
    pub(crate) fn oldest(&self) -> Option<Seq> {
        let requests = self.requests.values().map(|request| request.seq);
        requests.chain(self.turns.keys().next().map(|turn| turn.0)).min()
    }

    /// Forgets what began before a place; how many spans that costs at least.
    pub(crate) fn let_go(&mut self, before: Seq) -> usize {
        let (requests, turns) = self.open_counts();
        self.requests.retain(|_, request| request.seq >= before);
        self.turns.retain(|turn, _| turn.0 >= before);
        let (left, going) = self.open_counts();
        requests - left + turns - going
    }

    /// The sub-thread whose place must be learnt before this event can be taken.
    pub(crate) fn lacks(&self, recorded: &Recorded) -> Option<ThreadId> {
        match (&recorded.event, &recorded.thread) {
            (Event::TurnStarted { agent, .. }, Some(thread)) => self.address(agent, thread).err(),
            _ => None,
        }
    }

    pub(crate) fn learn(&mut self, thread: ThreadId, place: SubThreadPlace) {
        if self.places.len() >= MAX_PLACES {
            self.places.clear();
        }
        self.places.insert(thread, place);
    }

    /// The request that this event may begin, or come back to: whoever folds it must know whether it is the first time.
    pub(crate) fn unknown_request<'a>(&self, recorded: &'a Recorded) -> Option<&'a TaskId> {
        match &recorded.event {
            Event::MessageSent { envelope, .. }
                if envelope.from.is_user() && !self.requests.contains_key(&envelope.task_id) =>
            {
                Some(&envelope.task_id)
            }
            _ => None,
        }
    }

    /// Takes the next event; the spans that ended with it, children first.
    pub(crate) fn take(&mut self, recorded: &Recorded, is_first: bool) -> Vec<FinishedSpan> {
        let (seq, at) = (recorded.seq, recorded.at);
        match &recorded.event {
            Event::MessageSent { envelope, .. } if envelope.from.is_user() => self.request_started(seq, at, envelope, is_first),
            Event::MessageSent { envelope, .. } if envelope.to.is_user() && envelope.kind != MessageKind::Message => {
                self.request_ended(at, envelope);
            }
            Event::ThreadLinked { index, slot, child, .. } => {
                if let Some(parent) = recorded.thread.clone() {
                    self.learn(child.clone(), SubThreadPlace { parent, index: *index, slot: slot.clone() });
                }
            }
            Event::AgentSpawned { agent, parent: Some(parent), .. } => self.tree.spawned(agent, parent),
            Event::TurnStarted { .. } => self.turn_started(recorded),
            Event::EffectStarted { id, effect, .. } => self.effect_started(*id, at, effect),
            Event::EffectRetried { id, attempt, spent } => {
                self.note(*id, at, "retry", spans::retry(attempt));
                if let Some(open_effect) = self.open_effect(*id) {
                    open_effect.spent = open_effect.spent.plus(*spent);
                }
            }
            Event::EffectEnded { id, outcome, spent } => {
                let ending = SpanEnd::of(outcome, self.content);
                self.effect_ended(*id, at, ending, spent.unwrap_or_default());
            }
            Event::EffectDoubted { id } => self.note(*id, at, "in_doubt", Attributes::default()),
            Event::EffectCleared { id, .. } => self.note(*id, at, "cleared", Attributes::default()),
            Event::EffectRestarted { id } => self.note(*id, at, "restarted", Attributes::default()),
            Event::EffectRefused { id, failure } => {
                if self.open_effect(*id).is_some() {
                    self.effect_ended(*id, at, SpanEnd::failed(failure), Spent::default());
                } else {
                    self.mark(id.turn, at, "refused", spans::mishap(failure));
                }
            }
            Event::CallInquired { id, inquiry, .. } => {
                let (ids, content) = (self.ids.clone(), self.content);
                if let Some(open_effect) = self.open_effect(*id) {
                    let span = OpenSpan {
                        since: at,
                        trace: open_effect.span.trace.clone(),
                        id: ids.inquiry(InquiryId { call: *id, seq }),
                        parent: Some(open_effect.span.id.clone()),
                        beginning: SpanStart::of_inquiry(inquiry, content),
                        events: Vec::new(),
                    };
                    open_effect.inquiries.insert(seq, span);
                }
            }
            Event::CallAnswered { id, answer, spent } => {
                let ending = SpanEnd::of_answer(answer, self.content);
                if let Some(span) = self.open_effect(id.call).and_then(|open_effect| open_effect.inquiries.remove(&id.seq)) {
                    self.finish(id.call.turn, span, at, ending, spent.unwrap_or_default());
                }
            }
            Event::TurnCrashed { turn, failure, .. } => self.mark(*turn, at, "crashed", spans::mishap(failure)),
            Event::TurnRevived { turn, .. } => self.mark(*turn, at, "revived", Attributes::default()),
            Event::TurnParked { turn, reason } => self.mark(*turn, at, "parked", spans::mishap(reason)),
            Event::TurnResumed { turn, .. } => self.mark(*turn, at, "resumed", Attributes::default()),
            Event::TurnSettled { turn, settlement, message, .. } => {
                let mut ending = SpanEnd::of_turn(settlement);
                if let Some(message) = message.as_ref().filter(|_| self.content) {
                    ending.attributes.set("gen_ai.output.messages", spans::message("assistant", &message.text));
                }
                self.turn_settled(*turn, at, ending);
            }
            _ => {}
        }
        std::mem::take(&mut self.done)
    }

    fn request_started(&mut self, seq: Seq, at: Timestamp, envelope: &Envelope, is_first: bool) {
        let task = &envelope.task_id;
        if let Some(request) = self.requests.get_mut(task) {
            return request.span.note(at, "message", Attributes::default());
        }
        let agent = envelope.to.as_str();
        let conversation = self.tree.top(&envelope.to).clone();
        let attributes = Attributes::default()
            .with("polis.society", self.society.as_str())
            .with("polis.task", task.as_str())
            .with("polis.agent", agent)
            .with("polis.thread", agent)
            .with("polis.path", "")
            .with("gen_ai.agent.name", agent)
            .with("gen_ai.conversation.id", conversation.as_str())
            .with_some("gen_ai.input.messages", self.content.then(|| spans::message("user", &envelope.payload.text)));
        let span = OpenSpan {
            since: at,
            trace: self.ids.trace(task),
            id: self.ids.request(task, (!is_first).then_some(seq)),
            parent: (!is_first).then(|| self.ids.request(task, None)),
            beginning: SpanStart { name: format!("request {agent}"), kind: SERVER, attributes, model: None },
            events: Vec::new(),
        };
        self.requests.insert(task.clone(), Request { seq, conversation, span, totals: Totals::default() });
    }

    fn request_ended(&mut self, at: Timestamp, envelope: &Envelope) {
        let Some(Request { span, totals, .. }) = self.requests.remove(&envelope.task_id) else { return };
        let mut ending = match &envelope.kind {
            MessageKind::Failure(failure) => SpanEnd::failed(failure),
            MessageKind::Answer | MessageKind::Message => SpanEnd::default(),
        };
        if self.content {
            ending.attributes.set("gen_ai.output.messages", spans::message("assistant", &envelope.payload.text));
        }
        ending.attributes = ending.attributes.and(&totals.attributes());
        self.done.push(FinishedSpan { span: span.end(at, &Attributes::default(), ending), chat: None });
    }

    fn turn_started(&mut self, recorded: &Recorded) {
        let Event::TurnStarted { agent, behaviour, phase, task, origin, reply_to, .. } = &recorded.event else { return };
        let turn = TurnId(recorded.seq);
        let thread = recorded.thread.clone().unwrap_or_else(|| agent.main_thread());
        let path = self.address(agent, &thread).unwrap_or_default();
        // A shared agent works in many conversations, so the request decides.
        let conversation = match self.requests.get(&task.id) {
            Some(request) => &request.conversation,
            None => self.tree.top(agent),
        };
        let about = Attributes::default()
            .with("polis.society", self.society.as_str())
            .with("polis.task", task.id.as_str())
            .with("polis.agent", agent.as_str())
            .with("polis.thread", thread.as_str())
            .with("polis.path", path.to_string())
            .with("gen_ai.conversation.id", conversation.as_str());
        let asker = match (origin, reply_to) {
            (Origin::Unit(effect), _) | (Origin::Inbox, ReplyTo::Effect(effect)) => Some(*effect),
            (Origin::Inbox, ReplyTo::Nobody | ReplyTo::User) => None,
        };
        let parent = asker.map(|effect| self.ids.effect(effect));
        let parent = parent.or_else(|| Some(self.requests.get(&task.id)?.span.id.clone()));
        let attributes = Attributes::default()
            .with("polis.turn", turn.0.0)
            .with("polis.behaviour", behaviour.as_str())
            .with("polis.phase", phase.to_string())
            .with("gen_ai.agent.name", agent.as_str())
            .with_some("gen_ai.input.messages", self.content.then(|| spans::message("user", &task.message)));
        let span = OpenSpan {
            since: recorded.at,
            trace: self.ids.trace(&task.id),
            id: self.ids.turn(turn),
            parent: Some(parent.unwrap_or_else(|| self.ids.request(&task.id, None))),
            beginning: SpanStart { name: format!("turn {agent}"), kind: INTERNAL, attributes, model: None },
            events: Vec::new(),
        };
        let (agent, task) = (agent.clone(), task.id.clone());
        let (totals, effects) = Default::default();
        self.turns.insert(turn, Turn { span, about, agent, task, totals, effects });
    }

    fn effect_started(&mut self, id: EffectId, at: Timestamp, effect: &Effect) {
        // No work: a turn notes what it tells the model.
        if matches!(effect, Effect::Tool(call) if call.is_environment()) {
            return;
        }
        let span_id = self.ids.effect(id);
        let Some(turn) = self.turns.get_mut(&id.turn) else { return };
        // What a call does by effects of its own belongs to it; there is one such call at a time.
        let above = turn.effects.values().find(|open_effect| open_effect.own).map(|open_effect| open_effect.span.id.clone());
        let mut beginning = SpanStart::of(effect, self.content);
        beginning.attributes.set("polis.effect.id", id.to_string());
        let span = OpenSpan {
            since: at,
            trace: turn.span.trace.clone(),
            id: span_id,
            parent: Some(above.unwrap_or_else(|| turn.span.id.clone())),
            beginning,
            events: Vec::new(),
        };
        let own = matches!(effect, Effect::Tool(call) if call.own);
        turn.effects.insert(id.n, OpenEffect { span, spent: Spent::default(), own, inquiries: BTreeMap::new() });
        if matches!(effect, Effect::Tool(_)) {
            self.add(id.turn, Totals { tools: 1, ..Totals::default() });
        }
    }

    fn effect_ended(&mut self, id: EffectId, at: Timestamp, ending: SpanEnd, spent: Spent) {
        let Some(open_effect) = self.turns.get_mut(&id.turn).and_then(|turn| turn.effects.remove(&id.n)) else { return };
        let gone = || SpanEnd::failed(&Failure::new("void", "the call ended first"));
        for (_, span) in open_effect.inquiries {
            self.finish(id.turn, span, at, gone(), Spent::default());
        }
        let mut span = open_effect.span;
        if self.content && span.beginning.model.is_some() {
            span.beginning.attributes = span.beginning.attributes.and(&self.asked.take(&self.society, id));
        }
        self.finish(id.turn, span, at, ending, spent.plus(open_effect.spent));
    }

    fn turn_settled(&mut self, turn: TurnId, at: Timestamp, mut ending: SpanEnd) {
        let left: Vec<u32> = self.turns.get(&turn).map(|turn| turn.effects.keys().copied().collect()).unwrap_or_default();
        for n in left {
            let cut = SpanEnd { status: ending.status.clone(), error: ending.error.clone(), ..SpanEnd::default() };
            self.effect_ended(EffectId { turn, n }, at, cut, Spent::default());
        }
        let Some(Turn { span, about, totals, .. }) = self.turns.remove(&turn) else { return };
        ending.attributes = ending.attributes.and(&totals.attributes());
        self.done.push(FinishedSpan { span: span.end(at, &about, ending), chat: None });
    }

    /// Ends a span of a turn's effect.
    fn finish(&mut self, turn: TurnId, mut span: OpenSpan, at: Timestamp, mut ending: SpanEnd, spent: Spent) {
        let Some(owner) = self.turns.get(&turn) else { return };
        let (about, agent) = (owner.about.clone(), owner.agent.to_string());
        let mut chat = None;
        if let Some(request_started) = span.beginning.model.take() {
            let reply_usage = ending.reply.take();
            let request_ended =
                reply_usage.as_ref().map(|reply_usage| reply_usage.model.clone()).filter(|model| !model.is_empty());
            let request_started =
                Some(request_started).filter(|model| !model.is_empty()).or(request_ended.clone()).unwrap_or_default();
            let (provider, request_model) = spans::model_names(&request_started);
            let response_model = request_ended.map(|model| spans::model_names(&model).1);
            span.beginning.name = format!("chat {request_model}").trim_end().to_owned();
            ending.attributes = Attributes::default()
                .with("gen_ai.provider.name", provider.as_str())
                .with("gen_ai.request.model", request_model.as_str())
                .with_some("gen_ai.response.model", response_model.clone())
                .and(&ending.attributes)
                .and(&spans::cost(spent));
            let usage = reply_usage.map(|reply_usage| reply_usage.usage).unwrap_or_default();
            self.add(turn, Totals { usage, cost_nanos: spent.cost_nanos, models: 1, tools: 0 });
            chat = Some(ModelCall {
                agent,
                provider,
                request_model,
                response_model: response_model.unwrap_or_default(),
                error: ending.error.clone(),
                usage,
                cost_nanos: spent.cost_nanos,
                seconds: at.0.saturating_sub(span.since.0) as f64 / 1e3,
            });
        }
        self.done.push(FinishedSpan { span: span.end(at, &about, ending), chat });
    }

    /// Counts something for a turn and for its request.
    fn add(&mut self, turn: TurnId, more: Totals) {
        let Some(turn) = self.turns.get_mut(&turn) else { return };
        turn.totals = turn.totals.plus(more);
        if let Some(request) = self.requests.get_mut(&turn.task) {
            request.totals = request.totals.plus(more);
        }
    }

    fn open_effect(&mut self, id: EffectId) -> Option<&mut OpenEffect> {
        self.turns.get_mut(&id.turn)?.effects.get_mut(&id.n)
    }

    fn note(&mut self, id: EffectId, at: Timestamp, name: &'static str, attributes: Attributes) {
        if let Some(open_effect) = self.open_effect(id) {
            open_effect.span.note(at, name, attributes);
        }
    }

    fn mark(&mut self, turn: TurnId, at: Timestamp, name: &'static str, attributes: Attributes) {
        if let Some(turn) = self.turns.get_mut(&turn) {
            turn.span.note(at, name, attributes);
        }
    }

    /// A thread's address from its agent's main thread, or the thread on the way whose place is not known.
    fn address(&self, agent: &AgentId, thread: &ThreadId) -> Result<SubThreadPath, ThreadId> {
        if thread.as_str() == agent.as_str() {
            return Ok(SubThreadPath::main());
        }
        let SubThreadPlace { parent, index, slot } = self.places.get(thread).ok_or_else(|| thread.clone())?;
        Ok(self.address(agent, parent)?.child_at(*index, slot.clone()))
    }
}

impl OpenSpan {
    fn note(&mut self, at: Timestamp, name: &'static str, attributes: Attributes) {
        if self.events.len() < MAX_EVENTS {
            self.events.push(SpanEvent { time_unix_nano: nanos(at), name, attributes });
        }
    }

    fn end(self, at: Timestamp, about: &Attributes, ending: SpanEnd) -> Span {
        let SpanStart { name, kind, attributes, .. } = self.beginning;
        let attributes = attributes.and(about).and(&ending.attributes).with_some("error.type", ending.error);
        Span {
            trace_id: self.trace,
            span_id: self.id,
            parent_span_id: self.parent,
            name,
            kind,
            start_time_unix_nano: nanos(self.since),
            end_time_unix_nano: nanos(at.max(self.since)),
            attributes,
            events: self.events,
            status: ending.status,
        }
    }
}

impl Totals {
    fn plus(self, other: Self) -> Self {
        Self {
            usage: self.usage.plus(other.usage),
            cost_nanos: self.cost_nanos.saturating_add(other.cost_nanos),
            models: self.models + other.models,
            tools: self.tools + other.tools,
        }
    }

    fn attributes(self) -> Attributes {
        // Not `gen_ai.usage`: collectors add that up over all spans of a trace.
        Attributes::default()
            .with("polis.input_tokens", self.usage.input_tokens)
            .with("polis.output_tokens", self.usage.output_tokens)
            .with("polis.cost_usd", usd(self.cost_nanos))
            .with("polis.model_calls", self.models)
            .with("polis.tool_calls", self.tools)
    }
}
