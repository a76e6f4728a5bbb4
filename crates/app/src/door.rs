//! The one way in: the routes of a running polis over HTTP, or the same routes in this process on the store itself.

use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use polis_client::{Client, ClientError, Sse};
use polis_domain::{EffectId, Recorded, Seq, ThreadId};
use polis_engine::ForkError;
use polis_ports::{Log, LogError};
use polis_server::Answer;
use polis_store_local::LocalLog;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::Config;
use crate::planning::AskAboutPlans;
use crate::team::SeenStep;
use crate::trouble::Trouble;
use crate::wiring::{Opened, Store};
use crate::{out, token, wiring};

/// How long turns may take to reach a safe point when we stop (D13).
pub(crate) const GRACE: Duration = Duration::from_secs(30);

/// Enough for a write that is under way; a model is asked again at the next start.
const MOMENT: Duration = Duration::from_secs(2);

/// What a command wants of the society.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To see it. Nothing runs and nothing changes.
    Look,
    /// To tell it something that it turns to when it next works.
    Tell,
    /// To bring something into it that it turns to when it next works; it is begun if it is not there.
    Bring,
    /// To have it work.
    Work,
}

impl Purpose {
    /// Whether a society that is not there yet is begun.
    fn begins(self) -> bool {
        matches!(self, Self::Bring | Self::Work)
    }
}

/// A society that can be asked.
pub(crate) enum Door {
    /// A polis runs there.
    There(Client),
    /// Nobody else has the store, so it is open in this process.
    Here(Opened),
}

/// What a watcher is told.
pub(crate) enum Told {
    /// An event of the log, as it was written and as it is understood.
    Event { data: String, recorded: Box<Recorded> },
    /// A chunk of text that a model is writing.
    Delta { effect: EffectId, thread: ThreadId, text: String },
    /// What somebody in a workflow is seen doing.
    Step(Box<SeenStep>),
}

/// What happens, from a place of the log on.
pub(crate) struct Events(Sse);

impl Door {
    /// Opens the way that there is.
    pub(crate) async fn open(config: &Config, purpose: Purpose) -> Result<Self, Trouble> {
        if let Some(url) = &config.url {
            return reached_for(config, url, token_for(config)?, purpose).await;
        }
        if !purpose.begins() && !holds_society(&config.data) {
            let message = format!("there is no society in {}; create one with polis run or polis serve", config.data.display());
            return Err(Trouble::new("no_data", message));
        }
        config.trust.check_data()?;
        if purpose.begins() {
            config.trust.claim_data()?;
        }
        match open_log(&config.data).await {
            Ok(log) => {
                if purpose == Purpose::Work {
                    // It only tells others who has the store; without it they are told less.
                    let _ = log.write_note(&format!("process {}", std::process::id()));
                }
                refuse_unknown(config, &log, purpose).await?;
                Ok(Self::Here(wiring::open(config, &Store::open(config, log)?, purpose).await?))
            }
            Err(LogError::Locked(message)) => match url_of_owner(&config.data) {
                Some(url) => reached_for(config, &url, token::read(&config.data)?, purpose).await,
                None => Err(Trouble::new("data_locked", message)),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// The polis that runs on this data or that was named, if there is one.
    pub(crate) async fn running(config: &Config) -> Option<Self> {
        let door = Self::open(config, Purpose::Look).await.ok()?;
        matches!(door, Self::There(_)).then_some(door)
    }

    /// Says so, when the work is done by another process.
    pub(crate) fn announce(&self, config: &Config) {
        let Self::There(client) = self else { return };
        out::note(&format!("polis: using the server at {}", client.url()));
        if !config.models.is_empty() {
            out::note("polis: the server has its own model; your choice is not used");
        }
        if config.typed_plan_approval.is_some_and(|when| when != AskAboutPlans::Always) {
            out::note("polis: the server asks about plans at least as often as its own setting requires");
        }
        if config.tape.is_some() {
            out::note(
                "polis: the server does the work, so nothing is recorded or replayed here; start it with the cassette instead",
            );
        }
    }

    /// Lets go: a society in this process comes to a safe point first, within a moment when a person has stopped it.
    pub(crate) async fn close(self, stopped: bool) {
        if let Self::Here(opened) = self {
            opened.state.society().stop(if stopped { MOMENT } else { GRACE }).await;
            opened.tell_rest().await;
            opened.close_servers().await;
            opened.state.close();
            opened.tell_unused();
        }
    }

    /// Asks for something.
    pub(crate) async fn get<T: DeserializeOwned>(&self, target: &str) -> Result<T, Trouble> {
        understood(self.ask(target, None).await?).await
    }

    /// The answer as it comes, if it is a good one.
    pub(crate) async fn answer(&self, target: &str) -> Result<Answer, Trouble> {
        let answer = self.ask(target, None).await?;
        if answer.status >= 400 { Err(problem(&body_of(answer).await?)) } else { Ok(answer) }
    }

    /// Asks for something to be done.
    pub(crate) async fn post<T: DeserializeOwned>(&self, target: &str, body: &Value) -> Result<T, Trouble> {
        understood(self.ask(target, Some(body.to_string())).await?).await
    }

    /// Posts a body that is JSON already; the answer as it comes, good or bad.
    pub(crate) async fn post_raw(&self, target: &str, body: String) -> Result<Answer, Trouble> {
        self.ask(target, Some(body)).await
    }

    /// The log's last place.
    pub(crate) async fn last(&self) -> Result<Seq, Trouble> {
        #[derive(Deserialize)]
        struct Page {
            last: Seq,
        }
        let page: Page = self.get(&format!("/api/log?after={}", u64::MAX >> 1)).await?;
        Ok(page.last)
    }

    /// Everything after a place of the log, and what comes.
    pub(crate) async fn events(&self, after: Seq) -> Result<Events, Trouble> {
        let answer = self.answer(&format!("/api/events?after={after}")).await?;
        Ok(Events(Sse::new(answer.body)))
    }

    async fn ask(&self, target: &str, body: Option<String>) -> Result<Answer, Trouble> {
        match self {
            Self::There(client) => {
                let polis_client::Answer { status, body } = client.ask(target, body).await?;
                Ok(Answer { status, body })
            }
            Self::Here(opened) => {
                opened.state.ask(target, body).await.map_err(|error| Trouble::usage("bad_url", error.to_string()))
            }
        }
    }
}

impl Events {
    /// The next thing that happens. The stream has no end but trouble.
    pub(crate) async fn next(&mut self) -> Result<Told, Trouble> {
        #[derive(Deserialize)]
        struct Streamed {
            effect: EffectId,
            thread: ThreadId,
            delta: Value,
        }
        let strange = |error: serde_json::Error| {
            Trouble::new("strange_event", format!("an event cannot be parsed: {error}; is the other polis newer?"))
        };
        loop {
            let gone = |detail: &str| {
                Trouble::new(
                    "server_gone",
                    format!("the society ended ({detail}); the request is in its log and continues when it runs again"),
                )
            };
            let event =
                self.0.next().await.map_err(|error| gone(&error.to_string()))?.ok_or_else(|| gone("the stream ended"))?;
            match event.name.as_str() {
                "stopping" => return Err(gone("it is stopping")),
                "problem" => return Err(problem(event.data.as_bytes())),
                "delta" => {
                    let Streamed { effect, thread, delta } = serde_json::from_str(&event.data).map_err(strange)?;
                    if let Some(text) = delta.get("content").and_then(Value::as_str) {
                        return Ok(Told::Delta { effect, thread, text: text.to_owned() });
                    }
                }
                // Chunks of replies that were lost are told again.
                "resync" => {}
                // A newer polis may show more than we know; what counts stands in the log soon after.
                "step" => {
                    if let Ok(seen) = serde_json::from_str(&event.data) {
                        return Ok(Told::Step(seen));
                    }
                }
                _ => {
                    let recorded = serde_json::from_str(&event.data).map_err(strange)?;
                    return Ok(Told::Event { data: event.data, recorded });
                }
            }
        }
    }
}

/// The polis that runs there. `POLIS_TLS_CA` names certificates to trust, where the world does not know its own.
fn reached(url: &str, token: Option<polis_server::Token>, prefix: String) -> Result<Door, Trouble> {
    let client = Client::new(url, token.map(|token| token.as_str().to_owned()))?;
    let client = match std::env::var_os("POLIS_TLS_CA").filter(|path| !path.is_empty()) {
        Some(path) => client.trusting(Path::new(&path)),
        None => client,
    };
    Ok(Door::There(client.at(prefix)))
}

/// The same, where the society that was named is begun if it is not there and the purpose allows.
async fn reached_for(
    config: &Config,
    url: &str,
    token: Option<polis_server::Token>,
    purpose: Purpose,
) -> Result<Door, Trouble> {
    let door = reached(url, token.clone(), prefix(config))?;
    if purpose.begins() && config.is_named {
        // Whatever else is wrong is told by whoever asks next.
        let is_there = door.get::<Value>("/api/health").await;
        if is_there.is_err_and(|trouble| trouble.code == "unknown_society") {
            let wish = serde_json::json!({ "name": config.society });
            reached(url, token, String::new())?.post::<Value>("/api/societies", &wish).await?;
        }
    }
    Ok(door)
}

impl From<ClientError> for Trouble {
    fn from(error: ClientError) -> Self {
        let (code, message) = (error.code().to_owned(), error.to_string());
        match error {
            ClientError::BadUrl(_) | ClientError::BadCertificates(_) => Self::usage(code, message),
            _ => Self::new(code, message),
        }
    }
}

/// Where the society that was named is found on a server.
fn prefix(config: &Config) -> String {
    if config.is_named { format!("/s/{}", config.society) } else { String::new() }
}

/// Looking must not begin a society, nor must a word to an agent that cannot be there.
async fn refuse_unknown(config: &Config, log: &LocalLog, purpose: Purpose) -> Result<(), Trouble> {
    if purpose.begins() || !config.is_named || log.head(&config.society).await? > Seq(0) {
        return Ok(());
    }
    Err(ForkError::Unknown(config.society.clone()).into())
}

/// Opening checks the store, which takes a while.
pub(crate) async fn open_log(data: &Path) -> Result<LocalLog, LogError> {
    let dir = data.to_owned();
    match tokio::task::spawn_blocking(move || LocalLog::open(&dir)).await {
        Ok(opened) => opened,
        Err(error) => Err(LogError::Failed(error.into())),
    }
}

/// What others read in the lock file: the first word is the address, if there is one.
pub(crate) fn owner_note(url: &str) -> String {
    format!("{url} process {}", std::process::id())
}

fn url_of_owner(data: &Path) -> Option<String> {
    let note = polis_store_local::read_note(data).ok().flatten()?;
    note.split_whitespace().next().filter(|word| word.starts_with("http://") || word.starts_with("https://")).map(str::to_owned)
}

/// Whether somebody has begun a society here. Looking must not begin one, nor must a word to an agent that cannot be there.
fn holds_society(data: &Path) -> bool {
    ["polis.db", "polis.db-wal", "DAMAGED"].iter().any(|file| data.join(file).exists())
}

fn token_for(config: &Config) -> Result<Option<polis_server::Token>, Trouble> {
    match std::env::var("POLIS_TOKEN").ok().filter(|text| !text.trim().is_empty()) {
        Some(text) => match polis_server::Token::new(&text) {
            Some(token) => Ok(Some(token)),
            None => Err(Trouble::usage(
                "bad_token",
                "POLIS_TOKEN is not a token; copy the file `token` of the server's data directory",
            )),
        },
        None if config.trust.foreign_data() => Ok(None),
        None => token::read(&config.data),
    }
}

async fn understood<T: DeserializeOwned>(answer: Answer) -> Result<T, Trouble> {
    let status = answer.status;
    let body = body_of(answer).await?;
    if status >= 400 {
        return Err(problem(&body));
    }
    serde_json::from_slice(&body)
        .map_err(|error| Trouble::new("strange_answer", format!("the answer cannot be parsed: {error}")))
}

async fn body_of(mut answer: Answer) -> Result<Vec<u8>, Trouble> {
    let mut body = Vec::new();
    while let Some(bytes) = answer.body.next().await {
        let bytes = bytes.map_err(|error| Trouble::new("server_gone", format!("the answer is incomplete: {error}")))?;
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}

fn problem(body: &[u8]) -> Trouble {
    #[derive(Deserialize)]
    struct Problem {
        code: String,
        detail: String,
    }
    let health = |body| serde_json::from_slice::<Value>(body).ok()?["store"]["code"].as_str().map(str::to_owned);
    match (serde_json::from_slice::<Problem>(body), health(body)) {
        (Ok(Problem { code, detail }), _) => Trouble::new(code, detail),
        (Err(_), Some(code)) => Trouble::new(code, "its log is not working; it accepts nothing until that is fixed"),
        (Err(_), None) => Trouble::new("strange_answer", "the server there is not a polis"),
    }
}
