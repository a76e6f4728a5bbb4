//! Memory of idle agents and of parked turns, measured in processes of their own.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use polis_domain::AgentId;
use polis_engine::{Cast, Options, Society};
use polis_store_local::LocalLog;
use polis_testkit::{Op, Program, ProgrammedAgent, ScriptedModel, ScriptedTools};

use crate::figures::{Figures, Goal};
use crate::world;

const AGENTS: u64 = 100_000;
const TURNS: u64 = 10_000;

/// How long the allocator keeps what nobody uses.
const GIVEN_BACK: Duration = Duration::from_millis(1_200);

/// Requests that are made before it is measured.
const WORK: usize = 500;

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let (plain, agents, turns) = (world::folder()?, world::folder()?, world::folder()?);
    world::runtime()?.block_on(async {
        talk(plain.path()).await?;
        fill(agents.path(), AGENTS, false).await?;
        fill(turns.path(), TURNS, true).await
    })?;
    let base = ask("base", plain.path())?;
    let idle = ask("idle", agents.path())?.saturating_sub(base) as f64 / AGENTS as f64;
    figures.add(
        "an idle agent: bytes resident",
        idle,
        Goal::AtMost(300.0),
        format!("{AGENTS} of them; a society with a long log and one agent holds {base} bytes"),
    );
    let parked = ask("parked", turns.path())?.saturating_sub(base) as f64 / TURNS as f64;
    figures.add(
        "a parked turn and its agent: bytes resident",
        parked,
        Goal::AtMost(1_300.0),
        format!("{TURNS} of them, each in an agent of its own"),
    );
    Ok(())
}

/// What this process holds once it has the society open and has worked in it a little: the allocator gives back what opening took
/// a second later, when it has something to do.
pub(crate) fn resident(_: &str, dir: &Path) -> Result<()> {
    let runtime = world::runtime()?;
    let society = runtime.block_on(open(dir))?;
    runtime.block_on(async {
        tokio::time::sleep(GIVEN_BACK).await;
        for _ in 0..WORK {
            let sent = society.submit(&Program(vec![Op::Say("a word".repeat(200))]).text()).await?;
            society.answer(&sent).await?;
        }
        anyhow::Ok(())
    })?;
    println!("{}", world::resident()?);
    runtime.block_on(society.stop(Duration::ZERO));
    Ok(())
}

pub(crate) fn ask(what: &str, dir: &Path) -> Result<u64> {
    let output = Command::new(std::env::current_exe()?).args(["resident", what]).arg(dir).output()?;
    String::from_utf8(output.stdout)?.trim().parse().with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

pub(crate) async fn open(dir: &Path) -> Result<Society> {
    let (model, tools) = (Arc::new(ScriptedModel::saying("yes")), Arc::new(ScriptedTools::new()));
    let ports = world::ports(Arc::new(LocalLog::open(dir)?), model, tools);
    let options = Options { max_lingering: 0, ..world::options(ProgrammedAgent::NAME) };
    Ok(Society::open("main".into(), ports, Cast::new().with(ProgrammedAgent::NAME, ProgrammedAgent), options).await?)
}

/// A society of one agent with a log as long as the others', so that what the store keeps in memory is not counted.
pub(crate) async fn talk(dir: &Path) -> Result<()> {
    let society = open(dir).await?;
    let program = Program(vec![Op::Say("a message of a usual length, as people write them".to_owned()); 2_000]);
    for _ in 0..20 {
        let sent = society.submit(&program.text()).await?;
        society.answer(&sent).await?;
    }
    society.stop(Duration::ZERO).await;
    Ok(())
}

/// Spawns agents, 64 at a time; each waits for a person if it should.
async fn fill(dir: &Path, count: u64, waiting: bool) -> Result<()> {
    let society = open(dir).await?;
    let mut hands = tokio::task::JoinSet::new();
    for hand in 0..256 {
        let society = society.clone();
        hands.spawn(async move {
            for n in (hand..count).step_by(256) {
                let name = AgentId::from(format!("0192f3c4-1111-7abc-8def-{n:012}"));
                society.spawn(name.clone(), "bench".into(), AgentId::root()).await?;
                if waiting {
                    society.send(name, r#"[{"approve":"may I?"}]"#, None).await?;
                }
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = hands.join_next().await {
        done??;
    }
    while society.look(|spine| spine.turns.values().any(|turn| turn.is_owed())).await? {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    society.stop(Duration::ZERO).await;
    Ok(())
}
