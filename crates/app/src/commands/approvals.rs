//! `polis approvals`: what waits for a person, and what to type.

use serde_json::Value;

use crate::config::Config;
use crate::door::{Door, Purpose};
use crate::trouble::{Exit, Trouble};
use crate::{out, person};

pub(crate) async fn approvals(config: &Config, json: bool) -> Result<Exit, Trouble> {
    let door = Door::open(config, Purpose::Look).await?;
    if json {
        let listed: Value = door.get("/api/approvals").await?;
        out::line(&format!("{listed:#}"))?;
        return Ok(Exit::Done);
    }
    let waiting = person::list(&door).await?;
    if waiting.is_empty() {
        out::note("nothing waits for a person");
    }
    if matches!(door, Door::Here(_)) {
        out::note("if polis was killed during a write, you are asked about it when the society runs again");
    }
    for one in waiting {
        out::line(&one.in_words())?;
        out::note(&format!("    {}", one.advice(config)));
    }
    Ok(Exit::Done)
}
