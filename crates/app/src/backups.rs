//! Which file of a directory of backups is written next, which is the newest, and the copies that a server makes while it runs.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

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
fn next(dir: &Path, keep: NonZeroU32) -> PathBuf {
    let made_at = |path: &Path| match Inspection::open(path).and_then(|found| found.made_at()) {
        Ok(at) => Some(at),
        Err(BackupError::Unfinished(_)) => Some(None),
        Err(_) if !path.exists() => Some(None),
        Err(error) => {
            out::note(&format!("polis: `{}` is left alone: {error} ({})", path.display(), error.code()));
            None
        }
    };
    let files = (1..=keep.get()).map(|number| file(dir, number)).filter_map(|path| Some((made_at(&path)?, path)));
    files.min().map_or_else(|| file(dir, 1), |(_, path)| path)
}

/// The backup at a path: the file itself, or the newest one of a directory that is whole.
pub(crate) fn newest(path: &Path) -> Result<PathBuf, CliError> {
    if !path.exists() {
        return Err(missing(path));
    }
    refuse_odd(path)?;
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let entries =
        std::fs::read_dir(path).map_err(|error| CliError::new("no_backup", format!("{}: {error}", path.display())))?;
    let files = entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "backup"));
    let made = files.filter_map(|path| Some((Inspection::open(&path).ok()?.made_at().ok()??, path)));
    let newest = made.max().map(|(_, path)| path);
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
        BackupError::Log(LogError::Damaged(what)) if is_file => {
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
        let file = if is_directory(&to) { next(&to, keep) } else { to };
        refuse_inside(&data, &file)?;
        refuse_odd(&file)?;
        match polis_store_local::backup(&data, &file) {
            Ok(report) => Ok((file, report)),
            Err(error) => Err(about(&file, error)),
        }
    };
    blocking(work).await?
}

/// Runs work that blocks.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, CliError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| CliError::new("backup_failed", format!("it stopped early: {error}")))
}

/// Makes backups for as long as it is polled, if the settings say so. A failure is reported, and the next run tries again.
pub(crate) async fn keep_up(config: &Config) {
    let Some(to) = &config.backup.to else { return std::future::pending().await };
    // A directory that does not exist yet is one all the same.
    let to = to.join("");
    let mut ticks = tokio::time::interval(config.backup.every());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failed = false;
    loop {
        ticks.tick().await;
        match make(&config.data, &to, config.backup.keep()).await {
            Ok((file, report)) => {
                if failed {
                    out::note(&format!("polis: backups work again: {}", file.display()));
                }
                failed = false;
                for id in &report.damaged {
                    out::note(&format!("polis: artifact {id} is damaged and not in the backup (artifact_damaged)"));
                }
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
