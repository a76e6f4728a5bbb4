//! The calls that a server is running: on whose behalf it may send requests, and whether it makes progress.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polis_ports::{CallContext, Host};
use rmcp::model::ProgressToken;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// One call.
pub(super) struct ActiveCall {
    pub(super) context: CallContext,
    token: Mutex<Option<ProgressToken>>,
    /// The server has reported progress.
    pub(super) alive: Notify,
    /// Questions of the server that wait for an answer.
    asking: AtomicUsize,
    cancelled: CancellationToken,
}

/// All calls of a server.
#[derive(Default)]
pub(super) struct ActiveCalls(Mutex<Vec<Arc<ActiveCall>>>);

/// Ends the call when it is dropped.
pub(super) struct CallGuard<'a> {
    calls: &'a ActiveCalls,
    pub(super) call: Arc<ActiveCall>,
}

impl ActiveCalls {
    pub(super) fn begin(&self, context: &CallContext) -> CallGuard<'_> {
        let call = Arc::new(ActiveCall {
            context: context.clone(),
            token: Mutex::default(),
            alive: Notify::new(),
            asking: AtomicUsize::new(0),
            cancelled: CancellationToken::new(),
        });
        self.all().push(call.clone());
        CallGuard { calls: self, call }
    }

    /// The call for which a server asks that does not say which. Nobody is ever asked on another's account: where calls of
    /// several agents or tasks run, none is taken.
    pub(super) fn caller(&self) -> Result<Arc<ActiveCall>, String> {
        let all = self.all();
        let Some(last) = all.last() else { return Err("no call is running; ask while one is".to_owned()) };
        let is_one =
            |call: &Arc<ActiveCall>| (&call.context.agent, &call.context.task) == (&last.context.agent, &last.context.task);
        if all.iter().all(is_one) {
            return Ok(last.clone());
        }
        Err("calls of several agents are running, so it is unknown for which of them this is asked".to_owned())
    }

    /// Notes that a call has made progress.
    pub(super) fn progress(&self, token: &ProgressToken) {
        let all = self.all();
        let is_it = |call: &&Arc<ActiveCall>| call.token.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == Some(token);
        if let Some(call) = all.iter().find(is_it) {
            call.alive.notify_one();
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<ActiveCall>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ActiveCall {
    /// Sets the token by which the server reports progress.
    pub(super) fn set_progress_token(&self, token: ProgressToken) {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token);
    }

    /// Whether the server waits for us.
    pub(super) fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Acquire) > 0
    }

    /// Asks the caller's host. The server's timeout is paused meanwhile. None without a host, or when the call has ended.
    pub(super) async fn ask<T, F: Future<Output = T>>(&self, asks: impl FnOnce(Arc<dyn Host>) -> F) -> Option<T> {
        let host = self.context.host.clone()?;
        self.asking.fetch_add(1, Ordering::AcqRel);
        let _asking = AskingGuard(self);
        tokio::select! {
            biased;
            () = self.cancelled.cancelled() => None,
            answer = asks(host) => Some(answer),
        }
    }
}

/// Counts while a question is open.
struct AskingGuard<'a>(&'a ActiveCall);

impl Drop for AskingGuard<'_> {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::AcqRel);
        self.0.alive.notify_one();
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        self.call.cancelled.cancel();
        self.calls.all().retain(|call| !Arc::ptr_eq(call, &self.call));
    }
}
