//! Several nodes that share a log: any of them takes a request and passes it on to the one that owns the society.
//!
//! | file | what |
//! |---|---|
//! | `dispatch.rs` | which node a request is for; waiting while a society changes hands |
//! | `place.rs` | claiming societies, giving them away, keeping them spread |
//! | `links.rs` | passing a request on over a connection to another node |
//! | `inbound.rs` | requests that other nodes pass on |

mod dispatch;
mod inbound;
mod links;
mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
pub(crate) use dispatch::{FromNode, PassedOn, is_health};
pub(crate) use inbound::serve;
use polis_api::{ApiError, Health, HealthModel, HealthStatus, HealthStore};
use polis_domain::SocietyId;
use polis_http::peer::PeerKey;
use polis_ports::{LogError, Node, Placement};
use tokio::time::sleep;

use self::links::Links;

/// What a node needs to work with others.
pub struct Membership {
    /// Who owns which society.
    pub placement: Arc<dyn Placement>,
    /// The key that this node is listed with.
    pub key: PeerKey,
    /// The socket on which the other nodes reach this one.
    pub socket: TcpListener,
    /// The model that answers where none is named, for the health of a node that owns no society.
    pub model: String,
}

/// The nodes as this one sees them.
pub(crate) struct Nodes {
    placement: Arc<dyn Placement>,
    key: PeerKey,
    socket: Mutex<Option<TcpListener>>,
    pub(crate) model: String,
    links: Links,
    seen: Mutex<Seen>,
    /// Who owns a society, as far as this node knows. The node that is asked knows it for certain.
    owners: Mutex<BTreeMap<SocietyId, String>>,
    /// Societies that are being stopped here.
    leaving: Mutex<BTreeSet<SocietyId>>,
    /// Nothing is claimed any more.
    draining: AtomicBool,
}

/// The table of nodes, and when it was read.
#[derive(Default)]
struct Seen {
    nodes: Vec<Node>,
    at: Option<Instant>,
}

/// How often the table is read at most because a node is not in it.
const READ_AGAIN: Duration = Duration::from_millis(200);

impl Nodes {
    pub(crate) fn new(membership: Membership) -> Self {
        let Membership { placement, key, socket, model } = membership;
        Self {
            placement,
            key,
            socket: Mutex::new(Some(socket)),
            model,
            links: Links::default(),
            seen: Mutex::default(),
            owners: Mutex::default(),
            leaving: Mutex::default(),
            draining: AtomicBool::new(false),
        }
    }

    pub(crate) fn placement(&self) -> &dyn Placement {
        &*self.placement
    }

    /// Whether this node gives its societies away.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// How long a request waits for its society to be somewhere: for the rest of a lease, and an opening.
    fn patience(&self) -> Duration {
        self.placement.period() * 5 + Duration::from_secs(5)
    }

    /// Whether this node answers, for those who ask each node for itself. One that gives its societies away is to get no requests.
    pub(crate) fn health(&self) -> (StatusCode, axum::Json<Health>) {
        let is_fresh = lock(&self.seen).at.is_some_and(|at| at.elapsed() < self.patience());
        let code = match (self.is_draining(), is_fresh) {
            (true, _) => Some("draining"),
            (false, false) => Some("log_failed"),
            (false, true) => None,
        };
        let model = HealthModel { name: self.model.clone(), offline: false };
        let store = HealthStore { ok: is_fresh, seq: None, code: code.map(str::to_owned) };
        let status = if code.is_none() { HealthStatus::Ok } else { HealthStatus::Down };
        let http = if code.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        (http, axum::Json(Health { status, version: env!("CARGO_PKG_VERSION").to_owned(), model, store }))
    }

    /// Reads the table of nodes.
    pub(crate) async fn read(&self) -> Result<Vec<Node>, LogError> {
        let nodes = self.placement.nodes().await?;
        *lock(&self.seen) = Seen { nodes: nodes.clone(), at: Some(Instant::now()) };
        Ok(nodes)
    }

    /// The first node that is looked for and whose lease has not ended. The table is read again if there is none.
    async fn find(&self, wanted: impl Fn(&Node) -> bool) -> Result<Option<Node>, LogError> {
        let (found, is_old) = {
            let seen = lock(&self.seen);
            let is_old = seen.at.is_none_or(|at| at.elapsed() >= READ_AGAIN);
            (seen.nodes.iter().find(|node| node.is_alive() && wanted(node)).cloned(), is_old)
        };
        match found {
            None if is_old => Ok(self.read().await?.into_iter().find(|node| node.is_alive() && wanted(node))),
            found => Ok(found),
        }
    }

    /// The same for one that may have joined just now.
    async fn find_new(&self, wanted: impl Fn(&Node) -> bool) -> Result<Option<Node>, LogError> {
        match self.find(&wanted).await? {
            None => {
                sleep(READ_AGAIN).await;
                self.find(wanted).await
            }
            found => Ok(found),
        }
    }

    /// The node that should own a society: by rendezvous hashing, so that only the societies of a node that joins or leaves move.
    async fn best(&self, society: &SocietyId) -> Result<Option<Node>, LogError> {
        let is_unread = lock(&self.seen).at.is_none();
        if is_unread {
            self.read().await?;
        }
        Ok(place::best(&lock(&self.seen).nodes, society).cloned())
    }

    pub(crate) async fn set_draining(&self, node: &str, draining: bool) -> Result<bool, ApiError> {
        Ok(self.placement.set_draining(node, draining).await?)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
