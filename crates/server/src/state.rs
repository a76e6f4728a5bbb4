//! The state of one society: what its handlers share.

use std::sync::{Arc, OnceLock};

use polis_api::local::{HostSettings, Uploads};
use polis_api::{Caller, Local, Scope};
use polis_engine::{Society, Watch, WatchEvent};
use polis_ports::LogError;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::a2a::task_index::TaskIndex;
use crate::mcp::client_forms::ClientForms;
use crate::mcp::in_flight::InFlightRequests;
use crate::openai::ResponseStreams;
use crate::page_options::PageOptions;

/// Most event streams that are open at once.
pub(crate) const MAX_STREAMS: usize = 10_000;

/// Answers requests about one society. Clones are the same state.
#[derive(Clone)]
pub struct SocietyState {
    pub(crate) society: Society,
    pub(crate) host: Arc<HostSettings>,
    /// What persons have stored and not sent yet.
    pub(crate) uploads: Arc<Uploads>,
    pub(crate) page: Arc<PageOptions>,
    /// One permit for each event stream.
    pub(crate) streams: Arc<Semaphore>,
    /// Ends the event streams.
    pub(crate) closing: CancellationToken,
    /// Why they end.
    pub(crate) reason: Arc<OnceLock<&'static str>>,
    /// Held while a conversation is looked for and begun, so that two do not become one.
    pub(crate) conversing: Arc<tokio::sync::Mutex<()>>,
    /// The open requests of MCP clients.
    pub(crate) in_flight: Arc<InFlightRequests>,
    /// The forms that MCP clients show.
    pub(crate) client_forms: Arc<ClientForms>,
    /// The tasks that A2A clients list.
    pub(crate) a2a_tasks: Arc<TaskIndex>,
    /// The streams of OpenAI's background responses.
    pub(crate) response_streams: Arc<ResponseStreams>,
}

/// The next watch event. It keeps waiting when the society has ended: the state ends its streams, and gives the reason.
pub(crate) async fn next_seen(watch: &mut Watch) -> Result<WatchEvent, LogError> {
    match watch.next().await? {
        Some(seen) => Ok(seen),
        None => std::future::pending().await,
    }
}

impl SocietyState {
    /// A state for a society.
    pub fn new(society: Society, host: HostSettings) -> Self {
        let streams = Arc::new(Semaphore::new(MAX_STREAMS));
        let page = Arc::default();
        Self {
            society,
            host: Arc::new(host),
            uploads: Arc::default(),
            page,
            streams,
            closing: CancellationToken::new(),
            reason: Arc::default(),
            conversing: Arc::default(),
            in_flight: Arc::default(),
            client_forms: Arc::default(),
            a2a_tasks: Arc::default(),
            response_streams: Arc::default(),
        }
    }

    /// The same with what the operator adds to the page.
    pub fn with_page(self, page: PageOptions) -> Self {
        Self { page: Arc::new(page), ..self }
    }

    /// The same with the event streams of another state of the same society: what ends these ends those.
    pub(crate) fn in_place_of(self, before: &Self) -> Self {
        let Self { streams, closing, reason, .. } = before.clone();
        Self { streams, closing, reason, ..self }
    }

    /// The operations of the society for a caller. Other societies are out of its reach.
    pub fn api(&self, caller: Caller) -> Local {
        let Self { society, host, uploads, .. } = self.for_caller(&caller);
        Local { society, caller, host, uploads, registry: None }
    }

    /// The same for a caller, who sees what belongs to others only with the scope `everyone`.
    pub(crate) fn for_caller(&self, caller: &Caller) -> Self {
        let person = caller.person().clone();
        let society = match caller.may(Scope::Everyone) {
            true => self.society.for_person(person),
            false => self.society.limited_to(person),
        };
        Self { society, ..self.clone() }
    }

    /// The society behind it.
    pub fn society(&self) -> &Society {
        &self.society
    }

    /// Ends all event streams, and every later one at once.
    pub fn close(&self) {
        self.close_because("stopped");
    }

    /// The same, for another reason than that the program stops.
    pub(crate) fn close_because(&self, reason: &'static str) {
        // Whoever closed it first had the reason.
        let _ = self.reason.set(reason);
        self.closing.cancel();
    }
}
