//! `polis threads`: which conversations there are.

use polis_api::{ListedThread, Threads};
use serde_json::Value;

use crate::config::Config;
use crate::door::{Door, Purpose};
use crate::out;
use crate::trouble::{Exit, Trouble};

pub(crate) async fn threads(config: &Config, json: bool) -> Result<Exit, Trouble> {
    let door = Door::open(config, Purpose::Look).await?;
    if json {
        let listed: Value = door.get("/api/threads").await?;
        out::line(&format!("{listed:#}"))?;
        return Ok(Exit::Done);
    }
    let Threads { threads, count, .. } = door.get("/api/threads").await?;
    for ListedThread { id, path, agent_id, messages, phase, is_open } in &threads {
        let place = if path.is_empty() { id.to_string() } else { format!("{agent_id}.{path}") };
        let open = if *is_open { "  open" } else { "" };
        out::line(&format!("{place:<40}  {messages:>5} messages  {phase}{open}"))?;
    }
    if threads.len() < count {
        out::note(&format!("polis: {} of {count}; GET /api/threads?limit=N shows more", threads.len()));
    }
    Ok(Exit::Done)
}
