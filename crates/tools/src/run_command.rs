//! `run_command`: a line for the shell, run in the workspace and in a [`Sandbox`]. What it may use is set up by whoever offers it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{Artifact, CallResult, EffectClass, Flow};
use polis_ports::{CallContext, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::Semaphore;

use crate::kept_files::{self, KeptFiles};
use crate::protected::ProtectedPaths;
use crate::results::{arguments, failed, good};
use crate::sandbox::{CommandEnd, CommandSpec, EndReason, Limits, Sandbox, StopOnDrop, set_aside_note};
use crate::spill::Spill;

/// Longest command, in bytes; the kernel takes no longer one.
const MAX_COMMAND_BYTES: usize = 100 << 10;
/// Most commands that run at once.
const MAX_RUNNING: usize = 32;
/// Where programs are, when nobody says.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// What commands are told of the environment, if it is set.
const PASSED_ON: &[&str] = &["LANG", "LC_ALL", "TERM"];

/// What commands may use.
#[derive(Debug, Clone)]
pub struct CommandOptions {
    /// The folder in which they run and may write.
    pub workspace: PathBuf,
    /// What they may not write, and what they may not even read.
    pub protected: ProtectedPaths,
    /// The folder with a note for each command that runs, by which a later start sets aside what it left
    /// ([`recover`](crate::sandbox::recover)); none where nobody would look.
    pub journal: Option<PathBuf>,
    /// Folders that they may read and run programs from, beside those of the system.
    pub readable: Vec<PathBuf>,
    /// Names of environment variables that they are told; those of secrets never.
    pub environment: Vec<String>,
    /// Whether they may ask for the network.
    pub network: bool,
    /// What each may use.
    pub limits: Limits,
}

/// Runs commands.
#[derive(Debug)]
pub struct RunCommand {
    sandbox: Sandbox,
    commands: CommandOptions,
    slots: Semaphore,
    caution: Option<String>,
    /// Where the notes are if nobody says.
    journal: OnceLock<TempDir>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    timeout_seconds: Option<u64>,
    network: Option<bool>,
}

impl CommandOptions {
    /// Commands for a folder, with nothing but the defaults.
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        let workspace = workspace.into();
        Self {
            protected: ProtectedPaths::new(&workspace),
            journal: None,
            workspace,
            readable: Vec::new(),
            environment: Vec::new(),
            network: false,
            limits: Limits::default(),
        }
    }
}

impl RunCommand {
    /// Runs commands in `sandbox`.
    pub fn new(sandbox: Sandbox, commands: CommandOptions) -> Self {
        Self { sandbox, commands, slots: Semaphore::new(MAX_RUNNING), caution: None, journal: OnceLock::new() }
    }

    /// The same, with a person asked about each command for this reason.
    #[must_use]
    pub fn with_caution(self, why: Option<String>) -> Self {
        Self { caution: why, ..self }
    }

    /// Where the note of a command is.
    fn note(&self, home: &Path) -> std::io::Result<PathBuf> {
        let folder = match (&self.commands.journal, self.journal.get()) {
            (Some(folder), _) => {
                std::fs::create_dir_all(folder)?;
                folder
            }
            (None, Some(own)) => own.path(),
            (None, None) => {
                let own = tempfile::Builder::new().prefix("polis-").tempdir()?;
                self.journal.get_or_init(|| own).path()
            }
        };
        // The warden is started elsewhere.
        Ok(folder.canonicalize()?.join(home.file_name().unwrap_or_default()).with_extension("json"))
    }

    fn spec(&self, command: String, wall: Duration, network: bool, home: PathBuf) -> std::io::Result<CommandSpec> {
        let CommandOptions { workspace, protected, readable, environment, limits, .. } = &self.commands;
        let home_text = home.display().to_string();
        let kept_text = home.join(kept_files::FOLDER).display().to_string();
        let mut variables = vec![("PATH".to_owned(), std::env::var("PATH").unwrap_or_else(|_| PATH.to_owned()))];
        variables.extend([("HOME".to_owned(), home_text.clone()), ("TMPDIR".to_owned(), home_text)]);
        variables.push(("ARTIFACTS".to_owned(), kept_text));
        let names = PASSED_ON.iter().copied().chain(environment.iter().map(String::as_str).filter(|name| !is_secret(name)));
        variables.extend(names.filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?))));
        Ok(CommandSpec {
            command,
            workspace: workspace.canonicalize()?,
            note: Some(self.note(&home)?),
            home,
            protected: protected.clone(),
            held: Vec::new(),
            readable: readable.clone(),
            environment: variables,
            network,
            namespaces: true,
            limits: Limits { wall, ..limits.clone() },
        })
    }
}

#[async_trait]
impl Tool for RunCommand {
    fn spec(&self) -> ToolSpec {
        let most = self.commands.limits.wall.as_secs();
        let mut parameters = json!({
            "type": "object",
            "properties": {
                "command": { "type": "string", "description": "A line or a script for /bin/sh, for example: cargo test 2>&1 | tail -40" },
                "timeout_seconds": { "type": "integer", "minimum": 1, "maximum": most, "description": format!("After how many seconds it is ended; {most} if left out") },
            },
            "required": ["command"],
        });
        if self.commands.network {
            parameters["properties"]["network"] =
                json!({ "type": "boolean", "description": "Whether it needs the network; it has none if left out" });
        }
        let network = match self.commands.network {
            true => "It has no network unless the call asks for it.",
            false => "It has no network.",
        };
        ToolSpec {
            name: "run_command".into(),
            description: format!(
                "Runs a command in the workspace and gives its exit status and what it printed, long output cut in the middle and \
                 kept whole as an artifact. Code goes in with a here-document, such as python3 - <<'EOF'. Files that are left in the folder \
                 $ARTIFACTS are kept as artifacts, and you see the pictures among them. It can read the system's programs and write only in the workspace and in $TMPDIR, gets \
                 no input, and all its processes end with it. {network} Files that govern agents or that programs obey (roles, AGENTS.md, git \
                 hooks, editor and shell settings) only the person can write: what a command leaves there is renamed."
            ),
            parameters,
            class: EffectClass::Write,
            volatile: true,
        }
    }

    fn caution(&self) -> Option<String> {
        self.caution.clone()
    }

    fn flow(&self, text: &str) -> Flow {
        let network = arguments::<Arguments>(text).is_ok_and(|it| it.network.unwrap_or_default());
        // A command may read and remove whatever the workspace holds.
        let outside = network.then(|| "a command with the network".into());
        Flow { outside, private: true, recalls: true, stores: true, sends: network, destroys: true, ..Flow::default() }
    }

    async fn call(&self, text: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        let Arguments { command, timeout_seconds, network } = arguments(text)?;
        let bad = |why: String| Err(ToolError::BadArguments(why));
        if command.trim().is_empty() || command.contains('\0') || command.len() > MAX_COMMAND_BYTES {
            return bad(format!("command is empty, holds a NUL character or is longer than {MAX_COMMAND_BYTES} bytes"));
        }
        let most = self.commands.limits.wall;
        let wall = timeout_seconds.map_or(most, Duration::from_secs);
        if wall.is_zero() || wall > most {
            return bad(format!("timeout_seconds is 1 to {}", most.as_secs()));
        }
        let network = network.unwrap_or_default();
        if network && !self.commands.network {
            return bad("network is not allowed here".to_owned());
        }
        let Ok(_seat) = self.slots.acquire().await else { return Ok(failed("no command can run any more")) };
        let home = match tempfile::Builder::new().prefix("polis-").tempdir() {
            Ok(home) => home,
            Err(error) => return Ok(failed(format_args!("no private folder can be made: {error}"))),
        };
        if let Err(error) = std::fs::create_dir(home.path().join(kept_files::FOLDER)) {
            return Ok(failed(format_args!("no private folder can be made: {error}")));
        }
        let (spec, (stop, lines)) =
            match self.spec(command, wall, network, home.path().to_owned()).and_then(|spec| Ok((spec, StopOnDrop::new()?))) {
                Ok(ready) => ready,
                Err(error) => return Ok(failed(error)),
            };
        let written = self.commands.limits.written_bytes;
        let (sandbox, store) = (self.sandbox.clone(), context.artifacts.store.clone());
        let ran = tokio::task::spawn_blocking(move || {
            let ran = sandbox.run(spec, lines, &store);
            ran.map(|ended| call_result(ended, wall, written, kept_files::keep(home.path(), &store)))
        });
        let ran = ran.await;
        drop(stop);
        Ok(match ran {
            Ok(Ok(call_result)) => call_result,
            Ok(Err(reason)) => failed(format_args!("{reason}; nothing was run")),
            Err(stopped) => failed(stopped),
        })
    }
}

fn call_result(ended: CommandEnd, wall: Duration, written_bytes: u64, kept: KeptFiles) -> CallResult {
    let (how, is_error) = match ended.why {
        EndReason::Exited(code) => (format!("exit status {code}"), false),
        EndReason::Killed(signal) => (format!("ended by signal {signal}"), false),
        EndReason::TimedOut => (format!("ended because it took longer than {} seconds", wall.as_secs()), true),
        EndReason::TooMuchOutput => ("ended because it printed too much".to_owned(), true),
        EndReason::WroteTooMuch => (format!("ended because it wrote more than {} MB into files", written_bytes >> 20), true),
        EndReason::Lost => ("ended together with its sandbox".to_owned(), true),
    };
    let (mut content, mut artifacts) = (how, Vec::new());
    for (name, stream) in [("stdout", ended.stdout), ("stderr", ended.stderr)] {
        let (part, artifact) = part(name, stream);
        content.push_str(&part);
        artifacts.extend(artifact);
    }
    content.push_str(&kept.text());
    let media = kept.media();
    artifacts.extend(kept.artifacts);
    if let Some(note) = set_aside_note(&ended.set_aside, ended.more_set_aside) {
        content.push_str(&format!("\n\n{note}"));
    }
    let result = if is_error { failed(content) } else { good(content) };
    result.with_artifacts(artifacts).with_media(media)
}

fn part(name: &str, stream: Spill) -> (String, Option<Artifact>) {
    match stream.total() {
        0 => (format!("\n{name}: nothing"), None),
        total => {
            let (text, artifact) = stream.finish(&format!("{name}.txt"));
            (format!("\n{name} ({total} bytes):\n{}", text.trim_end_matches('\n')), artifact)
        }
    }
}

/// Names that tell what they hold. No setting passes these on.
fn is_secret(name: &str) -> bool {
    let name = name.to_uppercase();
    let ends = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS"];
    name.starts_with("POLIS_") || ends.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known() {
        for name in ["OPENAI_API_KEY", "GITHUB_TOKEN", "POLIS_DATA", "polis_x", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY"] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PATH", "CARGO_HOME", "TOKENIZERS_PARALLELISM", "KEYBOARD"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
