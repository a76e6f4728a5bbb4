//! A connection whose server cannot pile up work: one that asks and never takes answers is cut off. And one whose server may be
//! slow: what it says to the first question is passed over once the older handshake has begun.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, JsonRpcMessage, RequestId, ServerNotification, ServerResult};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// Most requests of a server that wait for our answer.
const MAX_OPEN: usize = 64;

/// A transport with a limit.
pub(super) struct Watched<T> {
    inner: T,
    open: Arc<AtomicUsize>,
    handshake: Handshake,
    /// The server turned out to speak the newest protocol when that was given up already.
    is_late: Arc<AtomicBool>,
}

/// How far the connection has come. The library asks for the newest protocol, gives that up after ten seconds and begins the
/// handshake of the older ones; a server that needs longer to start answers both, and the library takes the first answer ill.
#[derive(Debug, PartialEq, Eq)]
enum Handshake {
    /// These questions for the newest protocol were asked.
    Probing(Vec<RequestId>),
    /// The older handshake was begun; nobody waits for the answers to these any more.
    Begun(Vec<RequestId>),
}

impl Handshake {
    fn sends(&mut self, message: &TxJsonRpcMessage<RoleClient>) {
        let (Self::Probing(probes), JsonRpcMessage::Request(asked)) = (&mut *self, message) else { return };
        match &asked.request {
            ClientRequest::DiscoverRequest(_) => probes.push(asked.id.clone()),
            ClientRequest::InitializeRequest(_) => *self = Self::Begun(std::mem::take(probes)),
            _ => {}
        }
    }

    /// Whether a message answers a question that was given up.
    fn is_over(&self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        let id = match message {
            JsonRpcMessage::Response(answer) => Some(&answer.id),
            JsonRpcMessage::Error(answer) => answer.id.as_ref(),
            _ => None,
        };
        matches!((self, id), (Self::Begun(probes), Some(id)) if probes.contains(id))
    }
}

impl<T> Watched<T> {
    /// Watches a connection, and notes in `is_late` that its server speaks the newest protocol and was too slow to say so.
    pub(super) fn new(inner: T, is_late: Arc<AtomicBool>) -> Self {
        Self { inner, open: Arc::default(), handshake: Handshake::Probing(Vec::new()), is_late }
    }
}

fn one_less(open: &AtomicUsize) {
    let _ = open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1));
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.handshake.sends(&item);
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
        let message = loop {
            let message = self.inner.receive().await?;
            if !self.handshake.is_over(&message) {
                break message;
            }
            if matches!(&message, JsonRpcMessage::Response(answer) if matches!(answer.result, ServerResult::DiscoverResult(_)))
            {
                self.is_late.store(true, Ordering::Release);
            }
        };
        match &message {
            JsonRpcMessage::Request(_) if self.open.fetch_add(1, Ordering::Relaxed) >= MAX_OPEN => {
                tracing::warn!("a server sends questions faster than it reads answers; it is disconnected");
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;

    use serde_json::{Value, json};

    use super::*;

    /// A server that has said all that it will say.
    struct Said(VecDeque<Value>);

    impl Transport<RoleClient> for Said {
        type Error = Infallible;

        fn send(&mut self, _: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
            std::future::ready(Ok(()))
        }

        async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
            self.0.pop_front().map(|message| serde_json::from_value(message).unwrap())
        }

        async fn close(&mut self) -> Result<(), Infallible> {
            Ok(())
        }
    }

    fn asks(id: u32, method: &str, params: Value) -> TxJsonRpcMessage<RoleClient> {
        serde_json::from_value(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).unwrap()
    }

    #[tokio::test]
    async fn a_server_that_is_slow_to_start_may_answer_what_nobody_waits_for_any_more() {
        let told = json!({
            "supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "s", "version": "1" } },
        });
        let good = |id: u32| json!({ "jsonrpc": "2.0", "id": id, "result": told });
        let bad = |id: u32| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "what?" } });
        let me = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "p", "version": "1" } });
        for (late, speaks_newest) in [(good(0), true), (bad(0), false)] {
            let is_late = Arc::<AtomicBool>::default();
            let mut server = Watched::new(Said([late.clone(), good(1)].into()), is_late.clone());
            server.send(asks(0, "server/discover", json!({}))).await.unwrap();
            server.send(asks(1, "initialize", me.clone())).await.unwrap();
            let first = server.receive().await.unwrap();
            assert!(matches!(&first, JsonRpcMessage::Response(answer) if answer.id == RequestId::Number(1)), "{first:?}");
            assert_eq!(is_late.load(Ordering::Acquire), speaks_newest);
            // Before that, the answer is what everybody waits for; and later questions of this kind are like any other.
            let mut server = Watched::new(Said([late].into()), Arc::default());
            server.send(asks(0, "server/discover", json!({}))).await.unwrap();
            assert!(server.receive().await.is_some());
            server.send(asks(1, "initialize", me.clone())).await.unwrap();
            server.send(asks(2, "server/discover", json!({}))).await.unwrap();
            server.inner.0.push_back(good(2));
            assert!(server.receive().await.is_some());
        }
    }
}
