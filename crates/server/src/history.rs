//! The log in pages, for whoever wants what has happened and not what will.

use axum::extract::State;
use polis_domain::{Recorded, Seq};
use serde::{Deserialize, Serialize};

use crate::desk::Desk;
use crate::problem::Problem;
use crate::wanted::Wanted;

const MAX_PAGE: usize = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    #[serde(default)]
    after: u64,
    #[serde(default = "page")]
    limit: usize,
}

fn page() -> usize {
    250
}

#[derive(Serialize)]
pub(crate) struct Page {
    events: Vec<Recorded>,
    /// The log's last place: when the last event has it, there is no more.
    last: Seq,
}

pub(crate) async fn log(State(desk): State<Desk>, Wanted(which): Wanted<Which>) -> Result<axum::Json<Page>, Problem> {
    let society = &desk.society;
    let last = society.log().head(society.id()).await?;
    let events = society.log().read(society.id(), Seq(which.after), which.limit.clamp(1, MAX_PAGE)).await?;
    Ok(axum::Json(Page { events, last }))
}
