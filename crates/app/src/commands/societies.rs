//! `polis societies`, `polis fork` and `polis rewind`: the societies of a data directory, and another way for one of them.

use polis_api::{ListedSociety, MadeSociety, Paging};

use crate::cli::{Fork, Rewind};
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::out;
use crate::purpose::Purpose;
use crate::transport::Transport;

pub(crate) async fn societies(config: &Config, json: bool) -> Result<Exit, CliError> {
    let transport = Transport::open(config, Purpose::Read).await?;
    let listed = transport.api().societies(&Paging::default()).await?;
    if json {
        return out::json(&listed).map(|()| Exit::Done);
    }
    for ListedSociety { name, events, works, .. } in listed.societies {
        out::line(&format!("{name:<24} {events:>10} events{}", if works { "  works" } else { "" }))?;
    }
    Ok(Exit::Done)
}

pub(crate) async fn fork(config: &Config, args: &Fork) -> Result<Exit, CliError> {
    let transport = Transport::open(config, Purpose::Read).await?;
    let made = transport.api().fork(polis_api::Fork { at: args.at, name: args.name.clone() }).await?;
    print_result(args.json, args.at, &made, |made| {
        let MadeSociety { society, at, .. } = made;
        format!("{society} shares everything up to event {at} with {}; use it with --society {society}", config.society)
    })
}

pub(crate) async fn rewind(config: &Config, args: &Rewind) -> Result<Exit, CliError> {
    let transport = Transport::open(config, Purpose::Read).await?;
    let made = transport.api().rewind(polis_api::Rewind { to: args.to }).await?;
    print_result(args.json, Some(args.to), &made, |made| {
        let kept = made.kept.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("{} continues from event {}; its previous history is kept as {kept}", made.society, made.at)
    })
}

fn print_result(
    json: bool,
    asked: Option<u64>,
    made: &MadeSociety,
    words: impl FnOnce(&MadeSociety) -> String,
) -> Result<Exit, CliError> {
    if json {
        return out::line(&serde_json::json!(made).to_string()).map(|()| Exit::Done);
    }
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
    out::line(&words(made))?;
    Ok(Exit::Done)
}
