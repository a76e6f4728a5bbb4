//! A turn's journal: what the log says of its effects so far.

use std::collections::BTreeMap;
use std::sync::Arc;

use polis_domain::{
    AgentId, Attempt, Call, Effect, EffectId, Envelope, Event, Failure, InquiryId, Permit, Recorded, Seq, Timestamp, Wanted,
};
use polis_ports::{LogError, ThreadRange};

use super::TurnStart;

/// The effects of earlier runs that this run has not asked for yet.
#[derive(Default)]
pub(super) struct Journal {
    entries: BTreeMap<u32, Entry>,
}

/// The events of one effect, in order.
pub(super) struct Entry {
    pub(super) id: EffectId,
    pub(super) events: Vec<Arc<Recorded>>,
    /// Whether the effect was stated in this very run.
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

    /// Where an effect was stated.
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

    /// The agent that an effect sends away, if it does.
    pub(super) fn terminated_agent(&self, n: u32) -> Option<AgentId> {
        self.entries.get(&n)?.events.iter().find_map(|recorded| match &recorded.event {
            Event::EffectStarted { effect: Effect::Terminate { agent, .. }, .. } => Some(agent.clone()),
            _ => None,
        })
    }

    /// The first effect that this run has not asked for.
    pub(super) fn first(&self) -> Option<u32> {
        self.entries.keys().next().copied()
    }

    /// Whether an effect took messages out of the inbox.
    pub(super) fn takes_messages(&self, n: u32) -> bool {
        let events = self.entries.get(&n).into_iter().flat_map(|entry| &entry.events);
        events.into_iter().any(|recorded| matches!(recorded.event, Event::MessagesTaken { .. }))
    }

    /// What an effect was, for people.
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
    /// An effect of this run.
    pub(super) fn new(id: EffectId, events: impl IntoIterator<Item = Arc<Recorded>>) -> Self {
        Self { id, events: events.into_iter().collect(), fresh: true }
    }

    /// What was stated, and on which terms.
    pub(super) fn stated(&self) -> Option<(&Effect, Option<&Permit>)> {
        match &self.events.first()?.event {
            Event::EffectStarted { effect, permit, .. } => Some((effect, permit.as_ref())),
            _ => None,
        }
    }

    /// The call that was stated, or that a person is asked about.
    pub(super) fn call(&self) -> Option<&Call> {
        match self.stated()?.0 {
            Effect::Tool(call) | Effect::Approval { call: Some(call), .. } => Some(call),
            _ => None,
        }
    }

    /// Whether a person is asked where something else was wanted.
    pub(super) fn asks(&self) -> bool {
        matches!(self.stated(), Some((Effect::Approval { .. }, _)))
    }

    /// Whether the person is asked for words instead of a call.
    pub(super) fn wants_words(&self) -> bool {
        matches!(self.stated(), Some((Effect::Approval { wanted, .. }, _)) if *wanted != Wanted::Agreement)
    }

    /// When the next attempt is due, after one in vain: a restart does not shorten the wait.
    pub(super) fn rests_until(&self) -> Option<Timestamp> {
        match self.last().map(|last| (&last.event, last.at)) {
            Some((Event::EffectRetried { attempt, .. }, at)) => Some(Timestamp(at.0.saturating_add(attempt.delay_ms))),
            _ => None,
        }
    }

    /// The attempts that came to nothing so far.
    pub(super) fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.events.iter().filter_map(|recorded| match &recorded.event {
            Event::EffectRetried { attempt, .. } => Some(attempt),
            _ => None,
        })
    }

    /// Whether an event tells of this effect.
    pub(super) fn is_about(&self, recorded: &Recorded) -> bool {
        recorded.event.effect() == Some(self.id)
    }

    /// Where in the log it ended, if it has.
    pub(super) fn end(&self) -> Option<Seq> {
        self.events.iter().find(|recorded| matches!(recorded.event, Event::EffectEnded { .. })).map(|ended| ended.seq)
    }

    /// Why it was not allowed, if it was not.
    pub(super) fn refusal(&self) -> Option<&Failure> {
        match self.events.first().map(|first| &first.event) {
            Some(Event::EffectRefused { failure, .. }) => Some(failure),
            _ => None,
        }
    }

    /// The last event of the effect itself; what a running call asked stands beside it.
    pub(super) fn last(&self) -> Option<&Arc<Recorded>> {
        let is_inquiry = |event: &Event| matches!(event, Event::CallInquired { .. } | Event::CallAnswered { .. });
        self.events.iter().rfind(|recorded| !is_inquiry(&recorded.event))
    }

    /// What a call asked in an earlier run and nobody has answered.
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

    /// Whether this is what the handler asks for now. A refusal says nothing of what was asked, so it agrees.
    pub(super) fn agrees_with(&self, effect: &Effect) -> bool {
        match self.events.first().map(|first| &first.event) {
            Some(Event::EffectStarted { effect: logged, .. }) => match (logged, effect) {
                // What is reserved for a call depends on prices, which may change; a grant stands where a model was wanted.
                (Effect::Model { model, request, .. }, Effect::Model { model: asked, request: now, .. }) => {
                    (model, request) == (asked, now)
                }
                (Effect::Grant { .. }, Effect::Model { .. }) => true,
                // So may the policy and the class of a tool; an approval stands where a call was wanted.
                (Effect::Tool(logged) | Effect::Approval { call: Some(logged), .. }, Effect::Tool(asked)) => {
                    logged.is_same(asked)
                }
                // How far a message is from the person was not always counted.
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
