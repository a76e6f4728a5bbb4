//! One workflow: a plan, five todos with a call of a tool each, a judgement; twelve model calls over HTTP. Against a bare loop
//! over hyper that writes the same requests and reads the same replies.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use polis_agents::workflow::Workflow;
use polis_domain::{AgentId, CallResult, EffectClass, Failure, Response, SubThreadRequest};
use polis_engine::{Agent, Cast, Society, SubThreads, Turn};
use polis_providers::{HttpClient, RemoteModel, RemoteOptions};
use polis_testkit::ScriptedTools;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::figures::{Figures, Goal};
use crate::mock::Mock;
use crate::team::{ANSWER, CALLS};
use crate::world::{self, Kind, ROUNDS, Ratio};

const AT_ONCE: usize = 16;
const EACH: usize = 25;

pub(crate) type Plain = Client<HttpConnector, Full<Bytes>>;

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let mock = Mock::start("team")?;
    world::runtime()?.block_on(ours(&mock.url, Kind::Memory, 1, 1))?;
    let rounds = world::rounds(
        || world::runtime()?.block_on(floor(&mock.url)),
        |kind| world::runtime()?.block_on(ours(&mock.url, kind, AT_ONCE, EACH)),
    )?;
    for (name, ratio, goal) in
        [("workflow, memory log, against floor", rounds.memory, 3.0), ("workflow, durable, against floor", rounds.durable, 6.0)]
    {
        let Ratio { ours, floor } = ratio;
        let detail =
            format!("{ours:.3} ms CPU for {CALLS} model calls against {floor:.3}, in the middle one of {ROUNDS} rounds");
        figures.add(name, ratio.value(), Goal::AtMost(goal), detail);
    }
    Ok(())
}

/// CPU milliseconds of a bare one.
async fn floor(url: &str) -> Result<f64> {
    let client: Plain = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
    let asked: Vec<Value> = serde_json::from_slice(&post(&client, url, Bytes::from_static(b"null")).await?)?;
    ensure!(asked.len() == CALLS, "a workflow makes {} model calls instead of {CALLS}", asked.len());
    let asked: Arc<[Value]> = asked.into();
    bare(&client, url, &asked, 1).await?;
    let before = world::cpu();
    bare(&client, url, &asked, EACH).await?;
    Ok((world::cpu() - before).as_secs_f64() * 1e3 / (AT_ONCE * EACH) as f64)
}

async fn bare(client: &Plain, url: &str, asked: &Arc<[Value]>, each: usize) -> Result<()> {
    let mut hands = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (client, url, asked) = (client.clone(), url.to_owned(), asked.clone());
        hands.spawn(async move {
            for request in (0..each).flat_map(|_| asked.iter()) {
                let reply = post(&client, &url, serde_json::to_vec(request)?.into()).await?;
                let mut said = String::new();
                for line in reply.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: ")) {
                    if line != b"[DONE]" {
                        let event: Value = serde_json::from_slice(line)?;
                        said += event["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
                    }
                }
                if !said.is_empty() {
                    serde_json::from_str::<Value>(&said)?;
                }
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = hands.join_next().await {
        done??;
    }
    Ok(())
}

pub(crate) async fn post(client: &Plain, url: &str, body: Bytes) -> Result<Vec<u8>> {
    let request = Request::post(format!("{url}/v1/chat/completions"));
    let request = request.header("content-type", "application/json").body(Full::new(body))?;
    let mut reply = client.request(request).await?.into_body();
    let mut text = Vec::new();
    while let Some(frame) = reply.frame().await {
        text.extend_from_slice(frame?.data_ref().map_or(&[][..], |data| data));
    }
    Ok(text)
}

/// Runs a workflow, and tells when it has: nobody needs to watch the society, so watching is not measured.
struct Counted {
    done: mpsc::Sender<String>,
}

impl Agent for Counted {
    fn sub_threads(&self) -> SubThreads {
        SubThreads::new().with("workflow", Workflow::default())
    }

    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let request = SubThreadRequest::new("workflow", &*turn.task().message);
        let result = turn.run_sub_thread(request).await?;
        let _ = self.done.send(result.text.clone()).await;
        Ok(result.into())
    }
}

/// CPU milliseconds of one in a society: each in an agent of its own.
async fn ours(url: &str, kind: Kind, at_once: usize, each: usize) -> Result<f64> {
    let (log, _guard) = world::log(kind)?;
    let tools = ScriptedTools::new().with("look", EffectClass::Read, |_, _| CallResult::good("ok"));
    let model = RemoteModel::new(HttpClient::default(), RemoteOptions::new("mock", format!("{url}/v1"), "mock"))?;
    let ports = world::ports(log, Arc::new(model), Arc::new(tools));
    let (done, mut answers) = mpsc::channel(at_once);
    let cast = Cast::new().with("workflow", Counted { done });
    let society = Society::open("main".into(), ports, cast, world::options("workflow")).await?;
    for n in 0..at_once * (each + 1) {
        society.spawn(format!("a{n}").into(), "bench".into(), AgentId::root()).await?;
    }
    runs(&society, 0..at_once, at_once, &mut answers).await?;
    let before = world::cpu();
    runs(&society, at_once..at_once * (each + 1), at_once, &mut answers).await?;
    let used = world::cpu() - before;
    society.stop(Duration::ZERO).await;
    Ok(used.as_secs_f64() * 1e3 / (at_once * each) as f64)
}

/// One workflow in each of these agents, so many at once.
async fn runs(
    society: &Society,
    agents: std::ops::Range<usize>,
    at_once: usize,
    answers: &mut mpsc::Receiver<String>,
) -> Result<()> {
    let mut next = agents.clone();
    for n in next.by_ref().take(at_once) {
        society.send(format!("a{n}").into(), "What are the five numbers?", None).await?;
    }
    for _ in agents {
        let answer = answers.recv().await.context("the society goes on")?;
        ensure!(answer == ANSWER, "it answered {answer:?}");
        if let Some(n) = next.next() {
            society.send(format!("a{n}").into(), "What are the five numbers?", None).await?;
        }
    }
    Ok(())
}
