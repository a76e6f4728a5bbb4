//! The loop of a society: decide → append → evolve → publish → reconcile. One task owns the spine; nothing else changes it.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use polis_domain::{
    Command, EffectId, Event, Failure, Owed, Recorded, Refusal, SPINE_VERSION, Seq, SocietyId, Spine, ThreadId, Timestamp,
    TurnId, decide, outstanding,
};
use polis_ports::{Frame, LogError, Snapshot, ThreadRange};
use tokio::sync::{mpsc, oneshot};

use crate::Cast;
use crate::offer::Offers;
use crate::plant::{Plant, is_planted};
use crate::recent::Recent;
use crate::scheduler::Scheduler;
use crate::society::{Options, Ports, Rejected};
use crate::turn;

/// A question about the spine.
pub(crate) type Look = Box<dyn FnOnce(&Spine) + Send>;

/// Ends at a time.
type Alarm = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What reaches the actor.
#[expect(clippy::large_enum_variant, reason = "nearly all mail is commands; a box each would cost more than the room")]
pub(crate) enum Mail {
    /// A command, and who wants to know what came of it.
    Command { command: Command, reply: Option<oneshot::Sender<Committed>> },
    /// A turn has taken in what came of its units so far and waits for the others: its slot is free meanwhile.
    Rest { turn: TurnId },
    /// A question about the spine as the log has it.
    Look(Look),
    /// Take in no more, let turns reach a safe point within the time given, then end.
    Stop { grace: Duration },
}

/// The events of one command, in the log; or why there are none.
pub(crate) type Committed = Result<Vec<Arc<Recorded>>, Rejected>;

/// Most commands decided together, and so committed together.
const BATCH: usize = 512;

/// Events between two snapshots, at least; and one more for so many bytes of the last one, so that saving a large society
/// costs no more an event than saving a small one.
const SNAPSHOT_EVERY: u64 = 50_000;
const SNAPSHOT_BYTES_AN_EVENT: u64 = 64;

/// How long a turn that was told something may only wait before that is noted: most are told more soon.
const REST_MS: u64 = 100;

/// Events read at a time when the society opens.
const PAGE: usize = 10_000;

/// What the actor shares with its turns.
pub(crate) struct Shared {
    pub(crate) society: SocietyId,
    pub(crate) ports: Ports,
    pub(crate) cast: Cast,
    pub(crate) models: Vec<Arc<str>>,
    /// How long a call of a tool of whoever asks waits for them.
    pub(crate) client_patience: Duration,
    /// The tools that agents are shown.
    pub(crate) offers: Offers,
    pub(crate) recent: Recent,
    pub(crate) door: mpsc::Sender<Mail>,
    /// Why nothing can be written just now, while the log is out of order.
    pub(crate) standby: Mutex<Option<Failure>>,
    /// Nobody holds a handle any more.
    pub(crate) abandoned: AtomicBool,
}

impl Shared {
    pub(crate) fn new(society: SocietyId, ports: Ports, cast: Cast, door: mpsc::Sender<Mail>) -> Self {
        Self {
            society,
            ports,
            cast,
            models: Vec::new(),
            client_patience: crate::society::CLIENT_PATIENCE,
            offers: Offers::default(),
            recent: Recent::default(),
            door,
            standby: Mutex::new(None),
            abandoned: AtomicBool::new(false),
        }
    }

    /// The events recorded under one thread, in order.
    pub(crate) async fn read_thread(&self, thread: &ThreadId, range: ThreadRange) -> Result<Vec<Arc<Recorded>>, LogError> {
        if let Some(events) = self.recent.read(thread, range) {
            return Ok(events);
        }
        let events = self.ports.log.read_thread(&self.society, thread, range).await?;
        Ok(events.into_iter().map(Arc::new).collect())
    }
}

pub(crate) struct Actor {
    shared: Arc<Shared>,
    options: Options,
    mail: mpsc::Receiver<Mail>,
    spine: Spine,
    /// The last event that is in the log for certain. While the spine is beyond it, a pass is on its way or has failed.
    committed: Seq,
    /// Questions of a pass that failed; they change nothing and are answered all the same.
    unanswered: Vec<Look>,
    scheduler: Scheduler,
    /// The waits that end by themselves. An entry whose wait has ended is refused when its time comes.
    timers: BTreeSet<(Timestamp, EffectId)>,
    /// Turns that were told something and only wait, and when that is noted.
    resting: BTreeSet<(Timestamp, TurnId)>,
    alarm: Option<(Timestamp, Alarm)>,
    /// Turns whose call waits until others have left it room in a budget. They have no slot meanwhile, and are run again.
    deferred: Vec<TurnId>,
    saved: Seq,
    /// When the next snapshot is due.
    save_at: Seq,
    stopping: Option<Timestamp>,
    /// Whether this process has taken the society up.
    has_opened: bool,
    /// Room for the events of the next pass, kept from the last one.
    room: Vec<Arc<Recorded>>,
    /// What turns command for that were over as soon as they had a slot.
    ended: Vec<Command>,
}

/// What one pass over the mail came to, before it is in the log.
#[derive(Default)]
struct Pass {
    events: Vec<Arc<Recorded>>,
    replies: Vec<(oneshot::Sender<Committed>, Committed)>,
    news: Vec<(TurnId, Arc<Recorded>)>,
    looks: Vec<Look>,
}

/// Folds a society's log, from its snapshot where there is one that we can read.
pub(crate) async fn fold(ports: &Ports, society: &SocietyId) -> Result<(Spine, Seq), LogError> {
    let head = ports.log.head(society).await?;
    fold_through(ports, society, head).await
}

/// The same up to a place of the log.
async fn fold_through(ports: &Ports, society: &SocietyId, head: Seq) -> Result<(Spine, Seq), LogError> {
    let snapshot = ports.log.load_snapshot(society).await?;
    let saved = snapshot.filter(|snapshot| snapshot.version == SPINE_VERSION && snapshot.seq <= head);
    let spine = saved.and_then(|snapshot| Spine::read(&snapshot.body));
    let mut spine = spine.unwrap_or_default();
    let saved = spine.seq;
    while spine.seq < head {
        let most = PAGE.min((head.0 - spine.seq.0) as usize);
        let page = ports.log.read(society, spine.seq, most).await?;
        if page.is_empty() {
            return Err(LogError::Damaged(format!("the log of `{society}` ends at {} instead of {head}", spine.seq)));
        }
        page.iter().for_each(|recorded| spine.evolve(recorded));
    }
    Ok((spine, saved))
}

impl Actor {
    pub(crate) fn new(shared: Arc<Shared>, options: Options, mail: mpsc::Receiver<Mail>) -> Self {
        let scheduler = Scheduler::new(options.max_running, options.max_lingering);
        Self {
            shared,
            options,
            mail,
            spine: Spine::default(),
            committed: Seq(0),
            unanswered: Vec::new(),
            scheduler,
            timers: BTreeSet::new(),
            resting: BTreeSet::new(),
            alarm: None,
            deferred: Vec::new(),
            saved: Seq(0),
            save_at: Seq(SNAPSHOT_EVERY),
            stopping: None,
            has_opened: false,
            room: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Takes the log's state and begins it if it is empty. Used at the start and after the log has failed.
    pub(crate) async fn recover(&mut self) -> Result<(), LogError> {
        self.shared.recent.clear();
        let (spine, saved) = fold(&self.shared.ports, &self.shared.society).await?;
        self.spine = spine;
        self.committed = self.spine.seq;
        self.saved = saved;
        self.save_at = Seq(saved.0 + SNAPSHOT_EVERY);
        self.timers.clear();
        self.resting.clear();
        self.deferred.clear();
        self.ended.clear();
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
            self.settle_accounts(id, Some(owed), None);
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

    /// Notes for every turn that is about to be run that one more process runs it. What has ended too many is set aside.
    async fn revive(&mut self) -> Result<(), LogError> {
        let is_owed = |spine: &Spine| spine.turns.values().any(|turn| turn.is_owed());
        while !self.has_opened && self.options.max_running > 0 && is_owed(&self.spine) {
            let mut pass = Pass::default();
            self.decide(&mut pass, Command::Revive, None, self.shared.ports.clock.now());
            self.has_opened = !pass.events.iter().any(|recorded| matches!(recorded.event, Event::TurnSettled { .. }));
            self.commit(pass).await?;
        }
        self.has_opened = true;
        Ok(())
    }

    /// Runs until it is stopped (`Ok`) or the log fails (`Err`).
    pub(crate) async fn run(&mut self) -> Result<(), LogError> {
        let mut envelopes = Vec::with_capacity(BATCH);
        loop {
            self.set_alarm();
            let alarm = self.alarm.as_mut().map(|(_, alarm)| alarm);
            tokio::select! {
                biased;
                _ = self.mail.recv_many(&mut envelopes, BATCH) => {}
                () = std::future::ready(()), if !self.ended.is_empty() => {}
                () = async { match alarm { Some(alarm) => alarm.await, None => std::future::pending().await } } => {
                    self.alarm = None;
                }
            }
            // Whoever is ready to ask does so before the commit begins, so that commits are full.
            loop {
                let before = envelopes.len();
                tokio::task::yield_now().await;
                while envelopes.len() < BATCH
                    && let Ok(mail) = self.mail.try_recv()
                {
                    envelopes.push(mail);
                }
                if envelopes.len() == before || envelopes.len() >= BATCH {
                    break;
                }
            }
            if self.shared.abandoned.load(Ordering::Relaxed) {
                envelopes.push(Mail::Stop { grace: Duration::ZERO });
            }
            self.pass(&mut envelopes).await?;
            if self.may_end() {
                self.scheduler.clear().await;
                self.save().await;
                return Ok(());
            }
        }
    }

    /// While the log is out of order: refuses what would write and answers questions from the last committed state, until it is
    /// time to try again.
    pub(crate) async fn stand_by(&mut self, error: &LogError) -> Standby {
        self.set_standby(Some(Failure::new(error.code(), error.to_string())));
        self.scheduler.clear().await;
        let mut is_readable = self.go_back().await.is_ok();
        for look in std::mem::take(&mut self.unanswered) {
            // Dropping one tells whoever asks that there is no answer.
            if is_readable {
                look(&self.spine);
            }
        }
        let clock = self.shared.ports.clock.clone();
        let mut wake = clock.sleep_until(Timestamp(clock.now().0 + self.options.retry_ms));
        loop {
            let mail = tokio::select! {
                biased;
                mail = self.mail.recv() => mail,
                () = &mut wake => return Standby::TryAgain,
            };
            match mail {
                Some(Mail::Command { reply: Some(reply), .. }) => {
                    // Nobody waits for the answer any more: nothing to do.
                    let _ = reply.send(Err(Rejected::unavailable(error)));
                }
                Some(Mail::Look(look)) => {
                    is_readable = is_readable || self.go_back().await.is_ok();
                    if is_readable {
                        look(&self.spine);
                    }
                }
                Some(Mail::Command { reply: None, .. } | Mail::Rest { .. }) => {}
                Some(Mail::Stop { .. }) | None => return Standby::Stop,
            }
        }
    }

    /// Gives the spine up that a failed pass has changed, and folds the log anew as far as it is certain. Needs reads only.
    async fn go_back(&mut self) -> Result<(), LogError> {
        if self.spine.seq != self.committed {
            let (spine, _) = fold_through(&self.shared.ports, &self.shared.society, self.committed).await?;
            self.spine = spine;
        }
        Ok(())
    }

    async fn pass(&mut self, envelopes: &mut Vec<Mail>) -> Result<(), LogError> {
        let at = self.shared.ports.clock.now();
        let mut pass = Pass { events: std::mem::take(&mut self.room), ..Pass::default() };
        let mut ended = std::mem::take(&mut self.ended);
        ended.drain(..).for_each(|command| self.decide(&mut pass, command, None, at));
        self.ended = ended;
        for mail in envelopes.drain(..) {
            match mail {
                Mail::Command { command, reply } if self.is_closed_to(&command) => {
                    pass.replies.extend(reply.map(|reply| (reply, Err(Rejected::Stopping))));
                }
                Mail::Command { command, reply } => self.decide(&mut pass, command, reply, at),
                Mail::Rest { turn } => {
                    self.scheduler.rest_if_idle(turn);
                    if self.spine.turns.get(&turn).is_some_and(|turn| turn.news) {
                        self.resting.insert((Timestamp(at.0 + REST_MS), turn));
                    }
                }
                Mail::Look(look) => pass.looks.push(look),
                Mail::Stop { grace } => self.stopping = Some(Timestamp(at.0 + grace.as_millis() as u64)),
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

    /// Notes that a turn has had no use for what it was told: the log says otherwise until then. What it is told in this pass it
    /// has not heard yet, and rests anew after it.
    fn note_rest(&mut self, pass: &mut Pass, turn: TurnId, at: Timestamp) {
        let is_told = pass.news.iter().any(|(told, _)| *told == turn);
        let has_news = self.spine.turns.get(&turn).is_some_and(|turn| turn.news && turn.parked.is_none());
        if has_news && !is_told && self.scheduler.is_resting(turn) {
            self.decide(pass, Command::Rest { turn }, None, at);
        }
    }

    fn decide(&mut self, pass: &mut Pass, command: Command, reply: Option<oneshot::Sender<Committed>>, at: Timestamp) {
        let own = turn_of(&command);
        // A call that asks for something is told no; it is not the turn that stands still.
        let is_aside = matches!(command, Command::Inquire { .. } | Command::Answer { .. });
        let committed = match decide(&self.spine, command, at) {
            Ok(recorded) => {
                for event in &recorded {
                    self.spine.evolve(event);
                    if let Event::EffectEnded { id, .. } | Event::EffectCleared { id } = &event.event
                        && own != Some(id.turn)
                    {
                        pass.news.push((id.turn, event.clone()));
                    }
                    if let Event::CallAnswered { id, .. } = &event.event
                        && own != Some(id.call.turn)
                    {
                        pass.news.push((id.call.turn, event.clone()));
                    }
                }
                pass.events.extend(recorded.iter().cloned());
                Ok(recorded)
            }
            Err(Refusal::BudgetBusy) if !is_aside => {
                own.into_iter().for_each(|turn| self.scheduler.remove(turn));
                self.deferred.extend(own);
                return;
            }
            Err(refusal) => Err(Rejected::Refused(refusal)),
        };
        if let (Err(Rejected::Refused(refusal)), Some(turn)) = (&committed, own)
            && !is_aside
            && !matches!(refusal, Refusal::TurnNotOpen(_) | Refusal::NotOpen(_))
        {
            tracing::error!(%turn, %refusal, "a turn asked for what it may not; it stands still");
        }
        pass.replies.extend(reply.map(|reply| (reply, committed)));
    }

    /// Makes a pass true: first the log, then everybody who is to know.
    async fn commit(&mut self, pass: Pass) -> Result<(), LogError> {
        let Pass { mut events, replies, news, looks } = pass;
        if is_planted(Plant::AckBeforeCommit) {
            answer(replies);
            return self.append(&events).await.map(|()| self.follow(&events, &news, looks));
        }
        if let Err(error) = self.append(&events).await {
            answer(replies.into_iter().map(|(reply, _)| (reply, Err(Rejected::unavailable(&error)))));
            self.unanswered.extend(looks);
            return Err(error);
        }
        answer(replies);
        self.follow(&events, &news, looks);
        if events.capacity() <= 4 * BATCH {
            events.clear();
            self.room = events;
        }
        if self.spine.seq >= self.save_at {
            self.save().await;
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

    fn follow(&mut self, events: &[Arc<Recorded>], news: &[(TurnId, Arc<Recorded>)], looks: Vec<Look>) {
        if !events.is_empty() && self.shared.ports.live.is_watched(&self.shared.society) {
            self.shared.ports.live.publish(&self.shared.society, Frame::Committed(events.into()));
        }
        for (turn, event) in news {
            self.scheduler.tell(*turn, event);
        }
        if !self.deferred.is_empty() && events.iter().any(|recorded| makes_room(&recorded.event)) {
            self.deferred.drain(..).for_each(|turn| self.scheduler.want(turn, None));
        }
        self.reconcile(events);
        looks.into_iter().for_each(|look| look(&self.spine));
    }

    /// Starts what is owed and not running, stops what is running and not owed, for every turn that the events touch.
    fn reconcile(&mut self, events: &[Arc<Recorded>]) {
        let mut last = None;
        for event in events {
            let Some(id) = event.turn() else { continue };
            let first = matches!(event.event, Event::TurnStarted { .. }).then(|| event.clone());
            let is_broken = matches!(event.event, Event::TurnCrashed { .. });
            if is_broken {
                // Its task has ended; it is run again.
                self.scheduler.remove(id);
            }
            if last == Some(id) && first.is_none() && !is_broken {
                continue;
            }
            last = Some(id);
            let owed = self.spine.turns.get(&id).map(|turn| Owed::of(id, turn));
            self.settle_accounts(id, owed, first);
        }
        self.fill_slots();
    }

    fn settle_accounts(&mut self, id: TurnId, owed: Option<Owed>, first: Option<Arc<Recorded>>) {
        let Some(owed) = owed else { return self.scheduler.remove(id) };
        if !(is_planted(Plant::ForgetAWait) && first.is_none() && !self.scheduler.is_scheduled(id)) {
            self.timers.extend(owed.timers);
        }
        if owed.run {
            self.scheduler.want(id, first);
        } else if self.spine.turns.get(&id).is_some_and(|turn| turn.parked.is_some()) {
            self.scheduler.remove(id);
        } else {
            self.scheduler.rest(id);
        }
    }

    fn fill_slots(&mut self) {
        if self.stopping.is_some() {
            return;
        }
        while let Some((id, first)) = self.scheduler.next() {
            let Some(turn) = self.spine.turns.get(&id).filter(|turn| turn.is_owed() && !self.scheduler.is_scheduled(id)) else {
                continue;
            };
            let fences = self.spine.fences(&turn.agent);
            let start = Box::new(turn::TurnStart {
                id,
                agent: turn.agent.clone(),
                thread: turn.thread.clone(),
                role: self.spine.role_of(turn).cloned(),
                chosen: turn::chosen(&self.spine, &turn.agent),
                fences: if fences.is_empty() { Arc::default() } else { fences.into() },
                seed: self.spine.seed,
                eras: self.spine.eras.clone(),
                limits: self.spine.limits,
                shared: self.shared.clone(),
                rests_until: turn.rests_until,
                first,
                through: Seq(u64::MAX),
            });
            self.ended.extend(self.scheduler.schedule(id, &self.shared, |news| turn::run(start, news)));
        }
    }

    fn set_alarm(&mut self) {
        let rest = self.resting.first().map(|(due, _)| *due);
        let next = self.timers.first().map(|(due, _)| *due).into_iter().chain(rest).chain(self.stopping).min();
        if self.alarm.as_ref().map(|(due, _)| *due) != next {
            let clock = self.shared.ports.clock.clone();
            self.alarm = next.map(|due| {
                let alarm: Alarm = Box::pin(async move { clock.sleep_until(due).await });
                (due, alarm)
            });
        }
    }

    /// While stopping, turns may finish what they are at; nothing new comes in from outside.
    fn is_closed_to(&self, command: &Command) -> bool {
        self.stopping.is_some() && turn_of(command).is_none()
    }

    fn may_end(&self) -> bool {
        self.stopping.is_some_and(|latest| self.scheduler.running() == 0 || self.shared.ports.clock.now() >= latest)
    }

    /// Saves a snapshot. It is a cache, so a failure is only told.
    async fn save(&mut self) {
        if self.saved == self.spine.seq {
            return;
        }
        self.saved = self.spine.seq;
        let Ok(body) = serde_json::to_vec(&self.spine) else { return };
        self.save_at = Seq(self.saved.0 + SNAPSHOT_EVERY.max(body.len() as u64 / SNAPSHOT_BYTES_AN_EVENT));
        let snapshot = Snapshot { seq: self.spine.seq, version: SPINE_VERSION, body };
        if let Err(error) = self.shared.ports.log.save_snapshot(&self.shared.society, snapshot).await {
            tracing::warn!(%error, "the snapshot was not saved; the next start folds more of the log");
        }
    }
}

/// What to do after standing by.
pub(crate) enum Standby {
    TryAgain,
    Stop,
}

/// Answers everybody; one who no longer waits is passed over.
fn answer(replies: impl IntoIterator<Item = (oneshot::Sender<Committed>, Committed)>) {
    for (reply, committed) in replies {
        let _ = reply.send(committed);
    }
}

/// Whether calls that wait for room in a budget may find some now.
fn makes_room(event: &Event) -> bool {
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

/// The turn that commands this; none when it comes from outside.
fn turn_of(command: &Command) -> Option<TurnId> {
    match command {
        Command::Begin { turn, .. }
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
        Command::Once { command, .. } => turn_of(command),
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
        | Command::Send { .. }
        | Command::Resolve { .. }
        | Command::Expire { .. }
        | Command::Resume { .. }
        | Command::ChangeRole { .. }
        | Command::Cancel { .. } => None,
    }
}
