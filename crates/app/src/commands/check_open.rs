//! `polis check --against DATA` and `polis serve --take-over`: whether this program could continue the open work of a data directory, before it takes over.

use std::path::{Path, PathBuf};

use polis_domain::SocietyId;
use polis_engine::{Divergence, replay_open};

use crate::backups;
use crate::config::Config;
use crate::error::CliError;
use crate::store::{OpenedLog, Store};
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
    let scratch = Scratch::new()?;
    let (from, copy) = (data.to_owned(), scratch.0.join("data"));
    let (file, to) = (scratch.0.join("copy.backup"), copy.clone());
    let copied = backups::blocking(move || {
        polis_store_local::backup(&from, &file)?;
        polis_store_local::restore(&file, &to)
    });
    copied.await??;
    let mut config = config.clone();
    (config.data, config.store) = (copy, None);
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

/// A folder for this command alone, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, CliError> {
        let path = std::env::temp_dir().join(format!("polis-check-{:016x}", wiring::entropy()?));
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let failed =
            |error| CliError::new("no_space", format!("{}: {error}; set TMPDIR to a folder with room", path.display()));
        builder.create(&path).map_err(failed)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
