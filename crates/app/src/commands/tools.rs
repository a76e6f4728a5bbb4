//! `polis tools`: which tools agents have, from whom, and the state of the servers that bring them.

use std::time::Duration;

use polis_api::local::all_tools;
use polis_api::{Paging, Tool, ToolServer, ToolServerState, Tools};

use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::purpose::Purpose;
use crate::transport::Transport;
use crate::{out, store, wiring};

/// How long to wait before looking again whether the servers of a running polis have started.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

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
        out::line(&format!("server {name}: {}, {}; {detail}", out::name_of(state), out::count(*tools, "tool")))?;
    }
    Ok(Exit::Done)
}

/// The tools of a polis that runs, once its servers have started: the caller wants to know about each.
async fn tools_of_running(transport: &Transport) -> Result<Tools, CliError> {
    let mut is_told = false;
    loop {
        let listed = transport.api().tools(&Paging::default()).await?;
        if !listed.servers.iter().any(|server| server.state == ToolServerState::Starting) {
            return Ok(listed);
        }
        if !std::mem::replace(&mut is_told, true) {
            out::note("polis: waiting for servers that are still starting");
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// The tools of the polis that runs on this data, else of one that begins just for this.
pub(super) async fn list_tools(config: &Config) -> Result<Tools, CliError> {
    match Transport::open(config, Purpose::Read).await {
        Ok(transport @ Transport::Http(_)) => return tools_of_running(&transport).await,
        Err(error) if config.url.is_some() => return Err(error),
        Ok(Transport::InProcess(_)) | Err(_) => {}
    }
    let logins = match config.store.is_some() || config.data.is_dir() {
        true => Some(store::stored_logins(config).await?),
        // Looking makes no data directory.
        false => None,
    };
    let tools = wiring::tools(config, logins).await?;
    tools.settled().await;
    let listed = all_tools(&*tools.toolbox, &wiring::cast(config).tools());
    tools.close().await;
    Ok(listed)
}
