//! Opening a society of 100,000 events: from its log, and from a snapshot.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use polis_domain::{Failure, Response};
use polis_engine::{Agent, Cast, Turn};
use polis_ports::{Log, NewSnapshot};
use polis_store_local::LocalLog;

use crate::figures::{Figures, Goal};
use crate::world;

const EVENTS: u64 = 100_000;

/// Talks to itself.
struct Talks;

impl Agent for Talks {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let count: u64 = turn.task().message.parse().unwrap_or_default();
        for n in 0..count {
            turn.say(format!("message {n}, of a usual length, with something to say")).await?;
        }
        Ok(Response::silent())
    }
}

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let dir = world::folder()?;
    world::runtime()?.block_on(async {
        let society = open(dir.path()).await?;
        for n in 0..64 {
            society.spawn(format!("a{n}").into(), "bench".into(), "root".into()).await?;
            society.send(format!("a{n}").into(), &(EVENTS / 64).to_string(), None).await?;
        }
        while society.look(|spine| spine.seq.0 < EVENTS || !spine.turns.is_empty()).await? {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        society.stop(Duration::ZERO).await;
        anyhow::Ok(())
    })?;
    let snapshot = median_of(5, || opening(dir.path()))?;
    world::runtime()?.block_on(forget_snapshot(dir.path()))?;
    let log = median_of(3, || {
        world::runtime()?.block_on(forget_snapshot(dir.path()))?;
        opening(dir.path())
    })?;
    figures.add("opening 100,000 events from the log: s", log, Goal::AtMost(1.0), "integrity check included".to_owned());
    figures.add(
        "opening 100,000 events from a snapshot: s",
        snapshot,
        Goal::AtMost(0.2),
        "integrity check included".to_owned(),
    );
    Ok(())
}

fn median_of(times: usize, measure: impl Fn() -> Result<f64>) -> Result<f64> {
    Ok(world::median((0..times).map(|_| measure()).collect::<Result<_>>()?))
}

fn opening(dir: &std::path::Path) -> Result<f64> {
    world::runtime()?.block_on(async {
        let start = Instant::now();
        let society = open(dir).await?;
        let time = start.elapsed().as_secs_f64();
        society.stop(Duration::ZERO).await;
        Ok(time)
    })
}

async fn open(dir: &std::path::Path) -> Result<polis_engine::Society> {
    world::society(Arc::new(LocalLog::open(dir)?), Cast::new().with("talks", Talks), "talks").await
}

/// Leaves a snapshot that no version knows, so that the log is folded from its beginning.
async fn forget_snapshot(dir: &std::path::Path) -> Result<()> {
    let log = LocalLog::open(dir)?;
    let write = Box::new(|| (Vec::new(), Vec::new()));
    let unknown = NewSnapshot { seq: log.head(&"main".into()).await?, version: u32::MAX, after: None, write };
    Ok(log.save_snapshot(&"main".into(), unknown).await?)
}
