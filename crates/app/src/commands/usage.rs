//! `polis usage`: what was spent on models, by whom, and what is left.

use polis_domain::{Level, Scope, Spent};
use serde::Deserialize;
use serde_json::Value;

use crate::config::Config;
use crate::door::{Door, Purpose};
use crate::out;
use crate::trouble::{Exit, Trouble};

#[derive(Deserialize)]
struct Usage {
    accounts: Vec<Account>,
}

#[derive(Deserialize)]
struct Account {
    scope: Scope,
    spent: Spent,
    levels: Vec<Level>,
}

pub(crate) async fn usage(config: &Config, json: bool) -> Result<Exit, Trouble> {
    let door = Door::open(config, Purpose::Look).await?;
    if json {
        let usage: Value = door.get("/api/usage").await?;
        return out::line(&format!("{usage:#}")).map(|()| Exit::Done);
    }
    let usage: Usage = door.get("/api/usage").await?;
    if usage.accounts.is_empty() {
        out::note("polis: no model has been asked yet");
    }
    for Account { scope, spent, levels } in usage.accounts {
        let Spent { tokens, cost_nanos, requests, time_ms } = spent;
        let dollars = cost_nanos as f64 / 1e9;
        let seconds = time_ms as f64 / 1e3;
        let scope = scope.to_string();
        out::line(&format!("{scope:<24} {tokens:>12} tokens  ${dollars:<10.4} {requests:>8} requests  {seconds:>9.1} s"))?;
        for level in levels {
            out::line(&format!("{:<24} {level} ({} %)", "", level.percent()))?;
        }
    }
    Ok(Exit::Done)
}
