//! `polis serve`: the society and its HTTP server, until a signal stops it.

use std::collections::BTreeMap;
use std::io::{IsTerminal, stdin};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use futures_util::future::join_all;
use polis_domain::{Failure, SocietyId};
use polis_engine::{Society, UnfinishedWork};
use polis_ports::LogError;
use polis_server::{
    Access, BindError, Listener, Open, Opener, Rate, Rates, STOP_GRACE, Security, Societies, SocietyState, Tls, write_private,
};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::chat::{Begun, console};
use crate::cli::Serve;
use crate::config::{Config, SOCIETY};
use crate::error::{CliError, Exit};
use crate::purpose::Purpose;
use crate::signals::Interrupts;
use crate::transport::{Transport, open_log, owner_note};
use crate::wiring::{OpenSociety, Store};
use crate::{backups, file_limit, out, roles, token, wiring};

pub(crate) async fn serve(config: &Config, args: &Serve) -> Result<Exit, CliError> {
    let interrupts = Interrupts::watch();
    let stop = interrupts.stop.clone();
    // Whoever connects beyond it waits to be accepted, so that less is slower and not wrong.
    file_limit::raise_limit();
    config.trust.claim_data()?;
    let store = Store::open(config, open_log(&config.data).await?)?;
    let token = if args.no_auth { None } else { Some(token::read_or_make(&config.data)?) };
    let access = Access { token: token.clone(), insecure_listen: args.insecure_listen };
    // Nothing works before we know that we can be reached, or that there is a console instead.
    let security = security(config, args)?;
    let scheme = if security.tls.is_some() { "https" } else { "http" };
    let listener = match Listener::bind_with(config.listen, access, security).await {
        Ok(listener) => listener,
        Err(taken @ BindError::Taken(_)) if stdin().is_terminal() => {
            out::report_error(&CliError::new(taken.code(), taken.to_string()));
            out::note("polis: continuing in this console, without HTTP");
            return serve_console(config, &store, &interrupts).await;
        }
        Err(error @ (BindError::NotLoopback(_) | BindError::OpenToAll(_))) => {
            return Err(CliError::usage(error.code(), error.to_string()));
        }
        Err(error @ (BindError::Taken(_) | BindError::Refused(..))) => {
            return Err(CliError::new(error.code(), error.to_string()));
        }
    };
    let opened = wiring::open(config, &store, Purpose::Run).await?;
    // It only tells other processes who holds the store; without it they need the address.
    let _ = store.log.write_note(&owner_note(&format!("{scheme}://{}", reachable(listener.address()))));
    let address = listener.address();
    out::line(&format!("polis is listening on {scheme}://{address}"))?;
    match &token {
        Some(token) => out::line(&format!("{scheme}://{address}/?token={}", token.as_str()))?,
        None => {
            out::note(
                "polis: WARNING: --no-auth: every user of this machine can use this society, its tools and your model's key",
            );
            out::line(&format!("{scheme}://{address}/"))?;
        }
    }
    let end_watcher = EndWatcher { stop: stop.clone(), why: Arc::default() };
    end_watcher.watch(opened.state.society());
    let opened_all = Arc::new(Mutex::new(BTreeMap::from([(config.society.clone(), opened)])));
    let societies = societies(config, &store, &opened_all, &end_watcher).await;
    for society in config.societies().filter(|society| **society != config.society) {
        if let Err(failure) = societies.start(society).await {
            // One that cannot work stops no other.
            out::report_error(&CliError::new(
                failure.code.to_string(),
                format!("the society {society} cannot run: {}", failure.message),
            ));
        }
    }
    let (first, role_files) = {
        let all = opened_all.lock().await;
        (all[&config.society].state.clone(), all[&config.society].role_files.clone())
    };
    tokio::select! {
        () = listener.serve(societies.clone(), stop, STOP_GRACE) => {}
        () = roles::watch(first.society(), &config.trust, role_files) => {}
        () = backups::keep_up(config) => {}
    }
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
    for state in societies.working() {
        write_org(config, &state).await;
        report_unfinished_work(&state).await;
    }
    Ok(Exit::Done)
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
    Ok(Security { tls, tokens: Some(token::further(&config.data)), hosts, cors, rates })
}

fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '*', '?', '#', '@', ' ']))
}

type OpenSocieties = Arc<Mutex<BTreeMap<SocietyId, OpenSociety>>>;

/// The societies of the store, opened as they are needed.
async fn societies(config: &Config, store: &Store, all: &OpenSocieties, end_watcher: &EndWatcher) -> Societies {
    let first = all.lock().await[&config.society].state.clone();
    let (config, store, all, end_watcher) = (config.clone(), store.clone(), all.clone(), end_watcher.clone());
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
            end_watcher.watch(state.society());
            all.lock().await.insert(society, opened);
            Ok(state)
        })
    });
    // Without randomness nothing would have been opened.
    Societies::new(first, Opener { open, entropy: Box::new(|| wiring::entropy().unwrap_or_default()) })
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
