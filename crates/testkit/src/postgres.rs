//! PostgreSQL servers for tests: in a folder of their own, on loopback, with fsync, and as a user that is not root.
#![allow(clippy::unwrap_used, reason = "a server that does not start fails the test")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A server that runs until it is dropped.
pub struct Server {
    dir: TempDir,
    port: u16,
    running: Mutex<Option<Running>>,
    schemas: AtomicU32,
}

struct Running {
    process: Child,
    /// Ends when no process of the server is left.
    log: thread::JoinHandle<()>,
}

static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());

impl Server {
    /// The server that tests share; none, and a line that says why, where none can be started.
    pub fn shared(test: &str) -> Option<Arc<Self>> {
        let mut shared = lock(&SHARED);
        if let Some(server) = shared.upgrade() {
            return Some(server);
        }
        let server = Arc::new(Self::own(test)?);
        *shared = Arc::downgrade(&server);
        Some(server)
    }

    /// A server of its own.
    pub fn own(test: &str) -> Option<Self> {
        Self::own_in(test, &std::env::temp_dir())
    }

    /// A server of its own, with its files in a folder of its own below this one.
    pub fn own_in(test: &str, base: &Path) -> Option<Self> {
        if programs().is_none() {
            skip(test, "the programs of a PostgreSQL server are not there (Debian's package `postgresql`)");
            return None;
        }
        let dir = tempfile::tempdir_in(base).unwrap();
        give(dir.path());
        let initdb = as_user(&program("initdb"))
            .args(["--username", "polis", "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync", "--pgdata"])
            .arg(dir.path().join("data"))
            .output()
            .unwrap();
        assert!(initdb.status.success(), "{}", String::from_utf8_lossy(&initdb.stderr));
        let server = Self { dir, port: free_port(), running: Mutex::default(), schemas: AtomicU32::new(1) };
        server.start();
        Some(server)
    }

    /// Starts it, and waits until it takes connections.
    pub fn start(&self) {
        let mut process = as_user(&program("postgres"))
            .arg("-D")
            .arg(self.dir.path().join("data"))
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200", "-c", "shared_buffers=32MB"])
            .args(["-c", "lc_messages=C"])
            .args(["-p", &self.port.to_string(), "-k"])
            .arg(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("database system is ready to accept connections") {
            assert!(lines.read_line(&mut said).unwrap() > 0, "the server does not start: {said}");
        }
        let log = thread::spawn(move || drain(lines));
        *lock(&self.running) = Some(Running { process, log });
    }

    /// Kills every process of it, and waits until none is left.
    pub fn kill(&self) {
        let Some(Running { mut process, log }) = lock(&self.running).take() else { return };
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", process.id())).unwrap_or_default();
        process.kill().unwrap();
        for child in children.split_whitespace() {
            // One that has ended meanwhile needs nothing.
            let _ = kill_process(Pid::from_raw(child.parse().unwrap()).unwrap(), Signal::KILL);
        }
        process.wait().unwrap();
        log.join().unwrap();
    }

    fn stop(&self) {
        let Some(Running { mut process, log }) = lock(&self.running).take() else { return };
        // Ends all sessions and writes everything down.
        kill_process(Pid::from_child(&process), Signal::INT).unwrap();
        process.wait().unwrap();
        log.join().unwrap();
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A folder that the server may read.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The name of a schema that nobody has used.
    pub fn fresh_schema(&self) -> String {
        format!("t{}", self.schemas.fetch_add(1, Ordering::Relaxed))
    }

    /// The address of a schema.
    pub fn url(&self, schema: &str) -> String {
        format!("postgres://polis@127.0.0.1:{}/postgres?schema={schema}", self.port)
    }

    /// Runs statements as an operator would; gives the lines of the answer.
    pub fn psql(&self, sql: &str) -> String {
        self.try_psql(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The same where it may fail.
    pub fn try_psql(&self, sql: &str) -> Result<String, String> {
        let output = Command::new(program("psql"))
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1", "--command", sql])
            .arg(format!("postgres://polis@127.0.0.1:{}/postgres", self.port))
            .output()
            .unwrap();
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout).unwrap().trim().to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Says that a test lacks something.
pub fn skip(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

/// A command as a user that is not root: PostgreSQL refuses to run as root.
pub fn as_user(program: &Path) -> Command {
    let Some((user, group)) = other_user() else { return Command::new(program) };
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &user.to_string(), "--regid", &group.to_string(), "--clear-groups"]).arg(program);
    command.current_dir("/");
    command
}

/// Gives a file or folder to the user that servers run as.
pub fn give(path: &Path) {
    if let Some((user, group)) = other_user() {
        chown(path, Some(user), Some(group)).unwrap();
    }
}

/// `nobody`, where this process is root.
fn other_user() -> Option<(u32, u32)> {
    rustix::process::geteuid().is_root().then_some((65_534, 65_534))
}

/// A port that nobody listens on.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn program(name: &str) -> PathBuf {
    programs().unwrap().join(name)
}

/// Where the newest server's programs are.
pub fn programs() -> Option<PathBuf> {
    let versions =
        fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|version| version.path().join("bin"));
    let on_path = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    let mut found: Vec<_> = versions.filter(|dir| dir.join("initdb").is_file()).collect();
    found.sort();
    found.pop().or_else(|| on_path?.into_iter().find(|dir| dir.join("initdb").is_file() && dir.join("postgres").is_file()))
}

fn drain(mut lines: BufReader<ChildStderr>) {
    let mut said = Vec::new();
    // It is only read so that the server can write.
    let _ = lines.read_to_end(&mut said);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
