//! `polis check --against DATA`: whether this program could continue the open work of a data directory, before it takes over.

use std::path::{Path, PathBuf};

use polis_engine::replay_open;
use polis_ports::Log;
use serde_json::json;

use super::replay;
use crate::backups;
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::out;
use crate::transport::open_log;
use crate::wiring::{self, Store};

/// Runs the open turns of all societies against a copy of their logs. The program that has the directory open goes on meanwhile.
pub(crate) async fn check_open(config: &Config, data: &Path, json: bool) -> Result<Exit, CliError> {
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
    config.data = copy;
    let store = Store::open(&config, open_log(&config.data).await?)?;
    let (ports, cast) = wiring::to_replay(&config, &store).await?;
    let (mut open, mut found, mut list) = (0, 0, Vec::new());
    for society in store.log.societies().await? {
        let replayed = replay_open(&society, &ports, &cast).await?;
        open += replayed.open;
        found += replayed.divergences.len();
        for it in &replayed.divergences {
            match json {
                true => list.push(json!({ "society": society, "divergence": replay::as_json(it) })),
                false => out::line(&format!("{society}: {}", replay::describe(it)))?,
            }
        }
    }
    if json {
        out::line(&json!({ "open": open, "divergences": list }).to_string())?;
        return Ok(if found == 0 { Exit::Done } else { Exit::Failed });
    }
    let turns = out::count(open, "open turn");
    match found {
        0 => out::line(&format!("{turns}: this polis can continue all of them"))?,
        found => {
            out::line(&format!("{turns}, of which this polis cannot continue {found}"))?;
            out::note("polis: let them end with the old program, or cancel them (diverged)");
        }
    }
    Ok(if found == 0 { Exit::Done } else { Exit::Failed })
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
