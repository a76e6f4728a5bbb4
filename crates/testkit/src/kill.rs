//! `kill -9` at every event of a real process: the gate that kills from within, and the driver that starts it again.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use polis_domain::{Recorded, Seq, SocietyId};
use polis_ports::{Log, LogError};

use crate::Gate;

/// How long one life may take before it counts as hanging.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Most kills that may come too late: whether a turn notes that it rests depends on time, so a run may have an event or two less
/// than another.
const MOST_MISSED: usize = 4;

/// Lives that are tried at once.
const AT_ONCE: usize = 3;

/// Of many places where a process can be killed, a test takes only some: every `otherwise`-th, or as `POLIS_TEST_KILL_STEP` says (1 for
/// every place).
///
/// # Panics
/// If the variable is no number from 1 on.
pub fn step(otherwise: usize) -> usize {
    let Ok(step) = std::env::var("POLIS_TEST_KILL_STEP") else { return otherwise };
    step.parse().ok().filter(|step| *step > 0).expect("POLIS_TEST_KILL_STEP is a number from 1 on")
}

/// Kills the process at one event. `KILL_AT=N` ends it with SIGKILL at the append that holds event N, `KILL_WHEN=before` or
/// `after` it is durable; without it nothing happens.
pub struct KillGate {
    at: Option<Seq>,
    before: bool,
}

impl KillGate {
    /// As the environment says.
    pub fn from_environment() -> Self {
        let at = std::env::var("KILL_AT").ok().and_then(|at| at.parse().ok()).map(Seq);
        Self { at, before: std::env::var("KILL_WHEN").is_ok_and(|when| when == "before") }
    }
}

#[async_trait]
impl Gate for KillGate {
    async fn append(
        &self,
        log: &dyn Log,
        society: &SocietyId,
        expected: Seq,
        events: &[Arc<Recorded>],
    ) -> Result<(), LogError> {
        let fatal = self.at.is_some_and(|at| events.iter().any(|recorded| recorded.seq == at));
        if fatal && self.before {
            // Whoever was told too early gets to believe it.
            for _ in 0..32 {
                tokio::task::yield_now().await;
            }
            die();
        }
        log.append(society, expected, events).await?;
        if fatal {
            die();
        }
        Ok(())
    }
}

/// `kill -9` from within: nothing is flushed, nothing is unwound.
fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    loop {
        std::thread::park();
    }
}

/// A program that keeps a society in a folder, dies as [`KillGate`] says, and ends well once everything is answered.
pub struct Target<'a> {
    /// Starts a life in this folder.
    pub life: &'a (dyn Fn(&Path) -> Command + Sync),
    /// The log that stands there now.
    pub read: &'a (dyn Fn(&Path) -> Vec<Recorded> + Sync),
}

/// A society that was killed and started again.
pub struct RestartedRun<'a> {
    /// Its folder.
    pub dir: &'a Path,
    /// Its log when it died.
    pub kept: &'a [Recorded],
    /// Its log in the end.
    pub log: &'a [Recorded],
}

impl Target<'_> {
    /// One life that nobody disturbs, and its log.
    pub fn undisturbed(&self, dir: &Path) -> Result<Vec<Recorded>, String> {
        self.live(dir)?;
        Ok((self.read)(dir))
    }

    /// Kills a society before and after each of so many events, each time one of its own, starts it again, and has the end
    /// looked at. The first thing that is wrong ends it.
    pub fn at_every_event(
        &self,
        events: usize,
        check: impl Fn(&RestartedRun<'_>) -> Result<(), String> + Sync,
    ) -> Result<(), String> {
        let points: Vec<_> = (1..=events as u64).flat_map(|at| [(at, "before"), (at, "after")]).collect();
        let (next, missed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let broken = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    while let Some((at, when)) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if let Err(what) = self.kill_and_resume(*at, when, &check, &missed) {
                            next.store(points.len(), Ordering::Relaxed);
                            let what = format!("killed {when} event {at}: {what}");
                            *broken.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
                        }
                    }
                });
            }
        });
        match missed.into_inner() {
            missed if missed > MOST_MISSED => Err(format!("{missed} of {} kills came after the end", points.len())),
            _ => broken.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err),
        }
    }

    fn kill_and_resume(
        &self,
        at: u64,
        when: &str,
        check: &impl Fn(&RestartedRun<'_>) -> Result<(), String>,
        missed: &AtomicUsize,
    ) -> Result<(), String> {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut life = (self.life)(dir.path());
        let life = life.env("KILL_AT", at.to_string()).env("KILL_WHEN", when).spawn();
        let status = wait(life.map_err(|error| error.to_string())?)?;
        if status.success() && ((self.read)(dir.path()).len() as u64) < at {
            missed.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        if signal(status) != Some(9) {
            return Err(format!("it was not killed: {status}"));
        }
        // A copy is read: whoever opens the log first mends it, and that is for the second life to do.
        let copy = tempfile::tempdir().map_err(|error| error.to_string())?;
        copy_folder(dir.path(), copy.path()).map_err(|error| error.to_string())?;
        let kept = (self.read)(copy.path());
        let lived = self.live(dir.path());
        let checked = check(&RestartedRun { dir: dir.path(), kept: &kept, log: &(self.read)(dir.path()) });
        match (lived, checked) {
            // What was lost may be why it does not come to its end.
            (Err(stuck), Err(why)) => Err(format!("{stuck}; {why}")),
            (lived, checked) => lived.and(checked),
        }
    }

    fn live(&self, dir: &Path) -> Result<(), String> {
        let mut life = (self.life)(dir);
        let life = life.env_remove("KILL_AT").spawn().map_err(|error| error.to_string())?;
        let status = wait(life)?;
        if status.success() { Ok(()) } else { Err(format!("a life that nobody disturbed ended with {status}")) }
    }
}

/// Waits for a life to end; one that hangs is ended.
pub fn wait(mut life: Child) -> Result<ExitStatus, String> {
    let start = Instant::now();
    loop {
        if let Some(status) = life.try_wait().map_err(|error| error.to_string())? {
            return Ok(status);
        }
        if start.elapsed() > PATIENCE {
            let _ = life.kill();
            let _ = life.wait();
            return Err("the society is stuck: a wait was forgotten or a turn is not run".to_owned());
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
