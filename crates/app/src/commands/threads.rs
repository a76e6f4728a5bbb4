//! `polis threads`: which threads there are.

use polis_api::{ListedThread, Paging};

use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::out;
use crate::purpose::Purpose;
use crate::transport::Transport;

pub(crate) async fn threads(config: &Config, json: bool) -> Result<Exit, CliError> {
    let transport = Transport::open(config, Purpose::Read).await?;
    let listed = transport.api().threads(&Paging::default()).await?;
    if json {
        return out::json(&listed).map(|()| Exit::Done);
    }
    for ListedThread { id, path, agent_id, messages, phase, is_open } in &listed.threads {
        let place = if path.is_empty() { id.to_string() } else { format!("{agent_id}.{path}") };
        let open = if *is_open { "  open" } else { "" };
        let messages = out::count(*messages as usize, "message");
        out::line(&format!("{place:<40}  {messages:>14}  {phase}{open}"))?;
    }
    if listed.threads.is_empty() {
        out::note("polis: there are no threads yet");
    }
    if let Some(next) = listed.next {
        out::note(&format!("polis: there are more; GET /api/threads?after={next} shows them"));
    }
    Ok(Exit::Done)
}
