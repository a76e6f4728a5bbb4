//! `polis usage`: spending on models by agent, and what is left of the budgets.

use polis_api::Spending;
use polis_domain::Spent;

use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::out;
use crate::purpose::Purpose;
use crate::transport::Transport;

pub(crate) async fn usage(config: &Config, json: bool) -> Result<Exit, CliError> {
    let transport = Transport::open(config, Purpose::Read).await?;
    let usage = transport.api().usage().await?;
    if json {
        return out::json(&usage).map(|()| Exit::Done);
    }
    if usage.accounts.is_empty() {
        out::note("polis: there are no model calls yet");
    }
    for Spending { scope, spent, levels, .. } in usage.accounts {
        let Spent { tokens, cost_nanos, requests, time_ms, .. } = spent;
        let cached = spent.cached_percent().map(|percent| format!("  {percent:>3} % of input cached")).unwrap_or_default();
        let dollars = cost_nanos as f64 / 1e9;
        let seconds = time_ms as f64 / 1e3;
        let (scope, requests) = (scope.to_string(), out::count(requests as usize, "request"));
        out::line(&format!("{scope:<24} {tokens:>12} tokens  ${dollars:<10.4} {requests:>17}  {seconds:>9.1} s{cached}"))?;
        for level in levels {
            out::line(&format!("{:<24} {level} ({} %)", "", level.percent()))?;
        }
    }
    Ok(Exit::Done)
}
