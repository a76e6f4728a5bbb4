//! `polis artifacts`: lists artifacts, downloads one, and removes those that no log references.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::StreamExt;
use polis_api::{ArtifactPaging, Content};
use polis_domain::{ArtifactId, Event, ListedArtifact, Seq, Timestamp};
use polis_engine::SystemClock;
use polis_ports::{ArtifactError, Clock, Log, LogError};
use serde_json::json;

use crate::cli::{ArtifactCommand, Artifacts};
use crate::config::Config;
use crate::describe::time;
use crate::error::{CliError, Exit};
use crate::out;
use crate::purpose::Purpose;
use crate::store::OpenedLog;
use crate::transport::Transport;

/// Artifacts that are asked for at once.
const PAGE: usize = 1_000;

/// Events that are read at once.
const EVENTS: usize = 1_000;

pub(crate) async fn artifacts(config: &Config, args: &Artifacts) -> Result<Exit, CliError> {
    match &args.command {
        None => list(config, args.json).await,
        Some(ArtifactCommand::Get { id, out }) => get(config, id, out.as_deref()).await,
        Some(ArtifactCommand::Gc { hours }) => collect_garbage(config, *hours, args.json).await,
    }
}

async fn list(config: &Config, json: bool) -> Result<Exit, CliError> {
    let listed = list_all(&Transport::open(config, Purpose::Read).await?).await?;
    if json {
        return out::json(&json!({ "artifacts": listed })).map(|()| Exit::Done);
    }
    if listed.is_empty() {
        out::note("polis: there are no artifacts");
    }
    for ListedArtifact { artifact, at, agent, .. } in listed {
        let who = agent.map_or_else(|| "you".to_owned(), |agent| agent.to_string());
        let what = format!("{:>12}  {}  {}", artifact.bytes, artifact.media_type, artifact.name);
        out::line(&format!("{}  {}  {who:<10} {what}", artifact.id, time(at)))?;
    }
    Ok(Exit::Done)
}

async fn list_all(transport: &Transport) -> Result<Vec<ListedArtifact>, CliError> {
    let mut listed = Vec::new();
    let mut next = Some(0);
    while let Some(after) = next {
        let page = transport.api().artifacts(ArtifactPaging { after, limit: PAGE }).await?;
        listed.extend(page.artifacts.into_iter().map(|numbered| numbered.listed));
        next = page.next;
    }
    Ok(listed)
}

async fn get(config: &Config, id: &str, out: Option<&Path>) -> Result<Exit, CliError> {
    let transport = Transport::open(config, Purpose::Read).await?;
    let content = transport.api().content(&complete_id(&transport, id).await?).await?;
    match out {
        None => to_stdout(content).await?,
        Some(path) => to_file(content, path).await?,
    }
    Ok(Exit::Done)
}

/// The id that begins like this.
async fn complete_id(transport: &Transport, start: &str) -> Result<ArtifactId, CliError> {
    let bad = |message: String| CliError::usage("bad_artifact_id", message);
    if let Ok(id) = start.parse() {
        return Ok(id);
    }
    if start.len() < 6 || !start.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(bad(format!("`{start}` is not an artifact id; give at least its first 6 digits from `polis artifacts`")));
    }
    let mut found: Vec<_> = list_all(transport).await?.into_iter().map(|it| it.artifact.id).collect();
    found.retain(|id| id.to_string().starts_with(start));
    found.sort();
    found.dedup();
    match found[..] {
        [id] => Ok(id),
        [] => Err(CliError::new("unknown_artifact", format!("no artifact begins with `{start}`; see `polis artifacts`"))),
        _ => Err(bad(format!("{} artifacts begin with `{start}`; give more digits", found.len()))),
    }
}

async fn to_stdout(mut content: Content) -> Result<(), CliError> {
    let is_terminal = io::stdout().is_terminal();
    while let Some(chunk) = content.next().await {
        let chunk = chunk.map_err(broken)?;
        if is_terminal {
            out::text(&String::from_utf8_lossy(&chunk))?;
            continue;
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(&chunk).and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => CliError::output_closed(),
            _ => CliError::new("output_failed", format!("the output cannot be written: {error}")),
        })?;
    }
    Ok(())
}

/// The file is there when all of it has come.
async fn to_file(mut content: Content, path: &Path) -> Result<(), CliError> {
    let failed = |error: io::Error| CliError::new("output_failed", format!("{} cannot be written: {error}", path.display()));
    let draft = Draft(PathBuf::from(format!("{}.part", path.display())));
    let mut file = File::create(&draft.0).map_err(failed)?;
    while let Some(chunk) = content.next().await {
        file.write_all(&chunk.map_err(broken)?).map_err(failed)?;
    }
    file.sync_all().and_then(|()| fs::rename(&draft.0, path)).map_err(failed)
}

struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn broken(error: io::Error) -> CliError {
    CliError::new("server_gone", format!("the content is incomplete: {error}; get it again"))
}

/// Removes unreferenced artifacts. The society must not run: an artifact is stored some time before the log references it.
async fn collect_garbage(config: &Config, hours: Option<u32>, json: bool) -> Result<Exit, CliError> {
    let opened = match Transport::open(config, Purpose::Read).await? {
        Transport::InProcess(here) => here.opened,
        Transport::Http(_) => {
            let message = "a polis is running on this data and may be about to reference what it stores; stop it and try again";
            return Err(CliError::new("data_locked", message));
        }
    };
    if let OpenedLog::Postgres(store) = &opened.opened_log
        && let Some((society, owner)) = store.owned().await?
    {
        let message = format!(
            "the polis on {} runs the society {society} and may be about to reference what it stores; stop it and try again",
            owner.node
        );
        return Err(CliError::new("owned_elsewhere", message));
    }
    let hours = hours.map_or(config.artifacts.grace, |hours| Duration::from_secs(u64::from(hours) * 3_600));
    let before = Timestamp(SystemClock.now().0.saturating_sub(u64::try_from(hours.as_millis()).unwrap_or(u64::MAX)));
    let named = referenced_ids(&**opened.state.society().log()).await?;
    let swept = sweep(&*opened.artifacts, |id| named.contains(id), before).await;
    let Swept { removed, bytes, kept } =
        swept.map_err(|error| CliError::new(error.code(), format!("the artifacts cannot be removed: {error}")))?;
    if json {
        return out::line(&json!({ "removed": removed, "bytes": bytes, "kept": kept }).to_string()).map(|()| Exit::Done);
    }
    let (removed, bytes) = (out::count(removed as usize, "artifact"), out::count(bytes as usize, "byte"));
    out::line(&format!("removed {removed} ({bytes}), kept {kept}"))?;
    Ok(Exit::Done)
}

/// What came of a sweep.
#[derive(Default)]
struct Swept {
    removed: u64,
    bytes: u64,
    kept: u64,
}

/// Removes the artifacts that are not referenced and were stored before a time. What is referenced must have been found out after it.
async fn sweep(
    store: &dyn polis_ports::Artifacts,
    is_referenced: impl Fn(&ArtifactId) -> bool,
    before: Timestamp,
) -> Result<Swept, ArtifactError> {
    let (mut swept, mut after) = (Swept::default(), None);
    loop {
        let page = store.list(after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(swept) };
        after = Some(last.id);
        let old = page.iter().filter(|stored| stored.at < before && !is_referenced(&stored.id)).map(|stored| stored.id);
        let removed = store.remove(old.collect(), before).await?;
        swept.removed += removed.len() as u64;
        swept.kept += (page.len() - removed.len()) as u64;
        swept.bytes += page.iter().filter(|stored| removed.contains(&stored.id)).map(|stored| stored.bytes).sum::<u64>();
    }
}

/// Every artifact id anywhere in any log, even inside a text.
async fn referenced_ids(log: &dyn Log) -> Result<HashSet<ArtifactId>, LogError> {
    let mut found = HashSet::new();
    for society in log.societies().await? {
        let mut after = Seq(0);
        loop {
            let events = log.read(&society, after, EVENTS).await?;
            let Some(last) = events.last() else { break };
            after = last.seq;
            // Those say which artifacts were removed.
            let is_erasure = |event: &Event| matches!(event, Event::ConversationErased { .. } | Event::ErasureDone { .. });
            for event in events.iter().filter(|recorded| !is_erasure(&recorded.event)) {
                let text = serde_json::to_string(event).map_err(|error| LogError::Failed(error.into()))?;
                collect_ids(&text, &mut found);
            }
        }
    }
    Ok(found)
}

fn collect_ids(text: &str, found: &mut HashSet<ArtifactId>) {
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    for run in text.as_bytes().split(|byte| !is_digit(byte)).filter(|run| run.len() >= 64) {
        found.extend(run.windows(64).filter_map(|window| std::str::from_utf8(window).ok()?.parse::<ArtifactId>().ok()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_counts_wherever_it_stands() {
        let id = "0123456789abcdef".repeat(4);
        let ids = |text: String| {
            let mut found = HashSet::new();
            collect_ids(&text, &mut found);
            (found.len(), found.contains(&id.parse().unwrap()))
        };
        assert_eq!(ids(format!(r#"{{"id":"{id}"}}"#)), (1, true));
        assert_eq!(ids(format!("see {id}, or x{id}y")), (1, true));
        assert_eq!(ids(format!("\\n{id}ab")), (3, true));
        assert_eq!(ids(id[1..].to_owned()), (0, false));
    }
}
