//! The turns that are in memory: running, waiting a while, or queued for a slot.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use polis_domain::{Command, Recorded, TurnId};
use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::actor::{Mail, Shared};
use crate::turn::{End, Room, hand_in};

/// Owns the tasks of all turns in memory.
pub(crate) struct Scheduler {
    tasks: Arc<TaskCount>,
    slots: FxHashMap<TurnId, Slot>,
    /// Turns that are owed but have no slot yet, with their first event when it is at hand.
    queue: VecDeque<(TurnId, Option<Arc<Recorded>>)>,
    /// Waiting turns that are still in memory, oldest first; some may have left or gone on since.
    lingering: VecDeque<TurnId>,
    waiting: usize,
    max_running: usize,
    max_lingering: usize,
}

struct Slot {
    /// None when the turn had come to its end before it needed one.
    task: Option<JoinHandle<()>>,
    news: Arc<News>,
    waiting: bool,
}

impl Slot {
    fn abort(&self) {
        self.task.iter().for_each(JoinHandle::abort);
    }
}

/// What a scheduled turn waits for and has not taken in yet. A turn has few waits open, and each ends once.
#[derive(Default)]
pub(crate) struct News {
    unread: Mutex<Unread>,
    more: Notify,
}

#[derive(Default)]
struct Unread {
    events: VecDeque<Arc<Recorded>>,
    /// Whether the turn has looked, found nothing that it waits for, and nothing has come since.
    idle: bool,
    /// Whoever wants to know when that is so.
    watcher: Option<Arc<Notify>>,
}

impl News {
    /// Nothing, and whoever looks for something makes it known.
    pub(crate) fn watched(watcher: Arc<Notify>) -> Self {
        Self { unread: Mutex::new(Unread { watcher: Some(watcher), ..Unread::default() }), more: Notify::new() }
    }

    /// The next chunk that is wanted, when it comes. The others are kept.
    pub(crate) async fn next(&self, wanted: impl Fn(&Recorded) -> bool) -> Arc<Recorded> {
        loop {
            if let Some(event) = self.take(&wanted) {
                return event;
            }
            self.more.notified().await;
        }
    }

    /// The next chunk that is wanted, if it has come.
    pub(crate) fn take(&self, wanted: impl Fn(&Recorded) -> bool) -> Option<Arc<Recorded>> {
        let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        let place = unread.events.iter().position(|event| wanted(event));
        unread.idle = place.is_none();
        if let (true, Some(watcher)) = (unread.idle, &unread.watcher) {
            watcher.notify_one();
        }
        unread.events.remove(place?)
    }

    fn tell(&self, event: Arc<Recorded>) {
        let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        unread.events.push_back(event);
        unread.idle = false;
        drop(unread);
        self.more.notify_one();
    }

    fn is_idle(&self) -> bool {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner).idle
    }
}

/// Counts the tasks that have not been dropped yet.
#[derive(Default)]
struct TaskCount {
    present: AtomicUsize,
    left: Notify,
}

/// Counts while it lives.
struct TaskGuard(Arc<TaskCount>);

impl TaskGuard {
    fn new(tasks: &Arc<TaskCount>) -> Self {
        tasks.present.fetch_add(1, Ordering::Relaxed);
        Self(tasks.clone())
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        if self.0.present.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.left.notify_one();
        }
    }
}

/// Waits for a turn's end and hands it in. A closed door means that the society has ended; the turn is owed again when it opens.
fn hand_in_end(turn: impl Future<Output = End> + Send + 'static, shared: Arc<Shared>) -> Room {
    Box::pin(async move {
        let room = {
            let End { command, .. } = turn.await;
            hand_in(&shared, Mail::Command { command, reply: None })
        };
        match room {
            Some(room) => room.await,
            None => true,
        }
    })
}

impl Scheduler {
    pub(crate) fn new(max_running: usize, max_lingering: usize) -> Self {
        Self {
            tasks: Arc::default(),
            slots: FxHashMap::default(),
            queue: VecDeque::new(),
            lingering: VecDeque::new(),
            waiting: 0,
            max_running,
            max_lingering,
        }
    }

    pub(crate) fn running(&self) -> usize {
        self.slots.len() - self.waiting
    }

    /// Makes sure that an owed turn runs, now or when there is a slot.
    pub(crate) fn want(&mut self, id: TurnId, first: Option<Arc<Recorded>>) {
        match self.slots.get_mut(&id) {
            Some(schedule) if schedule.waiting => {
                schedule.waiting = false;
                self.waiting -= 1;
            }
            Some(_) => {}
            None => self.queue.push_back((id, first)),
        }
    }

    /// Lets a turn that only waits stay in memory for a while, at the cost of the one that has waited longest.
    pub(crate) fn rest(&mut self, id: TurnId) {
        let Some(schedule) = self.slots.get_mut(&id).filter(|schedule| !schedule.waiting) else { return };
        schedule.waiting = true;
        self.waiting += 1;
        self.lingering.push_back(id);
        while self.waiting > self.max_lingering {
            let Some(oldest) = self.lingering.pop_front() else { break };
            if self.slots.get(&oldest).is_some_and(|schedule| schedule.waiting) {
                self.remove(oldest);
            }
        }
        if self.lingering.len() > 2 * self.max_lingering + 16 {
            let slots = &self.slots;
            self.lingering.retain(|id| slots.get(id).is_some_and(|schedule| schedule.waiting));
        }
    }

    /// Lets a turn rest that says it can do nothing more just now; unless something has come since it said so.
    pub(crate) fn rest_if_idle(&mut self, id: TurnId) {
        if self.slots.get(&id).is_some_and(|schedule| schedule.news.is_idle()) {
            self.rest(id);
        }
    }

    /// Whether a turn rests and has taken in all that it was told.
    pub(crate) fn is_resting(&self, id: TurnId) -> bool {
        self.slots.get(&id).is_some_and(|schedule| schedule.waiting && schedule.news.is_idle())
    }

    /// Stops a turn that is owed nothing.
    pub(crate) fn remove(&mut self, id: TurnId) {
        if let Some(schedule) = self.slots.remove(&id) {
            self.waiting -= usize::from(schedule.waiting);
            schedule.abort();
        }
    }

    /// Takes the next turn that has no slot, if there is room for it.
    pub(crate) fn next(&mut self) -> Option<(TurnId, Option<Arc<Recorded>>)> {
        if self.running() >= self.max_running {
            return None;
        }
        self.queue.pop_front()
    }

    pub(crate) fn is_scheduled(&self, id: TurnId) -> bool {
        self.slots.contains_key(&id)
    }

    /// Slots a turn; `run` makes its task from where its news will be. What is asked for in the end is handed in, or given back
    /// where it comes at once and is all that the turn commands for.
    pub(crate) fn schedule<F>(&mut self, id: TurnId, shared: &Arc<Shared>, run: impl FnOnce(Arc<News>) -> F) -> Option<Command>
    where
        F: Future<Output = End> + Send + 'static,
    {
        let news = Arc::<News>::default();
        // Boxed, because a task is moved several times on its way into the runtime and once more when it ends.
        let mut turn = Box::pin(run(news.clone()));
        // Many turns have nothing to wait for: they are over at once, and need no task.
        let end = tokio::task::unconstrained(turn.as_mut()).now_or_never();
        let (command, room) = match end {
            Some(End { command, is_first: true }) => (Some(command), None),
            Some(End { command, .. }) => (None, hand_in(shared, Mail::Command { command, reply: None })),
            None => (None, Some(hand_in_end(turn, shared.clone()))),
        };
        let task = room.map(|room| {
            let presence = TaskGuard::new(&self.tasks);
            tokio::spawn(async move {
                // Goes last: nothing is left of a turn that is not counted any more.
                let _presence = presence;
                room.await;
            })
        });
        self.slots.insert(id, Slot { task, news, waiting: false });
        command
    }

    /// Tells a scheduled turn what came of one of its waits.
    pub(crate) fn tell(&mut self, id: TurnId, news: &Arc<Recorded>) {
        if let Some(schedule) = self.slots.get(&id) {
            schedule.news.tell(news.clone());
        }
    }

    /// Stops everything, and comes back when nothing of it runs any more.
    pub(crate) async fn clear(&mut self) {
        self.stop();
        self.queue.clear();
        self.lingering.clear();
        self.waiting = 0;
        while self.tasks.present.load(Ordering::Acquire) > 0 {
            self.tasks.left.notified().await;
        }
    }

    fn stop(&mut self) {
        self.slots.drain().for_each(|(_, schedule)| schedule.abort());
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.stop();
    }
}
