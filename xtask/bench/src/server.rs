//! The server: what a request costs against an empty handler of axum that appends one event, and durable messages with very many
//! listeners, one of whom may not read. Servers run in processes of their own, so that only their CPU is counted.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::extract::State;
use axum::routing::post;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Response as Answer};
use hyper_util::rt::TokioIo;
use polis_domain::{AgentId, Event, Failure, Limits, Recorded, Response, Seq, Timestamp};
use polis_engine::{Agent, Cast, Options, Society, Turn};
use polis_ports::Log;
use polis_server::{Access, HostSettings, Listener, SocietyState, Token};
use polis_store_local::LocalLog;
use polis_testkit::{ScriptedModel, ScriptedTools};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::figures::{Figures, Goal};
use crate::world;

const AGENTS: u64 = 1_000;

/// Connections that send, and requests that each of them sends for the cost of one.
const SENDERS: u64 = 64;
const EACH: u64 = 150;
const ROUNDS: usize = 3;

const TOKEN: [u8; 32] = [7; 32];

/// Most events that the floor appends at once, as the engine does.
const BATCH: usize = 512;

/// So many listeners, and so many messages a second for so long.
#[derive(Clone, Copy)]
struct Load {
    streams: u64,
    rate: u64,
    seconds: u64,
    /// Whether somebody listens to everything and reads nothing.
    stalled: bool,
}

const USUAL: Load = Load { streams: 2_000, rate: 1_000, seconds: 60, stalled: false };
const STALLED: Load = Load { stalled: true, ..USUAL };
const WIDE: Load = Load { streams: 8_000, rate: 200, seconds: 10, stalled: false };

/// What came of a load: milliseconds until a message was acknowledged and until it was heard, at the 99th percentile.
struct Ran {
    acknowledged: f64,
    heard: f64,
    /// Messages that a listener did not hear, or not once and in order.
    lost: u64,
    wrong: u64,
    mebibytes: f64,
}

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let files = world::raise_open_files()?;
    let runtime = world::runtime()?;
    cost(figures, &runtime)?;
    let usual = runtime.block_on(USUAL.run())?;
    add(
        figures,
        ["L1: lost or out of order", "L1: ms to the acknowledgement, p99", "L1: ms to a listener, p99", "L1: MiB"],
        &usual,
        [250.0, 300.0, 512.0],
    );
    let stalled = runtime.block_on(STALLED.run())?;
    let more = stalled.mebibytes - usual.mebibytes;
    figures.add(
        "L5: one who does not read: MiB more",
        more,
        Goal::AtMost(16.0),
        format!("{:.0} MiB against {:.0}", stalled.mebibytes, usual.mebibytes),
    );
    let detail =
        format!("{:.1} ms against {:.1}; the one who did not read missed {}", stalled.heard, usual.heard, stalled.lost);
    figures.add("L5: the others' p99, against without", stalled.heard / usual.heard, Goal::AtMost(2.0), detail);
    figures.add(
        "L5: lost or out of order",
        (stalled.lost + stalled.wrong) as f64,
        Goal::AtMost(0.0),
        "all listeners".to_owned(),
    );
    if files < WIDE.streams + 500 {
        eprintln!("skipped: {} listeners: the system allows {files} open files", WIDE.streams);
        return Ok(());
    }
    let wide = runtime.block_on(WIDE.run())?;
    add(
        figures,
        ["L2: lost or out of order", "L2: ms to the acknowledgement, p99", "L2: ms to a listener, p99", "L2: MiB"],
        &wide,
        [1_000.0, 1_000.0, 1_024.0],
    );
    Ok(())
}

fn add(figures: &mut Figures, names: [&'static str; 4], ran: &Ran, goals: [f64; 3]) {
    let detail = format!("{} lost, {} not after the one before", ran.lost, ran.wrong);
    figures.add(names[0], (ran.lost + ran.wrong) as f64, Goal::AtMost(0.0), detail);
    for ((name, value), goal) in names[1..].iter().copied().zip([ran.acknowledged, ran.heard, ran.mebibytes]).zip(goals) {
        figures.add(name, value, Goal::AtMost(goal), "durable".to_owned());
    }
}

/// The CPU of `POST /api/submit` against that of the floor, and with an idempotency key against without, in turns.
fn cost(figures: &mut Figures, runtime: &tokio::runtime::Runtime) -> Result<()> {
    let (mut ours, mut floors, mut keyed) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (kind, key, used) in [("floor", None, &mut floors), ("still", None, &mut ours), ("still", Some("key"), &mut keyed)]
        {
            let server = Server::start(kind)?;
            used.push(runtime.block_on(server.cost_of_a_request(key))?);
        }
    }
    let dearer = world::median(keyed.iter().zip(&ours).map(|(keyed, plain)| keyed / plain).collect());
    let detail = format!("{:.0} µs CPU with a key", world::median(keyed));
    figures.add("POST /api/submit with an idempotency key, against without", dearer, Goal::AtMost(1.2), detail);
    let ratio = world::median(ours.iter().zip(&floors).map(|(ours, floor)| ours / floor).collect());
    let (ours, floor) = (world::median(ours), world::median(floors));
    let detail = format!("{ours:.0} µs CPU against {floor:.0}; {SENDERS} at once, median of {ROUNDS} rounds");
    figures.add("POST /api/submit, against an empty handler and one append", ratio, Goal::AtMost(3.0), detail);
    Ok(())
}

/// A server in a process of its own; it ends with the guard.
struct Server {
    process: Child,
    address: SocketAddr,
    _dir: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    fn start(kind: &str) -> Result<Self> {
        let dir = world::folder()?;
        let mut command = Command::new(std::env::current_exe()?);
        let mut process = command.args(["server", kind]).arg(dir.path()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().context("it prints")?).read_line(&mut line)?;
        Ok(Self { process, address: line.trim().parse()?, _dir: dir })
    }

    async fn cost_of_a_request(&self, key: Option<&'static str>) -> Result<f64> {
        let send = async |each: u64| {
            let mut senders = JoinSet::new();
            for sender in 0..SENDERS {
                let mut line = connect(self.address).await?;
                senders.spawn(async move {
                    for n in 0..each {
                        let mut request = request("POST", "/api/submit", None, r#"{"text":"a message"}"#)?;
                        if let Some(key) = key {
                            let key = format!("{key}-{each}-{sender}-{n}").parse()?;
                            request.headers_mut().insert("idempotency-key", key);
                        }
                        line.ready().await?;
                        whole(line.send_request(request).await?).await?;
                    }
                    anyhow::Ok(())
                });
            }
            while let Some(sent) = senders.join_next().await {
                sent??;
            }
            anyhow::Ok(())
        };
        send(10).await?;
        let before = world::cpu_of(self.process.id())?;
        send(EACH).await?;
        let used = world::cpu_of(self.process.id())? - before;
        Ok(used.as_secs_f64() * 1e6 / (SENDERS * EACH) as f64)
    }
}

impl Load {
    async fn run(self) -> Result<Ran> {
        let server = Server::start("alive")?;
        let stalled = if self.stalled { Some(stall(server.address).await?) } else { None };
        let heard = Arc::<Heard>::default();
        let mut listeners = JoinSet::new();
        for n in 0..self.streams {
            listeners.spawn(listen(server.address, n % AGENTS, heard.clone()));
            // No more at once than the system's queue holds.
            while heard.open.load(Ordering::Acquire) + 256 < n {
                sleep(Duration::from_millis(5)).await;
            }
        }
        timeout(Duration::from_secs(120), heard.until(|heard| heard.open.load(Ordering::Acquire) == self.streams)).await?;
        let late = self.send(server.address).await?;
        let all = self.rate * self.seconds / AGENTS * self.streams;
        // What has not come by now does not come.
        let _ = timeout(Duration::from_secs(20), heard.until(|heard| heard.count.load(Ordering::Acquire) >= all)).await;
        let mebibytes = world::resident_of(server.process.id())? as f64 / f64::from(1 << 20);
        listeners.shutdown().await;
        let missed = match stalled {
            Some(stream) => catch_up(server.address, stream).await?,
            None => 0,
        };
        let times = std::mem::take(&mut *heard.late.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        Ok(Ran {
            acknowledged: percentile(late),
            heard: percentile(times),
            lost: all.saturating_sub(heard.count.load(Ordering::Acquire)) + missed,
            wrong: heard.wrong.load(Ordering::Acquire),
            mebibytes,
        })
    }

    /// Sends messages at the rate that is wanted, each agent's in order, and says how long each took.
    async fn send(self, address: SocketAddr) -> Result<Vec<f64>> {
        const LINES: u64 = 100;
        let mut senders = JoinSet::new();
        let start = Instant::now();
        for sender in 0..LINES {
            let mut line = connect(address).await?;
            senders.spawn(async move {
                let mut late = Vec::new();
                for n in 0..self.rate * self.seconds / LINES {
                    let due = start + Duration::from_secs_f64((n * LINES + sender) as f64 / self.rate as f64);
                    sleep_until(due).await;
                    let agent = sender + LINES * (n % (AGENTS / LINES));
                    let (k, sent) = (n / (AGENTS / LINES), world::now());
                    let body = format!(r#"{{"agentId":"a{agent}","text":"k={k} t={} "}}"#, sent.as_nanos());
                    whole(ask(&mut line, "/api/send", &body).await?).await?;
                    late.push((world::now() - sent).as_secs_f64() * 1e3);
                }
                anyhow::Ok(late)
            });
        }
        let mut all = Vec::new();
        while let Some(late) = senders.join_next().await {
            all.extend(late??);
        }
        Ok(all)
    }
}

fn percentile(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() * 99 / 100).copied().unwrap_or_default()
}

/// What all listeners heard.
#[derive(Default)]
struct Heard {
    open: AtomicU64,
    count: AtomicU64,
    wrong: AtomicU64,
    late: std::sync::Mutex<Vec<f64>>,
    more: Notify,
}

impl Heard {
    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            let _ = timeout(Duration::from_millis(50), self.more.notified()).await;
        }
    }
}

/// Follows an agent's thread: each message begins a turn there, and the agent's are counted from 0.
async fn listen(address: SocketAddr, agent: u64, heard: Arc<Heard>) -> Result<()> {
    let mut line = connect(address).await?;
    let mut events = look(&mut line, &format!("/api/events?thread=a{agent}"), None).await?.into_body();
    heard.open.fetch_add(1, Ordering::AcqRel);
    let (mut text, mut next) = (Vec::new(), 0);
    while let Some(frame) = events.frame().await {
        text.extend_from_slice(frame?.data_ref().map_or(&[], |data| &data[..]));
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for told in String::from_utf8_lossy(&text[..whole]).lines().filter(|line| line.starts_with("data: ")) {
            let (Some(k), Some(sent)) = (number(told, "k="), number(told, " t=")) else { continue };
            let late = world::now().saturating_sub(Duration::from_nanos(sent));
            heard.late.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(late.as_secs_f64() * 1e3);
            heard.wrong.fetch_add(u64::from(k != next), Ordering::AcqRel);
            next = k + 1;
            heard.count.fetch_add(1, Ordering::AcqRel);
        }
        text.drain(..whole);
    }
    Ok(())
}

fn number(text: &str, name: &str) -> Option<u64> {
    let rest = text.split_once(name)?.1;
    rest.split(|digit: char| !digit.is_ascii_digit()).next()?.parse().ok()
}

/// Asks for everything and reads nothing.
async fn stall(address: SocketAddr) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    let token = Token::of_bits(TOKEN);
    let head = format!("GET /api/events HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\r\n", token.as_str());
    stream.write_all(head.as_bytes()).await?;
    Ok(stream)
}

/// Reads what was sent to who did not read, and the rest from there on with `Last-Event-ID`. How many events are missing.
async fn catch_up(address: SocketAddr, stream: TcpStream) -> Result<u64> {
    let mut line = connect(address).await?;
    let health = whole(look(&mut line, "/api/version", None).await?).await;
    health?;
    let mut buffer = vec![0; 1 << 20];
    let mut last = 0;
    while let Ok(Ok(())) = timeout(Duration::from_millis(200), stream.readable()).await {
        match stream.try_read(&mut buffer) {
            Ok(0) | Err(_) => break,
            // Pieces of lines at the ends do not matter: the others are enough to know how far it came.
            Ok(read) => {
                let text = String::from_utf8_lossy(&buffer[..read]);
                let ids = text.split('\n').filter_map(|line| line.strip_prefix("id: ")?.trim().parse::<u64>().ok());
                last = ids.fold(last, u64::max);
            }
        }
        if last > 1_000 {
            break;
        }
    }
    drop(stream);
    let mut events = look(&mut line, "/api/events", Some(last)).await?.into_body();
    let (mut text, mut missing) = (Vec::new(), 0);
    while let Ok(Some(frame)) = timeout(Duration::from_secs(2), events.frame()).await {
        text.extend_from_slice(frame?.data_ref().map_or(&[], |data| &data[..]));
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in String::from_utf8_lossy(&text[..whole]).lines() {
            if let Some(id) = line.strip_prefix("id: ").and_then(|id| id.trim().parse::<u64>().ok()) {
                missing += id.saturating_sub(last + 1);
                last = id;
            }
        }
        text.drain(..whole);
    }
    Ok(missing)
}

type Line = SendRequest<Full<Bytes>>;

async fn connect(address: SocketAddr) -> Result<Line> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (line, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(line)
}

fn request(method: &str, target: &str, last: Option<u64>, body: &str) -> Result<Request<Full<Bytes>>> {
    let token = Token::of_bits(TOKEN);
    let mut request = Request::builder().method(method).uri(target).header("host", "127.0.0.1");
    request = request.header("authorization", format!("Bearer {}", token.as_str())).header("content-type", "application/json");
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    Ok(request.body(Full::new(Bytes::copy_from_slice(body.as_bytes())))?)
}

async fn ask(line: &mut Line, target: &str, body: &str) -> Result<Answer<Incoming>> {
    line.ready().await?;
    Ok(line.send_request(request("POST", target, None, body)?).await?)
}

async fn look(line: &mut Line, target: &str, last: Option<u64>) -> Result<Answer<Incoming>> {
    line.ready().await?;
    let answer = line.send_request(request("GET", target, last, "")?).await?;
    ensure!(answer.status().is_success(), "{target}: {}", answer.status());
    Ok(answer)
}

async fn whole(answer: Answer<Incoming>) -> Result<Bytes> {
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
    Ok(body)
}

/// Serves until it is killed; the first line it prints is its address. `floor` is the empty handler with one append, `still` a
/// society whose root does not work off what it is sent, `alive` one of many agents who do.
pub(crate) fn serve(kind: &str, dir: &Path) -> Result<()> {
    world::raise_open_files()?;
    world::runtime()?.block_on(async {
        match kind {
            "floor" => floor(dir).await,
            "still" => society(dir, Options { max_running: 0, ..options() }, 0).await,
            _ => society(dir, options(), AGENTS).await,
        }
    })
}

fn options() -> Options {
    let limits = Limits {
        inbox_entries: usize::MAX,
        inbox_bytes: usize::MAX,
        agents: 10_000,
        spawns_a_minute: 10_000,
        ..Limits::default()
    };
    Options { limits, ..world::options("takes") }
}

/// Takes a message and says nothing.
struct Takes;

impl Agent for Takes {
    async fn execute_task(&self, _: &mut Turn) -> Result<Response, Failure> {
        Ok(Response::silent())
    }
}

async fn society(dir: &Path, options: Options, agents: u64) -> Result<()> {
    let ports =
        world::ports(Arc::new(LocalLog::open(dir)?), Arc::new(ScriptedModel::saying("")), Arc::new(ScriptedTools::new()));
    let society = Society::open("main".into(), ports, Cast::new().with("takes", Takes), options).await?;
    for n in 0..agents {
        society.spawn(format!("a{n}").into(), "bench".into(), AgentId::root()).await?;
    }
    let access = Access { token: Some(Token::of_bits(TOKEN)), insecure_listen: false };
    let listener = Listener::bind("127.0.0.1:0".parse()?, access).await?;
    println!("{}", listener.address());
    let state =
        SocietyState::new(society, HostSettings { model: "none".to_owned(), is_offline: true, ..HostSettings::default() });
    listener.serve(state, CancellationToken::new(), Duration::ZERO).await;
    Ok(())
}

type Appending = mpsc::Sender<oneshot::Sender<()>>;

async fn floor(dir: &Path) -> Result<()> {
    let log = LocalLog::open(dir)?;
    let (door, mut asked) = mpsc::channel::<oneshot::Sender<()>>(1_024);
    tokio::spawn(async move {
        let (mut batch, mut seq) = (Vec::with_capacity(BATCH), 0);
        while asked.recv_many(&mut batch, BATCH).await > 0 {
            let founded = || Event::SocietyFounded { seed: 1, limits: Limits::default() };
            let one = |n: u64| Arc::new(Recorded { seq: Seq(n), at: Timestamp(n), thread: Some("t".into()), event: founded() });
            let events: Vec<_> = (1..=batch.len() as u64).map(|n| one(seq + n)).collect();
            log.append(&"main".into(), Seq(seq), &events).await?;
            seq += events.len() as u64;
            for reply in batch.drain(..) {
                let _ = reply.send(());
            }
        }
        anyhow::Ok(())
    });
    let append = async |State(door): State<Appending>| {
        let (reply, done) = oneshot::channel();
        let _ = door.send(reply).await;
        let _ = done.await;
        "{}"
    };
    let router = axum::Router::new().route("/api/submit", post(append)).with_state(door);
    let tcp = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", tcp.local_addr()?);
    Ok(axum::serve(tcp, router).await?)
}
