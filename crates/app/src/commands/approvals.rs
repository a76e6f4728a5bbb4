//! `polis approvals`: what waits for a person, and what to type.

use polis_api::Paging;

use crate::config::Config;
use crate::purpose::Purpose;
use crate::transport::Transport;
use crate::trouble::{Exit, Trouble};
use crate::{out, person};

pub(crate) async fn approvals(config: &Config, json: bool) -> Result<Exit, Trouble> {
    let transport = Transport::open(config, Purpose::Look).await?;
    if json {
        let listed = transport.api().approvals(&Paging::default()).await?;
        return out::json(&listed).map(|()| Exit::Done);
    }
    let waiting = person::list(&transport).await?;
    if waiting.is_empty() {
        out::note("nothing waits for a person");
    }
    if matches!(transport, Transport::InProcess(_)) {
        out::note("if polis was killed during a write, you are asked about it when the society runs again");
    }
    for one in waiting {
        out::line(&one.in_words())?;
        out::note(&format!("    {}", one.advice(config)));
    }
    Ok(Exit::Done)
}
