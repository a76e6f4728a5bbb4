//! Who reads streams: a bare loop over hyper, the provider as the program opens it, and a society that is watched.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use futures_util::StreamExt;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use polis_agents::Converse;
use polis_domain::{AgentId, EffectId, Failure, Response, Seq};
use polis_engine::{Agent, Cast, Options, Society, Turn, Watch, WatchEvent};
use polis_ports::{ChatMessage, Delta, Model, ModelRequest, StreamedDelta};
use polis_providers::{Models, vendors};
use polis_testkit::ScriptedTools;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use crate::world::{self, Kind};

const ASKED: &str = "Count as far as you like.";
const BODY: &str = r#"{"model":"mock","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Count as far as you like."}]}"#;

/// What has come in.
#[derive(Default)]
pub(crate) struct Tally {
    seen: AtomicU64,
    wrong: AtomicU64,
    late: Mutex<Vec<f64>>,
}

impl Tally {
    /// Deltas so far.
    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// Deltas that did not come after the one before them.
    pub(crate) fn wrong(&self) -> u64 {
        self.wrong.load(Ordering::Relaxed)
    }

    /// How many milliseconds after they were sent the first deltas came.
    pub(crate) fn late(&self) -> Vec<f64> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes a delta of a stream whose next one should have this number.
    fn take(&self, next: &mut u64, content: &str) {
        let (number, sent) = content.trim_end().split_once('@').unwrap_or_default();
        if number.parse() != Ok(*next) {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
        if *next == 0 {
            let late = world::now().as_nanos() as f64 - sent.parse().unwrap_or(0.0);
            self.late.lock().unwrap_or_else(PoisonError::into_inner).push(late / 1e6);
        }
        *next = number.parse().unwrap_or(*next) + 1;
        self.seen.fetch_add(1, Ordering::Relaxed);
    }
}

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Floor,
    Provider,
    Society,
}

/// One of them, ready to read.
pub(crate) enum Side {
    Floor { client: Box<Client<HttpConnector, Full<Bytes>>>, url: String, tally: Arc<Tally> },
    Provider { models: Arc<Models>, tally: Arc<Tally> },
    Society(Watched),
}

impl Side {
    /// Reads from `url`, at most so many streams at once.
    pub(crate) async fn open(way: Way, url: &str, streams: usize, tally: &Arc<Tally>) -> Result<Self> {
        let tally = tally.clone();
        Ok(match way {
            Way::Floor => {
                let client = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
                Self::Floor { client: Box::new(client), url: format!("{url}/chat/completions"), tally }
            }
            Way::Provider => Self::Provider { models: Arc::new(models(url).await?), tally },
            Way::Society => Self::Society(Watched::open(models(url).await?, streams, tally).await?),
        })
    }

    /// Reads so many streams of so many deltas at once to their end.
    pub(crate) async fn read(&mut self, streams: usize, deltas: u64) -> Result<()> {
        let mut hands = JoinSet::new();
        match self {
            Self::Society(society) => return society.read(streams, deltas).await,
            Self::Floor { client, url, tally } => {
                for _ in 0..streams {
                    hands.spawn(bare((**client).clone(), url.clone(), tally.clone()));
                }
            }
            Self::Provider { models, tally } => {
                for _ in 0..streams {
                    hands.spawn(provider(models.clone(), tally.clone()));
                }
            }
        }
        while let Some(done) = hands.join_next().await {
            done??;
        }
        Ok(())
    }

    /// Nothing more is read; what is under way is taken.
    pub(crate) async fn close(self) -> Result<()> {
        if let Self::Society(Watched { society, watcher, .. }) = self {
            society.stop(std::time::Duration::ZERO).await;
            watcher.await??;
        }
        Ok(())
    }
}

async fn bare(client: Client<HttpConnector, Full<Bytes>>, url: String, tally: Arc<Tally>) -> Result<()> {
    let body = Full::new(Bytes::from_static(BODY.as_bytes()));
    let request = Request::post(&url).header("content-type", "application/json").body(body)?;
    let mut reply = client.request(request).await?.into_body();
    let (mut text, mut next) = (Vec::new(), 0);
    while let Some(frame) = reply.frame().await {
        text.extend_from_slice(frame?.data_ref().map_or(&[][..], |data| data));
        let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for line in text[..end].split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: ")) {
            if line != b"[DONE]" {
                let chunk: Value = serde_json::from_slice(line)?;
                if let Some(content) = chunk["choices"][0]["delta"]["content"].as_str() {
                    tally.take(&mut next, content);
                }
            }
        }
        text.drain(..end);
    }
    Ok(())
}

/// The models as the program opens them.
pub(crate) async fn models(url: &str) -> Result<Models> {
    let url = url.to_owned();
    let variable = move |name: &str| (name == "OPENAI_COMPATIBLE_BASE_URL").then(|| url.clone());
    Ok(vendors::open(Some("openai-compatible/mock"), &variable).await?)
}

/// Reads one stream to its end.
pub(crate) async fn provider(models: Arc<Models>, tally: Arc<Tally>) -> Result<()> {
    let request = ModelRequest { messages: vec![ChatMessage::user(ASKED)], ..ModelRequest::default() };
    let mut stream = models.stream(request).await?;
    let mut next = 0;
    while let Some(delta) = stream.next().await {
        if let Delta::Content(text) = delta? {
            tally.take(&mut next, &text);
        }
    }
    Ok(())
}

/// A society in which each stream answers an agent of its own; the deltas are those that a watcher sees.
pub(crate) struct Watched {
    society: Society,
    answers: mpsc::Receiver<usize>,
    agents: AtomicUsize,
    watcher: JoinHandle<Result<()>>,
}

/// Converses, and tells how many deltas there are in its answer.
struct Counted(mpsc::Sender<usize>);

impl Agent for Counted {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let response = Converse::default().execute_task(turn).await;
        let count = response.as_ref().map_or(0, |response| response.full_message().matches('@').count());
        let _ = self.0.send(count).await;
        response
    }
}

impl Watched {
    async fn open(models: Models, streams: usize, tally: Arc<Tally>) -> Result<Self> {
        let (log, _) = world::log(Kind::Memory)?;
        let ports = world::ports(log, Arc::new(models), Arc::new(ScriptedTools::new()));
        let (done, answers) = mpsc::channel(streams);
        let options = Options { max_running: streams, ..world::options("count") };
        let society = Society::open("main".into(), ports, Cast::new().with("count", Counted(done)), options).await?;
        let watcher = tokio::spawn(watch(society.watch(Seq(0)), tally));
        Ok(Self { society, answers, agents: AtomicUsize::new(0), watcher })
    }

    async fn read(&mut self, streams: usize, deltas: u64) -> Result<()> {
        for _ in 0..streams {
            let agent = AgentId::from(format!("a{}", self.agents.fetch_add(1, Ordering::Relaxed)));
            self.society.spawn(agent.clone(), "bench".into(), AgentId::root()).await?;
            self.society.send(agent, ASKED, None).await?;
        }
        for _ in 0..streams {
            let count = self.answers.recv().await.context("the society goes on")?;
            ensure!(count as u64 == deltas, "an answer of {deltas} deltas has only {count}");
        }
        Ok(())
    }
}

async fn watch(mut watch: Watch, tally: Arc<Tally>) -> Result<()> {
    let mut next: HashMap<EffectId, u64> = HashMap::new();
    while let Some(seen) = watch.next().await? {
        if let WatchEvent::Delta(told) = seen {
            let StreamedDelta { effect, delta, .. } = &*told;
            match delta {
                Delta::Content(text) => tally.take(next.entry(*effect).or_default(), text),
                Delta::Done(_) => drop(next.remove(effect)),
                _ => {}
            }
        }
    }
    Ok(())
}
