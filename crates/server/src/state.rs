//! The state of one society: what its handlers share.

use std::sync::{Arc, OnceLock};

use polis_api::local::HostSettings;
use polis_api::{Caller, Local};
use polis_engine::{Society, Watch, WatchEvent};
use polis_ports::LogError;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::a2a::task_index::TaskIndex;
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
            page,
            streams,
            closing: CancellationToken::new(),
            reason: Arc::default(),
            conversing: Arc::default(),
            in_flight: Arc::default(),
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
        let society = self.society.for_person(caller.person());
        Local { society, caller, host: self.host.clone(), registry: None }
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
