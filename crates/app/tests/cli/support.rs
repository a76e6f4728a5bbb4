//! A home for one test: a folder to work in, the binary, and a small HTTP client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use polis_domain::{MessageKind, Recorded, Seq};
use polis_ports::Log;
use polis_store_local::LocalLog;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// A folder that nobody else knows.
pub(crate) struct Home {
    dir: TempDir,
    /// What stands for the user's home.
    user: TempDir,
}

/// What a command came to.
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), user: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The user's own configuration folder.
    pub(crate) fn user(&self) -> PathBuf {
        self.user.path().join("polis")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path().join(".polis")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    /// The binary, with an environment that says nothing of models or of polis.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.program(env!("CARGO_BIN_EXE_polis"), args)
    }

    /// Another program with the same environment.
    pub(crate) fn program(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars() {
            if name.starts_with("POLIS_")
                || name.starts_with("OTEL_")
                || name.ends_with("_API_KEY")
                || name.ends_with("_BASE_URL")
            {
                command.env_remove(name);
            }
        }
        // A model server of whoever runs the tests is not to answer.
        for vendor in ["OLLAMA", "LMSTUDIO", "LLAMACPP", "VLLM"] {
            command.env(format!("{vendor}_BASE_URL"), "http://127.0.0.1:9");
        }
        // Nor is their configuration to count, nor what their tests write into folders to be asked about.
        command.env("XDG_CONFIG_HOME", self.user.path()).env("POLIS_TRUST", "all");
        command.args(args).current_dir(self.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn polis(&self, args: &[&str]) -> Done {
        self.command(args).output().unwrap().into()
    }

    /// With something on stdin.
    pub(crate) fn fed(&self, args: &[&str], stdin: &[u8]) -> Done {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin).unwrap();
        child.wait_with_output().unwrap().into()
    }

    /// The whole log. Nobody else may have it open.
    pub(crate) fn log(&self) -> Vec<Recorded> {
        read_log(&self.data())
    }

    pub(crate) fn last(&self) -> Seq {
        self.log().last().map_or(Seq(0), |recorded| recorded.seq)
    }

    pub(crate) fn serve(&self, args: &[&str]) -> Served {
        self.serve_with(args, |_| {})
    }

    /// Starts a server on a free port and waits until it is ready.
    pub(crate) fn serve_with(&self, args: &[&str], set: impl FnOnce(&mut Command)) -> Served {
        self.serve_at("127.0.0.1:0", args, set)
    }

    /// The same where a client expects it.
    pub(crate) fn serve_at(&self, listen: &str, args: &[&str], set: impl FnOnce(&mut Command)) -> Served {
        let mut command = self.command(&[&["serve", "--listen", listen], args].concat());
        set(&mut command);
        Served::start(command)
    }
}

pub(crate) fn read_log(data: &Path) -> Vec<Recorded> {
    let log = LocalLog::open(data).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(log.read(&"main".into(), Seq(0), usize::MAX)).unwrap()
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: code(output.status), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Done {
    /// It worked; what it printed.
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.stdout, self.stderr);
        self.stdout
    }

    /// The conversation that it names on stderr.
    pub(crate) fn conversation(&self) -> String {
        let rest = self.stderr.lines().find_map(|line| line.strip_prefix("polis: conversation "));
        let rest = rest.unwrap_or_else(|| panic!("no conversation is named: {}", self.stderr));
        rest.split([' ', ':']).next().unwrap().to_owned()
    }

    /// It ended with this status and this code on stderr.
    pub(crate) fn fails(&self, status: i32, code: &str) {
        assert_eq!(self.code, status, "{}{}", self.stdout, self.stderr);
        assert!(self.stderr.trim_end().ends_with(&format!("({code})")), "{}", self.stderr);
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| panic!("it was killed: {status}"))
}

/// Whether this ends a request: the message to the person with its answer or failure.
pub(crate) fn is_ending(recorded: &Recorded) -> bool {
    recorded.event.envelope().is_some_and(|envelope| envelope.to.is_user() && envelope.kind != MessageKind::Message)
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// A server that runs. It is killed when the test is over.
pub(crate) struct Served {
    child: Option<Child>,
    /// Held so that it can go on printing.
    _stdout: Option<BufReader<ChildStdout>>,
    pub(crate) address: String,
    pub(crate) token: Option<String>,
}

impl Served {
    /// Starts a server and waits until it is ready.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = || {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        };
        let (ready, page) = (line(), line());
        let address = ready.strip_prefix("polis is listening on http://").unwrap_or_else(|| panic!("{ready:?}")).to_owned();
        let token = page.split_once("?token=").map(|(_, token)| token.to_owned());
        assert!(page.starts_with(&format!("http://{address}/")), "{page}");
        Self { child: Some(child), _stdout: Some(stdout), address, token }
    }

    /// A server that was started otherwise.
    pub(crate) fn of(child: Child, address: &str, token: &str) -> Self {
        Self { child: Some(child), _stdout: None, address: address.to_owned(), token: Some(token.to_owned()) }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Waits for its end, whatever it is.
    pub(crate) fn end(mut self) -> (ExitStatus, Vec<u8>) {
        let output = self.child.take().unwrap().wait_with_output().unwrap();
        (output.status, output.stderr)
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| child.try_wait().unwrap().is_none())
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn get(&self, target: &str) -> (u16, Value) {
        http(&self.address, "GET", target, self.token.as_deref(), "")
    }

    pub(crate) fn post(&self, target: &str, body: &Value) -> (u16, Value) {
        http(&self.address, "POST", target, self.token.as_deref(), &body.to_string())
    }

    /// The answer to a `GET`, as it comes.
    pub(crate) fn stream(&self, target: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let token = self.token.as_deref().unwrap_or_default();
        write!(
            stream,
            "GET {target} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n",
            self.address
        )
        .unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        assert!(line.contains("200"), "{line}");
        stream
    }

    /// Follows the events from the first on until one is what is looked for.
    pub(crate) fn until(&self, wanted: impl Fn(&Recorded) -> bool) -> Recorded {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let token = self.token.as_deref().unwrap_or_default();
        write!(stream, "GET /api/events?after=0 HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\r\n", self.address)
            .unwrap();
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        let events = lines.by_ref().filter_map(|line| serde_json::from_str::<Recorded>(line.strip_prefix("data: ")?).ok());
        events.into_iter().find(wanted).expect("the stream ended before it came")
    }

    /// The lines that it says on stderr from now on.
    pub(crate) fn said(&mut self) -> impl Iterator<Item = String> + use<> {
        let stderr = self.child.as_mut().unwrap().stderr.take().unwrap();
        BufReader::new(stderr).lines().map(Result::unwrap)
    }

    pub(crate) fn signal(&self, wanted: Signal) {
        signal(self.child.as_ref().unwrap(), wanted);
    }

    /// Waits for its end: its status, and what it said on stderr.
    pub(crate) fn wait(self) -> (i32, String) {
        let (status, stderr) = self.end();
        (code(status), String::from_utf8(stderr).unwrap())
    }

    /// The same for one that is to end by itself, soon.
    pub(crate) fn ends(mut self) -> (i32, String) {
        let begun = Instant::now();
        while self.child.as_mut().unwrap().try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(30), "it goes on");
            std::thread::sleep(Duration::from_millis(20));
        }
        self.wait()
    }

    pub(crate) fn stop(self) -> (i32, String) {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// What the system says of its memory, `VmRSS` or `VmHWM`.
    pub(crate) fn resident_kb(&self, which: &str) -> u64 {
        let id = self.id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(which)?.strip_prefix(':')).unwrap();
        line.trim_end_matches("kB").trim().parse().unwrap()
    }

    pub(crate) fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// One request; the answer must be JSON.
pub(crate) fn http(address: &str, method: &str, target: &str, token: Option<&str>, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    let bearer = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\n{bearer}Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}")))
}
