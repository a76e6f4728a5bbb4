//! `polis agents`: who is there, and what each is at.

use serde::Deserialize;
use serde_json::Value;

use crate::config::Config;
use crate::door::{Door, Purpose};
use crate::out;
use crate::trouble::{Exit, Trouble};

#[derive(Deserialize)]
struct Listed {
    agents: Vec<Agent>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Agent {
    id: String,
    role_name: String,
    status: String,
    parent_agent_id: Option<String>,
    pending: usize,
}

pub(crate) async fn agents(config: &Config, json: bool) -> Result<Exit, Trouble> {
    let door = Door::open(config, Purpose::Look).await?;
    if json {
        let listed: Value = door.get("/api/agents").await?;
        out::line(&format!("{listed:#}"))?;
        return Ok(Exit::Done);
    }
    let listed: Listed = door.get("/api/agents").await?;
    for agent in listed.agents {
        let Agent { id, role_name, status, parent_agent_id, pending } = agent;
        let parent = parent_agent_id.map(|parent| format!("  below {parent}")).unwrap_or_default();
        let waits = if pending > 0 { format!("  {pending} waiting") } else { String::new() };
        out::line(&format!("{id:<16}  {status:<8}  {role_name}{parent}{waits}"))?;
    }
    Ok(Exit::Done)
}
