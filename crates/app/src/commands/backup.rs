//! `polis backup` and `polis restore`.

use std::num::NonZeroU32;

use polis_store_local::{BackupReport, InspectedSociety};
use serde_json::json;

use crate::backups;
use crate::cli::{Backup, Restore};
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::out;

pub(crate) async fn backup(config: &Config, args: &Backup) -> Result<Exit, CliError> {
    refuse_url(config)?;
    if !config.data.join("polis.db").exists() {
        let message = format!("there is no society in `{}`; choose a data directory with --data", config.data.display());
        return Err(CliError::new("no_data", message));
    }
    let to = if args.keep.is_some() { args.to.join("") } else { args.to.clone() };
    let (file, report) = backups::make(&config.data, &to, args.keep.unwrap_or(NonZeroU32::MIN)).await?;
    let BackupReport { events, artifacts, bytes, damaged } = &report;
    if args.json {
        let damaged: Vec<_> = damaged.iter().map(ToString::to_string).collect();
        out::json(&json!({ "file": file, "events": events, "artifacts": artifacts, "bytes": bytes, "damaged": damaged }))?;
    } else {
        let (events, artifacts) = (out::count(*events as usize, "event"), out::count(*artifacts as usize, "artifact"));
        out::line(&format!("{}: {events} and {artifacts} added, {bytes} bytes", file.display()))?;
    }
    match damaged.as_slice() {
        [] => Ok(Exit::Done),
        [first, ..] => {
            let (count, it) = (out::count(damaged.len(), "artifact"), "everything else is");
            let message = format!("{count} could not be backed up, {it}: {first} is not what was stored");
            Err(CliError::new("artifact_damaged", message))
        }
    }
}

pub(crate) async fn restore(config: &Config, args: &Restore) -> Result<Exit, CliError> {
    refuse_url(config)?;
    let to = args.to.clone().unwrap_or_else(|| config.data.clone());
    let (from, target) = (args.from.clone(), to.clone());
    let restored = backups::blocking(move || {
        let file = backups::newest(&from)?;
        let societies = polis_store_local::restore(&file, &target).map_err(|error| backups::about(&file, error))?;
        Ok::<_, CliError>((file, societies))
    });
    let (file, societies) = restored.await??;
    if to == config.data {
        config.trust.own_restored_data()?;
    }
    if args.json {
        let list: Vec<_> = societies.iter().map(society).collect();
        out::json(&json!({ "file": file, "data": to, "societies": list }))?;
    } else {
        for it in &societies {
            out::line(&format!("{}: {}", it.name, out::count(it.head.0 as usize, "event")))?;
        }
        out::line(&format!("{} was restored to {}", file.display(), to.display()))?;
        out::note("polis: what was open then continues with the next start; what happened since is not known to it");
    }
    Ok(Exit::Done)
}

/// A society as JSON.
pub(crate) fn society(it: &InspectedSociety) -> serde_json::Value {
    json!({ "name": it.name, "events": it.head, "chain": it.chain })
}

/// These commands work on files.
pub(crate) fn refuse_url(config: &Config) -> Result<(), CliError> {
    match config.url {
        None => Ok(()),
        Some(_) => {
            let message = "this command reads the files of a data directory, also while polis runs; use --data, not --url";
            Err(CliError::usage("bad_url", message))
        }
    }
}
