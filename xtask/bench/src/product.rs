//! The release program as people run it: `polis serve` on a data directory on the disk, over HTTP, with a client that follows all
//! events. An agent run (two model calls and a read), 64 at once and alone, and a workflow, against a bare loop over hyper that makes
//! the same requests to the same model server and reads the same replies. CPU is that of the whole process.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

use crate::figures::{Figures, Goal};
use crate::mock::Mock;
use crate::workflow::{Plain, post};
use crate::{team, world};

const ROUNDS: usize = 3;

/// How long all runs of a load may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// What is asked, how often, and what it may cost.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    /// The mock that answers, and how many requests of one run it is asked.
    mock: &'static str,
    calls: usize,
    strategy: &'static str,
    answer: &'static str,
    at_once: usize,
    each: usize,
    goal: f64,
}

const RUNS: Load = Load {
    name: "product: agent run, 64 at once, against floor",
    mock: "product",
    calls: 2,
    strategy: "simple",
    answer: "It is done.",
    at_once: 64,
    each: 30,
    goal: 4.0,
};
const ALONE: Load = Load { name: "product: agent run, alone, against floor", at_once: 1, each: 400, goal: 10.0, ..RUNS };
const WORKFLOWS: Load = Load {
    name: "product: workflow, 16 at once, against floor",
    mock: "team",
    calls: team::CALLS,
    strategy: "workflow",
    answer: team::ANSWER,
    at_once: 16,
    each: 15,
    goal: 8.0,
};

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let runtime = world::runtime()?;
    for load in [RUNS, ALONE, WORKFLOWS] {
        let (mut rounds, mut written, mut waited) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let mock = Mock::start(load.mock)?;
            let program = Program::start(&mock.url)?;
            let ours = runtime.block_on(load.ours(&program))?;
            drop(program);
            let floor = runtime.block_on(load.floor(&mock.url))?;
            rounds.push((ours.cpu_ms / floor, ours.cpu_ms, floor));
            written.push(ours.written / 1e3);
            waited.push(ours.wall_ms);
        }
        rounds.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (ratio, ours, floor) = rounds[ROUNDS / 2];
        let (written, waited) = (world::median(written), world::median(waited));
        let detail = format!(
            "{ours:.3} ms CPU against {floor:.3}, in the middle one of {ROUNDS} rounds; {written:.1} kB to the disk and {waited:.1} ms each"
        );
        figures.add(load.name, ratio, Goal::AtMost(load.goal), detail);
        if load.at_once == 1 {
            figures.add("product: kB to the disk for a lone run", written, Goal::AtMost(30.0), "median".to_owned());
        }
    }
    Ok(())
}

/// What a run has cost.
struct Cost {
    cpu_ms: f64,
    wall_ms: f64,
    /// Bytes.
    written: f64,
}

impl Load {
    /// The cost of a run in the program.
    async fn ours(self, program: &Program) -> Result<Cost> {
        let follower = Follower::start(program, "").await?;
        self.ask(program, &follower, 1 + 20 / self.at_once).await?;
        let (cpu, written, began) = (world::cpu_of(program.id())?, world::written_of(program.id())?, world::now());
        self.ask(program, &follower, self.each).await?;
        let count = (self.at_once * self.each) as f64;
        let cpu_ms = (world::cpu_of(program.id())? - cpu).as_secs_f64() * 1e3 / count;
        let wall_ms = (world::now() - began).as_secs_f64() * 1e3 / self.each as f64;
        let written = (world::written_of(program.id())? - written) as f64 / count;
        follower.reading.abort();
        Ok(Cost { cpu_ms, wall_ms, written })
    }

    /// Has each of the hands ask so often, one request after another, each in a conversation of its own.
    async fn ask(self, program: &Program, follower: &Follower, each: usize) -> Result<()> {
        let mut hands = JoinSet::new();
        for _ in 0..self.at_once {
            let (mut connection, answers) = (program.connect().await?, follower.answers.clone());
            let body = json!({ "text": "Is it done?", "strategy": self.strategy }).to_string();
            let token = program.token.clone();
            hands.spawn(async move {
                for _ in 0..each {
                    connection.ready().await?;
                    let sent = connection.send_request(request("POST", "/api/submit", &token, &body)?).await?;
                    let sent: Value = serde_json::from_slice(&whole(sent).await?)?;
                    let task = sent["taskId"].as_str().context("a request has an id")?;
                    let answer = answers.wait_for(task).await;
                    ensure!(answer == self.answer, "it answered {answer:?}");
                }
                anyhow::Ok(())
            });
        }
        let done = async {
            while let Some(done) = hands.join_next().await {
                done??;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(PATIENCE, done).await.context("not all requests were answered")?
    }

    /// CPU milliseconds of a bare run: the requests that the program made first, with nothing around them.
    async fn floor(self, url: &str) -> Result<f64> {
        let client: Plain = Client::builder(TokioExecutor::new()).build_http();
        let asked: Vec<Value> = serde_json::from_slice(&post(&client, url, Bytes::from_static(b"null")).await?)?;
        ensure!(asked.len() == self.calls, "a run makes {} model calls instead of {}", asked.len(), self.calls);
        let asked: Arc<[Value]> = asked.into();
        self.bare(&client, url, &asked, 1).await?;
        let before = world::cpu();
        self.bare(&client, url, &asked, self.each).await?;
        Ok((world::cpu() - before).as_secs_f64() * 1e3 / (self.at_once * self.each) as f64)
    }

    async fn bare(self, client: &Plain, url: &str, asked: &Arc<[Value]>, each: usize) -> Result<()> {
        let mut hands = JoinSet::new();
        for _ in 0..self.at_once {
            let (client, url, asked) = (client.clone(), url.to_owned(), asked.clone());
            hands.spawn(async move {
                let mut length = 0;
                for request in (0..each).flat_map(|_| asked.iter()) {
                    let reply = post(&client, &url, serde_json::to_vec(request)?.into()).await?;
                    let (mut said, mut called) = (String::new(), String::new());
                    for line in reply.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: ")) {
                        if line != b"[DONE]" {
                            let event: Value = serde_json::from_slice(line)?;
                            let delta = &event["choices"][0]["delta"];
                            said += delta["content"].as_str().unwrap_or_default();
                            called += delta["tool_calls"][0]["function"]["arguments"].as_str().unwrap_or_default();
                        }
                    }
                    length += said.len() + called.len();
                }
                ensure!(length > 0, "the model said nothing");
                anyhow::Ok(())
            });
        }
        while let Some(done) = hands.join_next().await {
            done??;
        }
        Ok(())
    }
}

/// The program on a data directory of its own; it ends with the guard.
pub(crate) struct Program {
    process: Child,
    address: SocketAddr,
    token: String,
    _dir: tempfile::TempDir,
}

impl Program {
    fn start(model: &str) -> Result<Self> {
        Self::start_with(model, |_| {})
    }

    pub(crate) fn start_with(model: &str, set: impl FnOnce(&mut Command)) -> Result<Self> {
        let dir = world::folder()?;
        let exe = std::env::current_exe()?;
        let program = exe.parent().context("the program lies in a folder")?.join("polis");
        ensure!(program.exists(), "there is no {}; `cargo xtask bench` builds it", program.display());
        let folder = |name: &str| -> Result<PathBuf> {
            let path = dir.path().join(name);
            std::fs::create_dir(&path)?;
            Ok(path)
        };
        let (home, workspace) = (folder("home")?, folder("workspace")?);
        let mut command = Command::new(program);
        command.arg("serve").args(["--listen", "127.0.0.1:0", "--model", "openai-compatible/mock", "--budget", "none"]);
        command.arg("--data").arg(dir.path().join("data")).arg("--workspace").arg(&workspace).current_dir(&workspace);
        command.env_clear().env("HOME", &home).env("OPENAI_COMPATIBLE_BASE_URL", format!("{model}/v1"));
        set(&mut command);
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(process.stdout.take().context("it prints")?).lines();
        let mut url = lines.find_map(|line| line.ok().filter(|line| line.contains("?token=")));
        let url = url.take().context("the program did not start")?;
        let (address, token) = url.strip_prefix("http://").and_then(|url| url.split_once("/?token=")).context("an address")?;
        Ok(Self { process, address: address.parse()?, token: token.to_owned(), _dir: dir })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) async fn connect(&self) -> Result<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let (connection, driver) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(driver);
        Ok(connection)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The answers of requests, as a client that follows all events sees them.
#[derive(Default)]
pub(crate) struct Answers {
    seen: Mutex<HashMap<String, String>>,
    more: Notify,
}

impl Answers {
    pub(crate) async fn wait_for(&self, task: &str) -> String {
        loop {
            let more = self.more.notified();
            if let Some(answer) = self.seen.lock().unwrap_or_else(PoisonError::into_inner).remove(task) {
                return answer;
            }
            more.await;
        }
    }

    fn take(&self, line: &[u8]) -> Result<()> {
        let recorded: Value = serde_json::from_slice(line)?;
        let envelope = &recorded["event"]["messageSent"]["envelope"];
        if envelope["to"] == "user" {
            let field = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (task, text) = (field(&envelope["taskId"]), field(&envelope["payload"]["text"]));
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(task, text);
            self.more.notify_waiters();
        }
        Ok(())
    }
}

pub(crate) struct Follower {
    pub(crate) answers: Arc<Answers>,
    reading: JoinHandle<Result<()>>,
}

impl Follower {
    /// Follows the events of the society at this path, which is empty for the first one.
    pub(crate) async fn start(program: &Program, path: &str) -> Result<Self> {
        let mut connection = program.connect().await?;
        let answers = Arc::<Answers>::default();
        let mut events =
            connection.send_request(request("GET", &format!("{path}/api/events"), &program.token, "")?).await?.into_body();
        let to = answers.clone();
        let reading = tokio::spawn(async move {
            // The connection lives as long as it is read.
            let _connection = connection;
            let mut text = Vec::new();
            while let Some(frame) = events.frame().await {
                text.extend_from_slice(frame?.data_ref().map_or(&[][..], |data| data));
                let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                let is_answer = |line: &&[u8]| line.windows(13).any(|window| window == b"\"messageSent\"");
                for line in text[..end].split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: ")) {
                    if is_answer(&line) {
                        to.take(line)?;
                    }
                }
                text.drain(..end);
            }
            Ok(())
        });
        Ok(Self { answers, reading })
    }
}

pub(crate) fn request(method: &str, target: &str, token: &str, body: &str) -> Result<Request<Full<Bytes>>> {
    let request = Request::builder().method(method).uri(target).header("host", "127.0.0.1");
    let request = request.header("authorization", format!("Bearer {token}")).header("content-type", "application/json");
    Ok(request.body(Full::new(Bytes::copy_from_slice(body.as_bytes())))?)
}

pub(crate) async fn whole(answer: Response<Incoming>) -> Result<Bytes> {
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
    Ok(body)
}

/// What the first run asked, for the floor.
static ASKED: Mutex<Vec<Value>> = Mutex::new(Vec::new());

/// The model of an agent run: a call of a tool that reads, then the answer; to `null`, what was asked first.
pub(crate) fn reply(body: &[u8]) -> Bytes {
    let Ok(request) = serde_json::from_slice::<Value>(body) else { return Bytes::new() };
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    if request.is_null() {
        return Value::Array(asked.clone()).to_string().into();
    }
    if asked.len() < RUNS.calls {
        asked.push(request.clone());
    }
    drop(asked);
    let last = request["messages"].as_array().and_then(|messages| messages.last());
    match last.and_then(|message| message["role"].as_str()) {
        Some("tool") => team::stream(["It is", " done."].into_iter().map(|text| json!({ "content": text })), "stop"),
        _ => {
            let function = json!({ "name": "list_files", "arguments": "{}" });
            let call = json!({ "index": 0, "id": "call_1", "type": "function", "function": function });
            team::stream([json!({ "tool_calls": [call] })].into_iter(), "tool_calls")
        }
    }
}
