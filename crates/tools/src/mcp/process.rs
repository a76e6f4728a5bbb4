//! The process of a server: started with a bare environment in a group of its own, ended with everything it started.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// What a program cannot do without. Keys and our own settings are not among it.
const PASSED_ON: &[&str] = &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

/// How long a server may take to end by itself once nobody talks to it any more.
const GRACE: Duration = Duration::from_secs(2);

/// Longest line of a server's stderr that is passed on, in bytes.
const MAX_LINE_BYTES: usize = 2 << 10;

/// A server's process.
pub(super) struct Process {
    child: Child,
    /// Its group, until that was killed.
    group: Option<u32>,
    last_words: LastWords,
}

/// The last line that a process wrote to stderr: mostly why it did not start.
#[derive(Clone, Default)]
pub(super) struct LastWords(Arc<Mutex<String>>);

impl Process {
    /// Starts it, with its pipes.
    pub(super) fn start(
        server: &str,
        command: &str,
        args: &[String],
        env: &BTreeMap<String, String>,
        cwd: Option<&Path>,
    ) -> std::io::Result<(Self, ChildStdout, ChildStdin)> {
        let mut start = Command::new(command);
        start.args(args).env_clear().envs(PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?)))).envs(env);
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
        let last_words = LastWords::default();
        // Ends with the pipe, at the latest when the process group is killed.
        tokio::spawn(listen(server.to_owned(), stderr, last_words.clone()));
        Ok((Self { group: child.id(), child, last_words }, stdout, stdin))
    }

    /// Waits until it has ended, and says how.
    pub(super) async fn ended(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => format!("it ended ({status})"),
            Err(error) => format!("it cannot be watched: {error}"),
        }
    }

    /// What it said last.
    pub(super) fn last_words(&self) -> LastWords {
        self.last_words.clone()
    }

    /// Ends it and all that it started. Its stdin must be closed already: that is how a server learns that it may go.
    pub(super) async fn close(mut self) {
        let _ = tokio::time::timeout(GRACE, self.child.wait()).await;
        kill_group(self.group.take());
        // Where there are no groups, or to reap it.
        let _ = self.child.kill().await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        kill_group(self.group.take());
    }
}

impl LastWords {
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

/// Passes stderr on, line by line; whatever is longer than a line may be comes in pieces.
async fn listen(server: String, mut stderr: impl AsyncRead + Unpin, last_words: LastWords) {
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
                    last_words.hear(text.trim());
                }
                line.clear();
            }
        }
    }
}
