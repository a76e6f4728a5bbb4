//! Runs programs where they can do little harm. Knows what this machine offers for that; decides nothing about who may.
//!
//! The program that runs is started again with a hidden argument, twice, and talks to its parent over a socket at its standard
//! input: the [`warden`] stays outside, watches that socket and ends everything when it closes; [`confined`] gives up, one after
//! the other, all that a command must not have, and runs it. No code between `fork` and `exec`, and nothing unsafe.

mod confined;
mod guard;
mod landlock;
mod launch;
mod meter;
mod namespaces;
mod protocol;
mod seccomp;
mod warden;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use polis_ports::{Artifacts, NoArtifacts};

pub(crate) use guard::set_aside_note;
pub(crate) use launch::{CommandEnd, EndReason, StopOnDrop};
pub(crate) use protocol::CommandSpec;
pub use protocol::{Limits, SandboxFeatures};

/// How the program is told that it is the warden.
const WARDEN: &str = "__warden";
/// How it is told that it is the one to be confined.
const CONFINED: &str = "__confined";

/// Starts commands.
#[derive(Debug, Clone)]
pub struct Sandbox {
    program: PathBuf,
    namespaces: bool,
}

impl Default for Sandbox {
    /// Starts the running program again; its `main` must begin with [`enter`].
    fn default() -> Self {
        Self::new("/proc/self/exe")
    }
}

impl Sandbox {
    /// Starts `program`, whose `main` begins with [`enter`].
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), namespaces: true }
    }

    /// Does without namespaces, as on machines that have none.
    pub fn without_namespaces(self) -> Self {
        Self { namespaces: false, ..self }
    }

    /// What this machine offers, found out by running a command that does nothing.
    pub async fn features(&self) -> Result<SandboxFeatures, String> {
        self.features_under(&Limits::default()).await
    }

    /// The same under these limits; an error where they let nothing run.
    pub async fn features_under(&self, limits: &Limits) -> Result<SandboxFeatures, String> {
        let home = tempfile::tempdir().map_err(|error| format!("no private folder can be made: {error}"))?;
        let spec = CommandSpec { limits: limits.clone(), ..CommandSpec::nothing(home.path()) };
        let sandbox = self.clone();
        let (_stop, lines) = StopOnDrop::new().map_err(|error| error.to_string())?;
        let nothing: Arc<dyn Artifacts> = Arc::new(NoArtifacts);
        let ran = tokio::task::spawn_blocking(move || sandbox.run(spec, lines, &nothing)).await;
        let ended = ran.map_err(|error| error.to_string())??;
        match ended.why {
            EndReason::Exited(0) => Ok(ended.features),
            why => Err(format!(
                "a command that does nothing does not run under the limits: {why:?}, {}",
                ended.stderr.finish("stderr").0
            )),
        }
    }
}

/// Sets aside what commands have left whose end nobody saw, by the notes in a folder. Tells what that was, a line each.
pub fn recover(journal: &Path) -> Vec<String> {
    guard::recover_all(journal).iter().map(ToString::to_string).collect()
}

/// What a program does first of all: where it was started to confine a command, it does that and nothing else.
pub fn enter() -> Option<ExitCode> {
    let argument = std::env::args_os().nth(1)?;
    let part = |name: &str| argument == OsStr::new(name);
    if part(WARDEN) {
        Some(warden::watch())
    } else if part(CONFINED) {
        Some(confined::run())
    } else {
        None
    }
}
