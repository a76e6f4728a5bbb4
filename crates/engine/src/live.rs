//! Live frames within one process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use futures_util::stream;
use polis_domain::SocietyId;
use polis_ports::{Frame, Live, LiveStream};
use tokio::sync::broadcast;

/// Frames that a watcher may lag behind before it is told to read the log again.
const BUFFER: usize = 8_192;

/// Tells the watchers of this process. A slow one loses frames and is told so; nobody waits for it.
#[derive(Debug, Default)]
pub struct LocalLive {
    societies: Mutex<HashMap<SocietyId, broadcast::Sender<Frame>>>,
}

impl LocalLive {
    fn with<T>(&self, then: impl FnOnce(&mut HashMap<SocietyId, broadcast::Sender<Frame>>) -> T) -> T {
        then(&mut self.societies.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Live for LocalLive {
    fn publish(&self, society: &SocietyId, frame: Frame) {
        self.with(|societies| {
            // An error means that nobody watches any more; the next watcher makes a new channel.
            if let Some(sender) = societies.get(society)
                && sender.send(frame).is_err()
            {
                societies.remove(society);
            }
        });
    }

    fn is_watched(&self, society: &SocietyId) -> bool {
        self.with(|societies| societies.contains_key(society))
    }

    fn watch(&self, society: &SocietyId) -> LiveStream {
        let receiver = self.with(|societies| {
            let sender = societies.entry(society.clone()).or_insert_with(|| broadcast::Sender::new(BUFFER));
            sender.subscribe()
        });
        Box::pin(stream::unfold(receiver, |mut receiver| async move {
            match receiver.recv().await {
                Ok(frame) => Some((frame, receiver)),
                Err(broadcast::error::RecvError::Lagged(_)) => Some((Frame::Missed, receiver)),
                Err(broadcast::error::RecvError::Closed) => None,
            }
        }))
    }
}
