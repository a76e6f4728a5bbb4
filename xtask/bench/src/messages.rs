//! Messages from agent to agent: 64 senders, each message taken by a turn of its receiver. A society works on a thread of its own,
//! so what the machine can do is measured with one society for each of its two cores; what one can is told beside it, and what
//! bare channels between as many tasks do on two threads in the same rounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use polis_domain::{AgentId, Failure, Response};
use polis_engine::{Agent, Cast, Turn};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use crate::figures::{Figures, Goal};
use crate::world::{self, Kind};

const SENDERS: u64 = 64;

/// Messages of a sender: a request may take no more than a thousand turns.
const EACH: u64 = 900;

/// Sends as many messages as its task says to its partner.
struct Sends;

impl Agent for Sends {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let count: u64 = turn.task().message.parse().unwrap_or_default();
        let to = AgentId::from(turn.agent().as_str().replace("sender", "receiver"));
        for _ in 0..count {
            turn.send(&to, "a message").await?;
        }
        Ok(Response::new("sent"))
    }
}

/// Takes messages and counts them.
struct Takes {
    taken: Arc<AtomicU64>,
    wanted: u64,
    all: Arc<Notify>,
}

impl Agent for Takes {
    async fn execute_task(&self, _: &mut Turn) -> Result<Response, Failure> {
        if self.taken.fetch_add(1, Ordering::Relaxed) + 1 == self.wanted {
            self.all.notify_one();
        }
        Ok(Response::silent())
    }
}

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let told = |cpu: f64| format!("{cpu:.2} µs CPU a message, sent and taken by a turn");
    let (durable, cpu) = world::runtime()?.block_on(rate(Kind::Durable, 200))?;
    figures.add("agent to agent, durable: messages/s", durable, Goal::AtLeast(10_000.0), told(cpu));
    let (mut ones, mut costs, mut pairs, mut floors) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..5 {
        floors.push(floor()?);
        let (one, cpu) = world::runtime()?.block_on(rate(Kind::Memory, EACH))?;
        let two = async { tokio::try_join!(rate(Kind::Memory, EACH), rate(Kind::Memory, EACH)) };
        let (first, second) = world::runtime()?.block_on(two)?;
        ones.push(one);
        costs.push(cpu);
        pairs.push(2.0 * first.0.min(second.0));
    }
    let (one, cpu, both, floor) = (world::median(ones), world::median(costs), world::median(pairs), world::median(floors));
    let share = 100.0 * both / floor;
    let detail =
        format!("{share:.0} % of bare channels, {floor:.0}; one society alone {one:.0}; {}; median of 5 rounds", told(cpu));
    figures.add("agent to agent, memory log, two societies: messages/s", both, Goal::AtLeast(300_000.0), detail);
    Ok(())
}

async fn rate(kind: Kind, each: u64) -> Result<(f64, f64)> {
    let (log, _guard) = world::log(kind)?;
    let (taken, all) = (Arc::new(AtomicU64::new(0)), Arc::new(Notify::new()));
    let takes = Takes { taken, wanted: SENDERS * each, all: all.clone() };
    let cast = Cast::new().with("sends", Sends).with("takes", takes);
    let society = world::society(log, cast, "sends").await?;
    let mut takers = world::role("takes");
    takers.id = "takers".into();
    society.create_role(takers).await?;
    for n in 0..SENDERS {
        society.spawn(format!("sender{n}").into(), "bench".into(), AgentId::root()).await?;
        society.spawn(format!("receiver{n}").into(), "takers".into(), AgentId::root()).await?;
    }
    let (start, cpu) = (Instant::now(), world::cpu());
    for n in 0..SENDERS {
        society.send(format!("sender{n}").into(), &each.to_string(), None).await?;
    }
    all.notified().await;
    let (elapsed, used) = (start.elapsed(), world::cpu() - cpu);
    society.stop(Duration::ZERO).await;
    let envelopes = (SENDERS * each) as f64;
    Ok((envelopes / elapsed.as_secs_f64(), used.as_secs_f64() * 1e6 / envelopes))
}

/// Messages a second through channels alone: as many pairs of tasks on each of two threads, nothing kept.
fn floor() -> Result<f64> {
    let start = Instant::now();
    let sides =
        [(); 2].map(|()| std::thread::spawn(|| tokio::runtime::Builder::new_current_thread().build()?.block_on(bare())));
    for side in sides {
        side.join().map_err(|_| anyhow!("a side of the floor broke down"))??;
    }
    Ok((2 * SENDERS * EACH) as f64 / start.elapsed().as_secs_f64())
}

async fn bare() -> Result<()> {
    let mut tasks = JoinSet::new();
    for _ in 0..SENDERS {
        // A message is taken before the next one is sent, as a turn goes on once its message stands in the log.
        let (send, mut envelopes) = mpsc::channel::<Arc<str>>(1);
        tasks.spawn(async move {
            for _ in 0..EACH {
                send.send("a message".into()).await?;
            }
            anyhow::Ok(())
        });
        tasks.spawn(async move {
            while envelopes.recv().await.is_some() {}
            Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}
