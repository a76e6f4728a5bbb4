//! A turn's journal: its effects and their results, as the log has them.

use std::collections::BTreeMap;
use std::sync::Arc;

use polis_domain::{
    AgentId, Attempt, Call, Effect, EffectId, Envelope, Event, Failure, InquiryId, Permit, Recorded, Seq, Timestamp, Wanted,
};
use polis_ports::{LogError, ThreadRange};

use super::TurnStart;

/// The effects of earlier runs that this run has not reached yet.
#[derive(Default)]
pub(super) struct Journal {
    entries: BTreeMap<u32, Entry>,
}

/// The events of one effect, in order.
pub(super) struct Entry {
    pub(super) id: EffectId,
    pub(super) events: Vec<Arc<Recorded>>,
    /// Whether the effect was declared in this very run.
    pub(super) fresh: bool,
}

impl Journal {
    /// Reads a turn's first event and its journal.
    pub(super) async fn read(start: &TurnStart) -> Result<(Arc<Recorded>, Self), LogError> {
        let TurnStart { id: turn, thread, shared, through, .. } = start;
        let turn = *turn;
        let range = ThreadRange { after: Seq(turn.0.0 - 1), ..ThreadRange::through(*through) };
        let mut events = shared.read_thread(thread, range).await?.into_iter();
        let first = events.next().filter(|first| first.seq == turn.0);
        let first = first.ok_or_else(|| LogError::Damaged(format!("event {turn} is missing from thread `{thread}`")))?;
        let mut entries = BTreeMap::new();
        for event in events {
            let Some(id) = event.event.effect().filter(|id| id.turn == turn) else { continue };
            entries.entry(id.n).or_insert_with(|| Entry { id, events: Vec::new(), fresh: false }).events.push(event);
        }
        Ok((first, Self { entries }))
    }

    pub(super) fn has(&self, n: u32) -> bool {
        self.entries.contains_key(&n)
    }

    pub(super) fn peek(&self, id: EffectId) -> Option<&Entry> {
        self.entries.get(&id.n)
    }

    /// The position at which an effect was declared.
    pub(super) fn place(&self, n: u32) -> Option<Seq> {
        Some(self.entries.get(&n)?.events.first()?.seq)
    }

    pub(super) fn take(&mut self, id: EffectId) -> Option<Entry> {
        self.entries.remove(&id.n)
    }

    /// The message that an effect sent, if it did.
    pub(super) fn envelope(&self, n: u32) -> Option<&Arc<Envelope>> {
        self.entries.get(&n)?.events.iter().find_map(|recorded| recorded.event.envelope())
    }

    /// The agent that an effect terminates, if it does.
    pub(super) fn terminated_agent(&self, n: u32) -> Option<AgentId> {
        self.entries.get(&n)?.events.iter().find_map(|recorded| match &recorded.event {
            Event::EffectStarted { effect: Effect::Terminate { agent, .. }, .. } => Some(agent.clone()),
            _ => None,
        })
    }

    /// The first effect that this run has not reached.
    pub(super) fn first(&self) -> Option<u32> {
        self.entries.keys().next().copied()
    }

    /// Whether an effect took messages out of the inbox.
    pub(super) fn takes_messages(&self, n: u32) -> bool {
        let events = self.entries.get(&n).into_iter().flat_map(|entry| &entry.events);
        events.into_iter().any(|recorded| matches!(recorded.event, Event::MessagesTaken { .. }))
    }

    /// The kind of an effect, for error messages.
    pub(super) fn describe(&self, n: u32) -> &'static str {
        let first = self.entries.get(&n).and_then(|entry| entry.events.first());
        match first.map(|first| &first.event) {
            Some(Event::EffectStarted { effect, .. }) => effect.kind(),
            Some(_) => "another change",
            None => "something else",
        }
    }
}

impl Entry {
    /// An effect that was declared in this run.
    pub(super) fn new(id: EffectId, events: impl IntoIterator<Item = Arc<Recorded>>) -> Self {
        Self { id, events: events.into_iter().collect(), fresh: true }
    }

    /// The effect as it was declared, and the permit for it.
    pub(super) fn declared(&self) -> Option<(&Effect, Option<&Permit>)> {
        match &self.events.first()?.event {
            Event::EffectStarted { effect, permit, .. } => Some((effect, permit.as_ref())),
            _ => None,
        }
    }

    /// The call that was declared, or that an approval stands for.
    pub(super) fn call(&self) -> Option<&Call> {
        match self.declared()?.0 {
            Effect::Tool(call) | Effect::Approval { call: Some(call), .. } => Some(call),
            _ => None,
        }
    }

    /// Whether an approval was declared, possibly in the place of a call.
    pub(super) fn asks(&self) -> bool {
        matches!(self.declared(), Some((Effect::Approval { .. }, _)))
    }

    /// Whether the approval asks for an answer in words instead of a yes or no.
    pub(super) fn wants_words(&self) -> bool {
        matches!(self.declared(), Some((Effect::Approval { wanted, .. }, _)) if *wanted != Wanted::Agreement)
    }

    /// When the next attempt is due after a failed one. A restart does not shorten the wait.
    pub(super) fn rests_until(&self) -> Option<Timestamp> {
        match self.last().map(|last| (&last.event, last.at)) {
            Some((Event::EffectRetried { attempt, .. }, at)) => Some(Timestamp(at.0.saturating_add(attempt.delay_ms))),
            _ => None,
        }
    }

    /// The failed attempts so far.
    pub(super) fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.events.iter().filter_map(|recorded| match &recorded.event {
            Event::EffectRetried { attempt, .. } => Some(attempt),
            _ => None,
        })
    }

    /// Whether an event belongs to this effect.
    pub(super) fn is_about(&self, recorded: &Recorded) -> bool {
        recorded.event.effect() == Some(self.id)
    }

    /// The position at which it ended, if it has.
    pub(super) fn end(&self) -> Option<Seq> {
        self.events.iter().find(|recorded| matches!(recorded.event, Event::EffectEnded { .. })).map(|ended| ended.seq)
    }

    /// Why it was refused, if it was.
    pub(super) fn refusal(&self) -> Option<&Failure> {
        match self.events.first().map(|first| &first.event) {
            Some(Event::EffectRefused { failure, .. }) => Some(failure),
            _ => None,
        }
    }

    /// The last event of the effect itself, ignoring questions that a running call asked and their answers.
    pub(super) fn last(&self) -> Option<&Arc<Recorded>> {
        let is_inquiry = |event: &Event| matches!(event, Event::CallInquired { .. } | Event::CallAnswered { .. });
        self.events.iter().rfind(|recorded| !is_inquiry(&recorded.event))
    }

    /// The questions that a call asked in an earlier run and that are still open.
    pub(super) fn unanswered(&self) -> Vec<InquiryId> {
        let mut open = Vec::new();
        for recorded in &self.events {
            match &recorded.event {
                Event::CallInquired { id, .. } => open.push(InquiryId { call: *id, seq: recorded.seq }),
                Event::CallAnswered { id, .. } => open.retain(|asked| asked != id),
                _ => {}
            }
        }
        open
    }

    /// Whether the logged effect is the one that the handler wants now. Fields that may change without a change of the
    /// handler's code are not compared: they would park turns as diverged after every change of a price or a policy. A
    /// refusal does not record the effect, so it agrees with any.
    pub(super) fn agrees_with(&self, effect: &Effect, is_strict: bool) -> bool {
        match self.events.first().map(|first| &first.event) {
            Some(Event::EffectStarted { effect: logged, .. }) => match (logged, effect) {
                // The reservation depends on prices, which may change. A grant stands in the place of a model call.
                (
                    Effect::Model { model, request, purpose, .. },
                    Effect::Model { model: asked, request: now, purpose: named, .. },
                ) => {
                    // One that was logged before calls had names is the named one in its place.
                    let is_same_call = !is_strict && !named.is_empty() && (purpose == named || purpose.is_empty());
                    is_same_call || (model, request) == (asked, now)
                }
                (Effect::Grant { .. }, Effect::Model { .. }) => true,
                // The ruling and the class of a tool may change. An approval stands in the place of a call.
                (Effect::Tool(logged) | Effect::Approval { call: Some(logged), .. }, Effect::Tool(asked)) => {
                    logged.is_same(asked)
                }
                // Older logs do not count hops.
                (Effect::Ask { envelope, deadline }, Effect::Ask { envelope: asked, deadline: until }) => {
                    let identity = |envelope: &polis_domain::Envelope| {
                        (envelope.to.clone(), envelope.payload.text.clone(), envelope.id.clone())
                    };
                    (identity(envelope), envelope.reply_to, deadline) == (identity(asked), asked.reply_to, until)
                }
                (logged, effect) => logged == effect,
            },
            Some(Event::EffectRefused { .. }) => true,
            _ => false,
        }
    }
}
