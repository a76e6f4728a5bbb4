//! What the measurements share: societies to measure, and the machine's own counters.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use polis_api::{Caller, Local};
use polis_domain::Role;
use polis_engine::{Cast, LocalLive, Options, Ports, Society, SystemClock};
use polis_ports::{Log, Model, NoArtifacts, Toolbox};
use polis_store_local::LocalLog;
use polis_testkit::{MemoryLog, ScriptedModel, ScriptedTools};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// How often what is measured against a floor is measured.
pub(crate) const ROUNDS: usize = 7;

/// Where a society keeps its log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Memory,
    Durable,
}

/// A log of a kind; the folder of a durable one goes with the guard.
pub(crate) fn log(kind: Kind) -> Result<(Arc<dyn Log>, Option<tempfile::TempDir>)> {
    Ok(match kind {
        Kind::Memory => (Arc::new(MemoryLog::new()), None),
        Kind::Durable => {
            let dir = folder()?;
            (Arc::new(LocalLog::open(dir.path())?), Some(dir))
        }
    })
}

/// A folder on the disk that the build lies on, not in memory.
pub(crate) fn folder() -> Result<tempfile::TempDir> {
    let target = std::env::current_exe()?.parent().context("the program lies in a folder")?.to_owned();
    Ok(tempfile::Builder::new().prefix("bench-").tempdir_in(target)?)
}

pub(crate) fn role(behaviour: &str) -> Role {
    Role { name: "Bench".into(), prompt: "You answer.".into(), ..Role::new("bench", behaviour) }
}

pub(crate) fn ports(log: Arc<dyn Log>, model: Arc<dyn Model>, toolbox: Arc<dyn Toolbox>) -> Ports {
    let (live, clock) = (Arc::new(LocalLive::default()), Arc::new(SystemClock));
    Ports {
        log,
        model,
        toolbox,
        live,
        clock,
        artifacts: Arc::new(NoArtifacts),
        memory_texts: Arc::new(polis_ports::NoMemoryTexts),
        embedder: None,
    }
}

/// A society that needs neither a model nor tools.
pub(crate) async fn society(log: Arc<dyn Log>, cast: Cast, behaviour: &str) -> Result<Society> {
    let ports = ports(log, Arc::new(ScriptedModel::saying("yes")), Arc::new(ScriptedTools::new()));
    Ok(Society::open("main".into(), ports, cast, options(behaviour)).await?)
}

/// The operations of a society, as its owner calls them.
pub(crate) fn local(society: &Society) -> Local {
    let (society, caller) = (society.clone(), Caller::owner());
    Local { society, caller, host: Arc::default(), uploads: Default::default(), registry: None }
}

/// A society on a thread of its own, as the program runs it.
pub(crate) fn options(behaviour: &str) -> Options {
    Options { own_thread: true, ..Options::new(7, role(behaviour)) }
}

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// Lets this process open as many files as the system allows it, and says how many that is.
pub(crate) fn raise_open_files() -> Result<u64> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    Ok(maximum.unwrap_or(u64::MAX))
}

/// The time, of a clock that all processes of this machine share.
pub(crate) fn now() -> Duration {
    time(ClockId::Monotonic)
}

/// CPU time that this process has used so far.
pub(crate) fn cpu() -> Duration {
    time(ClockId::ProcessCPUTime)
}

fn time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Bytes that this process has handed to the system to write so far.
pub(crate) fn written() -> Result<u64> {
    field("/proc/self/io", "wchar:")
}

/// Bytes of memory that this process holds.
pub(crate) fn resident() -> Result<u64> {
    Ok(field("/proc/self/status", "VmRSS:")? * 1_024)
}

/// The most bytes of memory that this process has held.
pub(crate) fn most_resident() -> Result<u64> {
    Ok(field("/proc/self/status", "VmHWM:")? * 1_024)
}

/// CPU time that another process has used so far.
pub(crate) fn cpu_of(process: u32) -> Result<Duration> {
    const TICKS_A_SECOND: u64 = 100;
    let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let after_name = text.rsplit_once(')').context("the system tells it so")?.1;
    let ticks: u64 = after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 1_000 / TICKS_A_SECOND))
}

/// Bytes that another process has had written to the disk so far.
pub(crate) fn written_of(process: u32) -> Result<u64> {
    field(format!("/proc/{process}/io"), "write_bytes:")
}

/// Bytes of memory that another process holds.
pub(crate) fn resident_of(process: u32) -> Result<u64> {
    Ok(field(format!("/proc/{process}/status"), "VmRSS:")? * 1_024)
}

fn field(file: impl AsRef<Path>, name: &str) -> Result<u64> {
    let text = std::fs::read_to_string(file)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).context("the system counts it")?;
    Ok(line.split_whitespace().next().context("a number follows")?.parse()?)
}

/// What the two logs cost against a floor.
pub(crate) struct Rounds {
    pub(crate) memory: Ratio,
    pub(crate) durable: Ratio,
}

/// The round in the middle, by what was measured against its floor.
#[derive(Clone, Copy)]
pub(crate) struct Ratio {
    pub(crate) ours: f64,
    pub(crate) floor: f64,
}

impl Ratio {
    pub(crate) fn value(self) -> f64 {
        self.ours / self.floor
    }

    fn middle(mut rounds: Vec<Self>) -> Result<Self> {
        rounds.sort_by(|one, other| one.value().total_cmp(&other.value()));
        rounds.get(rounds.len() / 2).copied().context("there were no rounds")
    }
}

/// Measures both logs in turns, each between two floors: the machine may be faster at another time.
pub(crate) fn rounds(floor: impl Fn() -> Result<f64>, ours: impl Fn(Kind) -> Result<f64>) -> Result<Rounds> {
    let (mut memory, mut durable) = (Vec::new(), Vec::new());
    let mut before = floor()?;
    for _ in 0..ROUNDS {
        for (kind, measured) in [(Kind::Memory, &mut memory), (Kind::Durable, &mut durable)] {
            let ours = ours(kind)?;
            let after = floor()?;
            measured.push(Ratio { ours, floor: (before + after) / 2.0 });
            before = after;
        }
    }
    Ok(Rounds { memory: Ratio::middle(memory)?, durable: Ratio::middle(durable)? })
}

/// The middle one.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
