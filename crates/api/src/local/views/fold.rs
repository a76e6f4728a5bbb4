//! Folds events into the records of views. The events of a turn may be a part of the log only, in its order: what they refer to
//! and is not here is passed over.

use std::collections::BTreeMap;

use polis_domain::{
    AgentId, Effect, EffectId, Event, Inquiry, InquiryId, Message, Meta, Origin, Outcome, Recorded, ReplyTo, Sender, Spent,
    Task, ThreadId, TurnId, Wanted,
};

use crate::{
    EffectRecord, EffectStage, InquiryRecord, ThreadItem, ThreadPlace, ThreadRecord, TurnRecord, WaitingFor, WaitingRecord,
};

/// The meta key of a task that stands for an operation, with the label that the person chose.
const OPERATION: &str = "_operation";

/// The records that events made so far.
#[derive(Default)]
pub(super) struct Records {
    pub(super) threads: BTreeMap<ThreadId, ThreadRecord>,
    pub(super) turns: BTreeMap<TurnId, TurnRecord>,
    pub(super) effects: BTreeMap<EffectId, EffectRecord>,
    pub(super) waiting: BTreeMap<String, WaitingRecord>,
}

/// The text of a task as the person saw it: of an operation its label, not the message that stands for it.
pub(crate) fn visible_text<'a>(text: &'a str, meta: &'a Meta) -> &'a str {
    meta.get(OPERATION).and_then(serde_json::Value::as_str).unwrap_or(text)
}

impl Records {
    pub(super) fn fold(&mut self, recorded: &Recorded) {
        let Recorded { seq, at, thread, event } = recorded;
        match event {
            Event::TurnStarted { .. } => self.start_turn(recorded),
            Event::MessagesTaken { by, envelopes, .. } => {
                let Some(turn) = self.turns.get(&by.turn) else { return };
                let Some(thread) = self.threads.get_mut(&turn.thread) else { return };
                thread.items.extend(envelopes.iter().map(|envelope| {
                    let (id, text) = (envelope.id.clone(), envelope.payload.text.to_string());
                    let message = Message { id, sender: Sender::User, text, timestamp: *at, meta: Meta::new() };
                    ThreadItem::Heard { message: Box::new(message), seq: *seq, at: *at }
                }));
            }
            Event::EffectStarted { id, effect, .. } => {
                let Some(turn) = self.turns.get_mut(&id.turn) else { return };
                turn.effects.push(*id);
                let record = EffectRecord {
                    id: *id,
                    turn: id.turn,
                    thread: thread.clone().unwrap_or_else(|| turn.thread.clone()),
                    effect: effect.clone(),
                    started_at: *at,
                    started_seq: *seq,
                    ended_at: None,
                    outcome: None,
                    refused: None,
                    spent: None,
                    retries: Vec::new(),
                    stage: EffectStage::Open,
                    children: Vec::new(),
                    inquiries: Vec::new(),
                };
                self.effects.insert(*id, record);
                self.wait(*id);
            }
            Event::EffectRetried { id, attempt, spent } => {
                if let Some(effect) = self.effects.get_mut(id) {
                    effect.retries.push(attempt.clone());
                    self.spend(id.turn, *spent);
                }
            }
            Event::EffectEnded { id, outcome, spent } => {
                let Some(effect) = self.effects.get_mut(id) else { return };
                effect.stage = EffectStage::Ended;
                effect.outcome = Some(outcome.clone());
                effect.ended_at = Some(*at);
                effect.spent = *spent;
                let is_tool = matches!(&effect.effect, Effect::Tool(call) if !call.is_environment());
                self.stop_waiting(*id);
                self.spend(id.turn, spent.unwrap_or_default());
                if is_tool {
                    self.upwards(id.turn, |turn| turn.tools += 1);
                }
            }
            Event::EffectRefused { id, failure } => {
                let Some(effect) = self.effects.get_mut(id) else { return };
                effect.stage = EffectStage::Ended;
                effect.refused = Some(failure.clone());
                effect.ended_at = Some(*at);
                self.stop_waiting(*id);
            }
            Event::EffectDoubted { id } => {
                let Some(effect) = self.effects.get_mut(id) else { return };
                effect.stage = EffectStage::Doubted;
                self.stop_waiting(*id);
                self.wait(*id);
            }
            Event::EffectCleared { id, .. } => {
                let Some(effect) = self.effects.get_mut(id) else { return };
                effect.stage = EffectStage::Cleared;
                self.stop_waiting(*id);
            }
            Event::EffectRestarted { id } => {
                if let Some(effect) = self.effects.get_mut(id) {
                    effect.stage = EffectStage::Open;
                }
            }
            Event::CallInquired { id, by, inquiry, .. } => {
                let Some(effect) = self.effects.get_mut(id) else { return };
                let name = InquiryId { call: *id, seq: *seq }.to_string();
                let record =
                    InquiryRecord { id: name.clone(), by: by.clone(), inquiry: inquiry.clone(), at: *at, answer: None };
                effect.inquiries.push(record);
                let (Some(turn), Inquiry::Person { question, details, .. }) = (self.turns.get(&id.turn), inquiry) else {
                    return;
                };
                let call = match &effect.effect {
                    Effect::Tool(call) => Some(call.clone()),
                    _ => None,
                };
                let what = WaitingFor::Question {
                    question: question.text.clone(),
                    details: details.clone(),
                    wanted: question.wanted.clone(),
                    server: Some(by.clone()),
                    call,
                    deadline: None,
                };
                let waiting = WaitingRecord { at: *at, ..waiting(&name, turn, what) };
                self.waiting.insert(name, waiting);
            }
            Event::CallAnswered { id, answer, spent } => {
                let name = id.to_string();
                self.waiting.remove(&name);
                let effect = self.effects.get_mut(&id.call);
                let inquiry = effect.and_then(|effect| effect.inquiries.iter_mut().find(|inquiry| inquiry.id == name));
                if let Some(inquiry) = inquiry {
                    inquiry.answer = Some(answer.clone());
                    self.spend(id.call.turn, spent.unwrap_or_default());
                }
            }
            Event::ConversationStarted { agent, messages, .. } => {
                let thread = self.thread(&agent.main_thread(), agent);
                for (index, message) in (0..).zip(messages) {
                    thread.messages.insert(index, (**message).clone());
                    thread.items.push(ThreadItem::Message { index, turn: None, seq: *seq, at: *at });
                }
            }
            Event::MessageAdded { by, index, message } => {
                let Some(id) = thread else { return };
                let turn = self.turns.get(&by.turn).map(|turn| (turn.id, turn.agent.clone()));
                let agent = turn.as_ref().map_or_else(|| AgentId::from(id.as_str()), |(_, agent)| agent.clone());
                let thread = self.thread(id, &agent);
                thread.messages.insert(*index, (**message).clone());
                thread.items.push(ThreadItem::Message { index: *index, turn: turn.map(|(id, _)| id), seq: *seq, at: *at });
            }
            Event::MessageUpdated { index, patch, .. } => {
                let thread = thread.as_ref().and_then(|id| self.threads.get_mut(id));
                if let Some(message) = thread.and_then(|thread| thread.messages.get_mut(index)) {
                    message.change(patch);
                }
            }
            Event::PlanSet { plan, by } => {
                if let Some(thread) = thread.as_ref().and_then(|id| self.threads.get_mut(id)) {
                    (thread.plan, thread.plan_turn) = (Some(plan.clone()), Some(by.turn));
                }
            }
            Event::ThreadOpened { agent, meta, .. } => {
                let Some(id) = thread else { return };
                self.thread(id, agent).meta = meta.clone();
            }
            Event::ThreadLinked { index, slot, child, .. } => {
                let Some(id) = thread else { return };
                let agent = self.threads.get_mut(id).map(|holder| {
                    holder.holds.insert(*index, child.clone());
                    holder.agent.clone()
                });
                let place = ThreadPlace { thread: id.clone(), index: *index, slot: slot.clone() };
                let agent = agent.unwrap_or_else(|| AgentId::from(id.as_str()));
                self.thread(child, &agent).parent = Some(place);
            }
            Event::TurnParked { turn, reason } => {
                let Some(found) = self.turns.get_mut(turn) else { return };
                found.parked = Some(reason.clone());
                let name = turn.to_string();
                let what = WaitingFor::Parked { failure: reason.clone() };
                let waiting = WaitingRecord { at: *at, ..waiting(&name, found, what) };
                self.waiting.insert(name, waiting);
            }
            Event::TurnResumed { turn, .. } => {
                self.waiting.remove(&turn.to_string());
                if let Some(turn) = self.turns.get_mut(turn) {
                    turn.parked = None;
                }
            }
            Event::TurnSettled { .. } => self.settle_turn(recorded),
            _ => {}
        }
    }

    fn start_turn(&mut self, recorded: &Recorded) {
        let Recorded { seq, at, thread, event } = recorded;
        let Event::TurnStarted { agent, behaviour, task, origin, reply_to, message, index, .. } = event else { return };
        let id = TurnId(*seq);
        let parent = match (origin, reply_to) {
            (Origin::Unit(effect), _) | (Origin::Inbox, ReplyTo::Effect(effect)) => Some(*effect),
            _ => None,
        };
        if let Some(effect) = parent.and_then(|parent| self.effects.get_mut(&parent)) {
            effect.children.push(id);
        }
        let thread = self.thread(thread.as_ref().unwrap_or(&agent.main_thread()), agent);
        let text = visible_text(&task.message, &task.meta).to_owned();
        if let Some(message) = message {
            let retained = ["artifacts", Task::FROM];
            let meta = retained.into_iter().filter_map(|key| Some((key.to_owned(), task.meta.get(key)?.clone())));
            let meta = serde_json::Map::from_iter(meta).into();
            let message = Message { id: message.clone(), sender: Sender::User, text: text.clone(), timestamp: *at, meta };
            thread.messages.insert(*index, message);
            thread.items.push(ThreadItem::Message { index: *index, turn: Some(id), seq: *seq, at: *at });
        }
        thread.items.push(ThreadItem::Turn { turn: id });
        thread.turn = Some(id);
        let turn = TurnRecord {
            id,
            thread: thread.id.clone(),
            agent: agent.clone(),
            behaviour: behaviour.clone(),
            task: Task { message: text.into(), ..task.clone() },
            origin: *origin,
            reply_to: *reply_to,
            parent,
            started_at: *at,
            settled_at: None,
            settlement: None,
            parked: None,
            effects: Vec::new(),
            omitted: 0,
            brief: false,
            steps: 0,
            answer: None,
            spent: Spent::default(),
            tools: 0,
        };
        self.turns.insert(id, turn);
    }

    fn settle_turn(&mut self, recorded: &Recorded) {
        let Recorded { seq, at, event, .. } = recorded;
        let Event::TurnSettled { turn: id, settlement, message, index, .. } = event else { return };
        let Some(turn) = self.turns.get_mut(id) else { return };
        turn.settled_at = Some(*at);
        turn.settlement = Some(settlement.clone());
        turn.parked = None;
        turn.answer = message.as_ref().map(|_| *index);
        let (effects, thread) = (turn.effects.clone(), turn.thread.clone());
        self.waiting.remove(&id.to_string());
        for effect in effects {
            let open = self.effects.get_mut(&effect).filter(|effect| effect.stage != EffectStage::Ended);
            if let Some(open) = open {
                open.stage = EffectStage::Void;
                open.ended_at = Some(*at);
                self.stop_waiting(effect);
            }
        }
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.turn = thread.turn.filter(|open| open != id);
            if let Some(message) = message {
                thread.messages.insert(*index, (**message).clone());
                thread.items.push(ThreadItem::Message { index: *index, turn: Some(*id), seq: *seq, at: *at });
            }
        }
    }

    fn thread(&mut self, id: &ThreadId, agent: &AgentId) -> &mut ThreadRecord {
        self.threads.entry(id.clone()).or_insert_with(|| ThreadRecord {
            id: id.clone(),
            agent: agent.clone(),
            parent: None,
            messages: BTreeMap::new(),
            items: Vec::new(),
            holds: BTreeMap::new(),
            plan: None,
            plan_turn: None,
            meta: Meta::new(),
            turn: None,
            earlier: None,
            later: None,
        })
    }

    /// Notes that an effect waits for a person, if it does.
    fn wait(&mut self, id: EffectId) {
        let (Some(effect), Some(turn)) = (self.effects.get(&id), self.turns.get(&id.turn)) else { return };
        let what = match &effect.effect {
            Effect::Tool(call) if effect.stage == EffectStage::Doubted => WaitingFor::InDoubt { call: call.clone() },
            Effect::Grant { lacking, calls } => WaitingFor::Grant { lacking: lacking.clone(), calls: calls.clone() },
            Effect::Approval { question, details, call, deadline, wanted, .. } => {
                let (question, details, call) = (question.clone(), details.clone(), call.clone());
                if *wanted == Wanted::Agreement {
                    WaitingFor::Approval { question, details, call, deadline: *deadline }
                } else {
                    WaitingFor::Question { question, details, wanted: wanted.clone(), server: None, call, deadline: *deadline }
                }
            }
            _ => return,
        };
        let waiting = WaitingRecord { at: effect.started_at, ..waiting(&id.to_string(), turn, what) };
        self.waiting.insert(waiting.id.clone(), waiting);
    }

    /// The effect waits no more, and neither do the questions of its call.
    fn stop_waiting(&mut self, id: EffectId) {
        self.waiting.remove(&id.to_string());
        for inquiry in self.effects.get(&id).into_iter().flat_map(|effect| &effect.inquiries) {
            self.waiting.remove(&inquiry.id);
        }
    }

    fn spend(&mut self, turn: TurnId, more: Spent) {
        self.upwards(turn, |turn| turn.spent = turn.spent.plus(more));
    }

    /// Changes a turn and those that wait for it.
    fn upwards(&mut self, turn: TurnId, change: impl Fn(&mut TurnRecord)) {
        let mut next = Some(turn);
        while let Some(turn) = next.and_then(|id| self.turns.get_mut(&id)) {
            change(turn);
            // A turn works only for older ones, so this ends.
            next = turn.parent.map(|effect| effect.turn).filter(|above| *above < turn.id);
        }
    }
}

fn waiting(id: &str, turn: &TurnRecord, what: WaitingFor) -> WaitingRecord {
    let (agent, task, thread) = (turn.agent.clone(), turn.task.id.clone(), turn.thread.clone());
    WaitingRecord { id: id.to_owned(), at: turn.started_at, agent, task, thread, what }
}

impl EffectRecord {
    /// Whether another agent or a unit does it.
    pub(super) fn is_delegation(&self) -> bool {
        matches!(self.effect, Effect::Unit { .. } | Effect::Ask { .. })
    }

    /// Whether a user interface shows it as a step. The last reply of a turn is its answer and no step.
    pub(super) fn is_step(&self, is_last_reply: bool) -> bool {
        match (&self.effect, &self.outcome) {
            (Effect::Tool(call), _) if call.is_environment() => false,
            (Effect::Tool(_) | Effect::Approval { .. } | Effect::Grant { .. }, _) => true,
            (Effect::Model { .. }, Some(Outcome::Reply(reply))) => {
                let says = !reply.text.trim().is_empty() && (!is_last_reply || !reply.tool_calls.is_empty());
                says || !reply.reasoning.is_empty() || !self.retries.is_empty()
            }
            (Effect::Model { .. }, _) => true,
            _ => false,
        }
    }
}
