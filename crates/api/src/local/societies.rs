//! The societies of the store, and making others of this one.

use async_trait::async_trait;
use polis_domain::{Seq, SocietyId};
use polis_engine::{Forked, Society};
use polis_ports::{Node, SocietyListing, StoredSociety};

use super::Local;
use crate::paging::MOST;
use crate::{ApiError, BeginSociety, BegunSociety, Fork, ListedSociety, MadeSociety, Paging, Rewind, Scope, SocietyList};

/// The societies of a store around the one that is called: which of them work, and making others.
#[async_trait]
pub trait Registry: Send + Sync {
    /// The default society.
    fn default_society(&self) -> &SocietyId;

    /// Whether a society works in this process.
    fn is_running(&self, society: &SocietyId) -> bool;

    /// Creates and starts a society, unless it exists. Gives whether it was not.
    async fn begin(&self, society: &SocietyId) -> Result<bool, ApiError>;

    /// Begins a society with the past of another, which may go on working meanwhile. Gives its name too.
    async fn fork(&self, from: &Society, at: Option<Seq>, name: Option<String>) -> Result<(SocietyId, Forked), ApiError>;

    /// Rewinds a society to an event. Returns the name of the society with the previous history.
    async fn rewind(&self, society: &Society, to: Seq) -> Result<(SocietyId, Forked), ApiError>;

    /// The nodes that share the log.
    async fn nodes(&self) -> Result<Vec<Node>, ApiError> {
        Err(no_nodes())
    }

    /// Has a node give its societies away, or take some again. Gives whether there is such a node.
    async fn set_draining(&self, _: &str, _: bool) -> Result<bool, ApiError> {
        Err(no_nodes())
    }

    /// Has the other societies that are open make their states anew, because events that they may share were redacted.
    async fn forget_redacted(&self, but: &SocietyId) -> Result<(), ApiError>;
}

impl Local {
    /// The societies of the store, by name.
    pub async fn societies(&self, paging: &Paging) -> Result<SocietyList, ApiError> {
        self.caller.needs(Scope::Read)?;
        let (log, registry) = (self.society.log(), self.registry.as_deref());
        let own = self.society.id();
        // One more, to know whether there is a next page.
        let listing = SocietyListing { after: paging.after.as_deref().map(SocietyId::from), limit: paging.most(MOST) + 1 };
        let row = |StoredSociety { name, head: events, origin }| {
            let (forked_from, forked_at) = origin.map(|origin| (origin.from, origin.at)).unzip();
            let works = registry.map_or(name == *own, |registry| registry.is_running(&name));
            let first = name == *registry.map_or(own, |registry| registry.default_society());
            ListedSociety { first, name, events, works, forked_from, forked_at }
        };
        let rows = log.list_societies(&listing).await?.into_iter().map(row);
        let (societies, next) = paging.cut(rows, |society| society.name.to_string());
        Ok(SocietyList { societies, next })
    }

    /// Begins a society and has it work, unless it is there.
    pub async fn begin_society(&self, request: BeginSociety) -> Result<BegunSociety, ApiError> {
        self.caller.needs(Scope::Admin)?;
        let society = SocietyId::from(request.name);
        let begun = self.registry()?.begin(&society).await?;
        Ok(BegunSociety { society, begun })
    }

    /// Begins a society with the past of this one.
    pub async fn fork(&self, request: Fork) -> Result<MadeSociety, ApiError> {
        self.caller.needs(Scope::Admin)?;
        self.caller.needs(Scope::Everyone)?;
        let (society, made) = self.registry()?.fork(&self.society.unlimited(), request.at.map(Seq), request.name).await?;
        let Forked { at, open_turns, in_doubt } = made;
        Ok(MadeSociety { society, from: self.society.id().clone(), at, kept: None, open_turns, in_doubt })
    }

    /// Has the society go on from an event, and keeps what it was under another name.
    pub async fn rewind(&self, request: Rewind) -> Result<MadeSociety, ApiError> {
        self.caller.needs(Scope::Admin)?;
        self.caller.needs(Scope::Everyone)?;
        let (kept, made) = self.registry()?.rewind(&self.society.unlimited(), Seq(request.to)).await?;
        let Forked { at, open_turns, in_doubt } = made;
        let society = self.society.id().clone();
        Ok(MadeSociety { society, from: kept.clone(), at, kept: Some(kept), open_turns, in_doubt })
    }

    fn registry(&self) -> Result<&dyn Registry, ApiError> {
        self.registry.as_deref().ok_or_else(one_society)
    }
}

/// The error of an operation on nodes where this is the only process.
pub fn no_nodes() -> ApiError {
    ApiError::new(409, "no_nodes", "this server is none of several nodes; start it with --store and --node-listen")
}

/// The error of an operation that needs more societies than there are.
pub fn one_society() -> ApiError {
    ApiError::new(409, "one_society", "this server has one society and creates no others")
}
