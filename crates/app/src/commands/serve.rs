//! `polis serve`: the society and its HTTP server, until a signal stops it.

use std::collections::BTreeMap;
use std::io::{ErrorKind, IsTerminal, stdin};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use polis_domain::{Failure, SocietyId};
use polis_engine::{Society, UnfinishedWork};
use polis_ports::{Log, LogError};
use polis_server::{
    Access, BindError, Listener, Membership, Open, Opener, Rate, Rates, STOP_GRACE, Security, Societies, SocietyState, Tls,
    TokenList,
};
use polis_store_local::write_private;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::chat::{Begun, console};
use super::check_open::{self, DryRun};
use super::replay;
use crate::cli::Serve;
use crate::config::{Config, SOCIETY};
use crate::error::{CliError, Exit};
use crate::handover::{self, Predecessor, Successor, Successors};
use crate::logins::LoginsKey;
use crate::own_node::OwnNode;
use crate::patience::Patience;
use crate::purpose::Purpose;
use crate::signals::Interrupts;
use crate::store::{OpenedLog, Store, needs_local_log};
use crate::token::OwnerToken;
use crate::transport::{Transport, owner_note};
use crate::wiring::OpenSociety;
use crate::{backups, file_limit, out, retention, roles, wiring};

pub(crate) async fn serve(config: &Config, args: &Serve) -> Result<Exit, CliError> {
    let interrupts = Interrupts::watch();
    // Whoever connects beyond it waits to be accepted, so that less is slower and not wrong.
    file_limit::raise_limit();
    config.trust.claim_data()?;
    if args.take_over {
        needs_local_log(config, "stop the running polis and start this one: a stop gives its societies back at once")?;
    }
    note_what_stays_local(config);
    let mut start = if args.take_over { take_over(config, args).await? } else { Start::fresh()? };
    loop {
        let (successor, log) = match serve_until_asked(config, args, &interrupts, &mut start).await? {
            Served::Stopped(exit) => return Ok(exit),
            Served::Asked(successor, log) => (successor, log),
        };
        let Some(socket) = &start.socket else { return Ok(Exit::Done) };
        // If something still holds the log, the end of this process closes it. Then the successor has to do without us.
        let is_closed = closed(&log).await;
        let last = if is_closed { Duration::MAX } else { MOMENT };
        let handed_over = timeout(last, successor.hand_over(socket));
        let error = tokio::select! {
            done = handed_over => match done {
                Ok(Ok(())) | Err(_) => {
                    out::note("polis: another process has taken over");
                    return Ok(Exit::Done);
                }
                Ok(Err(error)) => error,
            },
            () = interrupts.stop.cancelled() => return Ok(Exit::Done),
        };
        out::note(&format!("polis: the process that was to take over has ended ({error}); this one continues"));
        start.is_waiting = true;
    }
}

/// Says what a store in PostgreSQL leaves in the data directory, and what of it is not used.
fn note_what_stays_local(config: &Config) {
    let (Some(address), data) = (&config.store, config.data.display()) else { return };
    let (there, here) = match matches!(LoginsKey::from_environment(), Ok(Some(_))) {
        true => ("memories, tokens and logins at MCP servers", "trust stays"),
        false => ("memories and tokens", "logins at MCP servers and trust stay"),
    };
    out::note(&format!("polis: the log, artifacts, {there} are in {address}; {here} in {data}"));
    for (file, what) in
        [("polis.db", "a log"), ("artifacts", "artifacts"), ("memory.db", "memories"), ("tokens.json", "tokens")]
    {
        if config.data.join(file).exists() {
            out::note(&format!("polis: {data} has {what} of its own ({file}), not used with a store"));
        }
    }
    if config.backup.to.is_some() {
        out::note("polis: [backup] makes no copies of a log in PostgreSQL; back the database up (needs_local_log)");
    }
}

/// How a server begins.
struct Start {
    /// The socket to serve on; none if it has to be bound.
    socket: Option<TcpListener>,
    /// The server that is to be replaced.
    predecessor: Option<Predecessor>,
    /// Whether another process is about to close the data directory.
    is_waiting: bool,
}

impl Start {
    fn fresh() -> Result<Self, CliError> {
        let failed = |error| CliError::new("cannot_listen", format!("the socket of the standard input: {error}"));
        Ok(Self { socket: handover::inherited().map_err(failed)?, predecessor: None, is_waiting: false })
    }
}

/// Takes the socket of the server that runs on the data directory, once it is certain that this program can continue its work.
async fn take_over(config: &Config, args: &Serve) -> Result<Start, CliError> {
    let failed = |error| CliError::new("no_take_over", format!("the running polis cannot be replaced: {error}"));
    let find = || async { Predecessor::find(&config.data).await.map_err(failed) };
    let Some(Predecessor { address, .. }) = find().await? else {
        out::note("polis: no polis serves this data directory; starting");
        return Start::fresh();
    };
    if config.listen.port() != 0 && config.listen != address {
        let message =
            format!("the running polis listens on {address}, not on {}; use --listen {address}, or stop it", config.listen);
        return Err(CliError::usage("no_take_over", message));
    }
    security(config, args)?;
    let DryRun { divergences, .. } = check_open::dry_run(config, &config.data).await?;
    if let Some((society, first)) = divergences.first() {
        let message = format!(
            "{} cannot be continued by this polis, for example {society}: {}; `polis check --against {}` lists them",
            out::count(divergences.len(), "open turn"),
            replay::describe(first),
            config.data.display()
        );
        return Err(CliError::new("no_take_over", message));
    }
    // Checking may take long, so the server is asked again.
    let Some(predecessor) = find().await? else { return Ok(Start { is_waiting: true, ..Start::fresh()? }) };
    let socket = predecessor.take().await.map_err(failed)?;
    Ok(Start { socket, predecessor: Some(predecessor), is_waiting: true })
}

/// How long another process that is about to end may keep the data directory.
const LAST_HOLD: Duration = Duration::from_secs(60);

/// How long what is used here may take to let go of the log.
const MAX_CLOSING: Duration = Duration::from_secs(10);

const MOMENT: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_millis(10);

/// Opens the log, as soon as the process before has closed it.
async fn open_when_free(config: &Config, node: Option<&OwnNode>, is_waiting: bool) -> Result<OpenedLog, LogError> {
    let until = Instant::now() + LAST_HOLD;
    loop {
        match OpenedLog::open_as(config, node).await {
            Err(LogError::Locked(_)) if is_waiting && Instant::now() < until => sleep(AGAIN).await,
            opened => return opened,
        }
    }
}

/// Listens, as soon as the process before does not any more.
async fn bind_when_free(config: &Config, access: Access, security: Security, is_waiting: bool) -> Result<Listener, BindError> {
    let until = Instant::now() + LAST_HOLD;
    while is_waiting
        && Instant::now() < until
        && std::net::TcpListener::bind(config.listen).is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
    {
        sleep(AGAIN).await;
    }
    Listener::bind_with(config.listen, access, security).await
}

/// Waits until nothing uses the log any more; no if that takes too long.
async fn closed(log: &Weak<dyn Log>) -> bool {
    let gone = async {
        while log.strong_count() > 0 {
            sleep(AGAIN).await;
        }
    };
    timeout(MAX_CLOSING, gone).await.is_ok()
}

/// Why a server does not serve any more.
enum Served {
    /// It was stopped.
    Stopped(Exit),
    /// Another process asks for its place. The log is closed when nothing refers to it.
    Asked(Successor, Weak<dyn Log>),
}

/// Serves until a signal stops it, or another process asks for its place.
async fn serve_until_asked(
    config: &Config,
    args: &Serve,
    interrupts: &Interrupts,
    start: &mut Start,
) -> Result<Served, CliError> {
    let stop = interrupts.stop.clone();
    let node = config.node.as_ref().map(|node| OwnNode::bind(node, &config.trust)).transpose()?;
    let store = Store::open(config, open_when_free(config, node.as_ref(), start.is_waiting).await?)?;
    if let Err(error) = check_open::remove_leftover(&config.data) {
        out::note(&format!("polis: a copy of the log that a check has left in {} stays: {error}", config.data.display()));
    }
    let list = match &config.store {
        Some(_) => TokenList::shared(store.documents.clone()),
        None => TokenList::new(store.documents.clone()),
    };
    let owners = if args.no_auth { OwnerToken::Off } else { OwnerToken::find(config, &list).await? };
    let access = Access { token: owners.accepted()?, insecure_listen: args.insecure_listen };
    // Nothing works before we know that we can be reached, or that there is a console instead.
    let security = Security { tokens: Some(list), ..security(config, args)? };
    let scheme = if security.tls.is_some() { "https" } else { "http" };
    let socket = start.socket.as_ref().map(TcpListener::try_clone).transpose();
    let listener = match socket.map_err(|error| CliError::new("cannot_listen", error.to_string()))? {
        Some(socket) => Listener::on(socket, access, security),
        None => bind_when_free(config, access, security, start.is_waiting).await,
    };
    let listener = match listener {
        Ok(listener) => listener,
        Err(taken @ BindError::Taken(_)) if stdin().is_terminal() && node.is_none() => {
            out::report_error(&CliError::new(taken.code(), taken.to_string()));
            out::note("polis: continuing in this console, without HTTP");
            return serve_console(config, &store, interrupts).await.map(Served::Stopped);
        }
        Err(error @ (BindError::NotLoopback(_) | BindError::OpenToAll(_))) => {
            return Err(CliError::usage(error.code(), error.to_string()));
        }
        Err(error @ (BindError::Taken(_) | BindError::Refused(..))) => {
            return Err(CliError::new(error.code(), error.to_string()));
        }
    };
    let mut opened_all = BTreeMap::new();
    if node.is_none() {
        let _patience = Patience::start("still opening the society");
        opened_all.insert(config.society.clone(), wiring::open(config, &store, Purpose::Run).await?);
    }
    store.opened.write_note(&owner_note(&format!("{scheme}://{}", reachable(listener.address()))));
    let address = listener.address();
    start.socket = listener.socket().ok();
    let successors = Successors::listen(&config.data);
    if let Err(error) = &successors {
        tracing::info!(%error, "this process cannot be replaced while it runs");
    }
    out::line(&format!("polis is listening on {scheme}://{address}"))?;
    match &owners {
        OwnerToken::Here(token) => out::line(&format!("{scheme}://{address}/?token={}", token.as_str()))?,
        OwnerToken::Elsewhere => out::line(&format!("{scheme}://{address}/"))?,
        OwnerToken::Off => {
            out::note(
                "polis: WARNING: --no-auth: every user of this machine can use this society, its tools and your model's key",
            );
            out::line(&format!("{scheme}://{address}/"))?;
        }
    }
    let end_watcher = EndWatcher { stop: stop.clone(), why: Arc::default() };
    opened_all.values().for_each(|opened| end_watcher.watch(opened.state.society()));
    let first = opened_all.get(&config.society).map(|opened: &OpenSociety| opened.state.clone());
    let role_files = opened_all.get(&config.society).map(|opened| opened.role_files.clone());
    let opened_all = Arc::new(Mutex::new(opened_all));
    let opener = opener(config, &store, &opened_all, node.is_none().then(|| end_watcher.clone()));
    let others: Vec<_> = config.societies().filter(|society| **society != config.society).collect();
    // Those of a node are opened as soon as they are its own.
    let placed = std::iter::once(&config.society).chain(others.iter().copied()).cloned().collect();
    let societies = match (first, node, store.placement()) {
        (None, Some(OwnNode { socket, key, .. }), Some(placement)) => {
            let model = config.models.first().cloned().unwrap_or_default();
            let membership = Membership { placement, key, socket, model };
            Societies::of_node(config.society.clone(), store.log.clone(), opener, membership)
        }
        (Some(first), ..) => Societies::new(first, opener),
        (None, ..) => {
            return Err(CliError::usage("bad_node", "several nodes share a log in PostgreSQL; say which with --store"));
        }
    };
    for society in others.into_iter().filter(|_| config.node.is_none()) {
        if let Err(failure) = societies.start(society).await {
            // One that cannot work stops no other.
            out::report_error(&CliError::new(
                failure.code.to_string(),
                format!("the society {society} cannot run: {}", failure.message),
            ));
        }
    }
    // Who has been stopped meanwhile takes nobody's place.
    if let Some(predecessor) = start.predecessor.take_if(|_| !stop.is_cancelled()) {
        predecessor.release().await;
    }
    let drain = CancellationToken::new();
    let leave = async {
        stop.cancelled().await;
        societies.leave().await;
        drain.cancel();
        std::future::pending::<()>().await
    };
    let working = |society: &SocietyId| societies.working().into_iter().find(|state| state.society().id() == society);
    let first = || working(&config.society).map(|state| state.society().clone());
    let serving = listener.serve(societies.clone(), drain.clone(), STOP_GRACE);
    tokio::pin!(serving);
    let asked = async {
        match &successors {
            Ok(successors) => successors.next(address).await,
            Err(_) => std::future::pending().await,
        }
    };
    let successor = tokio::select! {
        () = &mut serving => None,
        successor = asked => {
            out::note("polis: another process takes over");
            drain.cancel();
            serving.await;
            Some(successor)
        }
        () = leave => None,
        () = societies.keep_placed(placed) => None,
        () = roles::watch(first, &config.trust, role_files.unwrap_or_else(|| roles::state(&config.trust))) => None,
        () = backups::keep_up(config) => None,
        () = retention::keep_up(config, &store, &societies) => None,
    };
    let opened: Vec<OpenSociety> = std::mem::take(&mut *opened_all.lock().await).into_values().collect();
    join_all(opened.iter().map(OpenSociety::flush_telemetry)).await;
    for one in &opened {
        one.close_servers().await;
        one.report_unused();
    }
    if let Some(why) = end_watcher.why.get() {
        // The files there now are not the ones that these societies wrote.
        return Err(CliError::new(why.code(), why.to_string()));
    }
    if let Some(successor) = successor {
        return Ok(Served::Asked(successor, Arc::downgrade(&store.log)));
    }
    for state in societies.working() {
        write_org(config, &state).await;
        report_unfinished_work(&state).await;
    }
    Ok(Served::Stopped(Exit::Done))
}

/// Stops the program when a society has ended by itself, so that a supervisor sees it and restarts the program.
#[derive(Clone)]
struct EndWatcher {
    stop: CancellationToken,
    why: Arc<OnceLock<Arc<LogError>>>,
}

impl EndWatcher {
    fn watch(&self, society: &Society) {
        let (ended, Self { stop, why }) = (society.ended(), self.clone());
        tokio::spawn(async move {
            if let Some(error) = ended.await {
                let _ = why.set(error);
                stop.cancel();
            }
        });
    }
}

/// The server's security options beside the owner's token.
fn security(config: &Config, args: &Serve) -> Result<Security, CliError> {
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            Some(Tls::read(certificate, key).map_err(|error| CliError::usage("bad_certificate", error.to_string()))?)
        }
        _ => None,
    };
    if let Some(bad) = config.http.cors.iter().find(|origin| !is_origin(origin)) {
        let message = format!("[server] cors: `{bad}` is not an origin; write for example https://example.org, without a path");
        return Err(CliError::usage("bad_config", message));
    }
    let mut rates = Rates::default();
    if let Some(per_second) = config.http.requests_per_second.map(std::num::NonZero::get) {
        rates.token = Rate { per_second, burst: per_second.saturating_mul(10) };
    }
    let (hosts, cors) = (config.http.hosts.clone(), config.http.cors.clone());
    Ok(Security { tls, tokens: None, hosts, cors, rates })
}

fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '*', '?', '#', '@', ' ']))
}

type OpenSocieties = Arc<Mutex<BTreeMap<SocietyId, OpenSociety>>>;

/// Opens the societies of the store as they are needed.
fn opener(config: &Config, store: &Store, all: &OpenSocieties, end_watcher: Option<EndWatcher>) -> Opener {
    let opened = all.clone();
    let close = Box::new(move |society| -> BoxFuture<'static, ()> {
        let all = opened.clone();
        Box::pin(async move {
            let Some(closed) = all.lock().await.remove(&society) else { return };
            closed.flush_telemetry().await;
            closed.close_servers().await;
        })
    });
    let (config, store, all) = (config.clone(), store.clone(), all.clone());
    let open: Open = Box::new(move |society, works| {
        let (config, store, all, end_watcher) = (config.of(&society), store.clone(), all.clone(), end_watcher.clone());
        Box::pin(async move {
            let before = all.lock().await.remove(&society);
            if let Some(before) = &before {
                before.flush_telemetry().await;
                before.close_servers().await;
            }
            let purpose = if works { Purpose::Run } else { Purpose::Read };
            let watchers = before.and_then(|before| before.watchers());
            let opened = wiring::open_for(&config, &store, purpose, watchers).await;
            let opened = opened.map_err(|error| Failure::new(error.code.into_owned(), error.message))?;
            let state = opened.state.clone();
            if let Some(end_watcher) = end_watcher {
                end_watcher.watch(state.society());
            }
            all.lock().await.insert(society, opened);
            Ok(state)
        })
    });
    // Without randomness nothing would have been opened.
    Opener { open, close, entropy: Box::new(|| wiring::entropy().unwrap_or_default()) }
}

async fn serve_console(config: &Config, store: &Store, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let transport = Transport::in_process(wiring::open(config, store, Purpose::Run).await?);
    let done = console(config, &transport, interrupts, Begun::default()).await;
    let state = if let Transport::InProcess(here) = &transport { Some(here.opened.state.clone()) } else { None };
    transport.close(false).await;
    if let Some(state) = state {
        write_org(config, &state).await;
    }
    done
}

/// Writes the organisation as it is at the stop (D15, R204): `org.json` of `main`, `org.NAME.json` of another. It is a copy for people;
/// the log is the record, so a failure is only reported.
async fn write_org(config: &Config, state: &SocietyState) {
    let name = state.society().id();
    let path = config.data.join(if name.as_str() == SOCIETY { "org.json".to_owned() } else { format!("org.{name}.json") });
    let written = match state.society().stored_org().await {
        Ok(org) => serde_json::to_string_pretty(&org).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let kept = written.and_then(|text| write_private(&path, &text).map_err(|error| error.to_string()));
    if let Err(error) = kept {
        out::note(&format!(
            "polis: {} was not written: {error}; nothing is lost, `polis export` writes it again",
            path.display()
        ));
    }
}

async fn report_unfinished_work(state: &SocietyState) {
    let society = state.society();
    let name = society.id();
    match society.unfinished_work().await {
        Ok(UnfinishedWork { last, open_turns, pending_messages }) => {
            let unfinished = match (open_turns, pending_messages) {
                (0, 0) => "nothing is unfinished".to_owned(),
                _ => format!(
                    "{} and {} continue at the next start",
                    out::count(open_turns, "turn"),
                    out::count(pending_messages, "pending message")
                ),
            };
            out::note(&format!("polis stopped; the log of {name} ends at event {last}, and {unfinished}"));
        }
        Err(error) => out::note(&format!("polis stopped; {error}")),
    }
}

/// The address under which this machine reaches a server that listens on all of its addresses.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
