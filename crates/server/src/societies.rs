//! The societies of the store: a list of them, a fork of one, and a way back for one.

use axum::Extension;
use axum::extract::State;
use polis_domain::{Seq, SocietyId};
use serde::{Deserialize, Serialize};

use crate::body::Json;
use crate::desk::Desk;
use crate::problem::Problem;
use crate::town::Town;

#[derive(Serialize)]
pub(crate) struct Listed {
    societies: Vec<Society>,
}

#[derive(Serialize)]
struct Society {
    name: SocietyId,
    /// How many events its log has.
    events: Seq,
    /// Whether it is at work here; else it begins to with the next wish.
    works: bool,
    /// Whether it is the one that is meant where none is named.
    first: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fork {
    #[serde(default)]
    at: Option<u64>,
    #[serde(default)]
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rewind {
    to: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Made {
    society: SocietyId,
    from: SocietyId,
    /// The last event that both share.
    at: Seq,
    /// What the society of before is called now, after a rewind.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<SocietyId>,
    open_turns: usize,
    in_doubt: usize,
}

pub(crate) async fn list(Extension(town): Extension<Town>) -> Result<axum::Json<Listed>, Problem> {
    let society = |(name, events, works)| Society { first: name == *town.first(), name, events, works };
    Ok(axum::Json(Listed { societies: town.list().await?.into_iter().map(society).collect() }))
}

pub(crate) async fn fork(
    State(desk): State<Desk>,
    Extension(town): Extension<Town>,
    Json(wish): Json<Fork>,
) -> Result<axum::Json<Made>, Problem> {
    let from = desk.society.id().clone();
    let (society, made) = town.fork(&from, wish.at.map(Seq), wish.name).await?;
    let (open_turns, in_doubt) = (made.open_turns, made.in_doubt);
    Ok(axum::Json(Made { society, from, at: made.at, kept: None, open_turns, in_doubt }))
}

pub(crate) async fn rewind(
    State(desk): State<Desk>,
    Extension(town): Extension<Town>,
    Json(wish): Json<Rewind>,
) -> Result<axum::Json<Made>, Problem> {
    let society = desk.society.id().clone();
    let (kept, made) = town.rewind(&society, Seq(wish.to)).await?;
    let (open_turns, in_doubt) = (made.open_turns, made.in_doubt);
    Ok(axum::Json(Made { from: kept.clone(), society, at: made.at, kept: Some(kept), open_turns, in_doubt }))
}
