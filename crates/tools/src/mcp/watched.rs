//! A connection whose server cannot pile up work: one that asks and never takes answers is cut off.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// Most requests of a server that wait for our answer.
const MAX_OPEN: usize = 64;

/// A transport with a limit.
pub(super) struct Watched<T> {
    inner: T,
    open: Arc<AtomicUsize>,
}

impl<T> Watched<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, open: Arc::default() }
    }
}

fn one_less(open: &AtomicUsize) {
    let _ = open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1));
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answers = matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let open = answers.then(|| self.open.clone());
        let sent = self.inner.send(item);
        async move {
            let done = sent.await;
            open.iter().for_each(|open| one_less(open));
            done
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await?;
        match &message {
            JsonRpcMessage::Request(_) if self.open.fetch_add(1, Ordering::Relaxed) >= MAX_OPEN => {
                tracing::warn!("a server asks more than it takes answers for; it is cut off");
                return None;
            }
            JsonRpcMessage::Notification(it) if matches!(it.notification, ServerNotification::CancelledNotification(_)) => {
                one_less(&self.open);
            }
            _ => {}
        }
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
