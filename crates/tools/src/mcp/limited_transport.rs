//! A transport that limits the open requests of a server: one that sends requests and never reads answers is disconnected.
//! It also drops late answers to the discovery request once the older handshake has begun.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, JsonRpcMessage, RequestId, ServerNotification, ServerResult};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// Most requests of a server that wait for our answer.
const MAX_OPEN: usize = 64;

/// A transport with a limit on open requests.
pub(super) struct LimitedTransport<T> {
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
    Initializing(Vec<RequestId>),
}

impl Handshake {
    fn sends(&mut self, message: &TxJsonRpcMessage<RoleClient>) {
        let (Self::Probing(probes), JsonRpcMessage::Request(request)) = (&mut *self, message) else { return };
        match &request.request {
            ClientRequest::DiscoverRequest(_) => probes.push(request.id.clone()),
            ClientRequest::InitializeRequest(_) => *self = Self::Initializing(std::mem::take(probes)),
            _ => {}
        }
    }

    /// Whether a message answers a question that was given up.
    fn is_stale(&self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        let id = match message {
            JsonRpcMessage::Response(answer) => Some(&answer.id),
            JsonRpcMessage::Error(answer) => answer.id.as_ref(),
            _ => None,
        };
        matches!((self, id), (Self::Initializing(probes), Some(id)) if probes.contains(id))
    }
}

impl<T> LimitedTransport<T> {
    /// Wraps a transport; sets `is_late` when its server speaks the newest protocol and was too slow to say so.
    pub(super) fn new(inner: T, is_late: Arc<AtomicBool>) -> Self {
        Self { inner, open: Arc::default(), handshake: Handshake::Probing(Vec::new()), is_late }
    }
}

fn decrement(open: &AtomicUsize) {
    let _ = open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1));
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for LimitedTransport<T> {
    type Error = T::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.handshake.sends(&item);
        let answers = matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let open = answers.then(|| self.open.clone());
        let sent = self.inner.send(item);
        async move {
            let done = sent.await;
            open.iter().for_each(|open| decrement(open));
            done
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = loop {
            let message = self.inner.receive().await?;
            if !self.handshake.is_stale(&message) {
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
                decrement(&self.open);
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

    /// A server that sends these messages and nothing else.
    struct ScriptedServer(VecDeque<Value>);

    impl Transport<RoleClient> for ScriptedServer {
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
        let discovered = json!({
            "supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "s", "version": "1" } },
        });
        let good = |id: u32| json!({ "jsonrpc": "2.0", "id": id, "result": discovered });
        let bad = |id: u32| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "what?" } });
        let me = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "p", "version": "1" } });
        for (late, speaks_newest) in [(good(0), true), (bad(0), false)] {
            let is_late = Arc::<AtomicBool>::default();
            let mut server = LimitedTransport::new(ScriptedServer([late.clone(), good(1)].into()), is_late.clone());
            server.send(asks(0, "server/discover", json!({}))).await.unwrap();
            server.send(asks(1, "initialize", me.clone())).await.unwrap();
            let first = server.receive().await.unwrap();
            assert!(matches!(&first, JsonRpcMessage::Response(answer) if answer.id == RequestId::Number(1)), "{first:?}");
            assert_eq!(is_late.load(Ordering::Acquire), speaks_newest);
            // Before that, the answer is what everybody waits for; and later questions of this kind are like any other.
            let mut server = LimitedTransport::new(ScriptedServer([late].into()), Arc::default());
            server.send(asks(0, "server/discover", json!({}))).await.unwrap();
            assert!(server.receive().await.is_some());
            server.send(asks(1, "initialize", me.clone())).await.unwrap();
            server.send(asks(2, "server/discover", json!({}))).await.unwrap();
            server.inner.0.push_back(good(2));
            assert!(server.receive().await.is_some());
        }
    }
}
