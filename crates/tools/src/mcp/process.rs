//! The process of a server: started with a bare environment in a group of its own, ended with everything it started.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// What a program cannot do without. Keys and our own settings are not among it.
pub const PASSED_ON: &[&str] =
    &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

/// How long a server may take to end by itself once nobody talks to it any more.
const GRACE: Duration = Duration::from_secs(2);

/// The variable that marks what belongs to a server.
const MARK: &str = "POLIS_SERVER_MARK";

/// How often processes are looked for that were started while others were ended.
#[cfg(target_os = "linux")]
const ROUNDS: usize = 8;

/// Longest line of a server's stderr that is passed on, in bytes.
const MAX_LINE_BYTES: usize = 2 << 10;

/// A server's process.
pub(super) struct Process {
    child: Child,
    /// Its group, until that was killed.
    group: Option<u32>,
    /// What all that it starts can be told by, whichever group or session it goes to.
    mark: String,
    last_stderr_line: LastStderrLine,
}

/// The last line that a process wrote to stderr: mostly why it did not start.
#[derive(Clone, Default)]
pub(super) struct LastStderrLine(Arc<Mutex<String>>);

impl Process {
    /// Starts it, with its pipes.
    pub(super) fn start(
        server: &str,
        command: &str,
        args: &[String],
        env: &BTreeMap<String, String>,
        cwd: Option<&Path>,
    ) -> std::io::Result<(Self, ChildStdout, ChildStdin)> {
        let mark = new_mark();
        let mut start = Command::new(command);
        start.args(args).env_clear().envs(PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?)))).envs(env);
        start.env(MARK, &mark);
        start.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        #[cfg(unix)]
        start.process_group(0);
        if let Some(cwd) = cwd {
            start.current_dir(cwd);
        }
        let mut child = start.spawn()?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
            return Err(std::io::Error::other("the process has no pipes"));
        };
        let last_stderr_line = LastStderrLine::default();
        // Ends with the pipe, at the latest when the process group is killed.
        tokio::spawn(listen(server.to_owned(), stderr, last_stderr_line.clone()));
        Ok((Self { group: child.id(), child, mark, last_stderr_line }, stdout, stdin))
    }

    /// Waits until it has ended, and says how.
    pub(super) async fn ended(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => format!("it ended ({status})"),
            Err(error) => format!("it cannot be watched: {error}"),
        }
    }

    /// What it said last.
    pub(super) fn last_stderr_line(&self) -> LastStderrLine {
        self.last_stderr_line.clone()
    }

    /// Ends it and all that it started. Its stdin must be closed already: that is how a server learns that it may go.
    pub(super) async fn close(mut self) {
        let _ = tokio::time::timeout(GRACE, self.child.wait()).await;
        kill_group(self.group.take());
        kill_marked(&self.mark);
        // Where there are no groups, or to reap it.
        let _ = self.child.kill().await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.group.is_some() {
            kill_group(self.group.take());
            kill_marked(&self.mark);
        }
    }
}

impl LastStderrLine {
    /// A reason, with the last words where there are any.
    pub(super) fn after(&self, why: &str) -> String {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            words if words.is_empty() => why.to_owned(),
            words => format!("{why}; it said: {words}"),
        }
    }

    fn hear(&self, line: &str) {
        line.chars().take(300).collect::<String>().clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(unix)]
fn kill_group(id: Option<u32>) {
    use rustix::process::{Pid, Signal, kill_process_group};
    // Nobody may be left in it, which is well.
    if let Some(group) = id.and_then(|id| Pid::from_raw(id.cast_signed())) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill_group(_: Option<u32>) {}

/// A mark that no other process has.
fn new_mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let drawn = RandomState::new().build_hasher().finish();
    format!("{}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed), drawn)
}

/// Ends what left the group, as a daemon does, by the mark in its environment.
#[cfg(target_os = "linux")]
fn kill_marked(mark: &str) {
    use rustix::process::{Pid, Signal, kill_process};
    let sought = format!("{MARK}={mark}");
    for _ in 0..ROUNDS {
        let mut found = false;
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw) else {
                continue;
            };
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|one| one == sought.as_bytes()) {
                found |= kill_process(pid, Signal::KILL).is_ok();
            }
        }
        if !found {
            return;
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn kill_marked(_: &str) {}

/// Passes stderr on, line by line; whatever is longer than a line may be comes in chunks.
async fn listen(server: String, mut stderr: impl AsyncRead + Unpin, last_stderr_line: LastStderrLine) {
    let mut line = Vec::new();
    let mut buffer = [0; MAX_LINE_BYTES];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        for byte in &buffer[..count] {
            if *byte != b'\n' {
                line.push(*byte);
            }
            if *byte == b'\n' || line.len() == MAX_LINE_BYTES {
                let text = String::from_utf8_lossy(&line);
                if !text.trim().is_empty() {
                    tracing::debug!(server, "{}", text.trim_end());
                    last_stderr_line.hear(text.trim());
                }
                line.clear();
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_server_sent_into_another_session_ends_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let note = dir.path().join("pid");
        let script = format!("(setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000' &) ; cat", note.display());
        let args = ["-c".to_owned(), script];
        for by_drop in [false, true] {
            let (process, _stdout, stdin) = Process::start("s", "sh", &args, &BTreeMap::new(), None).unwrap();
            let pid = loop {
                match std::fs::read_to_string(&note) {
                    Ok(pid) => break pid.trim().to_owned(),
                    Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            };
            std::fs::remove_file(&note).unwrap();
            let runs = || {
                let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                !status.is_empty() && !status.contains(") Z")
            };
            assert!(runs());
            drop(stdin);
            if by_drop {
                drop(process);
            } else {
                process.close().await;
            }
            for _ in 0..400 {
                if !runs() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(!runs(), "a daemon of the server is left");
        }
    }
}
