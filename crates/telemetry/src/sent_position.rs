//! The position in the log up to which a society's spans were sent: one small document each. Losing it costs spans, nothing else.

use polis_domain::{Seq, SocietyId};
use polis_ports::{DocumentError, Documents};
use serde::{Deserialize, Serialize};

/// A position in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SentPosition {
    /// The seed of the society then. After a fork or a rewind it is another one, and the place means nothing.
    pub(crate) seed: u64,
    /// Whatever was under way at `sent` began after this.
    pub(crate) from: Seq,
    /// Whatever ended up to here was sent.
    pub(crate) sent: Seq,
}

impl SentPosition {
    /// The place of before, if there is one.
    pub(crate) async fn read(documents: &dyn Documents, society: &SocietyId) -> Option<Self> {
        serde_json::from_slice(&documents.read(&name(society)).await.ok()??).ok()
    }

    /// Replaces the place of before.
    pub(crate) async fn write(&self, documents: &dyn Documents, society: &SocietyId) -> Result<(), DocumentError> {
        let name = name(society);
        let text = serde_json::to_vec(self).map_err(|error| DocumentError::Failed(error.to_string()))?;
        let before = documents.read(&name).await?;
        documents.replace(&name, before.as_deref(), Some(&text)).await
    }
}

/// A society's name is a file's name too; the ending keeps `a.json` apart from `a`.
fn name(society: &SocietyId) -> String {
    format!("telemetry/{society}.json")
}
