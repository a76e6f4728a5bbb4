//! `polis backup` and `polis restore`.

use std::num::NonZeroU32;
use std::path::Path;

use polis_domain::{Timestamp, iso};
use polis_store_local::{BackupError, BackupReport, InspectedSociety};
use serde_json::json;

use super::verify;
use crate::backups;
use crate::cli::{Backup, Restore};
use crate::config::{Config, shell_quote};
use crate::error::{CliError, Exit};
use crate::out;
use crate::store::needs_local_log;

pub(crate) async fn backup(config: &Config, args: &Backup) -> Result<Exit, CliError> {
    refuse_url(config)?;
    needs_local_log(
        config,
        "back the database up with its own tools (pg_dump, base backups) first, and copy the data directory, which has artifacts and \
         memories, after it",
    )?;
    if !config.data.join("polis.db").exists() {
        let message = format!("there is no society in `{}`; choose a data directory with --data", config.data.display());
        return Err(CliError::new("no_data", message));
    }
    let to = if args.keep.is_some() { args.to.join("") } else { args.to.clone() };
    let (file, report) = backups::make(&config.data, &to, args.keep.unwrap_or(NonZeroU32::MIN)).await?;
    let BackupReport { events, artifacts, bytes, damaged, missing } = &report;
    if args.json {
        let (damaged, missing) = (json!(damaged), json!(missing));
        out::json(&json!({
            "file": file, "events": events, "artifacts": artifacts, "bytes": bytes, "damaged": damaged, "missing": missing,
        }))?;
    } else {
        let (events, artifacts) = (out::count(*events as usize, "event"), out::count(*artifacts as usize, "artifact"));
        out::line(&format!("{}: {events} and {artifacts} added, {bytes} bytes", file.display()))?;
    }
    let lacks = backups::lacks(&report);
    let Some((code, first)) = lacks.first() else { return Ok(Exit::Done) };
    let (count, rest) = (out::count(lacks.len(), "artifact"), "everything else is in the backup");
    Err(CliError::new(*code, format!("{count} could not be backed up, {rest}: {first}; `polis verify` lists all")))
}

pub(crate) async fn restore(config: &Config, args: &Restore) -> Result<Exit, CliError> {
    refuse_url(config)?;
    if args.to.is_none() {
        needs_local_log(config, "name the data directory to make with --to, or restore the database with its own tools")?;
    }
    let to = args.to.clone().unwrap_or_else(|| config.data.clone());
    let (from, target) = (args.from.clone(), to.clone());
    let restored = backups::blocking(move || {
        let file = backups::newest(&from)?;
        match polis_store_local::restore(&file, &target) {
            Ok(societies) => Ok::<_, CliError>((file, societies)),
            Err(error @ (BackupError::NotEmpty(_) | BackupError::NoRoom(_) | BackupError::Running(_))) => Err(error.into()),
            Err(error) if from.is_dir() => Err(with_other(backups::about(&file, error), &from, &file, &target)),
            Err(error) => Err(backups::about(&file, error)),
        }
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

/// The error with the newest backup of the directory that could be restored instead. The person decides, because it is older.
fn with_other(error: CliError, dir: &Path, refused: &Path, to: &Path) -> CliError {
    let others = backups::all(dir).unwrap_or_default();
    let sound = others.into_iter().filter(|path| path != refused).find(|path| verify::is_sound(path));
    let advice = match sound {
        None => format!("No other backup in `{}` is sound", dir.display()),
        Some(path) => {
            let at = backups::made_at(&path).map_or_else(|_| String::new(), |at| format!(" of {}", iso::write(Timestamp(at))));
            let quoted = |path: &Path| shell_quote(&path.display().to_string());
            let command = format!("polis restore {} --to {}", quoted(&path), quoted(to));
            format!("The newest sound one is `{}`{at}; to restore it, type: {command}", path.display())
        }
    };
    CliError { message: format!("{} (the newest of `{}`). {advice}", error.message, dir.display()), ..error }
}

/// A society as JSON.
pub(crate) fn society(it: &InspectedSociety) -> serde_json::Value {
    json!({ "name": it.name, "events": it.head, "chain": it.chain, "redacted": it.redacted.len() })
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
