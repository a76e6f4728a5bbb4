//! `polis check --against DATA` and `polis serve --take-over`: whether this program could continue the open work of a data directory, before it takes over.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use polis_domain::SocietyId;
use polis_engine::{Divergence, replay_open};

use crate::backups;
use crate::config::Config;
use crate::error::CliError;
use crate::store::{OpenedLog, Store};
use crate::trust::create_private;
use crate::wiring;

/// What this program would make of the open turns of a data directory.
pub(crate) struct DryRun {
    /// How many there are.
    #[cfg_attr(not(feature = "authoring"), expect(dead_code))]
    pub(crate) open: usize,
    /// Those that it cannot continue, with their societies.
    pub(crate) divergences: Vec<(SocietyId, Divergence)>,
}

/// Runs the open turns of all societies against a copy of their logs. The program that has the directory open goes on meanwhile.
pub(crate) async fn dry_run(config: &Config, data: &Path) -> Result<DryRun, CliError> {
    if !data.join("polis.db").exists() {
        let message = format!("there is no society in `{}`; name a data directory", data.display());
        return Err(CliError::new("no_data", message));
    }
    let from = data.to_owned();
    let copied = backups::blocking(move || {
        let scratch = Scratch::take(&from)?;
        polis_store_local::backup(&from, &scratch.folder.join("copy.backup"))?;
        polis_store_local::restore(&scratch.folder.join("copy.backup"), &scratch.copy())?;
        Ok::<_, CliError>(scratch)
    });
    let scratch = copied.await??;
    let mut config = config.clone();
    (config.data, config.store) = (scratch.copy(), None);
    let store = Store::open(&config, OpenedLog::open(&config).await?)?;
    let (ports, cast) = wiring::to_replay(&config, &store).await?;
    let (mut open, mut divergences) = (0, Vec::new());
    for society in store.log.societies().await? {
        let replayed = replay_open(&society, &ports, &cast).await?;
        open += replayed.open;
        divergences.extend(replayed.divergences.into_iter().map(|it| (society.clone(), it)));
    }
    Ok(DryRun { open, divergences })
}

/// The folder in the data directory in which the copy is made. Agents cannot read it.
const FOLDER: &str = "check";

/// The folder, for this dry run alone. It is emptied at the end, and by the next start if this process is killed.
struct Scratch {
    folder: PathBuf,
    lock: File,
}

impl Scratch {
    /// Waits for another dry run on the same data directory.
    fn take(data: &Path) -> Result<Self, CliError> {
        let folder = data.join(FOLDER);
        let take = || {
            create_private(&folder)?;
            let lock = lock_file(&folder)?;
            lock.lock()?;
            empty(&folder)?;
            Ok(lock)
        };
        let failed = |error: io::Error| CliError::new("backup_failed", format!("{}: {error}", folder.display()));
        take().map_err(failed).map(|lock| Self { folder: folder.clone(), lock })
    }

    /// The data directory that the logs are copied to.
    fn copy(&self) -> PathBuf {
        self.folder.join("data")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = empty(&self.folder);
        // Closing is not enough: a child process that is just being spawned may still have the file open.
        let _ = self.lock.unlock();
    }
}

/// Removes what a dry run that was killed has left in a data directory. One that runs keeps its copy.
pub(crate) fn remove_leftover(data: &Path) -> io::Result<()> {
    let folder = data.join(FOLDER);
    if !folder.exists() {
        return Ok(());
    }
    let lock = lock_file(&folder)?;
    if lock.try_lock().is_ok() { empty(&folder) } else { Ok(()) }
}

/// The file whose lock a dry run holds. It stays, so that all lock the same one.
fn lock_file(folder: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).write(true).open(folder.join("lock"))
}

fn empty(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
        match kind.is_dir() {
            true => fs::remove_dir_all(path)?,
            false if path.ends_with("lock") => {}
            false => fs::remove_file(path)?,
        }
    }
    Ok(())
}
