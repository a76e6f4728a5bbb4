//! One agent run: two model calls over HTTP and a tool that does nothing, 64 at once; against a bare loop over hyper that writes
//! the same requests and puts the same replies together.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use polis_agents::Converse;
use polis_domain::{AgentId, CallResult, EffectClass, Failure, Response as Reply, Role};
use polis_engine::{Agent, Cast, Society, Turn};
use polis_providers::{HttpClient, RemoteModel, RemoteOptions};
use polis_testkit::ScriptedTools;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};

use crate::figures::{Figures, Goal};
use crate::mock::Mock;
use crate::world::{self, Kind, ROUNDS, Ratio};

const AT_ONCE: usize = 64;
const EACH: usize = 60;

/// How long the runs of a hand may take.
const PATIENCE: Duration = Duration::from_secs(120);

type Plain = Client<HttpConnector, Full<Bytes>>;

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let mock = Mock::start("run")?;
    let rounds = world::rounds(
        || world::runtime()?.block_on(floor(&mock.url)),
        |kind| world::runtime()?.block_on(ours(&mock.url, kind)),
    )?;
    for (name, ratio, goal) in [
        ("agent run, memory log, against floor", rounds.memory, 2.0),
        ("agent run, durable, against floor", rounds.durable, 4.0),
    ] {
        let Ratio { ours, floor } = ratio;
        let detail = format!("{ours:.3} ms CPU a run against {floor:.3}, in the middle one of {ROUNDS} rounds");
        figures.add(name, ratio.value(), Goal::AtMost(goal), detail);
    }
    Ok(())
}

/// CPU milliseconds of a bare run.
async fn floor(url: &str) -> Result<f64> {
    let client: Plain = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
    bare_runs(&client, url, 1).await?;
    let before = world::cpu();
    bare_runs(&client, url, EACH).await?;
    Ok((world::cpu() - before).as_secs_f64() * 1e3 / (AT_ONCE * EACH) as f64)
}

async fn bare_runs(client: &Plain, url: &str, each: usize) -> Result<()> {
    let asked: Arc<[Value; 2]> = Arc::new([serde_json::from_str(FIRST)?, serde_json::from_str(SECOND)?]);
    let mut hands = tokio::task::JoinSet::new();
    for _ in 0..AT_ONCE {
        let (client, url, asked) = (client.clone(), format!("{url}/v1/chat/completions"), asked.clone());
        hands.spawn(async move {
            for _ in 0..each {
                let (_, arguments) = ask(&client, &url, &asked[0]).await?;
                anyhow::ensure!(arguments == "{}", "it called with {arguments:?}");
                let (said, _) = ask(&client, &url, &asked[1]).await?;
                anyhow::ensure!(said == "It is done.", "it said {said:?}");
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = hands.join_next().await {
        done??;
    }
    Ok(())
}

/// What a model says and calls a tool with.
async fn ask(client: &Plain, url: &str, request: &Value) -> Result<(String, String)> {
    let body = Full::new(serde_json::to_vec(request)?.into());
    let request = Request::post(url).header("content-type", "application/json").body(body)?;
    let mut reply = client.request(request).await?.into_body();
    let mut text = Vec::new();
    while let Some(frame) = reply.frame().await {
        text.extend_from_slice(frame?.data_ref().map_or(&[][..], |data| data));
    }
    let (mut said, mut arguments) = (String::new(), String::new());
    for line in text.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: ")) {
        if line != b"[DONE]" {
            let event: Value = serde_json::from_slice(line)?;
            let delta = &event["choices"][0]["delta"];
            said += delta["content"].as_str().unwrap_or_default();
            arguments += delta["tool_calls"][0]["function"]["arguments"].as_str().unwrap_or_default();
        }
    }
    Ok((said, arguments))
}

const FIRST: &str = r#"{"model":"mock","stream":true,"messages":[{"role":"system","content":"You answer."},{"role":"user","content":"Is it done?"}],"tools":[{"type":"function","function":{"name":"noop","description":"noop","parameters":{"type":"object"}}}]}"#;
const SECOND: &str = r#"{"model":"mock","stream":true,"messages":[{"role":"system","content":"You answer."},{"role":"user","content":"Is it done?"},{"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":"noop","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1","content":"ok"}],"tools":[{"type":"function","function":{"name":"noop","description":"noop","parameters":{"type":"object"}}}]}"#;

/// Has runs done, one after another, each by an agent of its own: what a hand of the bare loop does.
struct Hand(Arc<Place>);

/// Converses, and tells the hand that asked when it has. Nobody needs to watch the society, so watching is not measured.
struct Counted(Arc<Place>);

/// Where hands wait for their runs.
struct Place {
    done: [Notify; AT_ONCE],
    ended: mpsc::Sender<()>,
}

impl Agent for Hand {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Reply, Failure> {
        let (hand, runs) = (number(turn.agent().as_str(), 1), turn.task().message.to_string());
        let (first, count) = (number(&runs, 0), number(&runs, 1));
        for n in first..first + count {
            turn.send(&format!("run.{hand}.{n}").into(), "Is it done?").await?;
            self.0.done[hand].notified().await;
        }
        let _ = self.0.ended.send(()).await;
        Ok(Reply::silent())
    }
}

impl Agent for Counted {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Reply, Failure> {
        let response = Converse::default().execute_task(turn).await?;
        if response.full_message() == "It is done." {
            self.0.done[number(turn.agent().as_str(), 1)].notify_one();
        }
        Ok(response)
    }
}

/// The number in a part of a text.
fn number(text: &str, part: usize) -> usize {
    text.split('.').nth(part).and_then(|part| part.parse().ok()).unwrap_or_default()
}

/// CPU milliseconds of a run in a society: 64 at once, each in an agent of its own that another agent asks.
async fn ours(url: &str, kind: Kind) -> Result<f64> {
    let (log, _guard) = world::log(kind)?;
    let tools = ScriptedTools::new().with("noop", EffectClass::Read, |_, _| CallResult::good("ok"));
    let model = RemoteModel::new(HttpClient::default(), RemoteOptions::new("mock", format!("{url}/v1"), "mock"))?;
    let ports = world::ports(log, Arc::new(model), Arc::new(tools));
    let (ended, mut hands) = mpsc::channel(AT_ONCE);
    let place = Arc::new(Place { done: std::array::from_fn(|_| Notify::new()), ended });
    let cast = Cast::new().with("converse", Counted(place.clone())).with("hand", Hand(place));
    let mut options = world::options("converse");
    // The runs of a hand belong to one request; each is to make its call all the same.
    options.limits.reuse_ms = 0;
    let society = Society::open("main".into(), ports, cast, options).await?;
    society.create_role(Role { id: "hand".into(), ..world::role("hand") }).await?;
    for hand in 0..AT_ONCE {
        society.spawn(format!("hand.{hand}").into(), "hand".into(), AgentId::root()).await?;
        for n in 0..=EACH {
            society.spawn(format!("run.{hand}.{n}").into(), "bench".into(), AgentId::root()).await?;
        }
    }
    runs(&society, 0, 1, &mut hands).await?;
    let before = world::cpu();
    runs(&society, 1, EACH, &mut hands).await?;
    let used = world::cpu() - before;
    society.stop(Duration::ZERO).await;
    Ok(used.as_secs_f64() * 1e3 / (AT_ONCE * EACH) as f64)
}

/// These runs of each hand.
async fn runs(society: &Society, first: usize, count: usize, hands: &mut mpsc::Receiver<()>) -> Result<()> {
    for hand in 0..AT_ONCE {
        society.send(format!("hand.{hand}").into(), &format!("{first}.{count}"), None).await?;
    }
    for _ in 0..AT_ONCE {
        let ended = tokio::time::timeout(PATIENCE, hands.recv()).await;
        ended.context("a run did not end as it should")?.context("the society goes on")?;
    }
    Ok(())
}
