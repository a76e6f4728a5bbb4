//! `polis replay`: every settled turn once more against the log, with models and tools forbidden.

use polis_domain::Seq;
use polis_engine::{Divergence, ForkError, Replayed, replay as run};
use polis_ports::LogError;
use serde_json::{Value, json};

use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::out;
use crate::store::{OpenedLog, Store};
use crate::transport::needs_data;
use crate::wiring;

pub(crate) async fn replay(config: &Config, json: bool) -> Result<Exit, CliError> {
    if config.url.is_some() {
        let message = "a replay runs the code of this program, so it needs the data directory; use --data, not --url";
        return Err(CliError::usage("bad_url", message));
    }
    needs_data(config)?;
    let opened = OpenedLog::open(config).await.map_err(|error| match error {
        LogError::Locked(message) => CliError::new("data_locked", format!("{message}; a replay needs exclusive access")),
        error => error.into(),
    })?;
    if opened.log().head(&config.society).await? == Seq(0) {
        return Err(ForkError::Unknown(config.society.clone()).into());
    }
    let (ports, cast) = wiring::to_replay(config, &Store::open(config, opened)?).await?;
    let replayed = run(&config.society, &ports, &cast).await?;
    print_result(json, &replayed)?;
    Ok(if replayed.divergences.is_empty() { Exit::Done } else { Exit::Failed })
}

/// A divergence as JSON.
pub(crate) fn as_json(it: &Divergence) -> Value {
    json!({ "turn": it.turn, "agent": it.agent, "thread": it.thread, "effect": it.effect, "what": it.what })
}

/// A divergence as a line.
pub(crate) fn describe(it: &Divergence) -> String {
    let effect = it.effect.map(|id| format!(", effect {id}")).unwrap_or_default();
    format!("turn {} of {} in {}{effect}: {}", it.turn, it.agent, it.thread, it.what)
}

fn print_result(json: bool, replayed: &Replayed) -> Result<(), CliError> {
    let Replayed { events, turns, effects, erased, open, retired, divergences } = replayed;
    if json {
        let divergences: Vec<_> = divergences.iter().map(as_json).collect();
        let told = json!({
            "events": events, "turns": turns, "effects": effects, "erased": erased, "open": open, "retired": retired,
            "calls": 0,
            "divergences": divergences,
        });
        return out::line(&told.to_string());
    }
    for it in divergences {
        out::line(&describe(it))?;
    }
    let not_run = |number: usize, which: &str| match number {
        0 => String::new(),
        _ => format!(", not run: {} {which}", out::count(number, "turn")),
    };
    let gone = not_run(*erased, "whose content is erased");
    let open = not_run(*open, "still open");
    let retired = not_run(*retired, "begun with versions that are not registered");
    let (events, turns, effects) =
        (out::count(*events as usize, "event"), out::count(*turns, "turn"), out::count(*effects, "effect"));
    let differences = out::count(divergences.len(), "difference");
    out::line(&format!("{events} folded, {turns} with {effects} run again, no call made, {differences}{gone}{open}{retired}"))?;
    if !divergences.is_empty() {
        out::note("polis: the code or the state differs from what wrote this log (diverged)");
    }
    Ok(())
}
