//! `polis serve`: the society and its HTTP server, until it is told to stop.

use std::io::{IsTerminal, stdin};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use polis_server::{Access, BindError, Desk, Listener};
use polis_store_local::LocalLog;
use tokio_util::sync::CancellationToken;

use super::chat::console;
use crate::cli::Serve;
use crate::config::Config;
use crate::door::{Door, GRACE, Purpose, open_log, owner_note};
use crate::trouble::{Exit, Trouble};
use crate::{out, roles, signals, token, wiring};

pub(crate) async fn serve(config: &Config, wish: &Serve) -> Result<Exit, Trouble> {
    let stop = signals::watch();
    let log = Arc::new(open_log(&config.data).await?);
    let token = if wish.no_auth { None } else { Some(token::read_or_make(&config.data)?) };
    let access = Access { token: token.clone(), insecure_listen: wish.insecure_listen };
    // Nothing works before we know that we can be reached, or that there is a console instead.
    let listener = match Listener::bind(config.listen, access).await {
        Ok(listener) => listener,
        Err(taken @ BindError::Taken(_)) if stdin().is_terminal() => {
            out::trouble(&Trouble::new(taken.code(), taken.to_string()));
            out::note("polis: going on without HTTP, in this console");
            return in_console(config, log, &stop).await;
        }
        Err(error @ (BindError::NotLoopback(_) | BindError::OpenToAll(_))) => {
            return Err(Trouble::usage(error.code(), error.to_string()));
        }
        Err(error @ (BindError::Taken(_) | BindError::Refused(..))) => {
            return Err(Trouble::new(error.code(), error.to_string()));
        }
    };
    let opened = wiring::open(config, log.clone(), Purpose::Work).await?;
    // It only tells others who has the store; without it they must be given the address.
    let _ = log.write_note(&owner_note(&format!("http://{}", reachable(listener.address()))));
    let address = listener.address();
    out::line(&format!("polis is listening on http://{address}"))?;
    match &token {
        Some(token) => out::line(&format!("http://{address}/#token={}", token.as_str()))?,
        None => {
            out::note(
                "polis: WARNING: --no-auth: everybody on this machine can use this society, its tools and your model's key",
            );
            out::line(&format!("http://{address}/"))?;
        }
    }
    tokio::select! {
        () = listener.serve(opened.desk.clone(), stop, GRACE) => {}
        () = roles::watch(opened.desk.society(), Path::new(roles::FOLDER)) => {}
    }
    opened.close_servers().await;
    sum_up(&opened.desk).await;
    opened.tell_unused();
    Ok(Exit::Done)
}

async fn in_console(config: &Config, log: Arc<LocalLog>, stop: &CancellationToken) -> Result<Exit, Trouble> {
    let door = Door::Here(wiring::open(config, log, Purpose::Work).await?);
    let done = console(config, &door, stop).await;
    door.close(false).await;
    done
}

async fn sum_up(desk: &Desk) {
    let society = desk.society();
    match society.log().head(society.id()).await {
        Ok(last) => {
            out::note(&format!("polis stopped; the log ends at event {last}, and what is unfinished goes on at the next start"))
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
