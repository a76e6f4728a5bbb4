//! Very many idle conversations: what one costs in memory, how long opening takes, and what a message in one of them costs.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use polis_engine::{ConversationStart, Society};
use polis_testkit::{Op, Program};
use serde_json::Map;

use crate::figures::{Figures, Goal};
use crate::{memory, world};

const MANY: u64 = 100_000;
const FEW: u64 = 10;

/// Messages of a round.
const MESSAGES: u64 = 2_000;

const ROUNDS: usize = 5;

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let (plain, many, few) = (world::folder()?, world::folder()?, world::folder()?);
    let runtime = world::runtime()?;
    runtime.block_on(async {
        memory::talk(plain.path()).await?;
        fill(many.path(), MANY).await?;
        fill(few.path(), FEW).await
    })?;
    let base = memory::ask("base", plain.path())?;
    let held = memory::ask("conversations", many.path())?.saturating_sub(base) as f64 / MANY as f64;
    let detail = format!("{MANY} of them, each with one request that was answered");
    figures.add("an idle conversation: bytes resident", held, Goal::AtMost(300.0), detail);
    let (ratio, among_many, opening) = runtime.block_on(async {
        let start = Instant::now();
        let large = memory::open(many.path()).await?;
        let opening = start.elapsed();
        let small = memory::open(few.path()).await?;
        let (mut ratios, mut costs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let among_few = round(&small, FEW).await?;
            let among_many = round(&large, MANY).await?;
            ratios.push(among_many / among_few);
            costs.push(among_many);
        }
        large.stop(Duration::ZERO).await;
        small.stop(Duration::ZERO).await;
        anyhow::Ok((world::median(ratios), world::median(costs), opening))
    })?;
    let detail = format!("{among_many:.0} µs CPU among {MANY}, against {FEW}, durable; median of {ROUNDS} rounds in turns");
    figures.add("a message in one of many conversations: CPU", ratio, Goal::AtMost(1.2), detail);
    let detail = format!("{MANY} conversations, from a snapshot");
    figures.add("opening a society of many conversations: s", opening.as_secs_f64(), Goal::AtMost(1.0), detail);
    Ok(())
}

/// CPU of a message and its answer, in µs. The conversations are far apart, so that none is in a cache by chance.
async fn round(society: &Society, count: u64) -> Result<f64> {
    let text = Program(vec![Op::Say("a word".to_owned())]).text();
    let before = world::cpu();
    for n in 0..MESSAGES {
        let sent = society.send(id(n * 7_919 % count).into(), &text, None).await?;
        society.answer(&sent).await?;
    }
    Ok((world::cpu() - before).as_secs_f64() * 1e6 / MESSAGES as f64)
}

async fn fill(dir: &Path, count: u64) -> Result<()> {
    let society = memory::open(dir).await?;
    let mut hands = tokio::task::JoinSet::new();
    for hand in 0..256 {
        let society = society.clone();
        hands.spawn(async move {
            let text = Program(vec![Op::Say("hello".to_owned())]).text();
            for n in (hand..count).step_by(256) {
                let title = Some("What the weather was like".to_owned());
                let start = ConversationStart { id: Some(id(n).into()), title, ..ConversationStart::default() };
                let sent = society.converse(start, &text, None, Map::new()).await?;
                society.answer(&sent).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = hands.join_next().await {
        done??;
    }
    society.stop(Duration::ZERO).await;
    Ok(())
}

fn id(n: u64) -> String {
    format!("c-{n:07}")
}
