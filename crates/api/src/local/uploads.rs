//! The contents that persons have stored and not sent yet. The log does not name them, so nothing else says whose they are.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use polis_domain::{ArtifactId, PersonId};

/// Most uploads that are remembered; the oldest is forgotten first.
const MAX_UPLOADS: usize = 10_000;

/// The newest uploads, and whose they are. After a restart a content that was not sent has to be stored again.
#[derive(Debug, Default)]
pub struct Uploads(Mutex<Newest>);

#[derive(Debug, Default)]
struct Newest {
    order: VecDeque<(PersonId, ArtifactId)>,
    known: HashSet<(PersonId, ArtifactId)>,
}

impl Uploads {
    pub(super) fn note(&self, person: PersonId, id: ArtifactId) {
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !newest.known.insert((person.clone(), id)) {
            return;
        }
        newest.order.push_back((person, id));
        if newest.order.len() > MAX_UPLOADS
            && let Some(oldest) = newest.order.pop_front()
        {
            newest.known.remove(&oldest);
        }
    }

    pub(super) fn has(&self, person: &PersonId, id: ArtifactId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).known.contains(&(person.clone(), id))
    }
}
