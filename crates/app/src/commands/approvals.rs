//! `polis approvals`: lists pending approvals, and the command to decide each one.

use polis_api::Paging;

use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::purpose::Purpose;
use crate::transport::Transport;
use crate::{approval_prompt, out};

pub(crate) async fn approvals(config: &Config, json: bool) -> Result<Exit, CliError> {
    let transport = Transport::open(config, Purpose::Read).await?;
    if json {
        let listed = transport.api().approvals(&Paging::default()).await?;
        return out::json(&listed).map(|()| Exit::Done);
    }
    let waiting = approval_prompt::list(&transport).await?;
    if waiting.is_empty() {
        out::note("polis: there is nothing to approve or answer");
    }
    if matches!(transport, Transport::InProcess(_)) {
        out::note("polis: no society is running; about a write that was cut off you are asked when it runs again");
    }
    for one in waiting {
        out::line(&one.describe())?;
        out::note(&format!("    {}", one.advice(config)));
    }
    Ok(Exit::Done)
}
