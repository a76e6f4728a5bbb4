//! A society after years of work against one after days: what opening it costs, what it holds in memory, and what a message, the
//! first page and a turn in a long conversation cost.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use polis_api::ConversationPage;
use polis_domain::{Failure, Response};
use polis_engine::{Agent, Cast, ConversationStart, Society, Turn};
use polis_store_local::LocalLog;
use polis_testkit::{Op, Program};
use serde_json::Map;

use crate::figures::{Figures, Goal};
use crate::{memory, world};

/// Ended conversations, each with a request of about fifty events.
const MANY: u64 = 20_000;
const FEW: u64 = 200;

/// Messages of a round, and rounds.
const MESSAGES: u64 = 1_000;
const ROUNDS: usize = 5;

/// Messages of the long and of the short conversation, and how many of them a turn is shown.
const LONG: usize = 5_000;
const SHORT: usize = 10;
const SHOWN: usize = 10;

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let (many, few) = (world::folder()?, world::folder()?);
    let runtime = world::runtime()?;
    let (many_events, few_events) =
        runtime.block_on(async { anyhow::Ok((fill(many.path(), MANY).await?, fill(few.path(), FEW).await?)) })?;
    let sizes = format!("{MANY} conversations and {many_events} events, against {FEW} and {few_events}");

    let (large, small) = (opening(many.path())?, opening(few.path())?);
    let detail = format!("{:.0} ms against {:.0} ms; {sizes}", large * 1e3, small * 1e3);
    figures.add("years: opening", large / small, Goal::AtMost(1.2), detail);
    figures.add("years: opening, s", large, Goal::AtMost(1.0), String::new());

    let (large, small) = (memory::ask("years", many.path())?, memory::ask("days", few.path())?);
    let detail = format!("{:.1} MB against {:.1} MB", large as f64 / 1e6, small as f64 / 1e6);
    figures.add("years: resident memory", large as f64 / small as f64, Goal::AtMost(1.2), detail);

    runtime.block_on(async {
        let (large, small) = (memory::open(many.path()).await?, memory::open(few.path()).await?);
        let (mut ratios, mut stalls) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (among_few, _) = round(&small, FEW).await?;
            let (among_many, stall) = round(&large, MANY).await?;
            ratios.push(among_many / among_few);
            stalls.push(stall);
        }
        let detail = format!("CPU of a request and its answer, median of {ROUNDS} rounds in turns");
        figures.add("years: a message", world::median(ratios), Goal::AtMost(1.1), detail);
        let detail = "the slowest request of a round, median of the rounds; snapshots included".to_owned();
        figures.add("years: longest wait, ms", world::median(stalls) * 1e3, Goal::AtMost(10.0), detail);
        let (first_many, first_few) = (first_view(&large).await?, first_view(&small).await?);
        let detail = format!("{first_many} bytes against {first_few}");
        figures.add("years: first page", first_many as f64 / first_few as f64, Goal::AtMost(1.1), detail);
        large.stop(Duration::ZERO).await;
        small.stop(Duration::ZERO).await;
        anyhow::Ok(())
    })?;
    let (long, short) = runtime.block_on(long_conversation())?;
    let detail = format!("{long:.0} µs CPU with {LONG} messages against {short:.0} with {SHORT}, {SHOWN} of them shown");
    figures.add("years: a turn in a long conversation", long / short, Goal::AtMost(1.2), detail);
    Ok(())
}

/// Has so many conversations and says how many events that took.
async fn fill(dir: &Path, count: u64) -> Result<u64> {
    let society = memory::open(dir).await?;
    let unit = Program(vec![Op::Think("about a step".into()), Op::Say("A result of a step.".repeat(5))]);
    let text = Program(vec![Op::Think("first".into()), Op::Units(vec![unit; 4]), Op::Say("All done.".into())]).text();
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..64 {
        let (society, text) = (society.clone(), text.clone());
        clients.spawn(async move {
            for n in (client..count).step_by(64) {
                let start = ConversationStart { id: Some(id(n).into()), ..ConversationStart::default() };
                let sent = society.converse(start, &text, None, Map::new()).await?;
                society.answer(&sent).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = clients.join_next().await {
        done??;
    }
    let events = society.look(|spine| spine.seq.0).await?;
    society.stop(Duration::ZERO).await;
    Ok(events)
}

fn id(n: u64) -> String {
    format!("c-{n:07}")
}

/// The seconds that opening takes.
fn opening(dir: &Path) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        times.push(world::runtime()?.block_on(async {
            let start = Instant::now();
            let society = memory::open(dir).await?;
            let time = start.elapsed().as_secs_f64();
            society.stop(Duration::ZERO).await;
            anyhow::Ok(time)
        })?);
    }
    Ok(world::median(times))
}

/// CPU of a message and its answer in µs, and the longest that one took in seconds. The conversations are far apart, so that none is
/// in a cache by chance.
async fn round(society: &Society, count: u64) -> Result<(f64, f64)> {
    let text = Program(vec![Op::Say("a word".to_owned())]).text();
    let (before, mut longest) = (world::cpu(), Duration::ZERO);
    for n in 0..MESSAGES {
        let start = Instant::now();
        let sent = society.send(id(n * 7_919 % count).into(), &text, None).await?;
        society.answer(&sent).await?;
        longest = longest.max(start.elapsed());
    }
    Ok(((world::cpu() - before).as_secs_f64() * 1e6 / MESSAGES as f64, longest.as_secs_f64()))
}

/// The bytes of what a user interface shows first.
async fn first_view(society: &Society) -> Result<usize> {
    let local = world::local(society);
    let view = local.conversation_view(&id(7).into(), &ConversationPage::default()).await?;
    Ok(serde_json::to_vec(&view)?.len())
}

/// Reads the newest messages of its thread, as agents that ask a model do.
struct Reads;

impl Agent for Reads {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        if let Ok(count) = turn.task().message.parse::<usize>() {
            for n in 0..count {
                turn.say(format!("message {n}, of a usual length, with something to say")).await?;
            }
            return Ok(Response::silent());
        }
        let shown = turn.context(SHOWN).await?.messages.len();
        Ok(Response::new(format!("{shown} messages")))
    }
}

/// CPU of a turn in a long conversation and in a short one, in µs.
async fn long_conversation() -> Result<(f64, f64)> {
    let dir = world::folder()?;
    let society = world::society(Arc::new(LocalLog::open(dir.path())?), Cast::new().with("reads", Reads), "reads").await?;
    for (name, count) in [("long", LONG), ("short", SHORT)] {
        society.spawn(name.into(), "bench".into(), "root".into()).await?;
        society.send(name.into(), &count.to_string(), None).await?;
    }
    while society.look(|spine| !spine.turns.is_empty()).await? {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (mut long, mut short) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (name, costs) in [("short", &mut short), ("long", &mut long)] {
            let before = world::cpu();
            for _ in 0..200 {
                let sent = society.send(name.into(), "read", None).await?;
                society.answer(&sent).await?;
            }
            costs.push((world::cpu() - before).as_secs_f64() * 1e6 / 200.0);
        }
    }
    society.stop(Duration::ZERO).await;
    Ok((world::median(long), world::median(short)))
}
