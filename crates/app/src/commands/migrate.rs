//! `polis migrate`: moves a log between a data directory and PostgreSQL, all of it or nothing.

use std::collections::HashMap;
use std::path::Path;

use polis_domain::Seq;
use polis_ports::LogError;
use polis_store_local::{ComingLog as ToDirectory, LeavingLog};
use polis_store_postgres::moving::{Chain, ComingLog as ToDatabase, MovedEvent, MovedSociety, Passage, parents_first};
use serde_json::json;

use super::backup::refuse_url;
use crate::cli::Migrate;
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::out;
use crate::postgres_store::{LeavingDatabase, StoreAddress};

pub(crate) async fn migrate(config: &Config, args: &Migrate) -> Result<Exit, CliError> {
    refuse_url(config)?;
    let moved = match (is_url(&args.from), is_url(&args.to)) {
        (false, true) => {
            let address = address(&args.to)?;
            let from = Path::new(&args.from);
            refuse_missing(from)?;
            let from = From::Directory(Box::new(LeavingLog::open(from)?));
            let to = To::Database(Box::new(address.begin().await?));
            copy(from, to).await?
        }
        (true, false) => {
            if Path::new(&args.to) == config.data {
                config.trust.claim_data()?;
            }
            let database = LeavingDatabase::open(&address(&args.from)?).await?;
            let to = To::Directory(Box::new(ToDirectory::begin(Path::new(&args.to))?));
            copy(From::Database(database), to).await?
        }
        _ => {
            let message = "one of --from and --to is a data directory and the other postgres://…; between two directories use polis \
                           backup and polis restore, between two databases their own tools";
            return Err(CliError::usage("bad_migration", message));
        }
    };
    if args.json {
        let list: Vec<_> = moved
            .iter()
            .map(|(society, chain)| json!({ "name": society.name, "events": society.head, "chain": chain.to_hex() }))
            .collect();
        out::json(&json!({ "societies": list }))?;
    } else {
        for (society, chain) in &moved {
            let events = out::count(society.head.0 as usize, "event");
            out::line(&format!("{}: {events}, hash chain {}", society.name, chain.to_hex()))?;
        }
        out::line("moved, read back and found to be the same")?;
    }
    out::note(
        "polis: what was moved from is unchanged; do not use it any more. Artifacts, memories and tokens stay in the data directory",
    );
    Ok(Exit::Done)
}

fn is_url(place: &str) -> bool {
    place.contains("://")
}

fn address(url: &str) -> Result<StoreAddress, CliError> {
    let password = std::env::var("POLIS_STORE_PASSWORD").ok().filter(|password| !password.is_empty());
    StoreAddress::parse(url, password.as_deref(), None)
}

fn refuse_missing(data: &Path) -> Result<(), CliError> {
    match data.join("polis.db").exists() {
        true => Ok(()),
        false => Err(CliError::new("no_data", format!("there is no society in `{}`; name a data directory", data.display()))),
    }
}

enum From {
    Directory(Box<LeavingLog>),
    Database(LeavingDatabase),
}

impl From {
    async fn societies(&self) -> Result<Vec<MovedSociety>, LogError> {
        match self {
            Self::Directory(log) => Ok(log.societies()),
            Self::Database(log) => log.societies().await,
        }
    }

    async fn events(&mut self, society: &MovedSociety, after: Seq) -> Result<Vec<MovedEvent>, LogError> {
        match self {
            Self::Directory(log) => log.events(society, after),
            Self::Database(log) => log.events(society, after).await,
        }
    }
}

enum To {
    Directory(Box<ToDirectory>),
    Database(Box<ToDatabase>),
}

/// Copies everything, and has the target read it back.
async fn copy(mut from: From, mut to: To) -> Result<Vec<(MovedSociety, Chain)>, LogError> {
    let mut moved = Vec::new();
    for society in parents_first(from.societies().await?)? {
        match &mut to {
            To::Directory(to) => to.society(&society)?,
            To::Database(to) => to.society(&society).await?,
        }
        let mut passage = Passage::of(&society);
        while passage.last() < society.head {
            let events = from.events(&society, passage.last()).await?;
            if events.is_empty() {
                return Err(LogError::Damaged(format!("event {} of `{}` is missing", passage.last().next(), society.name)));
            }
            events.iter().try_for_each(|event| passage.add(&society, event))?;
            match &mut to {
                To::Directory(to) => to.events(&society, &events)?,
                To::Database(to) => to.events(&society, &events).await?,
            }
        }
        moved.push((society, passage.chain()));
    }
    let chains: HashMap<_, _> =
        moved.iter().map(|(society, chain)| (society.name.to_string(), (society.head, *chain))).collect();
    match to {
        To::Directory(to) => to.finish(&chains)?,
        To::Database(to) => to.finish(&chains).await?,
    }
    Ok(moved)
}
