//! `polis tools`: which tools agents have, from whom, and the state of the servers that bring them.

use polis_api::local::all_tools;
use polis_api::{Paging, Tool, ToolServer, Tools};

use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::purpose::Purpose;
use crate::transport::Transport;
use crate::{out, wiring};

/// Longest description on a line, in characters.
const MAX_CHARS: usize = 90;

pub(crate) async fn tools(config: &Config, json: bool) -> Result<Exit, CliError> {
    let listed = list_tools(config).await?;
    if json {
        return out::json(&listed).map(|()| Exit::Done);
    }
    for Tool { name, effect, description, .. } in &listed.tools {
        let first: String = description.lines().next().unwrap_or_default().chars().take(MAX_CHARS).collect();
        out::line(&format!("{:<10} {name:<36} {first}", out::name_of(effect)))?;
    }
    for ToolServer { name, state, tools, detail, .. } in &listed.servers {
        out::line(&format!("server {name}: {}, {tools} tools; {detail}", out::name_of(state)))?;
    }
    Ok(Exit::Done)
}

/// The tools of the polis that runs on this data, else of one that begins just for this.
pub(super) async fn list_tools(config: &Config) -> Result<Tools, CliError> {
    match Transport::open(config, Purpose::Read).await {
        Ok(transport @ Transport::Http(_)) => return Ok(transport.api().tools(&Paging::default()).await?),
        Err(error) if config.url.is_some() => return Err(error),
        Ok(Transport::InProcess(_)) | Err(_) => {}
    }
    let tools = wiring::tools(config).await?;
    tools.settled().await;
    let listed = all_tools(&*tools.toolbox, &wiring::cast(config).tools());
    tools.close().await;
    Ok(listed)
}
