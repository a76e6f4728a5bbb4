//! `polis agents`: lists the agents and what each is doing.

use polis_api::{Agent, Paging};

use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::out;
use crate::purpose::Purpose;
use crate::transport::Transport;

pub(crate) async fn agents(config: &Config, json: bool) -> Result<Exit, CliError> {
    let transport = Transport::open(config, Purpose::Read).await?;
    let listed = transport.api().agents(&Paging::default()).await?;
    if json {
        return out::json(&listed).map(|()| Exit::Done);
    }
    for agent in listed.agents {
        let Agent { id, role_name, activity, parent_agent_id, pending, .. } = agent;
        let activity = out::name_of(&activity);
        let parent = parent_agent_id.map(|parent| format!("  below {parent}")).unwrap_or_default();
        let waits = if pending > 0 { format!("  {pending} waiting") } else { String::new() };
        out::line(&format!("{:<16}  {activity:<8}  {role_name}{parent}{waits}", id.as_str()))?;
    }
    Ok(Exit::Done)
}
