//! The events that a turn in memory waits for and has not read yet.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polis_domain::Recorded;
use tokio::sync::Notify;

/// The queue of answers for one turn: the actor delivers, the turn reads. A turn has few waits open and each ends once, so the
/// queue needs no bound.
#[derive(Default)]
pub(crate) struct UnreadEvents {
    state: Mutex<State>,
    delivered: Notify,
}

#[derive(Default)]
struct State {
    events: VecDeque<Arc<Recorded>>,
    /// Whether the turn has looked for an event, found none that it wants, and none has arrived since.
    idle: bool,
    /// Notified whenever the turn becomes idle.
    on_idle: Option<Arc<Notify>>,
}

impl UnreadEvents {
    /// An empty queue that notifies `on_idle` when the turn looks for an event in vain. A replay uses it to find out that a
    /// turn waits for something that the log does not have.
    pub(crate) fn watched(on_idle: Arc<Notify>) -> Self {
        let state = State { on_idle: Some(on_idle), ..State::default() };
        Self { state: Mutex::new(state), delivered: Notify::new() }
    }

    /// Waits for the next event that is wanted. The others stay in the queue.
    pub(crate) async fn next(&self, wanted: impl Fn(&Recorded) -> bool) -> Arc<Recorded> {
        loop {
            if let Some(event) = self.take(&wanted) {
                return event;
            }
            self.delivered.notified().await;
        }
    }

    /// Takes the first event that is wanted, if it has arrived.
    pub(crate) fn take(&self, wanted: impl Fn(&Recorded) -> bool) -> Option<Arc<Recorded>> {
        let mut state = self.lock();
        let place = state.events.iter().position(|event| wanted(event));
        state.idle = place.is_none();
        if let (true, Some(on_idle)) = (state.idle, &state.on_idle) {
            on_idle.notify_one();
        }
        state.events.remove(place?)
    }

    pub(crate) fn deliver(&self, event: Arc<Recorded>) {
        let mut state = self.lock();
        state.events.push_back(event);
        state.idle = false;
        drop(state);
        self.delivered.notify_one();
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.lock().idle
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
