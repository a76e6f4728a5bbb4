//! Streams: the CPU of a delta, how late the first one comes, what an open stream holds, and many of them at once; against a
//! bare loop over hyper.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::runtime::Runtime;

use crate::figures::{Figures, Goal};
use crate::mock::Mock;
use crate::pace;
use crate::sides::{Side, Tally, Way, models, provider};
use crate::world;

const WAYS: [Way; 3] = [Way::Floor, Way::Provider, Way::Society];

/// So many streams at once, and when their CPU is measured: between the time when all have begun and the time when the first
/// ends.
#[derive(Clone, Copy)]
struct Load {
    streams: usize,
    deltas: u64,
    apart: Duration,
    begun: Duration,
    measured: Duration,
}

/// 64 streams at 50 deltas/s.
const SOME: Load = Load {
    streams: 64,
    deltas: 150,
    apart: Duration::from_millis(20),
    begun: Duration::from_millis(500),
    measured: Duration::from_secs(2),
};

/// 2,000 streams at 20 deltas/s.
const MANY: Load = Load {
    streams: 2_000,
    deltas: 200,
    apart: Duration::from_millis(50),
    begun: Duration::from_secs(2),
    measured: Duration::from_secs(7),
};

const ROUNDS: usize = 7;
const FIRSTS: usize = 200;
const OPEN: usize = 10_000;

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let files = world::raise_open_files()?;
    let server = Mock::start("pace")?;
    some(figures, &server.url)?;
    first(figures, &server.url)?;
    many(figures, &server.url)?;
    if files > OPEN as u64 + 100 {
        open(figures, &server.url)?;
    } else {
        eprintln!("skipped: {OPEN} open streams: the system allows {files} open files");
    }
    Ok(())
}

/// A society has a thread of its own and its watchers have others, as in the program; so the rest gets one thread as well,
/// on which it costs least.
fn runtime(way: Way) -> Result<Runtime> {
    match way {
        Way::Floor | Way::Provider => Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?),
        Way::Society => world::runtime(),
    }
}

/// What came of a load.
struct Ran {
    cpu_micros: f64,
    cpu_share: f64,
    lost: u64,
    wrong: u64,
}

impl Load {
    fn run(self, server: &str, way: Way) -> Result<Ran> {
        runtime(way)?.block_on(async {
            let tally = Arc::<Tally>::default();
            let mut side = Side::open(way, &pace::url(server, self.deltas, self.apart), self.streams, &tally).await?;
            let reading = tokio::spawn(async move {
                side.read(self.streams, self.deltas).await?;
                side.close().await
            });
            tokio::time::sleep(self.begun).await;
            let before = (world::now(), world::cpu(), tally.seen());
            tokio::time::sleep(self.measured).await;
            let (took, used, seen) = (world::now() - before.0, world::cpu() - before.1, tally.seen() - before.2);
            reading.await??;
            Ok(Ran {
                cpu_micros: used.as_secs_f64() * 1e6 / seen as f64,
                cpu_share: used.as_secs_f64() / took.as_secs_f64(),
                lost: (self.streams as u64 * self.deltas).saturating_sub(tally.seen()),
                wrong: tally.wrong(),
            })
        })
    }
}

fn some(figures: &mut Figures, server: &str) -> Result<()> {
    let mut used = [const { Vec::new() }; WAYS.len()];
    for _ in 0..ROUNDS {
        for (way, used) in WAYS.into_iter().zip(&mut used) {
            let ran = SOME.run(server, way)?;
            ensure!(ran.lost + ran.wrong == 0, "{way:?}: {} deltas are lost, {} out of order", ran.lost, ran.wrong);
            used.push(ran.cpu_micros);
        }
    }
    let [floors, providers, societies] = used;
    let mut add = |name, ours: Vec<f64>| {
        // Of each round, as what else the machine does changes from round to round.
        let ratio = world::median(ours.iter().zip(&floors).map(|(ours, floor)| ours / floor).collect());
        let (ours, floor) = (world::median(ours), world::median(floors.clone()));
        let detail = format!("{ours:.1} µs CPU a delta against {floor:.1}; 64 streams at 50/s, median of {ROUNDS} rounds");
        figures.add(name, ratio, Goal::AtMost(2.0), detail);
    };
    add("streamed delta, provider, against floor", providers);
    add("streamed delta, watched society, against floor", societies);
    Ok(())
}

fn first(figures: &mut Figures, server: &str) -> Result<()> {
    let url = pace::url(server, 1, Duration::from_millis(3));
    let tallies: [Arc<Tally>; WAYS.len()] = Default::default();
    let mut sides = Vec::new();
    for (way, tally) in WAYS.into_iter().zip(&tallies) {
        let runtime = runtime(way)?;
        let side = runtime.block_on(Side::open(way, &url, 1, tally))?;
        sides.push((runtime, side));
    }
    for _ in 0..FIRSTS {
        for (runtime, side) in &mut sides {
            runtime.block_on(side.read(1, 1))?;
        }
    }
    for (runtime, side) in sides {
        runtime.block_on(side.close())?;
    }
    let [floor, provider, society] = tallies.map(|tally| world::median(tally.late()));
    let detail = |ours: f64| format!("{ours:.3} ms after it was sent against {floor:.3}; median of {FIRSTS}");
    figures.add("first delta, provider: ms after floor's", provider - floor, Goal::AtMost(0.2), detail(provider));
    figures.add("first delta, watched society: ms after floor's", society - floor, Goal::AtMost(0.2), detail(society));
    Ok(())
}

fn many(figures: &mut Figures, server: &str) -> Result<()> {
    let [floor, provider, society] = {
        let mut ran = Vec::new();
        for way in WAYS {
            ran.push(MANY.run(server, way)?);
        }
        <[Ran; WAYS.len()]>::try_from(ran).ok().context("there are as many as ways")?
    };
    let cores = std::thread::available_parallelism()?.get() as f64;
    let all = MANY.streams as u64 * MANY.deltas;
    // In the society every reply is whole, or there would be no figure: what can be lost there is what a slow watcher misses.
    let names = [
        ("2,000 streams, provider: deltas lost or out of order", "2,000 streams, provider, against floor"),
        ("2,000 streams, one watcher: deltas missed or out of order", "2,000 streams, watched society, against floor"),
    ];
    for ((order, cost), ran) in names.into_iter().zip([provider, society]) {
        let detail = format!("{} lost, {} not after the one before, of {all}; each stream at 20/s", ran.lost, ran.wrong);
        figures.add(order, ran.lost.max(ran.wrong) as f64, Goal::AtMost(0.0), detail);
        let share = 100.0 * ran.cpu_share / cores;
        let detail =
            format!("{:.1} µs CPU a delta against {:.1}; {share:.0} % of {cores} cores", ran.cpu_micros, floor.cpu_micros);
        figures.add(cost, ran.cpu_micros / floor.cpu_micros, Goal::AtMost(2.0), detail);
    }
    Ok(())
}

fn open(figures: &mut Figures, server: &str) -> Result<()> {
    let (count, url) = (OPEN.to_string(), pace::url(server, 3_600, Duration::from_secs(1)));
    let output = Command::new(std::env::current_exe()?).args(["open", &count, &url]).output()?;
    let bytes: f64 = String::from_utf8(output.stdout)?
        .trim()
        .parse()
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let detail = format!("{OPEN} of them through the provider, each in a task of its own, a delta a second");
    figures.add("an open stream: bytes resident", bytes, Goal::AtMost(40_000.0), detail);
    Ok(())
}

/// Opens so many streams and prints how many bytes this process holds for each once all of them have begun.
pub(crate) fn resident(streams: &str, url: &str) -> Result<()> {
    let streams: u64 = streams.parse()?;
    world::raise_open_files()?;
    world::runtime()?.block_on(async {
        let (models, tally) = (Arc::new(models(url).await?), Arc::<Tally>::default());
        let mut hands = tokio::task::JoinSet::new();
        hands.spawn(provider(models.clone(), tally.clone()));
        let begun = async |hands: &mut tokio::task::JoinSet<Result<()>>, count: u64| {
            while tally.late().len() < count as usize {
                if let Some(done) = hands.try_join_next() {
                    done??;
                    anyhow::bail!("a stream ended");
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Ok(())
        };
        begun(&mut hands, 1).await?;
        let before = world::resident()?;
        for n in 1..streams {
            hands.spawn(provider(models.clone(), tally.clone()));
            // No more than the server's queue holds.
            if n % 256 == 0 {
                begun(&mut hands, n.saturating_sub(256)).await?;
            }
        }
        begun(&mut hands, streams).await?;
        let all = tally.seen();
        while tally.seen() < all + 2 * streams {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        ensure!(tally.wrong() == 0, "{} deltas are out of order", tally.wrong());
        println!("{}", world::resident()?.saturating_sub(before) / (streams - 1));
        std::process::exit(0)
    })
}
