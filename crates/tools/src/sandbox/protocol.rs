//! The messages between the program and the processes that confine a command: one [`CommandSpec`] down, [`Report`]s up, each
//! a line of JSON.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::guard::SetAsideFile;
use crate::protected::ProtectedPaths;

/// Longest line, in bytes.
const MAX_LINE_BYTES: u64 = 4 << 20;

/// What a command may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Longest time that it may run.
    pub wall: Duration,
    /// Most address space of each of its processes.
    pub memory_bytes: u64,
    /// Largest file that it may write.
    pub file_bytes: u64,
    /// Most processes and threads at once; the kernel may round it up to 301.
    pub processes: u64,
    /// Most that it may print before it is ended.
    pub output_bytes: u64,
    /// Most that is kept of each of its two outputs.
    pub kept_bytes: u64,
    /// Most that it may write into files in all, in the workspace and in its own folder.
    pub written_bytes: u64,
}

impl Limits {
    /// The least `memory_bytes` with which a shell starts.
    pub const LEAST_MEMORY_BYTES: u64 = 16 << 20;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(600),
            memory_bytes: 8 << 30,
            file_bytes: 1 << 30,
            processes: 256,
            output_bytes: 4 << 30,
            kept_bytes: 64 << 20,
            written_bytes: 4 << 30,
        }
    }
}

/// A command and its confinement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CommandSpec {
    pub(crate) command: String,
    /// Where it runs; it may write there.
    pub(crate) workspace: PathBuf,
    /// Its own folder, for everything else that it writes.
    pub(crate) home: PathBuf,
    /// What it may not write, and what it may not even read.
    pub(crate) protected: ProtectedPaths,
    /// What of it is there and is kept as it is by the kernel.
    pub(crate) held: Vec<PathBuf>,
    /// Where to note what was there before it, for the case of a crash.
    pub(crate) note: Option<PathBuf>,
    /// Folders that it may read beside those of the system.
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) network: bool,
    pub(crate) namespaces: bool,
    pub(crate) limits: Limits,
}

impl CommandSpec {
    /// Does nothing, in a folder.
    pub(crate) fn nothing(home: &Path) -> Self {
        Self {
            command: ":".to_owned(),
            workspace: home.to_owned(),
            home: home.to_owned(),
            protected: ProtectedPaths::new(home),
            held: Vec::new(),
            note: None,
            readable: Vec::new(),
            environment: Vec::new(),
            network: false,
            namespaces: true,
            limits: Limits::default(),
        }
    }
}

/// The kernel features that confine a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxFeatures {
    /// The version of Landlock that keeps it to its files; none where the kernel has none.
    pub landlock: Option<u32>,
    /// Whether seccomp keeps it from the network and from what no command needs.
    pub seccomp: bool,
    /// Whether it has processes, mounts and a network of its own, so that nothing of it is left.
    pub namespaces: bool,
    /// Whether the number of its processes is bounded; it is not for root on kernels before 6.14.
    pub process_limit: bool,
}

impl SandboxFeatures {
    /// Whether a command is held well enough to run when nobody looks.
    ///
    /// Landlock before its third version cannot keep files from being cut short. Without namespaces it takes the sixth, so
    /// that a command cannot end its own warden.
    pub fn may_run_unattended(&self) -> bool {
        let landlock = self.landlock.unwrap_or_default();
        self.seccomp && landlock >= if self.namespaces { 3 } else { 6 }
    }
}

impl std::fmt::Display for SandboxFeatures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let has = |yes: bool, name: &str| if yes { name.to_owned() } else { format!("no {name}") };
        let landlock = self.landlock.map_or_else(|| "no Landlock".to_owned(), |version| format!("Landlock {version}"));
        let rest =
            [has(self.seccomp, "seccomp"), has(self.namespaces, "namespaces"), has(self.process_limit, "limit on processes")];
        write!(f, "{landlock}, {}", rest.join(", "))
    }
}

/// What the warden and the confined process report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// Namespaces cannot be had; nothing was run.
    NoNamespaces(String),
    /// It cannot be confined; nothing was run.
    Failed(String),
    /// It is about to run.
    Held(SandboxFeatures),
    /// It ended by itself.
    Exited(i32),
    /// A signal ended it.
    Killed(i32),
    /// It was ended because it wrote too much.
    WroteTooMuch,
    /// What it left and may not was set aside.
    SetAside(Vec<SetAsideFile>),
    /// So many more were set aside.
    MoreSetAside(usize),
}

/// Writes one line.
pub(crate) fn send_line(mut to: &UnixStream, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// Reads the spec. Nothing follows it, so a buffer that reads ahead loses nothing.
pub(crate) fn read_spec(from: &UnixStream) -> io::Result<CommandSpec> {
    let mut line = String::new();
    BufReader::new(from.take(MAX_LINE_BYTES)).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

/// The socket to whoever started this process.
pub(crate) fn parent() -> io::Result<UnixStream> {
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}
