//! How a command reaches a society: over HTTP where one runs, else in this process on the store itself. Both are an
//! [`Api`], so that commands call operations and know nothing of routes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use polis_api::local::Registry;
use polis_api::{Api, ApiError, AskAboutPlans, BeginSociety, Caller, Local, LogPaging, ProblemDetails};
use polis_client::{Client, ClientError, Sse, SseEvent};
use polis_domain::{EffectId, Recorded, Seq, ThreadId};
use polis_engine::ForkError;
use polis_http::Trust;
use polis_ports::{Delta, Log, LogError};
use polis_server::{LiveEvent, LiveEvents, STOP_GRACE};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::config::Config;
use crate::error::CliError;
use crate::patience::Patience;
use crate::purpose::Purpose;
use crate::store::{OpenedLog, Store};
use crate::stored_societies::StoredSocieties;
use crate::wiring::OpenSociety;
use crate::workflow_progress::LiveStep;
use crate::{out, token, wiring};

/// Enough for a write that is under way; a model is asked again at the next start.
const MOMENT: Duration = Duration::from_secs(2);

/// How long a society may take to change hands, and how long to wait before looking again.
const MAX_MOVE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How a society is called: over HTTP or in this process. Both have the same operations.
pub(crate) enum Transport {
    /// A polis runs there.
    Http(Box<Client>),
    /// Nobody else has the store, so it is open in this process.
    InProcess(Box<InProcess>),
}

/// A society in this process, and its operations for the owner of the store.
pub(crate) struct InProcess {
    pub(crate) opened: OpenSociety,
    api: Local,
}

/// An event of a society that is followed.
pub(crate) enum WatchedEvent {
    /// An event of the log, as it was written and as it is understood.
    Event { data: String, recorded: Box<Recorded> },
    /// A chunk of text that a model is writing.
    Delta { effect: EffectId, thread: ThreadId, text: String },
    /// A step of a workflow.
    Step(Box<LiveStep>),
}

/// The events after a position of the log. This is no operation of [`Api`]: over HTTP it is a stream of server-sent events.
pub(crate) enum Events {
    Http(Box<HttpEvents>),
    InProcess(Box<LiveEvents>),
}

/// A stream of events that continues where another node continues the society.
pub(crate) struct HttpEvents {
    client: Client,
    /// None while the society moves.
    stream: Option<Sse>,
    /// The last event of the log that was taken.
    last: Seq,
}

impl Transport {
    /// A society that is open in this process.
    pub(crate) fn in_process(opened: OpenSociety) -> Self {
        let registry: Arc<dyn Registry> = Arc::new(StoredSocieties { first: opened.state.society().id().clone() });
        let api = Local { registry: Some(registry), ..opened.state.api(Caller::owner()) };
        Self::InProcess(Box::new(InProcess { opened, api }))
    }

    /// The operations of the society.
    pub(crate) fn api(&self) -> &dyn Api {
        match self {
            Self::Http(client) => &**client,
            Self::InProcess(here) => &here.api,
        }
    }

    /// Opens the way that there is.
    pub(crate) async fn open(config: &Config, purpose: Purpose) -> Result<Self, CliError> {
        // Other commands say so themselves.
        let _patience = (purpose == Purpose::Run).then(|| Patience::start("still opening the society"));
        if let Some(url) = &config.url {
            return connect_or_create(config, url, token_for(config)?, purpose).await;
        }
        if !purpose.creates() {
            needs_data(config)?;
        }
        config.trust.check_data()?;
        if purpose.creates() {
            config.trust.claim_data()?;
        }
        match OpenedLog::open(config).await {
            Ok(opened) => {
                if purpose == Purpose::Run {
                    opened.write_note(&format!("process {}", std::process::id()));
                }
                refuse_unknown(config, &*opened.log(), purpose).await?;
                Ok(Self::in_process(wiring::open(config, &Store::open(config, opened)?, purpose).await?))
            }
            Err(LogError::Locked(message)) => match url_of_owner(&config.data) {
                Some(url) => connect_or_create(config, &url, token_for(config)?, purpose).await,
                None => {
                    let advice = "wait for it, or run `polis serve` here, which several commands can use at once";
                    Err(CliError::new("data_locked", format!("{message}; {advice}")))
                }
            },
            Err(error) => Err(error.into()),
        }
    }

    /// The polis that runs on this data or that was named, if there is one.
    pub(crate) async fn running(config: &Config) -> Option<Self> {
        let transport = Self::open(config, Purpose::Read).await.ok()?;
        matches!(transport, Self::Http(_)).then_some(transport)
    }

    /// Says so, when the work is done by another process.
    pub(crate) fn announce(&self, config: &Config) {
        let Self::Http(client) = self else { return };
        out::note(&format!("polis: using the server at {}", client.url()));
        if !config.models.is_empty() {
            out::note("polis: the server has its own model; your choice is not used");
        }
        if config.plan_approval_flag.is_some_and(|when| when != AskAboutPlans::Always) {
            out::note("polis: the server asks about plans at least as often as its own setting requires");
        }
        if config.cassette.is_some() {
            out::note(
                "polis: the server does the work, so nothing is recorded or replayed here; start it with the cassette instead",
            );
        }
    }

    /// Closes the transport: a society in this process comes to a safe point first, quickly if a person has stopped it.
    pub(crate) async fn close(self, stopped: bool) {
        if let Self::InProcess(here) = self {
            let opened = here.opened;
            opened.state.society().stop(if stopped { MOMENT } else { STOP_GRACE }).await;
            opened.flush_telemetry().await;
            opened.close_servers().await;
            opened.state.close();
            opened.report_unused();
        }
    }

    /// The log's last place.
    pub(crate) async fn last(&self) -> Result<Seq, CliError> {
        Ok(self.api().log(LogPaging { after: u64::MAX >> 1, limit: 1 }).await?.last)
    }

    /// Events after a position of the log, then live events.
    pub(crate) async fn events(&self, after: Seq) -> Result<Events, CliError> {
        Ok(match self {
            Self::Http(client) => {
                let stream = Some(client.events(after).await?);
                Events::Http(Box::new(HttpEvents { client: (**client).clone(), stream, last: after }))
            }
            Self::InProcess(here) => Events::InProcess(Box::new(here.opened.state.events(after).await?)),
        })
    }
}

impl Events {
    /// The next thing that happens. The stream has no end but trouble.
    pub(crate) async fn next(&mut self) -> Result<WatchedEvent, CliError> {
        loop {
            let event = match self {
                Self::Http(events) => events.next().await?,
                Self::InProcess(events) => match events.next().await {
                    Some(event) => event_from_live(event)?,
                    None => return Err(server_gone("the stream ended")),
                },
            };
            if let Some(event) = event {
                return Ok(event);
            }
        }
    }
}

impl HttpEvents {
    /// The next event, if it is relevant. Dropping the future loses nothing.
    async fn next(&mut self) -> Result<Option<WatchedEvent>, CliError> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => self.stream.insert(follow_to_owner(&self.client, self.last).await?),
        };
        let event = match stream.next().await {
            Ok(Some(event)) => event,
            Ok(None) => return Err(server_gone("the stream ended")),
            Err(error) => return Err(server_gone(&error.to_string())),
        };
        if has_moved(&event) {
            self.stream = None;
            return Ok(None);
        }
        let event = event_from_sse(event)?;
        if let Some(WatchedEvent::Event { recorded, .. }) = &event {
            self.last = recorded.seq;
        }
        Ok(event)
    }
}

/// Whether another node continues the society.
fn has_moved(event: &SseEvent) -> bool {
    let reason =
        serde_json::from_str::<Value>(&event.data).ok().and_then(|data| Some(data.get("reason")?.as_str()? == "moved"));
    event.name == "stopping" && reason == Some(true)
}

/// The events of a society that changes hands, as soon as a node has it.
async fn follow_to_owner(client: &Client, after: Seq) -> Result<Sse, CliError> {
    let until = Instant::now() + MAX_MOVE;
    loop {
        match client.events(after).await {
            Err(error) if error.code() == "society_moving" && Instant::now() < until => sleep(LOOK_AGAIN).await,
            Err(error @ ClientError::Unreachable { .. }) => {
                let url = client.url();
                return Err(server_gone(&format!(
                    "another node continues it; give the address of a node with --url, since {url} does not answer any more: {error}"
                )));
            }
            followed => return Ok(followed?),
        }
    }
}

fn server_gone(detail: &str) -> CliError {
    let message = format!("the society ended ({detail}); the request is in its log and continues when it runs again");
    CliError::new("server_gone", message)
}

fn bad_event(error: serde_json::Error) -> CliError {
    CliError::new("strange_event", format!("an event cannot be parsed: {error}; is the other polis newer?"))
}

/// Parses an event of a server; none if it is irrelevant.
fn event_from_sse(event: SseEvent) -> Result<Option<WatchedEvent>, CliError> {
    #[derive(Deserialize)]
    struct Streamed {
        effect: EffectId,
        thread: ThreadId,
        delta: Value,
    }
    Ok(match event.name.as_str() {
        "stopping" => return Err(server_gone("it is stopping")),
        "problem" => return Err(ApiError::from(serde_json::from_str::<ProblemDetails>(&event.data).map_err(bad_event)?).into()),
        "delta" => {
            let Streamed { effect, thread, delta } = serde_json::from_str(&event.data).map_err(bad_event)?;
            delta.get("content").and_then(Value::as_str).map(|text| WatchedEvent::Delta {
                effect,
                thread,
                text: text.to_owned(),
            })
        }
        // Lost chunks of replies are sent again.
        "resync" => None,
        // A newer polis may send steps that we do not know; the log has what counts soon after.
        "step" => serde_json::from_str(&event.data).ok().map(WatchedEvent::Step),
        _ => {
            let recorded = serde_json::from_str(&event.data).map_err(bad_event)?;
            Some(WatchedEvent::Event { data: event.data, recorded })
        }
    })
}

/// The same of an event in this process.
fn event_from_live(event: LiveEvent) -> Result<Option<WatchedEvent>, CliError> {
    Ok(match event {
        LiveEvent::Event(recorded) => {
            let data = serde_json::to_string(&*recorded).map_err(bad_event)?;
            Some(WatchedEvent::Event { data, recorded: Box::new((*recorded).clone()) })
        }
        LiveEvent::Delta(chunk) => match &chunk.delta {
            Delta::Content(text) => {
                Some(WatchedEvent::Delta { effect: chunk.effect, thread: chunk.thread.clone(), text: text.clone() })
            }
            _ => None,
        },
        LiveEvent::Step(step) => serde_json::to_value(&*step).and_then(serde_json::from_value).ok().map(WatchedEvent::Step),
        LiveEvent::Resync => None,
        LiveEvent::Stopping(_) => return Err(server_gone("it is stopping")),
        LiveEvent::Failed(error) => return Err(error.into()),
    })
}

/// The polis that runs there. `POLIS_TLS_CA` names certificates to trust, where the world does not know its own.
fn connect(config: &Config, url: &str, token: Option<polis_server::Token>, prefix: String) -> Result<Client, CliError> {
    let mut network = config.network()?;
    if let Some(path) = std::env::var_os("POLIS_TLS_CA").filter(|path| !path.is_empty()) {
        network.trust = Trust::Only(path.into());
    }
    let client = Client::with_network(url, token.map(|token| token.as_str().to_owned()), network)?;
    Ok(client.at(prefix))
}

/// The same, but creates the society if it is missing and the purpose allows it.
async fn connect_or_create(
    config: &Config,
    url: &str,
    token: Option<polis_server::Token>,
    purpose: Purpose,
) -> Result<Transport, CliError> {
    let client = connect(config, url, token.clone(), prefix(config))?;
    if purpose.creates() && config.is_named {
        // Any other error appears with the next request.
        let is_there = client.health().await;
        if is_there.is_err_and(|error| error.code() == "unknown_society") {
            let request = BeginSociety { name: config.society.to_string() };
            connect(config, url, token, String::new())?.begin_society(request).await?;
        }
    }
    Ok(Transport::Http(Box::new(client)))
}

/// The path of the society on a server.
fn prefix(config: &Config) -> String {
    if config.is_named { format!("/s/{}", config.society) } else { String::new() }
}

/// Reading must not create a society, nor must a command to an agent that cannot exist.
async fn refuse_unknown(config: &Config, log: &dyn Log, purpose: Purpose) -> Result<(), CliError> {
    if let (Some(address), false) = (&config.store, purpose.creates())
        && log.societies().await?.is_empty()
    {
        return Err(no_data(address));
    }
    if purpose.creates() || !config.is_named || log.head(&config.society).await? > Seq(0) {
        return Ok(());
    }
    let known = log.societies().await?;
    let error = CliError::from(ForkError::Unknown(config.society.clone()));
    Err(error.meant(config.society.as_str(), known.iter().map(|society| society.as_str())))
}

/// Refuses a data directory without a society: opening it would create one.
pub(crate) fn needs_data(config: &Config) -> Result<(), CliError> {
    match config.store.is_none() && !holds_society(&config.data) {
        true => Err(no_data(&config.data.display())),
        false => Ok(()),
    }
}

fn no_data(place: &dyn std::fmt::Display) -> CliError {
    CliError::new("no_data", format!("there is no society in {place}; create one with polis run or polis serve"))
}

/// The owner's note in the lock file: the first word is the address, if there is one.
pub(crate) fn owner_note(url: &str) -> String {
    format!("{url} process {}", std::process::id())
}

fn url_of_owner(data: &Path) -> Option<String> {
    let note = polis_store_local::read_note(data).ok().flatten()?;
    note.split_whitespace().next().filter(|word| word.starts_with("http://") || word.starts_with("https://")).map(str::to_owned)
}

/// Whether the society exists. Reading must not create one, nor must a message to an agent that cannot exist.
fn holds_society(data: &Path) -> bool {
    ["polis.db", "polis.db-wal", "DAMAGED"].iter().any(|file| data.join(file).exists())
}

fn token_for(config: &Config) -> Result<Option<polis_server::Token>, CliError> {
    match token::of_environment()? {
        Some(token) => Ok(Some(token)),
        None if config.trust.foreign_data() => Ok(None),
        None => token::read(&config.data),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The specification's number, which people set the timeouts of their service managers by (R205).
    #[test]
    fn a_stop_waits_thirty_seconds_at_most() {
        assert_eq!(STOP_GRACE.as_millis(), 30_000);
    }
}
