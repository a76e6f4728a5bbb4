//! The loop of a society: decide and evolve → append → answer → publish → reconcile. One task owns the spine; nothing else
//! changes it.
//!
//! Appends are pipelined: the next pass is decided while earlier ones are being written. Each pass is released (answered,
//! published, followed) when its own append is durable, in the order of the log.

mod paging;
mod standby;

use std::collections::{BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use polis_domain::{
    Command, EffectId, Event, Failure, IdleKey, Owed, Recorded, Refusal, Seq, Spine, Timestamp, Turn, TurnId, decide,
    outstanding,
};
use polis_ports::{Frame, LogError};
use rustc_hash::FxHashSet;
use tokio::sync::{mpsc, oneshot};

use crate::commands::{are_repeatable_intents, command_refused, ends_repeatable, ends_wait, turn_of};
use crate::fold::fold;
use crate::idle::IdleStore;
use crate::in_flight::ReadsInFlight;
use crate::plant::{Plant, is_planted};
use crate::scheduler::Scheduler;
use crate::shared::{ActorMessage, Committed, Look, Options, Shared};
use crate::{CommandError, turn};

pub(crate) use standby::Standby;

/// A wait for a point in time.
type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How many messages one pass takes at most. Their events are committed with one append.
const BATCH: usize = 512;

/// How many passes may be in flight: decided, and being written. More of them would make passes smaller and the work that a
/// failed append undoes larger, and the store commits what waits for it as one group anyway.
const MAX_IN_FLIGHT: usize = 4;

/// How long events that may be lost are held back, so that they share an append with what follows.
const HOLD_MS: u64 = 20;

/// How long a turn must wait for its remaining answers before the log notes that it only waits. Most turns get the next
/// answer sooner and need no event.
const REST_MS: u64 = 100;

/// The single writer of a society.
pub(crate) struct Actor {
    shared: Arc<Shared>,
    options: Options,
    mailbox: mpsc::Receiver<ActorMessage>,
    spine: Spine,
    /// The last event that is certainly in the log. The spine is ahead of it while appends run, and after one has failed.
    committed: Seq,
    /// The passes that are being written, oldest first, and their appends in the same order.
    in_flight: VecDeque<Pass>,
    appends: FuturesOrdered<BoxFuture<'static, Result<(), LogError>>>,
    /// A pass that is not being written yet, because nobody waits for it, and until when. The next pass adds to it.
    held: Option<(Timestamp, Pass)>,
    /// Queries of a pass whose append failed. They need no commit, so they are answered after the spine is rolled back.
    unanswered: Vec<Look>,
    scheduler: Scheduler,
    /// The deadlines of open waits. An entry stays when its wait ends early; `decide` then refuses its `Expire`.
    timers: BTreeSet<(Timestamp, EffectId)>,
    /// Turns that have unread answers by the log but only wait, and when to append that they do.
    resting: BTreeSet<(Timestamp, TurnId)>,
    /// The sleep until the earliest of `timers`, `resting`, `held` and `stopping`.
    alarm: Option<(Timestamp, Sleep)>,
    /// Turns whose model call has to wait until other calls free their reservations in a budget, and turns whose read another
    /// turn is making. They have no slot; they are run again as soon as a call ends.
    deferred: Vec<TurnId>,
    /// A state that takes the place of the present one as soon as that is the one of the log.
    refolded: Option<(Box<Spine>, oneshot::Sender<bool>)>,
    /// The reads that are under way.
    reads: ReadsInFlight,
    /// The parts of the spine that are not in memory.
    idle: IdleStore,
    /// The event at which the next snapshot is due.
    next_snapshot_at: Seq,
    /// How many entries were asked of the store since the last snapshot.
    loaded: usize,
    /// The keys that were asked of the store for the commands of this pass.
    asked: BTreeSet<IdleKey>,
    /// Set while the society stops: the time at which it no longer waits for its turns.
    stopping: Option<Timestamp>,
    /// Whether this process has been counted for the turns that it runs, see [`Self::revive`].
    has_revived: bool,
    /// The event buffer of the last pass, reused for its capacity.
    spare_events: Vec<Arc<Recorded>>,
    /// The last commands of turns that ended in their first poll; decided first in the next pass.
    ended_at_once: Vec<Command>,
}

/// The result of one pass over the mailbox. Nothing of it is visible outside until its events are in the log.
#[derive(Default)]
struct Pass {
    /// The events to append. The append shares them while it runs.
    events: Arc<Vec<Arc<Recorded>>>,
    /// The result of each command, to be sent after the append.
    replies: Vec<(oneshot::Sender<Committed>, Committed)>,
    /// Answers for waiting turns, to be delivered after the append.
    deliveries: Vec<(TurnId, Arc<Recorded>)>,
    /// Queries, to be answered after the append.
    looks: Vec<Look>,
    /// Whether something waits for the append, or must not be lost.
    is_urgent: bool,
}

impl Actor {
    pub(crate) fn new(shared: Arc<Shared>, options: Options, mailbox: mpsc::Receiver<ActorMessage>) -> Self {
        let scheduler = Scheduler::new(options.max_running, options.max_lingering);
        let idle = IdleStore::new(shared.ports.log.clone(), shared.society.clone(), Seq(0));
        Self {
            shared,
            options,
            mailbox,
            spine: Spine::default(),
            committed: Seq(0),
            in_flight: VecDeque::new(),
            appends: FuturesOrdered::new(),
            held: None,
            unanswered: Vec::new(),
            scheduler,
            timers: BTreeSet::new(),
            resting: BTreeSet::new(),
            alarm: None,
            deferred: Vec::new(),
            refolded: None,
            reads: ReadsInFlight::default(),
            idle,
            next_snapshot_at: Seq(0),
            loaded: 0,
            asked: BTreeSet::new(),
            stopping: None,
            has_revived: false,
            spare_events: Vec::new(),
            ended_at_once: Vec::new(),
        }
    }

    /// Folds the log and starts everything that it owes; founds the society if the log is empty.
    ///
    /// The same function runs at the opening and after the log has failed. Nothing in memory is trusted: a failed append may
    /// have happened or not, so every cache, timer and deferred turn that was derived from the old spine is dropped and
    /// derived anew. There is no separate list of unfinished work to repair: `outstanding` reads it from the spine, and
    /// applying it is the same step that follows every commit ([`Self::reconcile`]). The turns themselves find in their
    /// journals how far they were.
    ///
    /// Founding, budgets and `revive` are committed before anything is started, because a turn that an earlier process ran
    /// must not run again before the event that counts the new run is durable.
    pub(crate) async fn recover(&mut self) -> Result<(), LogError> {
        self.shared.recent.clear();
        self.idle.saved(&mut self.spine).await;
        (self.spine, self.idle) = fold(&self.shared.ports, &self.shared.society).await?;
        self.spine.take_misses();
        self.committed = self.spine.seq;
        self.shared.released.store(self.committed.0, Ordering::Release);
        self.next_snapshot_at = Seq(self.idle.at.0 + self.options.snapshot_every);
        self.timers.clear();
        self.resting.clear();
        self.deferred.clear();
        self.reads.clear();
        self.refolded = None;
        self.ended_at_once.clear();
        self.alarm = None;
        if !self.spine.is_founded() {
            let Options { entropy, limits, role, .. } = &self.options;
            let found = Command::Found { seed: *entropy, limits: *limits, role: role.clone() };
            let mut pass = Pass::default();
            self.decide(&mut pass, found, None, self.shared.ports.clock.now());
            self.commit(pass).await?;
        }
        if *self.spine.budgets != self.options.budgets {
            let mut pass = Pass::default();
            let budgets = Arc::new(self.options.budgets.clone());
            self.decide(&mut pass, Command::SetBudgets { budgets }, None, self.shared.ports.clock.now());
            self.commit(pass).await?;
        }
        self.take_versions().await?;
        self.revive().await?;
        let all: Vec<_> = outstanding(&self.spine).collect();
        for (id, owed) in all {
            self.apply_owed(id, Some(owed), None);
        }
        self.set_standby(None);
        self.fill_slots();
        let looks = std::mem::take(&mut self.unanswered);
        self.answer_looks(looks).await
    }

    fn set_standby(&self, failure: Option<Failure>) {
        *self.shared.standby.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Notes which versions new turns begin with, and resumes the turns whose code was missing and is registered now.
    async fn take_versions(&mut self) -> Result<(), LogError> {
        let mut commands = Vec::new();
        let newest = self.shared.cast.newest_versions();
        if *self.spine.versions != newest {
            commands.push(Command::SetVersions { versions: Arc::new(newest) });
        }
        if self.options.max_running > 0 {
            let has_code = |turn: &Turn| self.shared.cast.find(&turn.behaviour, turn.version).is_some();
            let returning = self.spine.turns.iter().filter(|(_, turn)| turn.lacks_code() && has_code(turn));
            commands.extend(returning.map(|(id, _)| Command::Resume { turn: *id }));
        }
        for command in commands {
            let mut pass = Pass::default();
            self.decide(&mut pass, command, None, self.shared.ports.clock.now());
            self.commit(pass).await?;
        }
        Ok(())
    }

    /// Counts this process for every turn that it is about to run, before it runs.
    ///
    /// A turn may be what kills the process (out of memory, stack overflow). It would do so again at every start, so turns
    /// that many processes have run without progress are dead-lettered. `decide` dead-letters one per command, which may
    /// start the next turn of that agent; the loop repeats until a command only counts.
    async fn revive(&mut self) -> Result<(), LogError> {
        let is_owed = |spine: &Spine| spine.turns.values().any(|turn| turn.is_owed());
        while !self.has_revived && self.options.max_running > 0 && is_owed(&self.spine) {
            let mut pass = Pass::default();
            self.decide(&mut pass, Command::Revive, None, self.shared.ports.clock.now());
            self.has_revived = !pass.events.iter().any(|recorded| matches!(recorded.event, Event::TurnSettled { .. }));
            self.commit(pass).await?;
        }
        self.has_revived = true;
        Ok(())
    }

    /// Runs until it is stopped (`Ok`) or the log fails (`Err`).
    pub(crate) async fn run(&mut self) -> Result<(), LogError> {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            self.set_alarm();
            let may_decide = self.may_decide();
            let alarm = self.alarm.as_mut().map(|(_, alarm)| alarm);
            tokio::select! {
                biased;
                Some(appended) = self.appends.next() => {
                    self.release(appended).await?;
                    continue;
                }
                _ = self.mailbox.recv_many(&mut batch, BATCH), if may_decide => {}
                () = std::future::ready(()), if may_decide && !self.ended_at_once.is_empty() => {}
                () = async { match alarm { Some(alarm) => alarm.await, None => std::future::pending().await } }, if may_decide => {
                    self.alarm = None;
                }
            }
            // Turns that are ready to send do so before the commit begins, so that one append serves all of them.
            loop {
                let before = batch.len();
                tokio::task::yield_now().await;
                while batch.len() < BATCH
                    && let Ok(message) = self.mailbox.try_recv()
                {
                    batch.push(message);
                }
                if batch.len() == before || batch.len() >= BATCH {
                    break;
                }
            }
            if self.shared.abandoned.load(Ordering::Relaxed) {
                batch.push(ActorMessage::Stop { grace: Duration::ZERO });
            }
            self.pass(&mut batch).await?;
            if self.may_end() {
                // What is released now may give turns something to do.
                self.release_all().await?;
                if self.may_end() {
                    self.scheduler.clear().await;
                    self.idle.saved(&mut self.spine).await;
                    self.idle.begin_save(&mut self.spine);
                    self.idle.saved(&mut self.spine).await;
                    return Ok(());
                }
            }
        }
    }

    /// Whether the next pass may be decided before those in flight are in the log.
    ///
    /// A query must see what is in the log and nothing more, and so must a snapshot. So nothing is decided behind a pass with
    /// queries, or when a snapshot is due, until the log has caught up with the spine.
    fn may_decide(&self) -> bool {
        match self.in_flight.back() {
            None => true,
            Some(last) => self.in_flight.len() < MAX_IN_FLIGHT && last.looks.is_empty() && !self.is_snapshot_due(),
        }
    }

    /// Handles one batch of messages: decides all commands, then begins one append of their events.
    ///
    /// Commands are decided one after another against a spine that already contains the events of those before, in this pass
    /// and in passes in flight, although nothing of them may be durable yet. That is safe because nothing leaves the actor
    /// before `release`: replies, deliveries and queries are collected in the [`Pass`]. If an append fails, everything that
    /// was decided since fails with it, and the spine is folded again from the log.
    ///
    /// The order within a pass matters. Ends of turns from the last pass come first: they are older than the mail. Timers
    /// come after the mail, so that an answer that arrives together with its deadline counts and the timeout is refused.
    /// Notes of resting turns come last, when it is known whether this pass delivers something to them.
    async fn pass(&mut self, batch: &mut Vec<ActorMessage>) -> Result<(), LogError> {
        if let Err(error) = self.load_for(batch).await {
            self.refuse(batch, &error);
            self.release_all().await?;
            self.held = None;
            return Err(error);
        }
        let at = self.shared.ports.clock.now();
        let (hold_until, mut pass) = self.held.take().unwrap_or_else(|| {
            let events = Arc::new(std::mem::take(&mut self.spare_events));
            (Timestamp(at.0 + HOLD_MS), Pass { events, ..Pass::default() })
        });
        let mut ended_at_once = std::mem::take(&mut self.ended_at_once);
        ended_at_once.drain(..).for_each(|command| self.decide(&mut pass, command, None, at));
        self.ended_at_once = ended_at_once;
        for message in batch.drain(..) {
            match message {
                ActorMessage::Command { command, reply } if self.is_refused_while_stopping(&command) => {
                    pass.replies.extend(reply.map(|reply| (reply, Err(CommandError::Stopping))));
                }
                ActorMessage::Command { command, reply } => self.decide(&mut pass, command, reply, at),
                ActorMessage::Rest { turn } => {
                    self.scheduler.rest_if_idle(turn);
                    if self.spine.turns.get(&turn).is_some_and(|turn| turn.has_unread_answers) {
                        self.resting.insert((Timestamp(at.0 + REST_MS), turn));
                    }
                }
                ActorMessage::Look(look) => pass.looks.push(look),
                ActorMessage::Refold { spine, reply } => {
                    pass.is_urgent = true;
                    self.refolded = Some((spine, reply));
                }
                ActorMessage::Flush { reply } => {
                    pass.is_urgent = true;
                    pass.replies.push((reply, Ok(Vec::new())));
                }
                ActorMessage::Stop { grace } => self.stopping = Some(Timestamp(at.0 + grace.as_millis() as u64)),
            }
        }
        while let Some((due, id)) = self.timers.first().copied().filter(|(due, _)| *due <= at) {
            self.timers.remove(&(due, id));
            self.decide(&mut pass, Command::Expire { id }, None, at);
        }
        while let Some((due, turn)) = self.resting.first().copied().filter(|(due, _)| *due <= at) {
            self.resting.remove(&(due, turn));
            self.note_rest(&mut pass, turn, at);
        }
        if self.may_hold(&pass) && at < hold_until {
            self.held = Some((hold_until, pass));
            return Ok(());
        }
        self.append(pass);
        // A log in memory is done already.
        while let Some(Some(appended)) = self.appends.next().now_or_never() {
            self.release(appended).await?;
        }
        Ok(())
    }

    /// Whether a pass need not be written yet. What it has may be lost, nobody waits for it, and the turns that it belongs to
    /// soon send more.
    fn may_hold(&self, pass: &Pass) -> bool {
        let is_awaited = pass.is_urgent || !pass.looks.is_empty() || !pass.deliveries.is_empty() || !self.deferred.is_empty();
        let is_due = self.stopping.is_some() || self.is_snapshot_due() || pass.events.len() >= BATCH;
        !pass.events.is_empty() && !is_awaited && !is_due
    }

    /// Appends that a turn has read its answers and only waits for more; until then the log says that it is owed a run. A turn
    /// that this pass or one in flight delivers something to has not read that yet; it will say again when it waits.
    fn note_rest(&mut self, pass: &mut Pass, turn: TurnId, at: Timestamp) {
        let delivers = |pass: &Pass| pass.deliveries.iter().any(|(receiver, _)| *receiver == turn);
        let has_delivery = delivers(pass) || self.in_flight.iter().any(delivers);
        let has_news = self.spine.turns.get(&turn).is_some_and(|turn| turn.has_unread_answers && !turn.is_parked());
        if has_news && !has_delivery && self.scheduler.is_resting(turn) {
            self.decide(pass, Command::Rest { turn }, None, at);
        }
    }

    /// Decides one command and evolves the spine, but tells nobody yet.
    ///
    /// Events that end another turn's wait become deliveries. A turn's own commands are excluded: their events are its reply.
    ///
    /// Intents that may be repeated are answered at once, so that the turn makes its calls while they are written.
    ///
    /// A turn whose command is refused waits for events that never come, so it is parked in the same pass. Late commands of a
    /// turn that has ended or is parked, and second results of one effect, are refused without consequences.
    fn decide(&mut self, pass: &mut Pass, command: Command, reply: Option<oneshot::Sender<Committed>>, at: Timestamp) {
        let own = turn_of(&command);
        // A refused inquiry fails the call that asked; the turn itself goes on.
        let is_inquiry = matches!(command, Command::Inquire { .. } | Command::Answer { .. });
        if self.reads.holds_back(&self.spine, &command) {
            self.defer(own);
            return;
        }
        let is_declaration = matches!(command, Command::DeclareEffects { .. });
        let mut may_be_lost = ends_repeatable(&self.spine, &command);
        let mut reply = reply;
        let decided = decide(&self.spine, command, at).map_err(CommandError::Refused);
        let committed = match decided.and_then(|recorded| self.admitted(recorded)) {
            Ok(recorded) => {
                if is_declaration && are_repeatable_intents(&recorded) {
                    may_be_lost = true;
                    answer(reply.take().map(|reply| (reply, Ok(recorded.clone()))));
                }
                for event in &recorded {
                    self.spine.evolve(event);
                    self.reads.note(&self.spine, &event.event);
                    if let Event::EffectEnded { id, .. } | Event::EffectCleared { id, .. } = &event.event
                        && own != Some(id.turn)
                    {
                        pass.deliveries.push((id.turn, event.clone()));
                    }
                    if let Event::CallAnswered { id, .. } = &event.event
                        && own != Some(id.call.turn)
                    {
                        pass.deliveries.push((id.call.turn, event.clone()));
                    }
                }
                self.check_loaded();
                Arc::make_mut(&mut pass.events).extend(recorded.iter().cloned());
                Ok(recorded)
            }
            Err(CommandError::Refused(Refusal::BudgetBusy)) if !is_inquiry => {
                self.defer(own);
                return;
            }
            Err(error) => Err(error),
        };
        if let (Err(CommandError::Refused(refusal)), Some(turn)) = (&committed, own)
            && !is_inquiry
            && !matches!(refusal, Refusal::TurnNotOpen(_) | Refusal::NotOpen(_))
        {
            tracing::error!(%turn, %refusal, "a command of a turn was refused; the turn is parked");
            self.decide(pass, Command::Park { turn, reason: command_refused(refusal) }, None, at);
        }
        pass.is_urgent |= !may_be_lost || committed.is_err();
        pass.replies.extend(reply.map(|reply| (reply, committed)));
    }

    /// Has a turn wait until a call ends. No reply is sent: the turn is dropped here, and declares the same call again when it is
    /// run again.
    fn defer(&mut self, turn: Option<TurnId>) {
        turn.into_iter().for_each(|turn| self.scheduler.remove(turn));
        self.deferred.extend(turn);
    }

    /// Begins the append of a pass. The log writes appends in the order in which they begin, so the next one need not wait for
    /// this one's end. A pass without events waits for those before it as well: what it refuses may follow from their events.
    fn append(&mut self, mut pass: Pass) {
        if is_planted(Plant::AckBeforeCommit) {
            answer(pass.replies.drain(..));
        }
        let (shared, events) = (self.shared.clone(), pass.events.clone());
        self.in_flight.push_back(pass);
        let append = async move {
            match events.first() {
                Some(first) => shared.ports.log.append(&shared.society, Seq(first.seq.0 - 1), &events).await,
                None => Ok(()),
            }
        };
        // Without tokio's cooperative budget, which could make an append wait while the next one gets ahead of it.
        self.appends.push_back(Box::pin(tokio::task::unconstrained(append)));
    }

    /// Makes the oldest pass in flight visible, now that its append has ended: reply to senders, publish and deliver, start
    /// turns, answer queries.
    ///
    /// This order is the guarantee of the engine. If a sender were answered, or a turn started, before the append, a crash in
    /// between would leave effects of a decision that never happened. The planted bugs `AckBeforeCommit` and
    /// `AckWithPredecessor` do exactly that, and the crash tests must notice.
    ///
    /// A failed append answers every sender with an error, although the events may be in the log: an error means "not
    /// acknowledged". The passes behind it were decided as if it had succeeded, so they fail as well, also those whose
    /// events are in the log. All appends have ended when this returns, and the caller of [`Self::run`] recovers from the log
    /// before anything else is decided.
    async fn release(&mut self, appended: Result<(), LogError>) -> Result<(), LogError> {
        let mut pass = self.in_flight.pop_front().expect("each append has its pass");
        if let Err(error) = appended {
            loop {
                answer(pass.replies.into_iter().map(|(reply, _)| (reply, Err(CommandError::unavailable(&error)))));
                self.unanswered.extend(pass.looks);
                let Some(next) = self.in_flight.pop_front() else {
                    self.held = None;
                    return Err(error);
                };
                self.appends.next().await;
                pass = next;
            }
        }
        if let Some(last) = pass.events.last() {
            self.committed = last.seq;
            self.shared.recent.extend(&pass.events);
        }
        answer(pass.replies);
        self.shared.released.store(self.committed.0, Ordering::Release);
        if is_planted(Plant::AckWithPredecessor) {
            self.in_flight.iter_mut().for_each(|next| answer(next.replies.drain(..)));
        }
        self.follow(&pass.events, &pass.deliveries);
        if let Some(mut events) = Arc::into_inner(pass.events).filter(|events| events.capacity() <= 4 * BATCH) {
            events.clear();
            self.spare_events = events;
        }
        self.answer_looks(pass.looks).await?;
        if self.committed == self.spine.seq {
            self.keep_snapshots().await?;
        }
        Ok(())
    }

    /// Waits until everything that was decided is in the log, and releases it.
    async fn release_all(&mut self) -> Result<(), LogError> {
        while let Some(appended) = self.appends.next().await {
            self.release(appended).await?;
        }
        Ok(())
    }

    async fn commit(&mut self, pass: Pass) -> Result<(), LogError> {
        self.append(pass);
        self.release_all().await
    }

    /// Everything that follows from events that are in the log.
    fn follow(&mut self, events: &[Arc<Recorded>], deliveries: &[(TurnId, Arc<Recorded>)]) {
        if !events.is_empty() && self.shared.ports.live.is_watched(&self.shared.society) {
            self.shared.ports.live.publish(&self.shared.society, Frame::Committed(events.into()));
        }
        for (turn, event) in deliveries {
            self.scheduler.deliver(*turn, event);
        }
        if !self.deferred.is_empty() && events.iter().any(|recorded| ends_wait(&recorded.event)) {
            self.deferred.drain(..).for_each(|turn| self.scheduler.want(turn, None));
        }
        self.reconcile(events);
    }

    /// Starts what is owed and not running and stops what is running and not owed, for every turn that the events touch. What
    /// a turn is owed depends on its own events only, so the others need no look.
    ///
    /// The spine may be ahead of these events by those of passes in flight. A turn may be stopped for what is not durable yet,
    /// because it is dropped as well if that fails.
    fn reconcile(&mut self, events: &[Arc<Recorded>]) {
        let mut last = None;
        for event in events {
            let Some(id) = event.turn() else { continue };
            let first = matches!(event.event, Event::TurnStarted { .. }).then(|| event.clone());
            let is_broken = matches!(event.event, Event::TurnCrashed { .. });
            if is_broken {
                // Its task has ended with the crash; a new one is made when its rest is over.
                self.scheduler.remove(id);
            }
            if last == Some(id) && first.is_none() && !is_broken {
                continue;
            }
            last = Some(id);
            let owed = self.spine.turns.get(&id).map(|turn| Owed::of(id, turn));
            self.apply_owed(id, owed, first);
        }
        self.fill_slots();
    }

    /// Brings the scheduler in line with what one turn is owed: `None` when the turn is settled.
    fn apply_owed(&mut self, id: TurnId, owed: Option<Owed>, first: Option<Arc<Recorded>>) {
        let Some(owed) = owed else { return self.scheduler.remove(id) };
        if !(is_planted(Plant::ForgetAWait) && first.is_none() && !self.scheduler.is_scheduled(id)) {
            self.timers.extend(owed.timers);
        }
        if owed.run {
            self.scheduler.want(id, first);
        } else if self.spine.turns.get(&id).is_some_and(|turn| turn.is_parked()) {
            self.scheduler.remove(id);
        } else {
            self.scheduler.rest(id);
        }
    }

    /// Starts queued turns while there are free slots. A queue entry may be stale: the turn may have settled, parked or started
    /// since, so each is checked against the spine.
    ///
    /// A turn begins with its journal, which must have everything that the spine knows of it. So one with events in flight is
    /// not started here; the release of those events queues it again.
    fn fill_slots(&mut self) {
        if self.stopping.is_some() || !self.scheduler.has_queued() {
            return;
        }
        let held = self.held.iter().map(|(_, pass)| pass);
        let events_in_flight = self.in_flight.iter().chain(held).flat_map(|pass| &*pass.events);
        let turns_in_flight: FxHashSet<TurnId> = events_in_flight.filter_map(|recorded| recorded.turn()).collect();
        let surroundings = turn::Surroundings::of(&self.spine);
        while let Some((id, first)) = self.scheduler.next() {
            if turns_in_flight.contains(&id) {
                continue;
            }
            let Some(turn) = self.spine.turns.get(&id).filter(|turn| turn.is_owed() && !self.scheduler.is_scheduled(id)) else {
                continue;
            };
            let limiting_roles = self.spine.limiting_roles(&turn.agent);
            let start = Box::new(turn::TurnStart {
                id,
                agent: turn.agent.clone(),
                thread: turn.thread.clone(),
                role: self.spine.role_of(turn).cloned(),
                chosen: turn::chosen(&self.spine, &turn.agent),
                conversation: turn::settings(&self.spine, &turn.agent),
                limiting_roles: if limiting_roles.is_empty() { Arc::default() } else { limiting_roles.into() },
                seed: self.spine.seed,
                eras: self.spine.eras.clone(),
                limits: self.spine.limits,
                shared: self.shared.clone(),
                delayed_until: turn.delayed_until(),
                first,
                through: Seq(u64::MAX),
                surroundings,
            });
            self.ended_at_once.extend(self.scheduler.schedule(id, &self.shared, |deliveries| turn::run(start, deliveries)));
        }
    }

    fn set_alarm(&mut self) {
        let rest = self.resting.first().map(|(due, _)| *due);
        let held = self.held.as_ref().map(|(due, _)| *due);
        let next = self.timers.first().map(|(due, _)| *due).into_iter().chain(rest).chain(held).chain(self.stopping).min();
        if self.alarm.as_ref().map(|(due, _)| *due) != next {
            let clock = self.shared.ports.clock.clone();
            self.alarm = next.map(|due| {
                let alarm: Sleep = Box::pin(async move { clock.sleep_until(due).await });
                (due, alarm)
            });
        }
    }

    /// The events, unless a person begins a request with them while none are taken.
    fn admitted(&self, recorded: Vec<Arc<Recorded>>) -> Committed {
        let begins_request = |event: &Event| match event {
            Event::MessageSent { envelope, .. } => {
                envelope.from.is_user() && !self.spine.activities.contains_key(&envelope.task_id)
            }
            _ => false,
        };
        let closed = self.shared.closed_because.lock().unwrap_or_else(PoisonError::into_inner);
        match &*closed {
            Some(why) if recorded.iter().any(|recorded| begins_request(&recorded.event)) => {
                Err(CommandError::Unavailable(why.clone()))
            }
            _ => Ok(recorded),
        }
    }

    /// While the society stops, its turns may still commit what they are doing; commands from outside are rejected.
    fn is_refused_while_stopping(&self, command: &Command) -> bool {
        self.stopping.is_some() && turn_of(command).is_none()
    }

    fn may_end(&self) -> bool {
        self.stopping.is_some_and(|latest| self.scheduler.running() == 0 || self.shared.ports.clock.now() >= latest)
    }
}

/// Sends the replies. A sender that no longer waits is ignored.
fn answer(replies: impl IntoIterator<Item = (oneshot::Sender<Committed>, Committed)>) {
    for (reply, committed) in replies {
        let _ = reply.send(committed);
    }
}
