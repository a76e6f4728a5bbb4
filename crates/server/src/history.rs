//! The log in pages, for whoever wants what has happened and not what will.

use axum::extract::State;
use polis_domain::{Recorded, Seq};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::state::SocietyState;
use crate::wanted::Wanted;

const MAX_PAGE: usize = 1_000;

/// Which part of the log is wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LogPaging")]
pub(crate) struct Which {
    /// Only events after this place.
    #[serde(default)]
    after: u64,
    /// Most events of a page; never more than 1000.
    #[serde(default = "page")]
    limit: usize,
}

fn page() -> usize {
    250
}

/// A part of the log.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LogPage")]
pub(crate) struct Page {
    events: Vec<Recorded>,
    /// The log's last place: when the last event has it, there is no more.
    last: Seq,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Seq>,
}

pub(crate) async fn log(State(state): State<SocietyState>, Wanted(which): Wanted<Which>) -> Result<axum::Json<Page>, Problem> {
    let society = &state.society;
    let last = society.log().readable_head(society.id()).await?;
    // A place beyond what a log can hold is after its end.
    let after = Seq(which.after.min(u64::MAX >> 1));
    let events = society.log().read(society.id(), after, which.limit.clamp(1, MAX_PAGE)).await?;
    let next = events.last().map(|recorded| recorded.seq).filter(|seq| *seq < last);
    Ok(axum::Json(Page { events, last, next }))
}
