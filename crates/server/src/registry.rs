//! The societies of a store: which are open, which one a request is for, and creating, forking and rewinding them.
//!
//! Requests at the root go to the society that the server was started with; `/s/NAME/…` goes to another. A society that is
//! not open yet is opened read-only first, and starts to work with the first command.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{Method, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::future::{BoxFuture, join, join_all};
use polis_api::ApiError;
use polis_api::local::{Registry, no_nodes, one_society};
use polis_domain::{Failure, Request as OnceRequest, Seq, SocietyId};
use polis_engine::{
    Branch, CommandError, ForkError, Forked, Society, SystemClock, fork, forked_before, free_name, is_society_name,
};
use polis_ports::{Log, Node};
use tower_service::Service;

use crate::caller::{Scope, caller_of};
use crate::nodes::{Membership, Nodes, is_health};
use crate::page;
use crate::problem::Problem;
use crate::routes;
use crate::state::SocietyState;

/// Most societies that work at once.
pub(crate) const MAX_WORKING: usize = 64;

/// Most that are open, those that are only looked at included; then these are let go.
const MAX_OPEN: usize = 256;

/// How long turns may take to reach a safe point before a society is stopped or rewound (D13).
pub const STOP_GRACE: Duration = Duration::from_secs(30);

/// What begins the address of another society.
const PREFIX: &str = "/s/";

/// Opens a society: to work, or to be looked at.
pub type Open = Box<dyn Fn(SocietyId, bool) -> BoxFuture<'static, Result<SocietyState, Failure>> + Send + Sync>;

/// Opens societies, and gives a random number whenever it is asked.
pub struct Opener {
    /// Opens one.
    pub open: Open,
    /// Lets go of what belongs to a society that has stopped here.
    pub close: Box<dyn Fn(SocietyId) -> BoxFuture<'static, ()> + Send + Sync>,
    /// A random number, new each time.
    pub entropy: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// The societies of a store. Clones are the same registry.
#[derive(Clone)]
pub struct Societies(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    /// The society that is meant where none is named.
    first: SocietyId,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) opener: Option<Opener>,
    /// The nodes that share the log, if this is one of several.
    pub(crate) nodes: Option<Arc<Nodes>>,
    entries: RwLock<Entries>,
    /// Nothing is opened any more.
    stopping: AtomicBool,
    /// This node is about to stop and gives its societies to others.
    pub(crate) leaving: AtomicBool,
    /// Held by whoever opens or rewinds one.
    pub(crate) changing: tokio::sync::Mutex<()>,
}

type Entries = BTreeMap<SocietyId, Entry>;

/// A society that is open.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) state: SocietyState,
    pub(crate) router: Router,
    pub(crate) is_running: bool,
}

impl Entry {
    fn new(state: SocietyState, works: bool) -> Self {
        Self { router: routes::router(&state), state, is_running: works }
    }
}

/// One society alone; others are not opened.
impl From<SocietyState> for Societies {
    fn from(state: SocietyState) -> Self {
        Self::new(state, None)
    }
}

impl Societies {
    /// The registry around a society that works; others are opened by its opener.
    pub fn new(first: SocietyState, opener: impl Into<Option<Opener>>) -> Self {
        let (name, log) = (first.society().id().clone(), first.society().log().clone());
        let entries = BTreeMap::from([(name.clone(), Entry::new(first, true))]);
        Self::with(name, log, opener.into(), None, entries)
    }

    /// The registry of a node among others that share the log. It opens the societies that it owns.
    pub fn of_node(first: SocietyId, log: Arc<dyn Log>, opener: Opener, membership: Membership) -> Self {
        Self::with(first, log, Some(opener), Some(Arc::new(Nodes::new(membership))), BTreeMap::new())
    }

    fn with(first: SocietyId, log: Arc<dyn Log>, opener: Option<Opener>, nodes: Option<Arc<Nodes>>, entries: Entries) -> Self {
        Self(Arc::new(Inner {
            first,
            log,
            opener,
            nodes,
            entries: RwLock::new(entries),
            stopping: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            changing: Default::default(),
        }))
    }

    /// The nodes that share the log, if this is one of several.
    pub(crate) fn nodes(&self) -> Option<&Arc<Nodes>> {
        self.0.nodes.as_ref()
    }

    /// Whether this node is about to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.0.leaving.load(Ordering::Acquire)
    }

    /// Takes a society out of those that are open.
    pub(crate) fn remove(&self, society: &SocietyId) -> Option<Entry> {
        self.0.entries.write().unwrap_or_else(PoisonError::into_inner).remove(society)
    }

    /// Has a society work. It is begun if it is not there yet.
    pub async fn start(&self, society: &SocietyId) -> Result<(), Failure> {
        let _changing = self.0.changing.lock().await;
        self.open(society, true).await.map(drop)
    }

    /// Stops all societies at once: each takes nothing in and gets `grace` to reach a safe point.
    pub async fn stop(&self, grace: Duration) {
        self.0.stopping.store(true, Ordering::Release);
        let stop_all = async || {
            let open: Vec<_> = self.entries(|entries| entries.values().map(|entry| entry.state.clone()).collect());
            join_all(open.iter().map(|state| state.society().stop(grace))).await;
        };
        // Whatever was just being opened is stopped as well.
        let late = async {
            drop(self.0.changing.lock().await);
            stop_all().await;
        };
        join(stop_all(), late).await;
    }

    /// Ends all event streams.
    pub fn close(&self) {
        self.entries(|entries| entries.values().for_each(|entry| entry.state.close()));
    }

    /// The states of the societies that work, by name.
    pub fn working(&self) -> Vec<SocietyState> {
        self.entries(|entries| entries.values().filter(|entry| entry.is_running).map(|entry| entry.state.clone()).collect())
    }

    /// The fork that this request has made before, if it has a key.
    async fn forked_before(
        &self,
        society: &SocietyId,
        request: Option<OnceRequest>,
    ) -> Result<Option<(SocietyId, Forked)>, ApiError> {
        match request {
            Some(request) if is_society_name(society.as_str()) => Ok(forked_before(&*self.0.log, society, request).await?),
            _ => Ok(None),
        }
    }

    /// Whether a society is not the one that is meant where none is named.
    pub(crate) fn is_other(&self, society: &SocietyId) -> bool {
        self.0.first != *society
    }

    /// The routes of all societies, without the checks of who asks.
    pub(crate) fn router(&self) -> Router {
        Router::new().fallback(dispatch).with_state(self.clone())
    }

    fn opener(&self) -> Result<&Opener, ApiError> {
        self.0.opener.as_ref().ok_or_else(one_society)
    }

    pub(crate) fn entries<T>(&self, look: impl FnOnce(&Entries) -> T) -> T {
        look(&self.0.entries.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Who answers for a society; opened when it has to be.
    async fn entry(&self, society: &SocietyId, works: bool) -> Result<Entry, ApiError> {
        let is_enough = |entry: &&Entry| entry.is_running || !works;
        if let Some(entry) = self.entries(|entries| entries.get(society).filter(is_enough).cloned()) {
            return Ok(entry);
        }
        let _changing = self.0.changing.lock().await;
        if self.0.opener.is_none() || !is_society_name(society.as_str()) || self.0.log.readable_head(society).await? == Seq(0) {
            return Err(ForkError::Unknown(society.clone()).into());
        }
        self.open(society, works).await.map_err(open_error)
    }

    /// Opens a society unless it is open. The caller holds `changing`.
    pub(crate) async fn open(&self, society: &SocietyId, works: bool) -> Result<Entry, Failure> {
        let is_enough = |entry: &&Entry| entry.is_running || !works;
        let (open, working, looked_at) = self.entries(|entries| {
            let working = entries.values().filter(|entry| entry.is_running).count();
            (entries.get(society).filter(is_enough).cloned(), working, entries.len() - working)
        });
        if let Some(entry) = open {
            return Ok(entry);
        }
        if self.0.stopping.load(Ordering::Acquire) {
            return Err(Failure::new(CommandError::Stopping.code(), CommandError::Stopping.to_string()));
        }
        if works && working >= MAX_WORKING {
            let message = format!("{MAX_WORKING} societies are running, the maximum; start another server");
            return Err(Failure::new("too_many_societies", message));
        }
        let opener = self.0.opener.as_ref().ok_or_else(|| Failure::new("one_society", "no other society is opened here"))?;
        let state = (opener.open)(society.clone(), works).await?;
        let mut entries = self.0.entries.write().unwrap_or_else(PoisonError::into_inner);
        // Streams of the state that was only open for reading continue.
        let state = match entries.get(society) {
            Some(before) => state.in_place_of(&before.state),
            None => state,
        };
        let entry = Entry::new(state, works);
        if working + looked_at >= MAX_OPEN {
            let let_go =
                |(name, entry): (&SocietyId, &Entry)| (!entry.is_running && name != society).then(|| entry.state.clone());
            let let_go: Vec<_> = entries.iter().filter_map(let_go).collect();
            let_go.iter().for_each(|state| state.close_because("let_go"));
            entries.retain(|_, entry| entry.is_running);
        }
        entries.insert(society.clone(), entry.clone());
        drop(entries);
        self.watch_end(&entry);
        Ok(entry)
    }
}

#[async_trait]
impl Registry for Societies {
    fn default_society(&self) -> &SocietyId {
        &self.0.first
    }

    fn is_running(&self, society: &SocietyId) -> bool {
        self.entries(|entries| entries.get(society).is_some_and(|entry| entry.is_running))
    }

    async fn begin(&self, society: &SocietyId) -> Result<bool, ApiError> {
        self.opener()?;
        if !is_society_name(society.as_str()) {
            return Err(ForkError::BadName(society.clone()).into());
        }
        let _changing = self.0.changing.lock().await;
        if self.0.log.readable_head(society).await? > Seq(0) {
            return Ok(false);
        }
        self.open(society, true).await.map_err(open_error)?;
        Ok(true)
    }

    async fn fork(&self, society: &Society, at: Option<Seq>, name: Option<String>) -> Result<(SocietyId, Forked), ApiError> {
        let opener = self.opener()?;
        let _changing = self.0.changing.lock().await;
        let (from, request) = (society.id(), society.request());
        let to = match (name, request) {
            (Some(name), _) => SocietyId::from(name),
            // A repeat must look for it under the same name.
            (None, Some(request)) => SocietyId::from(format!("{from}-{}", &request.key.to_string()[..8])),
            (None, None) => free_name(&*self.0.log, from).await?,
        };
        if let Some((_, made)) = self.forked_before(&to, request).await? {
            society.set_replay();
            return Ok((to, made));
        }
        let branch = Branch { from: from.clone(), at, to: to.clone(), aside: None, request };
        Ok((to, fork(&*self.0.log, &SystemClock, &branch, (opener.entropy)()).await?))
    }

    async fn rewind(&self, handle: &Society, to: Seq) -> Result<(SocietyId, Forked), ApiError> {
        let opener = self.opener()?;
        let _changing = self.0.changing.lock().await;
        let (society, request) = (handle.id(), handle.request());
        if let Some((kept, made)) = self.forked_before(society, request).await? {
            handle.set_replay();
            return Ok((kept, made));
        }
        let last = self.0.log.readable_head(society).await?;
        if to > last {
            return Err(ForkError::NoSuchPlace { society: society.clone(), at: to, last }.into());
        }
        // What cannot be is refused before anything is stopped.
        if self.0.log.whole(society, to).await? == Seq(0) {
            return Err(ForkError::TooEarly { society: society.clone(), at: to }.into());
        }
        let open = self.entries(|entries| entries.get(society).cloned());
        let works = open.as_ref().is_some_and(|entry| entry.is_running);
        if let Some(entry) = &open {
            entry.state.society().stop(STOP_GRACE).await;
        }
        let aside = free_name(&*self.0.log, society).await?;
        let branch = Branch { from: society.clone(), at: Some(to), to: society.clone(), aside: Some(aside.clone()), request };
        let made = fork(&*self.0.log, &SystemClock, &branch, (opener.entropy)()).await;
        if let Some(entry) = &open {
            entry.state.close_because(if made.is_ok() { "rewound" } else { "stopped" });
            self.0.entries.write().unwrap_or_else(PoisonError::into_inner).remove(society);
        }
        // Also where nothing was rewound: it was at work.
        if works && let Err(failure) = self.open(society, true).await {
            // Another node may have claimed it meanwhile, and goes on with it.
            self.nodes().map(drop).ok_or_else(|| open_error(failure))?;
        }
        Ok((aside, made?))
    }

    async fn nodes(&self) -> Result<Vec<Node>, ApiError> {
        self.0.nodes.as_ref().ok_or_else(no_nodes)?.read().await.map_err(ApiError::from)
    }

    async fn set_draining(&self, node: &str, draining: bool) -> Result<bool, ApiError> {
        self.0.nodes.as_ref().ok_or_else(no_nodes)?.set_draining(node, draining).await
    }

    async fn forget_redacted(&self, but: &SocietyId) -> Result<(), ApiError> {
        let is_other = |name: &SocietyId, entry: &Entry| entry.is_running && name != but;
        let others: Vec<_> = self.entries(|entries| {
            entries.iter().filter(|(name, entry)| is_other(name, entry)).map(|(_, entry)| entry.state.clone()).collect()
        });
        // Those that are only looked at are opened again.
        self.0.entries.write().unwrap_or_else(PoisonError::into_inner).retain(|name, entry| {
            let stays = entry.is_running || name == but;
            if !stays {
                entry.state.close_because("let_go");
            }
            stays
        });
        for state in others {
            state.society().forget_redacted().await?;
        }
        Ok(())
    }
}

pub(crate) fn open_error(failure: Failure) -> ApiError {
    ApiError::new(503, failure.code.to_string(), failure.message)
}

/// Gives a request to the society that it is meant for.
async fn dispatch(State(societies): State<Societies>, mut request: Request) -> Response {
    let named = request.uri().path().strip_prefix(PREFIX).map(|rest| rest.split_once('/').unwrap_or((rest, "")));
    let (society, path) = match named {
        Some((name, rest)) => (SocietyId::from(name), Some(format!("/{rest}"))),
        None => (societies.0.first.clone(), None),
    };
    let caller = caller_of(request.extensions());
    let uri = request.uri().clone();
    if let Some(path) = &path {
        // The page is the same for all of them, and asks with its token itself.
        let is_look = matches!(*request.method(), Method::GET | Method::HEAD);
        if is_look && page::is_view(path) && is_society_name(society.as_str()) {
            return page::index(request.headers().clone()).await;
        }
        // Nobody without a token has a society opened.
        if let Err(error) = caller.is_known() {
            return Problem::from(error).into_response();
        }
        match with_path(request.uri(), path) {
            Some(uri) => *request.uri_mut() = uri,
            None => return Problem::bad_request("bad_url", "the address cannot be read").into_response(),
        }
    }
    if let Some(nodes) = societies.nodes() {
        if path.is_none() && is_health(request.method(), request.uri().path()) {
            return nodes.health().into_response();
        }
        return societies.answer(nodes, &society, uri, request).await;
    }
    // Fork and rewind do not need a running society.
    let may = Scope::ALL[1..].iter().any(|scope| caller.may(*scope));
    let works = may && request.method() == Method::POST && !matches!(request.uri().path(), "/api/fork" | "/api/rewind");
    let mut router = match societies.entry(&society, works).await {
        Ok(entry) => entry.router,
        Err(error) => return Problem::from(error).into_response(),
    };
    request.extensions_mut().insert(Arc::new(societies) as Arc<dyn Registry>);
    let Ok(response) = router.call(request).await;
    response
}

/// The same address with another path.
fn with_path(uri: &Uri, path: &str) -> Option<Uri> {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(format!("{path}{query}").parse::<PathAndQuery>().ok()?);
    Uri::from_parts(parts).ok()
}
