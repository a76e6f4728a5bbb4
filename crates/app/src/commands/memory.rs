//! `polis memory`: what agents remember for the person.

use polis_api::{Api, EditMemory, KeepMemory, MemoryFilter, MemoryRecord, SwitchMemory};
use polis_domain::{MemoryId, MemoryScopeKind};
use serde_json::json;

use crate::cli::{Memory, MemoryCommand};
use crate::config::Config;
use crate::describe::time;
use crate::error::{CliError, Exit};
use crate::purpose::Purpose;
use crate::transport::Transport;
use crate::{out, trust};

/// Most entries of a page of the API.
const PAGE: u32 = 1_000;

/// Longest text in the list, in characters.
const TEXT: usize = 100;

pub(crate) async fn memory(config: &Config, args: &Memory) -> Result<Exit, CliError> {
    match &args.command {
        None | Some(MemoryCommand::List) => list(config, None, args.json).await,
        Some(MemoryCommand::Search { words }) => list(config, Some(words.join(" ")), args.json).await,
        Some(MemoryCommand::Export) => list(config, None, true).await,
        Some(MemoryCommand::Add { text, everyone }) => {
            let transport = Transport::open(config, Purpose::Enqueue).await?;
            let request = KeepMemory { text: text.join(" "), for_society: *everyone };
            let kept = transport.api().keep_memory(request).await;
            transport.close(false).await;
            done(args.json, "remembered as", &kept?.id)
        }
        Some(MemoryCommand::Edit { id, text }) => {
            let transport = Transport::open(config, Purpose::Enqueue).await?;
            let edited = transport.api().edit_memory(&id.as_str().into(), EditMemory { text: text.join(" ") }).await;
            transport.close(false).await;
            done(args.json, "edited", &edited?.id)
        }
        Some(MemoryCommand::On) => switch(config, true, args.json).await,
        Some(MemoryCommand::Off) => switch(config, false, args.json).await,
        Some(MemoryCommand::Forget { ids, all, yes }) => {
            let ids = ids.iter().map(|id| id.as_str().into()).collect();
            forget(config, ids, *all, *yes, args.json).await
        }
    }
}

async fn switch(config: &Config, enabled: bool, json: bool) -> Result<Exit, CliError> {
    let transport = Transport::open(config, Purpose::Enqueue).await?;
    let switched = transport.api().switch_memory(SwitchMemory { enabled }).await;
    transport.close(false).await;
    switched?;
    match (json, enabled) {
        (true, _) => out::line(&json!({ "enabled": enabled }).to_string())?,
        (false, true) => out::note("polis: agents remember for you again"),
        (false, false) => out::note("polis: agents neither store nor recall anything for you; polis memory on undoes it"),
    }
    Ok(Exit::Done)
}

fn done(json: bool, what: &str, id: &MemoryId) -> Result<Exit, CliError> {
    if json {
        out::line(&json!({ "id": id }).to_string())?
    } else {
        out::note(&format!("polis: {what} {id}"))
    }
    Ok(Exit::Done)
}

async fn list(config: &Config, search: Option<String>, json: bool) -> Result<Exit, CliError> {
    let transport = Transport::open(config, Purpose::Read).await?;
    let is_search = search.is_some();
    let (listed, note) = all(transport.api(), search).await?;
    if let Some(note) = note {
        out::note(&format!("polis: {note}"));
    }
    if json {
        return out::json(&json!({ "memories": listed })).map(|()| Exit::Done);
    }
    listed.iter().try_for_each(|one| out::line(&line(one)))?;
    if listed.is_empty() {
        out::note(if is_search { "polis: there are no memories with these words" } else { "polis: there are no memories" });
    }
    Ok(Exit::Done)
}

/// All memories, page by page, and what is to be known about the search.
async fn all(api: &dyn Api, search: Option<String>) -> Result<(Vec<MemoryRecord>, Option<String>), CliError> {
    let mut listed = Vec::new();
    loop {
        let after = Some(u32::try_from(listed.len()).unwrap_or(u32::MAX));
        let page = api.memories(MemoryFilter { search: search.clone(), after, limit: Some(PAGE) }).await?;
        let is_last = page.memories.is_empty();
        listed.extend(page.memories);
        if is_last || listed.len() >= page.total {
            let off = (!page.enabled).then(|| "memory is off for you; polis memory on switches it on".to_owned());
            return Ok((listed, off.or(page.note)));
        }
    }
}

/// A memory as a line of the list: id, time, scope if it is not the usual one, text.
fn line(memory: &MemoryRecord) -> String {
    let when = time(memory.edited_at.unwrap_or(memory.kept_at));
    let scope = match (memory.scope, &memory.role_id) {
        (MemoryScopeKind::Society, _) => "  (society)".to_owned(),
        (MemoryScopeKind::Role, Some(role)) => format!("  (role {role})"),
        (MemoryScopeKind::Person | MemoryScopeKind::Role, _) => String::new(),
    };
    let text = memory.text.as_deref().map_or_else(|| "(erased)".to_owned(), |text| out::short(text, TEXT));
    format!("{}  {when}  {text}{scope}", memory.id)
}

async fn forget(config: &Config, mut ids: Vec<MemoryId>, all_of_them: bool, yes: bool, json: bool) -> Result<Exit, CliError> {
    if all_of_them {
        let transport = Transport::open(config, Purpose::Read).await?;
        let (listed, _) = all(transport.api(), None).await?;
        transport.close(false).await;
        let own = listed.into_iter().filter(|memory| memory.scope != MemoryScopeKind::Society);
        ids = own.map(|memory| memory.id).collect();
    }
    let question =
        format!("Erase {} for good?", if ids.len() == 1 { "1 memory".to_owned() } else { format!("{} memories", ids.len()) });
    if !yes && (!trust::is_terminal() || trust::agreed(&question) != Some(true)) {
        let message = "not confirmed, so nothing is erased; add --yes to erase without being asked".to_owned();
        return Err(CliError { exit: Exit::NeedsPerson, ..CliError::new("not_confirmed", message) });
    }
    let transport = Transport::open(config, Purpose::Enqueue).await?;
    let mut erased = Ok(());
    for id in &ids {
        erased = transport.api().erase_memory(id).await.map(drop);
        if erased.is_err() {
            break;
        }
    }
    transport.close(false).await;
    erased?;
    ids.iter().try_for_each(|id| done(json, "erased", id).map(drop))?;
    Ok(Exit::Done)
}
