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
        out::line(&format!("{place:<40}  {messages:>5} messages  {phase}{open}"))?;
    }
    let (shown, count) = (listed.threads.len(), listed.count);
    if count == 0 {
        out::note("polis: there are no threads yet");
    }
    if shown < count {
        out::note(&format!("polis: {shown} of {count}; GET /api/threads?limit=N shows more"));
    }
    Ok(Exit::Done)
}
