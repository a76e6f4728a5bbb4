//! The loop of a society: decide and evolve → append → answer → publish → reconcile. One task owns the spine; nothing else
//! changes it.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use polis_domain::{
    Command, EffectId, Event, Failure, Owed, Recorded, Refusal, SPINE_VERSION, Seq, Spine, Timestamp, TurnId, decide,
    outstanding,
};
use polis_ports::{Frame, LogError, Snapshot};
use tokio::sync::{mpsc, oneshot};

use crate::fold::{fold, fold_through};
use crate::in_flight::ReadsInFlight;
use crate::plant::{Plant, is_planted};
use crate::scheduler::Scheduler;
use crate::shared::{ActorMessage, Committed, Look, Options, Shared};
use crate::{CommandError, turn};

/// A wait for a point in time.
type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How many messages one pass takes at most. Their events are committed with one append.
const BATCH: usize = 512;

/// The least number of events between two snapshots. A large snapshot makes the interval longer, by one event for each
/// `SNAPSHOT_BYTES_AN_EVENT` of its size, so that the cost of snapshots per event does not grow with the society.
const SNAPSHOT_EVERY: u64 = 50_000;
const SNAPSHOT_BYTES_AN_EVENT: u64 = 64;

/// How long a turn must wait for its remaining answers before the log notes that it only waits. Most turns get the next
/// answer sooner and need no event.
const REST_MS: u64 = 100;

/// The single writer of a society.
pub(crate) struct Actor {
    shared: Arc<Shared>,
    options: Options,
    mailbox: mpsc::Receiver<ActorMessage>,
    spine: Spine,
    /// The last event that is certainly in the log. The spine is ahead of it while an append runs, and after one has failed.
    committed: Seq,
    /// Queries of a pass whose append failed. They need no commit, so they are answered after the spine is rolled back.
    unanswered: Vec<Look>,
    scheduler: Scheduler,
    /// The deadlines of open waits. An entry stays when its wait ends early; `decide` then refuses its `Expire`.
    timers: BTreeSet<(Timestamp, EffectId)>,
    /// Turns that have unread answers by the log but only wait, and when to append that they do.
    resting: BTreeSet<(Timestamp, TurnId)>,
    /// The sleep until the earliest of `timers`, `resting` and `stopping`.
    alarm: Option<(Timestamp, Sleep)>,
    /// Turns whose model call has to wait until other calls free their reservations in a budget, and turns whose read another
    /// turn is making. They have no slot; they are run again as soon as a call ends.
    deferred: Vec<TurnId>,
    /// The reads that are under way.
    reads: ReadsInFlight,
    /// The event that the last snapshot ends with.
    snapshot_at: Seq,
    /// The event at which the next snapshot is due.
    next_snapshot_at: Seq,
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
    /// The events to append.
    events: Vec<Arc<Recorded>>,
    /// The result of each command, to be sent after the append.
    replies: Vec<(oneshot::Sender<Committed>, Committed)>,
    /// Answers for waiting turns, to be delivered after the append.
    deliveries: Vec<(TurnId, Arc<Recorded>)>,
    /// Queries, to be answered after the append.
    looks: Vec<Look>,
}

impl Actor {
    pub(crate) fn new(shared: Arc<Shared>, options: Options, mailbox: mpsc::Receiver<ActorMessage>) -> Self {
        let scheduler = Scheduler::new(options.max_running, options.max_lingering);
        Self {
            shared,
            options,
            mailbox,
            spine: Spine::default(),
            committed: Seq(0),
            unanswered: Vec::new(),
            scheduler,
            timers: BTreeSet::new(),
            resting: BTreeSet::new(),
            alarm: None,
            deferred: Vec::new(),
            reads: ReadsInFlight::default(),
            snapshot_at: Seq(0),
            next_snapshot_at: Seq(SNAPSHOT_EVERY),
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
        let (spine, snapshot_at) = fold(&self.shared.ports, &self.shared.society).await?;
        self.spine = spine;
        self.committed = self.spine.seq;
        self.snapshot_at = snapshot_at;
        self.next_snapshot_at = Seq(snapshot_at.0 + SNAPSHOT_EVERY);
        self.timers.clear();
        self.resting.clear();
        self.deferred.clear();
        self.reads.clear();
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
        self.revive().await?;
        let all: Vec<_> = outstanding(&self.spine).collect();
        for (id, owed) in all {
            self.apply_owed(id, Some(owed), None);
        }
        self.set_standby(None);
        let looks = std::mem::take(&mut self.unanswered);
        looks.into_iter().for_each(|look| look(&self.spine));
        self.fill_slots();
        Ok(())
    }

    fn set_standby(&self, failure: Option<Failure>) {
        *self.shared.standby.lock().unwrap_or_else(PoisonError::into_inner) = failure;
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
            let alarm = self.alarm.as_mut().map(|(_, alarm)| alarm);
            tokio::select! {
                biased;
                _ = self.mailbox.recv_many(&mut batch, BATCH) => {}
                () = std::future::ready(()), if !self.ended_at_once.is_empty() => {}
                () = async { match alarm { Some(alarm) => alarm.await, None => std::future::pending().await } } => {
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
                self.scheduler.clear().await;
                self.save_snapshot().await;
                return Ok(());
            }
        }
    }

    /// While the log is failing: rejects commands and answers queries from the last committed state, until it is time to try
    /// again.
    pub(crate) async fn standby(&mut self, error: &LogError) -> Standby {
        self.set_standby(Some(Failure::new(error.code(), error.to_string())));
        self.scheduler.clear().await;
        let mut is_readable = self.roll_back().await.is_ok();
        for look in std::mem::take(&mut self.unanswered) {
            // A query that is dropped fails at its sender.
            if is_readable {
                look(&self.spine);
            }
        }
        let clock = self.shared.ports.clock.clone();
        let mut wake = clock.sleep_until(Timestamp(clock.now().0 + self.options.retry_ms));
        loop {
            let message = tokio::select! {
                biased;
                message = self.mailbox.recv() => message,
                () = &mut wake => return Standby::TryAgain,
            };
            match message {
                Some(ActorMessage::Command { reply: Some(reply), .. }) => {
                    // An error means that the sender no longer waits.
                    let _ = reply.send(Err(CommandError::unavailable(error)));
                }
                Some(ActorMessage::Look(look)) => {
                    is_readable = is_readable || self.roll_back().await.is_ok();
                    if is_readable {
                        look(&self.spine);
                    }
                }
                Some(ActorMessage::Command { reply: None, .. } | ActorMessage::Rest { .. }) => {}
                Some(ActorMessage::Stop { .. }) | None => return Standby::Stop,
            }
        }
    }

    /// Discards the changes of a failed pass: folds the log again up to the last certain event. Needs reads only, so queries
    /// can be answered while the disk is full.
    async fn roll_back(&mut self) -> Result<(), LogError> {
        if self.spine.seq != self.committed {
            let (spine, _) = fold_through(&self.shared.ports, &self.shared.society, self.committed).await?;
            self.spine = spine;
        }
        Ok(())
    }

    /// Handles one batch of messages: decides all commands, then commits their events with one append.
    ///
    /// Commands of one batch are decided one after another against a spine that already contains the events of those before,
    /// although nothing of them is durable yet. That is safe because nothing leaves the actor before `commit`: replies,
    /// deliveries and queries are collected in the [`Pass`]. If the append fails, all of them fail together and the spine is
    /// folded again from the log.
    ///
    /// The order within a pass matters. Ends of turns from the last pass come first: they are older than the mail. Timers
    /// come after the mail, so that an answer that arrives together with its deadline counts and the timeout is refused.
    /// Notes of resting turns come last, when it is known whether this pass delivers something to them.
    async fn pass(&mut self, batch: &mut Vec<ActorMessage>) -> Result<(), LogError> {
        let at = self.shared.ports.clock.now();
        let mut pass = Pass { events: std::mem::take(&mut self.spare_events), ..Pass::default() };
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
        self.commit(pass).await
    }

    /// Appends that a turn has read its answers and only waits for more; until then the log says that it is owed a run. A turn
    /// that this pass delivers something to has not read that yet; it will say again when it waits.
    fn note_rest(&mut self, pass: &mut Pass, turn: TurnId, at: Timestamp) {
        let has_delivery = pass.deliveries.iter().any(|(receiver, _)| *receiver == turn);
        let has_news = self.spine.turns.get(&turn).is_some_and(|turn| turn.has_unread_answers && !turn.is_parked());
        if has_news && !has_delivery && self.scheduler.is_resting(turn) {
            self.decide(pass, Command::Rest { turn }, None, at);
        }
    }

    /// Decides one command and evolves the spine, but tells nobody yet.
    ///
    /// Events that end another turn's wait become deliveries. A turn's own commands are excluded: their events are its reply.
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
        let committed = match decide(&self.spine, command, at) {
            Ok(recorded) => {
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
                pass.events.extend(recorded.iter().cloned());
                Ok(recorded)
            }
            Err(Refusal::BudgetBusy) if !is_inquiry => {
                self.defer(own);
                return;
            }
            Err(refusal) => Err(CommandError::Refused(refusal)),
        };
        if let (Err(CommandError::Refused(refusal)), Some(turn)) = (&committed, own)
            && !is_inquiry
            && !matches!(refusal, Refusal::TurnNotOpen(_) | Refusal::NotOpen(_))
        {
            tracing::error!(%turn, %refusal, "a command of a turn was refused; the turn is parked");
            self.decide(pass, Command::Park { turn, reason: command_refused(refusal) }, None, at);
        }
        pass.replies.extend(reply.map(|reply| (reply, committed)));
    }

    /// Has a turn wait until a call ends. No reply is sent: the turn is dropped here, and declares the same call again when it is
    /// run again.
    fn defer(&mut self, turn: Option<TurnId>) {
        turn.into_iter().for_each(|turn| self.scheduler.remove(turn));
        self.deferred.extend(turn);
    }

    /// Makes a pass durable, then visible: append, reply to senders, publish and deliver, start turns, answer queries.
    ///
    /// This order is the guarantee of the engine. If a sender were answered, or a turn started, before the append, a crash in
    /// between would leave effects of a decision that never happened. The planted bug `AckBeforeCommit` does exactly that,
    /// and the crash tests must notice. A failed append answers every sender with an error, although the events may be in the
    /// log: an error means "not acknowledged", and the caller of [`Self::run`] recovers from the log before anything else is
    /// decided.
    async fn commit(&mut self, pass: Pass) -> Result<(), LogError> {
        let Pass { mut events, replies, deliveries, looks } = pass;
        if is_planted(Plant::AckBeforeCommit) {
            answer(replies);
            return self.append(&events).await.map(|()| self.follow(&events, &deliveries, looks));
        }
        if let Err(error) = self.append(&events).await {
            answer(replies.into_iter().map(|(reply, _)| (reply, Err(CommandError::unavailable(&error)))));
            self.unanswered.extend(looks);
            return Err(error);
        }
        answer(replies);
        self.follow(&events, &deliveries, looks);
        if events.capacity() <= 4 * BATCH {
            events.clear();
            self.spare_events = events;
        }
        if self.spine.seq >= self.next_snapshot_at {
            self.save_snapshot().await;
        }
        Ok(())
    }

    async fn append(&mut self, events: &[Arc<Recorded>]) -> Result<(), LogError> {
        let Some(first) = events.first() else { return Ok(()) };
        self.shared.ports.log.append(&self.shared.society, Seq(first.seq.0 - 1), events).await?;
        self.committed = self.spine.seq;
        self.shared.recent.extend(events);
        Ok(())
    }

    /// Everything that follows from events that are in the log.
    fn follow(&mut self, events: &[Arc<Recorded>], deliveries: &[(TurnId, Arc<Recorded>)], looks: Vec<Look>) {
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
        looks.into_iter().for_each(|look| look(&self.spine));
    }

    /// Starts what is owed and not running and stops what is running and not owed, for every turn that the events touch. What
    /// a turn is owed depends on its own events only, so the others need no look.
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
    fn fill_slots(&mut self) {
        if self.stopping.is_some() {
            return;
        }
        while let Some((id, first)) = self.scheduler.next() {
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
            });
            self.ended_at_once.extend(self.scheduler.schedule(id, &self.shared, |deliveries| turn::run(start, deliveries)));
        }
    }

    fn set_alarm(&mut self) {
        let rest = self.resting.first().map(|(due, _)| *due);
        let next = self.timers.first().map(|(due, _)| *due).into_iter().chain(rest).chain(self.stopping).min();
        if self.alarm.as_ref().map(|(due, _)| *due) != next {
            let clock = self.shared.ports.clock.clone();
            self.alarm = next.map(|due| {
                let alarm: Sleep = Box::pin(async move { clock.sleep_until(due).await });
                (due, alarm)
            });
        }
    }

    /// While the society stops, its turns may still commit what they are doing; commands from outside are rejected.
    fn is_refused_while_stopping(&self, command: &Command) -> bool {
        self.stopping.is_some() && turn_of(command).is_none()
    }

    fn may_end(&self) -> bool {
        self.stopping.is_some_and(|latest| self.scheduler.running() == 0 || self.shared.ports.clock.now() >= latest)
    }

    /// Saves a snapshot, so that the next opening folds only what follows it. It is a cache: a failure costs time and is only
    /// logged.
    ///
    /// Called only when the spine equals the committed log (after an append that succeeded, or at the end), never with a pass
    /// in progress: a snapshot of events that are not in the log would survive a crash that they do not. The spine is
    /// serialised here on the actor, and no turn makes progress meanwhile; `SNAPSHOT_BYTES_AN_EVENT` bounds how often a large
    /// society pays for that. The next position is set before the save is tried, so that a disk that refuses snapshots is not
    /// asked again at every pass.
    async fn save_snapshot(&mut self) {
        if self.snapshot_at == self.spine.seq {
            return;
        }
        self.snapshot_at = self.spine.seq;
        let Ok(body) = serde_json::to_vec(&self.spine) else { return };
        self.next_snapshot_at = Seq(self.snapshot_at.0 + SNAPSHOT_EVERY.max(body.len() as u64 / SNAPSHOT_BYTES_AN_EVENT));
        let snapshot = Snapshot { seq: self.spine.seq, version: SPINE_VERSION, body };
        if let Err(error) = self.shared.ports.log.save_snapshot(&self.shared.society, snapshot).await {
            tracing::warn!(%error, "the snapshot was not saved; the next start folds more of the log");
        }
    }
}

/// What to do after [`Actor::standby`].
pub(crate) enum Standby {
    TryAgain,
    Stop,
}

/// Sends the replies. A sender that no longer waits is ignored.
fn answer(replies: impl IntoIterator<Item = (oneshot::Sender<Committed>, Committed)>) {
    for (reply, committed) in replies {
        let _ = reply.send(committed);
    }
}

/// Why a turn is parked whose command was refused, and what a person can do.
fn command_refused(refusal: &Refusal) -> Failure {
    let message = format!(
        "a command of the turn was refused: {refusal}. Resume the turn: it runs again from its journal. If it is parked again, \
         cancel it and correct its code: an effect that the turn has asked for must be awaited to its end, not dropped by a \
         timeout or `select!`"
    );
    Failure::new("command_refused", message)
}

/// Whether a call that was deferred may be made after an event: budget is free, or an identical read has ended.
fn ends_wait(event: &Event) -> bool {
    matches!(
        event,
        Event::EffectEnded { .. }
            | Event::CallAnswered { .. }
            | Event::TurnSettled { .. }
            | Event::TurnParked { .. }
            | Event::BudgetGranted { .. }
            | Event::BudgetsSet { .. }
    )
}

/// The turn that issued a command; none for commands from outside.
fn turn_of(command: &Command) -> Option<TurnId> {
    match command {
        Command::DeclareEffects { turn, .. }
        | Command::Settle { turn, .. }
        | Command::Crash { turn, .. }
        | Command::Park { turn, .. } => Some(*turn),
        Command::Answer { id, answer, .. } => (!answer.is_persons()).then_some(id.call.turn),
        Command::Retry { id, .. }
        | Command::Inquire { id, .. }
        | Command::End { id, .. }
        | Command::Act { id, .. }
        | Command::Doubt { id }
        | Command::Restart { id } => Some(id.turn),
        Command::Once { command, .. } | Command::By { command, .. } => turn_of(command),
        Command::Found { .. }
        | Command::Revive
        | Command::Rest { .. }
        | Command::Fork { .. }
        | Command::SetBudgets { .. }
        | Command::CreateRole { .. }
        | Command::Spawn { .. }
        | Command::Terminate { .. }
        | Command::Import { .. }
        | Command::RestoreContext { .. }
        | Command::StartConversation { .. }
        | Command::ChangeConversation { .. }
        | Command::ChangeMemories { .. }
        | Command::Send { .. }
        | Command::Resolve { .. }
        | Command::Expire { .. }
        | Command::Resume { .. }
        | Command::ChangeRole { .. }
        | Command::Cancel { .. } => None,
    }
}
