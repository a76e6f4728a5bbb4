//! Which file of a directory of backups is written next, which is the newest, and the copies that a server makes while it runs.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use polis_ports::LogError;
use polis_store_local::{BackupError, BackupReport, Inspection};
use tokio::time::MissedTickBehavior;

use crate::config::Config;
use crate::error::CliError;
use crate::out;

impl From<BackupError> for CliError {
    fn from(error: BackupError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// A backup in a directory, by its number.
fn file(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("polis-{number}.backup"))
}

/// Whether this is meant as a directory of backups. A data directory is none.
pub(crate) fn is_directory(path: &Path) -> bool {
    path.is_dir() || path.to_str().is_some_and(|path| path.ends_with(std::path::is_separator))
}

/// The file that the next backup goes to: the first that is missing or unfinished, else the oldest.
/// One that cannot be read is left alone, so that it does not stop the others.
fn next(dir: &Path, keep: NonZeroU32) -> Result<PathBuf, CliError> {
    let mut files = Vec::new();
    for path in (1..=keep.get()).map(|number| file(dir, number)) {
        match made_at(&path) {
            Ok(at) => files.push((Some(at), path)),
            Err(BackupError::Unfinished(_)) => files.push((None, path)),
            Err(_) if !path.exists() => files.push((None, path)),
            Err(error @ BackupError::Running(_)) => return Err(error.into()),
            Err(error) => out::note(&format!("polis: `{}` is left alone: {error} ({})", path.display(), error.code())),
        }
    }
    Ok(files.into_iter().min().map_or_else(|| file(dir, 1), |(_, path)| path))
}

/// When a backup was made, in milliseconds since 1970.
pub(crate) fn made_at(path: &Path) -> Result<u64, BackupError> {
    let at = Inspection::open(path)?.made_at()?;
    at.ok_or_else(|| BackupError::NotABackup(path.display().to_string()))
}

/// The backups of a directory, the newest first. One that cannot be read counts by the time of its file: it may be the newest, and
/// must not be replaced silently by an older one.
pub(crate) fn all(dir: &Path) -> Result<Vec<PathBuf>, CliError> {
    let entries = std::fs::read_dir(dir).map_err(|error| CliError::new("no_backup", format!("{}: {error}", dir.display())))?;
    let files = entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "backup"));
    let mut found = Vec::new();
    for path in files {
        match made_at(&path) {
            Ok(at) => found.push((at, path)),
            Err(error @ BackupError::Unfinished(_)) => out::note(&format!("polis: {error} ({})", error.code())),
            Err(_) => {
                let modified = std::fs::metadata(&path).and_then(|found| found.modified()).unwrap_or(UNIX_EPOCH);
                let at = modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
                found.push((at, path));
            }
        }
    }
    found.sort();
    Ok(found.into_iter().rev().map(|(_, path)| path).collect())
}

/// The backup at a path: the file itself, or the newest one of a directory, which may be damaged.
pub(crate) fn newest(path: &Path) -> Result<PathBuf, CliError> {
    if !path.exists() {
        return Err(missing(path));
    }
    refuse_odd(path)?;
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let newest = all(path)?.into_iter().next();
    newest.ok_or_else(|| CliError::new("no_backup", format!("there is no finished backup in `{}`", path.display())))
}

/// There is nothing at a path.
pub(crate) fn missing(path: &Path) -> CliError {
    CliError::new("no_backup", format!("there is nothing at `{}`; check the path", path.display()))
}

/// An error with the path that it is about. A backup that SQLite cannot read is damaged, not the log.
pub(crate) fn about(path: &Path, error: BackupError) -> CliError {
    let is_file = path.is_file();
    match error {
        BackupError::Log(LogError::Damaged(what)) | BackupError::Damaged(what) if is_file => {
            CliError::from(BackupError::Damaged(format!("`{}`: {what}", path.display())))
        }
        BackupError::Log(error) => CliError::new(error.code(), format!("`{}`: {error}", path.display())),
        error => error.into(),
    }
}

/// Refuses what is neither a file nor a directory, such as a pipe, which would be read for ever.
pub(crate) fn refuse_odd(path: &Path) -> Result<(), CliError> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => Err(BackupError::NotABackup(path.display().to_string()).into()),
        _ => Ok(()),
    }
}

/// Refuses a place that would be lost together with the data.
fn refuse_inside(data: &Path, file: &Path) -> Result<(), CliError> {
    // What does not exist yet is below something that does.
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let real = absolute.ancestors().find_map(|above| above.canonicalize().ok());
    if let (Some(real), Ok(data)) = (real, data.canonicalize())
        && real.starts_with(&data)
    {
        let message = format!("`{}` is in the data directory and would be lost with it; choose another disk", file.display());
        return Err(CliError::usage("backup_inside_data", message));
    }
    Ok(())
}

/// Makes a backup; returns the file that has it.
pub(crate) async fn make(data: &Path, to: &Path, keep: NonZeroU32) -> Result<(PathBuf, BackupReport), CliError> {
    let (data, to) = (data.to_owned(), to.to_owned());
    let work = move || {
        let file = if is_directory(&to) { next(&to, keep)? } else { to };
        refuse_inside(&data, &file)?;
        refuse_odd(&file)?;
        match polis_store_local::backup(&data, &file) {
            Ok(report) => Ok((file, report)),
            Err(error) => Err(about(&file, error)),
        }
    };
    blocking(work).await?
}

/// The artifacts that a backup does not have, each with a code.
pub(crate) fn lacks(report: &BackupReport) -> Vec<(&'static str, String)> {
    let damaged = report.damaged.iter().map(|id| ("artifact_damaged", format!("artifact {id} is not what was stored")));
    let missing = report.missing.iter().map(|id| ("unknown_artifact", format!("artifact {id} is missing")));
    damaged.chain(missing).collect()
}

/// Runs work that blocks.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, CliError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| CliError::new("backup_failed", format!("it stopped early: {error}")))
}

/// Makes backups for as long as it is polled, if the settings say so. A failure is reported, and the next run tries again.
pub(crate) async fn keep_up(config: &Config) {
    let Some(to) = config.backup.to.as_ref().filter(|_| config.store.is_none()) else { return std::future::pending().await };
    // A directory that does not exist yet is one all the same.
    let to = to.join("");
    let mut ticks = tokio::time::interval(config.backup.every());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut failed, mut lacking) = (false, Vec::new());
    loop {
        ticks.tick().await;
        match make(&config.data, &to, config.backup.keep()).await {
            Ok((file, report)) => {
                if failed {
                    out::note(&format!("polis: backups work again: {}", file.display()));
                }
                failed = false;
                let lacks = lacks(&report);
                for (code, message) in lacks.iter().filter(|it| !lacking.contains(*it)) {
                    out::note(&format!("polis: {message} and not in the backup ({code})"));
                }
                lacking = lacks;
                tracing::info!(file = %file.display(), events = report.events, bytes = report.bytes, "backed up");
            }
            // Said once, not every ten minutes.
            Err(error) if !failed => {
                failed = true;
                out::report_error(&CliError { message: format!("no backup could be made: {}", error.message), ..error });
            }
            Err(error) => tracing::warn!(%error, "no backup could be made"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_one_that_is_there_or_ends_with_a_slash() {
        assert!(is_directory(Path::new("/")) && is_directory(Path::new("not/there/")));
        assert!(!is_directory(Path::new("not/there")));
    }
}
