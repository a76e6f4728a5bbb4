//! The calls that a server has to do just now: on whose behalf it may ask, and whether it shows signs of life.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polis_ports::{CallContext, Host};
use rmcp::model::ProgressToken;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// One call.
pub(super) struct UnderWay {
    pub(super) context: CallContext,
    token: Mutex<Option<ProgressToken>>,
    /// It has shown a sign of life.
    pub(super) sign: Notify,
    /// Questions of the server that wait for an answer.
    asking: AtomicUsize,
    over: CancellationToken,
}

/// All calls of a server.
#[derive(Default)]
pub(super) struct Calls(Mutex<Vec<Arc<UnderWay>>>);

/// A call that is over when this is dropped.
pub(super) struct Begun<'a> {
    calls: &'a Calls,
    pub(super) call: Arc<UnderWay>,
}

impl Calls {
    pub(super) fn begin(&self, context: &CallContext) -> Begun<'_> {
        let call = Arc::new(UnderWay {
            context: context.clone(),
            token: Mutex::default(),
            sign: Notify::new(),
            asking: AtomicUsize::new(0),
            over: CancellationToken::new(),
        });
        self.all().push(call.clone());
        Begun { calls: self, call }
    }

    /// The call for which a server asks that does not say which. Nobody is ever asked on another's account: where calls of
    /// several agents or tasks run, none is taken.
    pub(super) fn caller(&self) -> Result<Arc<UnderWay>, String> {
        let all = self.all();
        let Some(last) = all.last() else { return Err("no call is running; ask while one is".to_owned()) };
        let is_one =
            |call: &Arc<UnderWay>| (&call.context.agent, &call.context.task) == (&last.context.agent, &last.context.task);
        if all.iter().all(is_one) {
            return Ok(last.clone());
        }
        Err("calls of several agents are running, so it is unknown for which of them this is asked".to_owned())
    }

    /// Progress of a call is a sign of life.
    pub(super) fn progress(&self, token: &ProgressToken) {
        let all = self.all();
        let is_it = |call: &&Arc<UnderWay>| call.token.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == Some(token);
        if let Some(call) = all.iter().find(is_it) {
            call.sign.notify_one();
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<UnderWay>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnderWay {
    /// The name by which the server tells its progress.
    pub(super) fn known_as(&self, token: ProgressToken) {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token);
    }

    /// Whether the server waits for us.
    pub(super) fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Acquire) > 0
    }

    /// Asks whoever makes the call. The server's own time stands still meanwhile. None when there is nobody, or the call is over.
    pub(super) async fn ask<T, F: Future<Output = T>>(&self, asks: impl FnOnce(Arc<dyn Host>) -> F) -> Option<T> {
        let host = self.context.host.clone()?;
        self.asking.fetch_add(1, Ordering::AcqRel);
        let _asking = Asking(self);
        tokio::select! {
            biased;
            () = self.over.cancelled() => None,
            answer = asks(host) => Some(answer),
        }
    }
}

/// Counts while a question is open.
struct Asking<'a>(&'a UnderWay);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::AcqRel);
        self.0.sign.notify_one();
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.call.over.cancel();
        self.calls.all().retain(|call| !Arc::ptr_eq(call, &self.call));
    }
}
