//! What a user interface reads first, after few and after very many requests: its size and its cost must not grow with the
//! history.

use std::io::Write;

use anyhow::{Context, Result};
use polis_api::{ConversationPage, OrganisationPage, RequestPage, View};
use polis_domain::AgentId;
use polis_engine::{Cast, Society};
use polis_testkit::{Op, Program, ProgrammedAgent};
use tokio::task::JoinSet;

use crate::figures::{Figures, Goal};
use crate::world::{self, Kind};

const FEW: usize = 100;
const MANY: usize = 100_000;

/// The newest requests, which have more to show.
const NEWEST: usize = 40;

/// Requests that wait at once.
const AT_ONCE: usize = 64;

/// How often each view is read.
const ROUNDS: usize = 15;

/// A view: its compressed size, and the CPU milliseconds to read it.
struct Read {
    name: &'static str,
    bytes: f64,
    cpu_ms: f64,
}

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let few = world::runtime()?.block_on(after(FEW))?;
    let many = world::runtime()?.block_on(after(MANY))?;
    let largest = many.iter().map(|read| read.bytes).fold(0.0, f64::max) / 1e3;
    figures.add("first view: kB gz, the largest", largest, Goal::AtMost(300.0), format!("after {MANY} requests"));
    for (few, many) in few.iter().zip(&many) {
        let detail = format!(
            "{}: {:.1} kB gz after {FEW} requests, {:.1} after {MANY}; {:.2} and {:.2} ms CPU",
            few.name,
            few.bytes / 1e3,
            many.bytes / 1e3,
            few.cpu_ms,
            many.cpu_ms
        );
        let name: &'static str = format!("first view, {}: bytes after {MANY} requests, against {FEW}", few.name).leak();
        figures.add(name, many.bytes / few.bytes, Goal::AtMost(1.1), detail);
    }
    Ok(())
}

/// The views of a society that has answered so many requests.
async fn after(requests: usize) -> Result<Vec<Read>> {
    let (log, _folder) = world::log(Kind::Durable)?;
    let society = world::society(log, Cast::new().with(ProgrammedAgent::NAME, ProgrammedAgent), ProgrammedAgent::NAME).await?;
    let plain = Program(vec![Op::Say("It is done.".repeat(20))]).text();
    answered(&society, &plain, requests - NEWEST).await?;
    let unit = Program(vec![Op::Think("about it".into()), Op::Say("A result of a step.".repeat(20))]);
    let team = Program(vec![
        Op::Think("first".into()),
        Op::Units(vec![unit.clone(), unit.clone(), unit]),
        Op::Say("All done.".into()),
    ]);
    answered(&society, &team.text(), NEWEST).await?;
    let local = world::local(&society);
    let reads = vec![
        read("conversation", async || local.conversation_view(&AgentId::root(), &ConversationPage::default()).await).await?,
        read("trace", async || local.trace(&RequestPage::default()).await).await?,
        read("inbox", async || local.inbox().await).await?,
        read("organisation", async || local.organisation(&OrganisationPage::default()).await).await?,
    ];
    society.stop(std::time::Duration::from_secs(5)).await;
    Ok(reads)
}

async fn answered(society: &Society, text: &str, count: usize) -> Result<()> {
    let mut waiting = JoinSet::new();
    for n in 0..count {
        if n >= AT_ONCE {
            waiting.join_next().await.context("one of them is waited for")???;
        }
        let (society, sent) = (society.clone(), society.submit(text).await?);
        waiting.spawn(async move { anyhow::Ok(society.answer(&sent).await.map(drop)?) });
    }
    while let Some(answered) = waiting.join_next().await {
        answered??;
    }
    Ok(())
}

async fn read(name: &'static str, view: impl AsyncFn() -> Result<View, polis_api::ApiError>) -> Result<Read> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(&serde_json::to_vec(&view().await?)?)?;
    let bytes = packed.finish()?.len() as f64;
    let before = world::cpu();
    for _ in 0..ROUNDS {
        view().await?;
    }
    Ok(Read { name, bytes, cpu_ms: (world::cpu() - before).as_secs_f64() * 1e3 / ROUNDS as f64 })
}
