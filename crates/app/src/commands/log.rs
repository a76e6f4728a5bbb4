//! `polis log`: what happened, and with `--follow` what happens.

use polis_domain::{Recorded, Seq};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::cli::Log;
use crate::config::Config;
use crate::door::{Door, Purpose, Told};
use crate::trouble::{Exit, Trouble};
use crate::{describe, out, signals};

#[derive(Deserialize)]
struct Page {
    events: Vec<Box<RawValue>>,
}

pub(crate) async fn log(config: &Config, args: &Log) -> Result<Exit, Trouble> {
    let stop = args.follow.then(signals::watch);
    let door = Door::open(config, Purpose::Look).await?;
    let mut seen = Seq(args.from.saturating_sub(1));
    loop {
        let page: Page = door.get(&format!("/api/log?after={seen}")).await?;
        if page.events.is_empty() {
            break;
        }
        for event in page.events {
            let recorded = serde_json::from_str::<Recorded>(event.get()).map_err(|error| {
                Trouble::new(
                    "strange_event",
                    format!("the event after {seen} cannot be parsed: {error}; is the other polis newer?"),
                )
            })?;
            seen = recorded.seq;
            show(args, event.get(), &recorded)?;
        }
    }
    match (&door, stop) {
        (_, None) => Ok(Exit::Done),
        (Door::There(_), Some(stop)) => follow(&door, args, seen, &stop).await,
        (Door::Here(_), Some(_)) => {
            out::note("polis: no society is running here, so no more events will come");
            Ok(Exit::Done)
        }
    }
}

async fn follow(door: &Door, args: &Log, seen: Seq, stop: &CancellationToken) -> Result<Exit, Trouble> {
    let mut events = door.events(seen).await?;
    loop {
        let told = tokio::select! {
            () = stop.cancelled() => return Ok(Exit::Stopped),
            told = events.next() => told?,
        };
        if let Told::Event { data, recorded } = told {
            show(args, &data, &recorded)?;
        }
    }
}

fn show(args: &Log, written: &str, recorded: &Recorded) -> Result<(), Trouble> {
    if args.json { out::line(written) } else { out::line(&describe::line(recorded)) }
}
