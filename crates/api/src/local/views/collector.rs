//! Collects the events that a view needs: the turns of a thread, and what other agents and units did for them.

use std::collections::{BTreeMap, HashSet};

use polis_domain::{Effect, EffectId, Event, Origin, Recorded, ReplyTo, Seq, TaskId, ThreadId, TurnId};
use polis_engine::Society;
use polis_ports::{LogError, ThreadRange};

use super::fold::Records;

/// The smallest read of a part of a thread, in events.
const SMALL_READ: usize = 256;

/// The largest one.
const LARGE_READ: usize = 8_192;

/// The newest events of an open turn that are read for what it does now.
const RECENT: usize = 64;

/// Events up to a position, each once and in order, and how many more may be read.
pub(super) struct EventCollector<'a> {
    society: &'a Society,
    through: Seq,
    left: usize,
    events: BTreeMap<Seq, Recorded>,
    /// The delegations that were looked into.
    seen: HashSet<EffectId>,
}

impl<'a> EventCollector<'a> {
    /// Nothing yet; at most `most` events will be read, up to `through`.
    pub(super) fn new(society: &'a Society, through: Seq, most: usize) -> Self {
        Self { society, through, left: most, events: BTreeMap::new(), seen: HashSet::new() }
    }

    /// The turns that were collected so far.
    pub(super) fn turn_ids(&self) -> Vec<TurnId> {
        self.events.values().filter(|recorded| is_start(recorded)).map(|recorded| TurnId(recorded.seq)).collect()
    }

    /// Folds everything.
    pub(super) fn fold(&self) -> Records {
        let mut records = Records::default();
        self.events.values().for_each(|recorded| records.fold(recorded));
        records
    }

    /// Collects the newest `turns` turns of a thread that started before `before`, with the events around them. Returns where
    /// the first of them started, if there are earlier ones.
    pub(super) async fn newest_turns(&mut self, thread: &ThreadId, before: Seq, turns: usize) -> Result<Option<Seq>, LogError> {
        let through = self.through.min(Seq(before.0.saturating_sub(1)));
        let mut newest = SMALL_READ;
        loop {
            let events = self.read(thread, ThreadRange { through, newest, ..ThreadRange::ALL }).await?;
            let is_whole = events.len() < newest;
            let starts: Vec<Seq> = events.iter().filter(|recorded| is_start(recorded)).map(|recorded| recorded.seq).collect();
            if starts.len() > turns || is_whole || newest >= LARGE_READ {
                let first = starts.len().checked_sub(turns).and_then(|n| starts.get(n)).copied();
                let first = first.filter(|_| starts.len() > turns || !is_whole);
                // A turn so long that its start was not read: its newest events are shown with it.
                let cut = events.first().filter(|_| starts.is_empty() && !is_whole).and_then(Recorded::turn);
                self.keep(events.into_iter().filter(|recorded| first.is_none_or(|first| recorded.seq >= first)));
                if let Some(TurnId(start)) = cut {
                    let started = self.society.log().read(self.society.id(), Seq(start.0.saturating_sub(1)), 1).await?;
                    self.keep(started.into_iter());
                    return Ok(Some(start));
                }
                return Ok(first);
            }
            newest *= 4;
        }
    }

    /// Collects the first `turns` turns of a thread after a position. Returns where the next one started.
    pub(super) async fn turns_from(&mut self, thread: &ThreadId, after: Seq, turns: usize) -> Result<Option<Seq>, LogError> {
        let mut range = ThreadRange { after, through: self.through, oldest: SMALL_READ, ..ThreadRange::ALL };
        let (mut read, mut started) = (0, 0);
        loop {
            let events = self.read(thread, range).await?;
            let is_rest = events.len() < SMALL_READ;
            read += events.len();
            range.after = events.last().map_or(range.after, |last| last.seq);
            for recorded in events {
                started += usize::from(is_start(&recorded));
                if started > turns {
                    return Ok(Some(recorded.seq));
                }
                self.keep([recorded].into_iter());
            }
            if is_rest || read >= LARGE_READ {
                return Ok((!is_rest).then(|| range.after.next()));
            }
        }
    }

    /// Whether a thread has something to show before a position.
    pub(super) async fn has_before(&mut self, thread: &ThreadId, seq: Seq) -> Result<bool, LogError> {
        let through = Seq(seq.0.saturating_sub(1));
        let last = self.read(thread, ThreadRange { through, newest: 1, ..ThreadRange::ALL }).await?.pop();
        let is_bare_start = |event: &Event| matches!(event, Event::ConversationStarted { messages, .. } if messages.is_empty());
        Ok(last.is_some_and(|last| !is_bare_start(&last.event)))
    }

    /// Collects one turn; returns its thread, none if there is no such turn.
    pub(super) async fn turn(&mut self, turn: TurnId) -> Result<Option<ThreadId>, LogError> {
        let Some(before) = turn.0.0.checked_sub(1).filter(|_| turn.0 <= self.through) else { return Ok(None) };
        let started = self.society.log().read(self.society.id(), Seq(before), 1).await?.pop();
        let Some(thread) =
            started.filter(|recorded| recorded.seq == turn.0 && is_start(recorded)).and_then(|recorded| recorded.thread)
        else {
            return Ok(None);
        };
        let opened = self.read(&thread, ThreadRange { oldest: 1, ..ThreadRange::ALL }).await?;
        self.keep(opened.into_iter().filter(|recorded| matches!(recorded.event, Event::ThreadOpened { .. })));
        let mut after = Seq(before);
        loop {
            let range = ThreadRange { after, through: self.through, oldest: SMALL_READ, ..ThreadRange::ALL };
            let events = self.read(&thread, range).await?;
            let is_rest = events.len() < SMALL_READ;
            let end = events.iter().position(|recorded| settles(recorded, turn));
            after = events.last().map_or(after, |last| last.seq);
            self.keep(events.into_iter().take(end.map_or(usize::MAX, |end| end + 1)));
            if end.is_some() || is_rest || self.left == 0 {
                return Ok(Some(thread));
            }
        }
    }

    /// Collects the start of an open turn and its newest events.
    pub(super) async fn open_turn(&mut self, turn: TurnId) -> Result<(), LogError> {
        let Some(before) = turn.0.0.checked_sub(1) else { return Ok(()) };
        let started = self.society.log().read(self.society.id(), Seq(before), 1).await?.pop();
        let Some(started) = started.filter(|recorded| recorded.seq == turn.0) else { return Ok(()) };
        let Some(thread) = started.thread.clone() else { return Ok(()) };
        let range = ThreadRange { after: turn.0, through: self.through, newest: RECENT, ..ThreadRange::ALL };
        let events = self.read(&thread, range).await?;
        self.keep([started].into_iter().chain(events));
        Ok(())
    }

    /// Collects the turns for a request in a part of a thread.
    pub(super) async fn turns_of_task(&mut self, task: &TaskId, thread: &ThreadId, range: ThreadRange) -> Result<(), LogError> {
        let is_ours = |event: &Event| matches!(event, Event::TurnStarted { task: of, .. } if of.id == *task);
        self.turns_where(thread, range, is_ours).await
    }

    /// Collects the turns that were done for the collected ones, to any depth.
    pub(super) async fn below(&mut self) -> Result<(), LogError> {
        loop {
            let mut found = Vec::new();
            for recorded in self.events.values() {
                let Event::EffectStarted { id, effect, .. } = &recorded.event else { continue };
                let thread = match effect {
                    Effect::Unit { thread, .. } => thread.clone(),
                    Effect::Ask { envelope, .. } => envelope.to.main_thread(),
                    _ => continue,
                };
                if self.seen.insert(*id) {
                    let ended = self.events.range(recorded.seq..).find(|(_, recorded)| ends(recorded, *id));
                    let through = ended.map_or(self.through, |(seq, _)| *seq);
                    found.push((*id, thread, ThreadRange { after: recorded.seq, through, ..ThreadRange::ALL }));
                }
            }
            if found.is_empty() || self.left == 0 {
                return Ok(());
            }
            for (id, thread, range) in found {
                // The first event of a sub-thread names its purpose.
                let opened = self.read(&thread, ThreadRange { oldest: 1, ..ThreadRange::ALL }).await?;
                self.keep(opened.into_iter().filter(|recorded| matches!(recorded.event, Event::ThreadOpened { .. })));
                let is_for = |event: &Event| match event {
                    Event::TurnStarted { origin, reply_to, .. } => {
                        *origin == Origin::Unit(id) || *reply_to == ReplyTo::Effect(id)
                    }
                    _ => false,
                };
                self.turns_where(&thread, range, is_for).await?;
            }
        }
    }

    /// Collects the turns in a part of a thread whose first events match.
    async fn turns_where(
        &mut self,
        thread: &ThreadId,
        mut range: ThreadRange,
        is_wanted: impl Fn(&Event) -> bool,
    ) -> Result<(), LogError> {
        let (mut read, mut is_ours) = (0, false);
        range.oldest = SMALL_READ;
        while read < LARGE_READ && self.left > 0 {
            let events = self.read(thread, range).await?;
            let Some(last) = events.last() else { break };
            (range.after, read) = (last.seq, read + events.len());
            let is_rest = events.len() < SMALL_READ;
            let mut ours = Vec::new();
            for recorded in events {
                if is_start(&recorded) {
                    is_ours = is_wanted(&recorded.event);
                }
                if is_ours {
                    ours.push(recorded);
                }
            }
            self.keep(ours.into_iter());
            if is_rest {
                break;
            }
        }
        Ok(())
    }

    async fn read(&mut self, thread: &ThreadId, range: ThreadRange) -> Result<Vec<Recorded>, LogError> {
        self.society.log().read_thread(self.society.id(), thread, range).await
    }

    fn keep(&mut self, events: impl Iterator<Item = Recorded>) {
        for recorded in events {
            self.left = self.left.saturating_sub(1);
            self.events.insert(recorded.seq, recorded);
        }
    }
}

fn is_start(recorded: &Recorded) -> bool {
    matches!(recorded.event, Event::TurnStarted { .. })
}

fn settles(recorded: &Recorded, turn: TurnId) -> bool {
    matches!(&recorded.event, Event::TurnSettled { turn: settled, .. } if *settled == turn)
}

fn ends(recorded: &Recorded, effect: EffectId) -> bool {
    matches!(&recorded.event, Event::EffectEnded { id, .. } if *id == effect)
}
