//! The turns that are in memory: running, waiting for an answer, or queued for a slot.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use polis_domain::{Command, Recorded, TurnId};
use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::shared::{ActorMessage, PendingSend, Shared};
use crate::turn::End;
use crate::unread::UnreadEvents;

/// Owns the tasks of all turns in memory.
pub(crate) struct Scheduler {
    tasks: Arc<TaskCount>,
    slots: FxHashMap<TurnId, Slot>,
    /// Turns that are owed a run but have no slot yet, each with its first event if that has just been appended.
    queue: VecDeque<(TurnId, Option<Arc<Recorded>>)>,
    /// Turns that began to wait, oldest first. Entries are not removed when a turn goes on or ends, so check its slot.
    lingering: VecDeque<TurnId>,
    /// How many slots hold a waiting turn.
    waiting: usize,
    max_running: usize,
    max_lingering: usize,
}

struct Slot {
    /// None when the turn ended in its first poll and never needed a task.
    task: Option<JoinHandle<()>>,
    unread: Arc<UnreadEvents>,
    waiting: bool,
}

impl Slot {
    fn abort(&self) {
        self.task.iter().for_each(JoinHandle::abort);
    }
}

/// Counts the tasks that have not been dropped yet. An aborted task may live on until its runtime thread gets to it.
#[derive(Default)]
struct TaskCount {
    running: AtomicUsize,
    drained: Notify,
}

/// Counts as one task while it lives.
struct TaskGuard(Arc<TaskCount>);

impl TaskGuard {
    fn new(tasks: &Arc<TaskCount>) -> Self {
        tasks.running.fetch_add(1, Ordering::Relaxed);
        Self(tasks.clone())
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.drained.notify_one();
        }
    }
}

/// Runs a turn to its end and sends its last command. If the actor has stopped, the command is lost and the turn is owed a run
/// again at the next opening.
fn finish(turn: impl Future<Output = End> + Send + 'static, shared: Arc<Shared>) -> PendingSend {
    Box::pin(async move {
        // The block drops the turn's future before the wait for space in the mailbox.
        let pending_send = {
            let End { command, .. } = turn.await;
            shared.enqueue(ActorMessage::Command { command, reply: None })
        };
        match pending_send {
            Some(pending_send) => pending_send.await,
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

    /// Makes sure that an owed turn runs: a waiting one counts as running again, one without a slot is queued.
    pub(crate) fn want(&mut self, id: TurnId, first: Option<Arc<Recorded>>) {
        match self.slots.get_mut(&id) {
            Some(slot) if slot.waiting => {
                slot.waiting = false;
                self.waiting -= 1;
            }
            Some(_) => {}
            None => self.queue.push_back((id, first)),
        }
    }

    /// Marks a turn as waiting. It stays in memory, so that its answer need not replay the journal; beyond `max_lingering` the
    /// turn that has waited longest is dropped.
    pub(crate) fn rest(&mut self, id: TurnId) {
        let Some(slot) = self.slots.get_mut(&id).filter(|slot| !slot.waiting) else { return };
        slot.waiting = true;
        self.waiting += 1;
        self.lingering.push_back(id);
        while self.waiting > self.max_lingering {
            let Some(oldest) = self.lingering.pop_front() else { break };
            if self.slots.get(&oldest).is_some_and(|slot| slot.waiting) {
                self.remove(oldest);
            }
        }
        // Turns that wait and go on again and again would let the list grow without bound.
        if self.lingering.len() > 2 * self.max_lingering + 16 {
            let slots = &self.slots;
            self.lingering.retain(|id| slots.get(id).is_some_and(|slot| slot.waiting));
        }
    }

    /// Marks a turn as waiting if it still has nothing to read. An event may have been delivered after the turn said so.
    pub(crate) fn rest_if_idle(&mut self, id: TurnId) {
        if self.slots.get(&id).is_some_and(|slot| slot.unread.is_idle()) {
            self.rest(id);
        }
    }

    /// Whether a turn waits and has read everything that was delivered to it.
    pub(crate) fn is_resting(&self, id: TurnId) -> bool {
        self.slots.get(&id).is_some_and(|slot| slot.waiting && slot.unread.is_idle())
    }

    /// Drops a turn from memory and aborts its task.
    pub(crate) fn remove(&mut self, id: TurnId) {
        if let Some(slot) = self.slots.remove(&id) {
            self.waiting -= usize::from(slot.waiting);
            slot.abort();
        }
    }

    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Takes the next queued turn, if a slot is free.
    pub(crate) fn next(&mut self) -> Option<(TurnId, Option<Arc<Recorded>>)> {
        if self.running() >= self.max_running {
            return None;
        }
        self.queue.pop_front()
    }

    pub(crate) fn is_scheduled(&self, id: TurnId) -> bool {
        self.slots.contains_key(&id)
    }

    /// Gives a turn a slot and starts it. `run` makes its future from the queue that its answers will be delivered to.
    ///
    /// The future is polled once, here on the actor, before a task is spawned for it. Many turns end in this first poll: a
    /// handler that answers without asking for anything waits for nothing, and a task for it would cost more than the handler.
    /// Three cases follow:
    ///
    /// * The turn ended and its end is its only command. The command is returned, and the caller decides it in the next pass.
    ///   It does not go through the mailbox, which saves a wake-up.
    /// * The turn ended and had sent other commands before. Its end must not overtake them, so it goes through the
    ///   mailbox behind them.
    /// * The turn waits. It becomes a task that sends the end when it comes.
    ///
    /// The poll is `unconstrained` because tokio's cooperative budget belongs to the actor's task: a turn that used it up
    /// would be made to yield and would look as if it waited. The price of polling here is that handler code which computes for
    /// long before its first await blocks the whole society; such code belongs in `spawn_blocking`.
    pub(crate) fn schedule<F>(
        &mut self,
        id: TurnId,
        shared: &Arc<Shared>,
        run: impl FnOnce(Arc<UnreadEvents>) -> F,
    ) -> Option<Command>
    where
        F: Future<Output = End> + Send + 'static,
    {
        let unread = Arc::<UnreadEvents>::default();
        // Boxed, because a task is moved several times on its way into the runtime and once more when it ends.
        let mut turn = Box::pin(run(unread.clone()));
        let end = tokio::task::unconstrained(turn.as_mut()).now_or_never();
        let (command, pending) = match end {
            Some(End { command, is_first: true }) => (Some(command), None),
            Some(End { command, .. }) => (None, shared.enqueue(ActorMessage::Command { command, reply: None })),
            None => (None, Some(finish(turn, shared.clone()))),
        };
        let task = pending.map(|pending| {
            let guard = TaskGuard::new(&self.tasks);
            tokio::spawn(async move {
                // Declared first, so dropped last: when the count is 0, nothing of any turn is left.
                let _guard = guard;
                pending.await;
            })
        });
        self.slots.insert(id, Slot { task, unread, waiting: false });
        command
    }

    /// Delivers the answer to one of a turn's waits, if the turn is in memory. One that is not reads it from the log later.
    pub(crate) fn deliver(&mut self, id: TurnId, event: &Arc<Recorded>) {
        if let Some(slot) = self.slots.get(&id) {
            slot.unread.deliver(event.clone());
        }
    }

    /// Stops all turns and waits until their tasks are dropped, so that none of them acts after the caller goes on.
    pub(crate) async fn clear(&mut self) {
        self.stop();
        self.queue.clear();
        self.lingering.clear();
        self.waiting = 0;
        while self.tasks.running.load(Ordering::Acquire) > 0 {
            self.tasks.drained.notified().await;
        }
    }

    fn stop(&mut self) {
        self.slots.drain().for_each(|(_, slot)| slot.abort());
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.stop();
    }
}
