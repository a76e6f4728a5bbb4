//! Which node of several that share a log owns a society: claim, release, where it is, and the nodes with what they share.
//!
//! Renewal of leases is the implementation's; what is lost is reported by [`Placement::lost`]. A process that has its log to itself
//! has no placement.

use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{SocietyId, Timestamp};

use crate::LogError;

/// A process that shares a log with others and serves their requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name, another one at every start.
    pub name: String,
    /// Where the other nodes reach it: a host and a port.
    pub address: String,
    /// The SHA-256 of its public key.
    pub key: Vec<u8>,
    /// When it joined.
    pub since: Timestamp,
    /// How long its lease lasts still, if it is not renewed. Zero: it has ended.
    pub lease: Duration,
    /// Whether it gives its societies away and takes none.
    pub is_draining: bool,
    /// How many societies it owns.
    pub societies: u64,
    /// A digest of what all nodes should have the same, such as roles.
    pub setup: String,
}

impl Node {
    /// Whether its lease has not ended.
    pub fn is_alive(&self) -> bool {
        self.lease > Duration::ZERO
    }
}

/// What this node has taken from a rate limit that all nodes share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Whose limit it is.
    pub name: String,
    /// Requests that were taken since the last time.
    pub requests: u32,
    /// Requests in a second that are added.
    pub per_second: u32,
    /// Most requests that are left.
    pub burst: u32,
}

/// A society whose state has texts that another society has erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outdated {
    /// The society.
    pub society: SocietyId,
    /// How often others have erased texts that it shares.
    pub erasures: u64,
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// The society is this node's, until it is released or [lost](Placement::lost).
    Here,
    /// The node with this name has a lease that has not ended.
    By(String),
}

/// Which node owns a society.
#[async_trait]
pub trait Placement: Send + Sync {
    /// The name of this node.
    fn this(&self) -> &str;

    /// How often what others do should be looked at.
    fn period(&self) -> Duration;

    /// Claims a society for this node, under a new epoch, and renews the lease.
    async fn claim(&self, society: &SocietyId) -> Result<Claimed, LogError>;

    /// Whether this node has a lease on the society that has not ended. Asks nobody.
    fn holds(&self, society: &SocietyId) -> bool;

    /// Gives a society back. It must have stopped. If it has work to continue, it is [`unowned`](Self::unowned) from then on.
    async fn release(&self, society: &SocietyId, has_work: bool) -> Result<(), LogError>;

    /// The name of the node that has a lease on the society.
    async fn owner(&self, society: &SocietyId) -> Result<Option<String>, LogError>;

    /// The societies that some node should continue: those whose owner is gone, and those given back with work. At most so many.
    async fn unowned(&self, most: usize) -> Result<Vec<SocietyId>, LogError>;

    /// The nodes, by name; those whose lease has ended too, for a while.
    async fn nodes(&self) -> Result<Vec<Node>, LogError>;

    /// Has a node give its societies away, or take some again. Gives whether there is such a node.
    async fn set_draining(&self, node: &str, draining: bool) -> Result<bool, LogError>;

    /// Takes requests from limits that the nodes share. Gives the names with what is left for all, which is negative if they have taken too
    /// many.
    async fn take(&self, taken: &[Taken]) -> Result<Vec<(String, f64)>, LogError>;

    /// The societies of this node whose states have texts that another society has erased. They are to be released and claimed again.
    /// A process that is none of several nodes has their states made anew instead, and [follows](Self::follow).
    async fn outdated(&self) -> Result<Vec<Outdated>, LogError>;

    /// The state of a society of this process was made anew since this was found.
    fn follow(&self, outdated: &Outdated);

    /// Waits for a society whose lease was lost; gives the reason too. It must be stopped here.
    async fn lost(&self) -> (SocietyId, String);
}
