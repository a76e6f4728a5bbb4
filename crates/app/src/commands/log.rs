//! `polis log`: prints the events of the log; `--follow` waits for new ones.

use polis_api::LogPaging;
use polis_domain::{Recorded, Seq};
use tokio_util::sync::CancellationToken;

use crate::cli::Log;
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::purpose::Purpose;
use crate::transport::{Transport, WatchedEvent};
use crate::{describe, out, signals};

pub(crate) async fn log(config: &Config, args: &Log) -> Result<Exit, CliError> {
    let stop = args.follow.then(signals::watch);
    let transport = Transport::open(config, Purpose::Read).await?;
    let mut seen = Seq(args.from.saturating_sub(1));
    loop {
        let page = transport.api().log(LogPaging { after: seen.0, ..LogPaging::default() }).await?;
        let Some(last) = page.events.last() else { break };
        seen = last.seq;
        page.events.iter().try_for_each(|recorded| show(args, recorded))?;
    }
    match (&transport, stop) {
        (_, None) => Ok(Exit::Done),
        (Transport::Http(_), Some(stop)) => follow(&transport, args, seen, &stop).await,
        (Transport::InProcess(_), Some(_)) => {
            out::note("polis: no society is running here, so no more events will come");
            Ok(Exit::Done)
        }
    }
}

async fn follow(transport: &Transport, args: &Log, seen: Seq, stop: &CancellationToken) -> Result<Exit, CliError> {
    let mut events = transport.events(seen).await?;
    loop {
        let told = tokio::select! {
            () = stop.cancelled() => return Ok(Exit::Stopped),
            told = events.next() => told?,
        };
        if let WatchedEvent::Event { recorded, .. } = told {
            show(args, &recorded)?;
        }
    }
}

fn show(args: &Log, recorded: &Recorded) -> Result<(), CliError> {
    if !args.json {
        return out::line(&describe::line(recorded));
    }
    let written = serde_json::to_string(recorded).map_err(|error| CliError::new("output_failed", error.to_string()))?;
    out::line(&written)
}
