//! A whole society at work: agents in three levels, each asks everybody below it at once; the model answers at once. Measured in
//! processes of their own.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use polis_domain::{AgentId, Event, Failure, Limits, Response, Role};
use polis_engine::{Agent, Cast, Options, Request, Requests, Society, Turn};
use polis_ports::Log;
use polis_store_local::LocalLog;
use polis_testkit::{ScriptedModel, ScriptedTools};
use serde_json::Map;

use crate::figures::{Figures, Goal};
use crate::world;

/// Messages of one run, whatever the number of agents.
const MESSAGES: u64 = 10_000;

/// What a run of so many agents came to.
struct Run {
    cpu_ms: f64,
    seconds: f64,
    bytes: f64,
}

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let [few, thousand, many] = [10, 1_000, 10_000].map(run);
    let (few, thousand, many) = (few?, thousand?, many?);
    figures.add(
        "1,000 agents, 10,000 messages, durable: ms CPU a message",
        thousand.cpu_ms,
        Goal::AtMost(0.3),
        format!("asked, thought about and answered; {:.0} messages/s", MESSAGES as f64 / thousand.seconds),
    );
    figures.add(
        "1,000 agents, 10,000 messages: MiB resident at most",
        thousand.bytes / (1 << 20) as f64,
        Goal::AtMost(256.0),
        format!("{:.0} MiB with 10,000 agents", many.bytes / (1 << 20) as f64),
    );
    figures.add(
        "a message among 10,000 agents, against one among 10",
        many.cpu_ms / few.cpu_ms,
        Goal::AtMost(1.2),
        format!("{:.3} ms CPU against {:.3}", many.cpu_ms, few.cpu_ms),
    );
    Ok(())
}

/// Runs a society in a process of its own.
fn run(agents: u64) -> Result<Run> {
    let dir = world::folder()?;
    let output = Command::new(std::env::current_exe()?).args(["society", &agents.to_string()]).arg(dir.path()).output()?;
    let told = String::from_utf8(output.stdout)?;
    let numbers: Vec<f64> = told.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [cpu_ms, seconds, bytes] = numbers[..] else {
        anyhow::bail!("{told}{}", String::from_utf8_lossy(&output.stderr));
    };
    Ok(Run { cpu_ms, seconds, bytes })
}

/// Lives one society and prints what it took: CPU milliseconds a message, seconds, and bytes at most.
pub(crate) fn live(agents: &str, dir: &Path) -> Result<()> {
    let agents: u64 = agents.parse()?;
    let runtime = world::runtime()?;
    let (cpu, elapsed) = runtime.block_on(work(agents, dir))?;
    println!("{} {} {}", cpu.as_secs_f64() * 1e3 / MESSAGES as f64, elapsed.as_secs_f64(), world::most_resident()?);
    Ok(())
}

async fn work(agents: u64, dir: &Path) -> Result<(Duration, Duration)> {
    let log = Arc::new(LocalLog::open(dir)?);
    let leads = (agents as f64).sqrt() as u64;
    let cast = Cast::new().with("lead", Lead { leads, agents }).with("worker", Worker);
    let limits = Limits { open_effects: 256, turns_per_task: u32::MAX, ..Limits::default() };
    let options = Options { limits, ..world::options("lead") };
    let ports = world::ports(log.clone(), Arc::new(ScriptedModel::saying("yes")), Arc::new(ScriptedTools::new()));
    let society = Society::open("main".into(), ports, cast, options).await?;
    society.create_role(Role::new("worker", "worker")).await?;
    found(&society, agents, leads).await?;
    let (start, cpu) = (Instant::now(), world::cpu());
    for _ in 0..MESSAGES / agents {
        let sent = society.submit("all of you").await?;
        let answer = society.answer(&sent).await?;
        ensure!(&*answer.payload.text == "yes", "{}", answer.payload.text);
    }
    let (used, elapsed) = (world::cpu() - cpu, start.elapsed());
    society.stop(Duration::ZERO).await;
    let envelopes = envelopes(&*log).await?;
    ensure!(envelopes == MESSAGES, "{envelopes} messages to agents instead of {MESSAGES}");
    Ok((used, elapsed))
}

/// Root has leads, and each of them its share of the others.
async fn found(society: &Society, agents: u64, leads: u64) -> Result<()> {
    for n in 0..leads {
        society.spawn(lead(n), "bench".into(), AgentId::root()).await?;
    }
    for n in 0..agents - leads - 1 {
        society.spawn(worker(n), "worker".into(), lead(n % leads)).await?;
    }
    Ok(())
}

fn lead(n: u64) -> AgentId {
    format!("lead{n}").into()
}

fn worker(n: u64) -> AgentId {
    format!("worker{n}").into()
}

/// How many messages agents were sent.
async fn envelopes(log: &dyn Log) -> Result<u64> {
    let (mut count, mut seen) = (0, polis_domain::Seq(0));
    loop {
        let page = log.read(&"main".into(), seen, 10_000).await?;
        let Some(last) = page.last() else { return Ok(count) };
        seen = last.seq;
        let to_agent = |event: &Event| event.envelope().is_some_and(|envelope| !envelope.to.is_user());
        count += page.iter().filter(|recorded| to_agent(&recorded.event)).count() as u64;
    }
}

/// Asks everybody below it at once; what they say is what it says.
struct Lead {
    leads: u64,
    agents: u64,
}

impl Agent for Lead {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let below: Vec<AgentId> = match turn.agent().as_str().strip_prefix("lead").and_then(|n| n.parse::<u64>().ok()) {
            None => (0..self.leads).map(lead).collect(),
            Some(n) => (n..self.agents - self.leads - 1).step_by(self.leads as usize).map(worker).collect(),
        };
        let ask =
            |to: AgentId| Request { to, text: "your part".into(), patience: Duration::from_secs(600), meta: Map::new().into() };
        let mut requests = Requests::default();
        for sent in turn.request(below.into_iter().map(ask).collect()).await {
            requests.push(sent?);
        }
        let mut said = turn.generate("how is it done?").await?;
        while let Some((_, answer)) = turn.next_answer(&mut requests).await {
            said = answer?.to_string();
        }
        Ok(Response::new(said))
    }
}

/// Asks the model.
struct Worker;

impl Agent for Worker {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        Ok(Response::new(turn.generate("do it").await?))
    }
}
