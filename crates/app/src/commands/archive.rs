//! `polis archive`.

use std::time::Duration;

use polis_ports::LogError;
use serde_json::json;

use super::backup::refuse_url;
use crate::cli::Archive;
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::out;
use crate::retention::{self, Archived};
use crate::store::{needs_local_log, open_local};

const DAY: Duration = Duration::from_secs(86_400);
const DAYS: u32 = 90;

pub(crate) async fn archive(config: &Config, args: &Archive) -> Result<Exit, CliError> {
    refuse_url(config)?;
    needs_local_log(config, "PostgreSQL keeps old events as they are, and there is nothing to archive")?;
    if !config.data.join("polis.db").exists() {
        let message = format!("there is no society in `{}`; choose a data directory with --data", config.data.display());
        return Err(CliError::new("no_data", message));
    }
    let age = args.days.map(|days| DAY * days).or(config.retention.archive_after).unwrap_or(DAY * DAYS);
    let log = open_local(&config.data).await.map_err(|error| match error {
        LogError::Locked(message) => {
            let hint = "a running polis archives by itself if `archive_after` is set below [retention] in polis.toml";
            CliError::new("data_locked", format!("{message}; {hint}"))
        }
        error => error.into(),
    })?;
    let Archived { events, bytes } = retention::archive(&log, age).await?;
    if args.json {
        out::json(&json!({ "events": events, "bytes": bytes }))?;
    } else {
        out::line(&format!("{} archived, polis.db is {bytes} bytes shorter", out::count(events as usize, "event")))?;
    }
    Ok(Exit::Done)
}
