//! `polis trust`: shows what a folder's files would do and trusts exactly that content; lists and revokes what is trusted.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::cli::{Cli, TrustAction, TrustFolder};
use crate::error::{CliError, Exit};
use crate::trust::{self, Trust, TrustStore, UNTRUSTED, visible};
use crate::{config, out};

pub(crate) fn trust(cli: &Cli, options: &TrustFolder) -> Result<Exit, CliError> {
    match &options.action {
        None => trust_folder(cli, options),
        Some(TrustAction::List { json }) => list(*json),
        Some(TrustAction::Revoke { dir }) => revoke(dir.as_deref()),
    }
}

fn trust_folder(cli: &Cli, options: &TrustFolder) -> Result<Exit, CliError> {
    if let Some(dir) = &options.dir {
        let bad = |error: std::io::Error| CliError::usage("bad_folder", format!("{}: {error}", dir.display()));
        std::env::set_current_dir(dir).map_err(bad)?;
    }
    let trust = Trust::open(cli, &config::data(cli))?;
    let place = visible(&trust.folder().display().to_string());
    if trust.contents().files.is_empty() && !trust.foreign_data() {
        out::note(&format!("polis: {place} has no files that need trust"));
        return Ok(Exit::Done);
    }
    if trust.pending().is_empty() && !trust.foreign_data() {
        out::note(&format!("polis: {place} is already trusted as it is now; undo with polis trust revoke"));
        return Ok(Exit::Done);
    }
    trust::check(&trust)?;
    trust::present(&trust);
    if !options.yes && !trust::is_terminal() {
        let message = format!("not confirmed, so {place} is not trusted; add --yes if you have read the above");
        return Err(CliError { exit: Exit::NeedsPerson, ..CliError::new(UNTRUSTED, message) });
    }
    if !options.yes {
        let agreed = trust::agreed(&format!("Trust exactly this content of {place}?"));
        if agreed == Some(false) {
            trust.decline()?;
        }
        if agreed != Some(true) {
            out::note("polis: not trusted");
            return Ok(Exit::Failed);
        }
    }
    trust.accept()?;
    out::note(&format!("polis: {place} is trusted as it is now; you are asked again when it changes"));
    Ok(Exit::Done)
}

fn store() -> Result<TrustStore, CliError> {
    trust::user_folder().map(TrustStore::new).ok_or_else(trust::no_home)
}

fn list(as_json: bool) -> Result<Exit, CliError> {
    let all = store()?.read()?;
    let trusted = all.folders.iter().filter(|(_, folder)| !folder.files.is_empty());
    if as_json {
        let one = |(path, folder): (&String, &trust::FolderTrust)| json!({ "folder": path, "files": folder.files, "changed": changed(path, folder), "at": folder.at });
        let folders: Vec<_> = trusted.map(one).collect();
        out::line(&format!("{:#}", json!({ "folders": folders, "data": all.data.keys().collect::<Vec<_>>() })))?;
        return Ok(Exit::Done);
    }
    let mut is_empty = true;
    for (path, folder) in trusted {
        is_empty = false;
        let changed = changed(path, folder);
        let file = |name: &String| {
            let mark = if changed.contains(name) { " (changed)" } else { "" };
            format!("{}{mark}", visible(name))
        };
        let files: Vec<String> = folder.files.keys().map(file).collect();
        out::line(&format!("{}  {}", visible(path), files.join(", ")))?;
    }
    for (path, _) in all.data.iter().filter(|(_, own)| own.accepted) {
        is_empty = false;
        out::line(&format!("{}  a data directory of another user", visible(path)))?;
    }
    if is_empty {
        out::note("polis: there are no trusted folders; run polis trust in a folder to review and trust it");
    }
    Ok(Exit::Done)
}

/// The trusted files whose content has changed.
fn changed(path: &str, folder: &trust::FolderTrust) -> Vec<String> {
    let is_same =
        |name: &str, trusted: &str| trust::digest_of_file(&Path::new(path).join(name)).is_some_and(|now| now == trusted);
    folder.files.iter().filter(|(name, trusted)| !is_same(name, trusted)).map(|(name, _)| name.clone()).collect()
}

fn revoke(dir: Option<&Path>) -> Result<Exit, CliError> {
    let dir = dir.map_or_else(|| PathBuf::from("."), Path::to_owned);
    // A folder that is no longer there is revoked by the path that the list shows.
    let path = dir.canonicalize().unwrap_or(dir);
    let name = path.display().to_string();
    let was_there = store()?.change(|all| {
        let data = path.join(trust::DATA).display().to_string();
        let accepted = all.data.get(&data).is_some_and(|own| own.accepted).then(|| all.data.remove(&data)).flatten().is_some();
        let files = all.folders.remove(&name).is_some_and(|folder| !folder.files.is_empty());
        accepted || files
    })?;
    if !was_there {
        return Err(CliError::new("not_trusted", format!("{} was not trusted; see polis trust list", visible(&name))));
    }
    out::note(&format!(
        "polis: {} is no longer trusted; a polis that is running there keeps its started servers until it restarts",
        visible(&name)
    ));
    Ok(Exit::Done)
}
