//! `polis tools`: which tools agents have, from whom, and how the servers stand that bring them.

use serde_json::Value;

use crate::config::Config;
use crate::door::{Door, Purpose};
use crate::trouble::{Exit, Trouble};
use crate::{out, wiring};

/// Longest description on a line, in characters.
const MAX_CHARS: usize = 90;

pub(crate) async fn tools(config: &Config, json: bool) -> Result<Exit, Trouble> {
    let listed = listed(config).await?;
    if json {
        return out::line(&format!("{listed:#}")).map(|()| Exit::Done);
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for tool in listed["tools"].as_array().into_iter().flatten() {
        let described = text(&tool["description"]);
        let first: String = described.lines().next().unwrap_or_default().chars().take(MAX_CHARS).collect();
        out::line(&format!("{:<10} {:<36} {first}", text(&tool["effect"]), text(&tool["name"])))?;
    }
    for server in listed["servers"].as_array().into_iter().flatten() {
        let (name, state) = (text(&server["name"]), text(&server["state"]));
        out::line(&format!("server {name}: {state}, {} tools; {}", server["tools"], text(&server["detail"])))?;
    }
    Ok(Exit::Done)
}

/// The tools of the polis that runs on this data, else of one that begins just for this.
pub(super) async fn listed(config: &Config) -> Result<Value, Trouble> {
    match Door::open(config, Purpose::Look).await {
        Ok(door @ Door::There(_)) => return door.get("/api/tools").await,
        Err(trouble) if config.url.is_some() => return Err(trouble),
        Ok(Door::Here(_)) | Err(_) => {}
    }
    let tools = wiring::tools(config).await?;
    tools.settled().await;
    let listed = polis_server::all_tools(&*tools.toolbox, &wiring::cast(config).tools());
    tools.close().await;
    Ok(listed)
}
