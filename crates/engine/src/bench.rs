//! The turns that are in memory: running, waiting a while, or queued for a seat.

use std::collections::VecDeque;
use std::sync::Arc;

use polis_domain::{Recorded, TurnId};
use rustc_hash::FxHashMap;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// News that a seated turn may be behind with before it is simply run again.
const NEWS: usize = 128;

/// Owns the tasks of all turns in memory.
pub(crate) struct Bench {
    tasks: JoinSet<()>,
    seats: FxHashMap<TurnId, Seat>,
    /// Turns that are owed but have no seat yet, with their first event when it is at hand.
    queue: VecDeque<(TurnId, Option<Arc<Recorded>>)>,
    /// Waiting turns that are still in memory, oldest first; some may have left or gone on since.
    lingering: VecDeque<TurnId>,
    waiting: usize,
    max_running: usize,
    max_lingering: usize,
}

struct Seat {
    task: AbortHandle,
    news: mpsc::Sender<Arc<Recorded>>,
    waiting: bool,
}

impl Bench {
    pub(crate) fn new(max_running: usize, max_lingering: usize) -> Self {
        Self {
            tasks: JoinSet::new(),
            seats: FxHashMap::default(),
            queue: VecDeque::new(),
            lingering: VecDeque::new(),
            waiting: 0,
            max_running,
            max_lingering,
        }
    }

    pub(crate) fn running(&self) -> usize {
        self.seats.len() - self.waiting
    }

    /// Makes sure that an owed turn runs, now or when there is a seat.
    pub(crate) fn want(&mut self, id: TurnId, first: Option<Arc<Recorded>>) {
        match self.seats.get_mut(&id) {
            Some(seat) if seat.waiting => {
                seat.waiting = false;
                self.waiting -= 1;
            }
            Some(_) => {}
            None => self.queue.push_back((id, first)),
        }
    }

    /// Lets a turn that only waits stay in memory for a while, at the cost of the one that has waited longest.
    pub(crate) fn rest(&mut self, id: TurnId) {
        let Some(seat) = self.seats.get_mut(&id).filter(|seat| !seat.waiting) else { return };
        seat.waiting = true;
        self.waiting += 1;
        self.lingering.push_back(id);
        while self.waiting > self.max_lingering {
            let Some(oldest) = self.lingering.pop_front() else { break };
            if self.seats.get(&oldest).is_some_and(|seat| seat.waiting) {
                self.leave(oldest);
            }
        }
        if self.lingering.len() > 2 * self.max_lingering + 16 {
            let seats = &self.seats;
            self.lingering.retain(|id| seats.get(id).is_some_and(|seat| seat.waiting));
        }
    }

    /// Stops a turn that is owed nothing.
    pub(crate) fn leave(&mut self, id: TurnId) {
        if let Some(seat) = self.seats.remove(&id) {
            self.waiting -= usize::from(seat.waiting);
            seat.task.abort();
        }
    }

    /// Takes the next turn that has no seat, if there is room for it.
    pub(crate) fn next(&mut self) -> Option<(TurnId, Option<Arc<Recorded>>)> {
        if self.running() >= self.max_running {
            return None;
        }
        self.queue.pop_front()
    }

    pub(crate) fn is_seated(&self, id: TurnId) -> bool {
        self.seats.contains_key(&id)
    }

    /// Seats a turn; `run` makes its task from the receiving end of its news.
    pub(crate) fn seat<F>(&mut self, id: TurnId, run: impl FnOnce(mpsc::Receiver<Arc<Recorded>>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (news, receiver) = mpsc::channel(NEWS);
        let task = self.tasks.spawn(run(receiver));
        self.seats.insert(id, Seat { task, news, waiting: false });
    }

    /// Tells a seated turn what came of one of its waits. One that cannot take it in is run again later.
    pub(crate) fn tell(&mut self, id: TurnId, news: &Arc<Recorded>) {
        let Some(seat) = self.seats.get(&id) else { return };
        if seat.news.try_send(news.clone()).is_err() {
            self.leave(id);
        }
    }

    /// Forgets tasks that have ended.
    pub(crate) fn sweep(&mut self) {
        while self.tasks.try_join_next().is_some() {}
    }

    /// Stops everything.
    pub(crate) async fn clear(&mut self) {
        self.seats.clear();
        self.queue.clear();
        self.lingering.clear();
        self.waiting = 0;
        self.tasks.shutdown().await;
    }
}
