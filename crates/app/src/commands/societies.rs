//! `polis societies`, `polis fork` and `polis rewind`: the societies of a data directory, and another way for one of them.

use polis_domain::{Seq, SocietyId};
use polis_engine::{Branch, SystemClock, fork as begin, free_name};
use polis_ports::Log;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cli::{Fork, Rewind};
use crate::config::Config;
use crate::door::{Door, Purpose};
use crate::trouble::{Exit, Trouble};
use crate::{out, wiring};

#[derive(Deserialize)]
struct Listed {
    societies: Vec<Society>,
}

#[derive(Deserialize)]
struct Society {
    name: SocietyId,
    events: Seq,
    works: bool,
}

/// What came of it, as the server says it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Made {
    society: SocietyId,
    at: Seq,
    #[serde(default)]
    kept: Option<SocietyId>,
    open_turns: usize,
    in_doubt: usize,
}

pub(crate) async fn societies(config: &Config, json: bool) -> Result<Exit, Trouble> {
    let listed: Value = match open(config).await? {
        door @ Door::There(_) => door.get("/api/societies").await?,
        Door::Here(opened) => {
            let log = opened.state.society().log();
            let mut societies = Vec::new();
            for name in log.societies().await? {
                societies.push(json!({ "name": name, "events": log.head(&name).await?, "works": false }));
            }
            json!({ "societies": societies })
        }
    };
    if json {
        return out::line(&format!("{listed:#}")).map(|()| Exit::Done);
    }
    let listed: Listed = serde_json::from_value(listed).map_err(|error| Trouble::new("strange_answer", error.to_string()))?;
    for Society { name, events, works } in listed.societies {
        out::line(&format!("{name:<24} {events:>10} events{}", if works { "  works" } else { "" }))?;
    }
    Ok(Exit::Done)
}

pub(crate) async fn fork(config: &Config, args: &Fork) -> Result<Exit, Trouble> {
    let made = match open(config).await? {
        door @ Door::There(_) => door.post("/api/fork", &json!({ "at": args.at, "name": args.name })).await?,
        Door::Here(opened) => {
            let log = &**opened.state.society().log();
            let to = match &args.name {
                Some(name) => SocietyId::from(name.as_str()),
                None => free_name(log, &config.society).await?,
            };
            make(log, Branch { from: config.society.clone(), at: args.at.map(Seq), to, aside: None, request: None }).await?
        }
    };
    tell(args.json, args.at, made, |made| {
        format!("{} shares everything up to event {} with {}; use it with --society {}", made.0, made.1, config.society, made.0)
    })
}

pub(crate) async fn rewind(config: &Config, args: &Rewind) -> Result<Exit, Trouble> {
    let made = match open(config).await? {
        door @ Door::There(_) => door.post("/api/rewind", &json!({ "to": args.to })).await?,
        Door::Here(opened) => {
            let log = &**opened.state.society().log();
            let aside = Some(free_name(log, &config.society).await?);
            let society = config.society.clone();
            make(log, Branch { from: society.clone(), at: Some(Seq(args.to)), to: society, aside, request: None }).await?
        }
    };
    tell(args.json, Some(args.to), made, |made| {
        let kept = made.2.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("{} continues from event {}; its previous history is kept as {kept}", made.0, made.1)
    })
}

/// The way in, where there is a society.
async fn open(config: &Config) -> Result<Door, Trouble> {
    Door::open(config, Purpose::Look).await
}

async fn make(log: &dyn Log, branch: Branch) -> Result<Value, Trouble> {
    let made = begin(log, &SystemClock, &branch, wiring::entropy()?).await?;
    Ok(json!({
        "society": branch.to, "from": branch.from, "at": made.at, "kept": branch.aside, "openTurns": made.open_turns,
        "inDoubt": made.in_doubt,
    }))
}

fn tell(
    json: bool,
    asked: Option<u64>,
    made: Value,
    words: impl FnOnce((&SocietyId, Seq, Option<SocietyId>)) -> String,
) -> Result<Exit, Trouble> {
    if json {
        return out::line(&made.to_string()).map(|()| Exit::Done);
    }
    let made: Made = serde_json::from_value(made).map_err(|error| Trouble::new("strange_answer", error.to_string()))?;
    if let Some(asked) = asked.filter(|asked| *asked != made.at.0) {
        out::note(&format!(
            "polis: event {asked} is inside an append; event {} is the last complete position before it",
            made.at
        ));
    }
    if made.open_turns > 0 {
        let doubt = if made.in_doubt > 0 {
            let society = &made.society;
            format!(", and {} in doubt: polis --society {society} approvals", out::count(made.in_doubt, "call"))
        } else {
            String::new()
        };
        out::note(&format!("polis: open turns that continue when it runs: {}{doubt}", out::count(made.open_turns, "turn")));
    }
    out::line(&words((&made.society, made.at, made.kept)))?;
    Ok(Exit::Done)
}
