//! Which requests are under way, so that a client can call one off.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// A session and the id of a request in it.
type Key = (String, String);

type Listed = Arc<Mutex<HashMap<Key, CancellationToken>>>;

/// The requests under way of all clients.
#[derive(Default)]
pub(crate) struct Flights(Listed);

/// A request under way. It is forgotten with this.
#[derive(Default)]
pub(super) struct Flight {
    cancelled: CancellationToken,
    listed: Option<(Key, Listed)>,
}

impl Flights {
    /// Begins one. Without the name of a session nobody can call it off.
    pub(super) fn begin(&self, session: Option<String>, id: &Value) -> Flight {
        let Some(session) = session else { return Flight::default() };
        let key = (session, id.to_string());
        let cancelled = CancellationToken::new();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), cancelled.clone());
        Flight { cancelled, listed: Some((key, self.0.clone())) }
    }

    /// Calls one off, if it is still under way.
    pub(super) fn cancel(&self, session: Option<&str>, id: &Value) {
        let Some(session) = session else { return };
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&(session.to_owned(), id.to_string()));
        if let Some(cancelled) = found {
            cancelled.cancel();
        }
    }
}

impl Flight {
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Waits until it is cancelled.
    pub(super) async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some((key, all)) = &self.listed {
            all.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        }
    }
}

/// A name for a session that nobody can guess. It opens nothing; it only tells requests apart.
pub(super) fn fresh_name() -> String {
    let half = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", half(), half())
}
