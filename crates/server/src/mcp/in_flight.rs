//! The requests in progress, so that a client can cancel one.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// A session and the id of a request in it.
type Key = (String, String);

type Tokens = Arc<Mutex<HashMap<Key, CancellationToken>>>;

/// The requests in progress of all clients.
#[derive(Default)]
pub(crate) struct InFlightRequests(Tokens);

/// A request in progress. Dropping it removes it from the list.
#[derive(Default)]
pub(super) struct InFlightRequest {
    cancelled: CancellationToken,
    listed: Option<(Key, Tokens)>,
}

impl InFlightRequests {
    /// Begins one. Without the name of a session nobody can call it off.
    pub(super) fn begin(&self, session: Option<String>, id: &Value) -> InFlightRequest {
        let Some(session) = session else { return InFlightRequest::default() };
        let key = (session, id.to_string());
        let cancelled = CancellationToken::new();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), cancelled.clone());
        InFlightRequest { cancelled, listed: Some((key, self.0.clone())) }
    }

    /// Cancels a request, if it is still in progress.
    pub(super) fn cancel(&self, session: Option<&str>, id: &Value) {
        let Some(session) = session else { return };
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&(session.to_owned(), id.to_string()));
        if let Some(cancelled) = found {
            cancelled.cancel();
        }
    }
}

impl InFlightRequest {
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Waits until it is cancelled.
    pub(super) async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        if let Some((key, all)) = &self.listed {
            all.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        }
    }
}

/// A session id that nobody can guess. It grants nothing; it only tells requests apart.
pub(super) fn fresh_name() -> String {
    let half = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", half(), half())
}
