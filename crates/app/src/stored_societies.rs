//! The societies of a store that nobody serves: forks and rewinds are made in the log itself.

use async_trait::async_trait;
use polis_api::ApiError;
use polis_api::local::{Registry, one_society};
use polis_domain::{Seq, SocietyId};
use polis_engine::{Branch, Forked, Society, SystemClock, fork, free_name};

use crate::wiring;

/// The societies of a store that this process has to itself. None of them works here.
pub(crate) struct StoredSocieties {
    /// The one that was named, or the usual one.
    pub(crate) first: SocietyId,
}

#[async_trait]
impl Registry for StoredSocieties {
    fn default_society(&self) -> &SocietyId {
        &self.first
    }

    fn is_running(&self, _: &SocietyId) -> bool {
        false
    }

    async fn begin(&self, _: &SocietyId) -> Result<bool, ApiError> {
        Err(one_society())
    }

    async fn fork(&self, from: &Society, at: Option<Seq>, name: Option<String>) -> Result<(SocietyId, Forked), ApiError> {
        let to = match name {
            Some(name) => SocietyId::from(name),
            None => free_name(&**from.log(), from.id()).await?,
        };
        let branch = Branch { from: from.id().clone(), at, to: to.clone(), aside: None, request: None };
        Ok((to, make(from, &branch).await?))
    }

    async fn rewind(&self, society: &Society, to: Seq) -> Result<(SocietyId, Forked), ApiError> {
        let (id, kept) = (society.id().clone(), free_name(&**society.log(), society.id()).await?);
        let branch = Branch { from: id.clone(), at: Some(to), to: id, aside: Some(kept.clone()), request: None };
        Ok((kept, make(society, &branch).await?))
    }

    /// The others are not open, and their snapshots are gone with those texts.
    async fn forget_redacted(&self, _: &SocietyId) -> Result<(), ApiError> {
        Ok(())
    }
}

async fn make(society: &Society, branch: &Branch) -> Result<Forked, ApiError> {
    let entropy = wiring::entropy().map_err(|error| ApiError::new(500, error.code, error.message))?;
    Ok(fork(&**society.log(), &SystemClock, branch, entropy).await?)
}
