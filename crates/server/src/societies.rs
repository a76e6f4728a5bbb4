//! The societies of the store: a list of them, a fork of one, and a way back for one.

use axum::Extension;
use polis_domain::{Seq, SocietyId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::body::Json;
use crate::once::Keyed;
use crate::problem::Problem;
use crate::registry::Societies;
use crate::wanted::Wanted;
use polis_api::Paging;

/// The societies of the store, by name.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Societies")]
pub(crate) struct Listed {
    societies: Vec<Society>,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Society {
    name: SocietyId,
    /// How many events its log has.
    events: Seq,
    /// Whether it is at work here; else it begins to with the next request.
    works: bool,
    /// Whether it is the one that is meant where none is named.
    first: bool,
    /// The society whose events it has from before it was forked.
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from: Option<SocietyId>,
    /// The last event that both share.
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_at: Option<Seq>,
}

/// A society that is to be there.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BeginSociety")]
pub(crate) struct Begin {
    /// What to call it.
    name: String,
}

/// It is there.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BegunSociety")]
pub(crate) struct Begun {
    society: SocietyId,
    /// Whether it was not there before.
    begun: bool,
}

/// Where a society parts from this one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fork {
    /// The last event that both share; now, if not given.
    #[serde(default)]
    at: Option<u64>,
    /// What to call it.
    #[serde(default)]
    name: Option<String>,
}

/// Where the society goes on from.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rewind {
    /// The last event that stays.
    to: u64,
}

/// A society that was made.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "MadeSociety")]
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

pub(crate) async fn list(
    Extension(societies): Extension<Societies>,
    Wanted(paging): Wanted<Paging>,
) -> Result<axum::Json<Listed>, Problem> {
    let mut rows = Vec::new();
    for (name, events, works) in societies.list().await? {
        let (forked_from, forked_at) = societies.origin(&name).await?.map(|origin| (origin.from, origin.at)).unzip();
        rows.push(Society { first: name == *societies.first(), name, events, works, forked_from, forked_at });
    }
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    let (societies, next) = paging.cut(rows, |society| society.name.to_string());
    Ok(axum::Json(Listed { societies, next }))
}

pub(crate) async fn begin(
    Extension(societies): Extension<Societies>,
    Json(request): Json<Begin>,
) -> Result<axum::Json<Begun>, Problem> {
    let society = SocietyId::from(request.name);
    let begun = societies.begin(&society).await?;
    Ok(axum::Json(Begun { society, begun }))
}

pub(crate) async fn fork(
    Keyed(state): Keyed,
    Extension(societies): Extension<Societies>,
    Json(request): Json<Fork>,
) -> Result<axum::Json<Made>, Problem> {
    let from = state.society.id().clone();
    let (society, made) = societies.fork(&state.society, request.at.map(Seq), request.name).await?;
    let (open_turns, in_doubt) = (made.open_turns, made.in_doubt);
    Ok(axum::Json(Made { society, from, at: made.at, kept: None, open_turns, in_doubt }))
}

pub(crate) async fn rewind(
    Keyed(state): Keyed,
    Extension(societies): Extension<Societies>,
    Json(request): Json<Rewind>,
) -> Result<axum::Json<Made>, Problem> {
    let society = state.society.id().clone();
    let (kept, made) = societies.rewind(&state.society, Seq(request.to)).await?;
    let (open_turns, in_doubt) = (made.open_turns, made.in_doubt);
    Ok(axum::Json(Made { from: kept.clone(), society, at: made.at, kept: Some(kept), open_turns, in_doubt }))
}
