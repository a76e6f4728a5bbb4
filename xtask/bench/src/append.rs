//! Appending one message to a sub-thread at depth 5, when it has 10 messages and when it has 10,000.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use polis_domain::{Failure, Response, Task};
use polis_engine::{Agent, Cast, Turn};

use crate::figures::{Figures, Goal};
use crate::world::{self, Kind};

const DEPTH: usize = 5;
const SAMPLES: usize = 200;

/// Goes down to depth 5, then fills the thread and measures on the way.
#[derive(Clone, Default)]
struct Digger {
    found: Arc<Mutex<Vec<Sample>>>,
}

#[derive(Clone, Copy)]
struct Sample {
    ms: f64,
    bytes: f64,
}

impl Agent for Digger {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let path = turn.path();
        if path.segments().len() < DEPTH {
            let placeholder = turn.say("…").await?;
            let below = turn.open_sub_thread(&path, &placeholder.id).await?;
            let task = Task::action(turn.task().id.clone(), "dig", "dig");
            turn.run_unit(&below, &"dig".into(), task).await?;
            return Ok(Response::new("done"));
        }
        for (from, to) in [(0, 10), (10 + SAMPLES, 10_000)] {
            for n in from..to {
                turn.say(format!("message {n}")).await?;
            }
            let sample = self.sample(turn).await?;
            self.found.lock().map_err(|_| Failure::new("poisoned", ""))?.push(sample);
        }
        Ok(Response::new("done"))
    }
}

impl Digger {
    async fn sample(&self, turn: &mut Turn) -> Result<Sample, Failure> {
        let counted = |_| Failure::new("not_counted", "the system does not count");
        let before = world::written().map_err(counted)?;
        let mut times = Vec::new();
        for _ in 0..SAMPLES {
            let start = Instant::now();
            turn.say("one more message, of a usual length").await?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        let bytes = (world::written().map_err(counted)? - before) as f64 / SAMPLES as f64;
        Ok(Sample { ms: world::median(times), bytes })
    }
}

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let digger = Digger::default();
    world::runtime()?.block_on(async {
        let (log, _guard) = world::log(Kind::Durable)?;
        let society = world::society(log, Cast::new().with("dig", digger.clone()), "dig").await?;
        let sent = society.submit("dig").await?;
        society.answer(&sent).await?;
        society.stop(Duration::ZERO).await;
        anyhow::Ok(())
    })?;
    let found = digger.found.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
    let [short, long] = found.as_slice() else { anyhow::bail!("it measured {} times", found.len()) };
    let time = format!("{:.2} ms at 10 messages, {:.2} ms at 10,000", short.ms, long.ms);
    figures.add("append at depth 5: time, 10,000 against 10", long.ms / short.ms, Goal::AtMost(1.2), time);
    let bytes = format!("{:.0} bytes at 10 messages, {:.0} at 10,000", short.bytes, long.bytes);
    figures.add("append at depth 5: bytes, 10,000 against 10", long.bytes / short.bytes, Goal::AtMost(1.2), bytes);
    short.ms.is_normal().then_some(()).context("time passed")
}
