//! The routes of societies: the list, a new one, a fork, and going on from an earlier event.

use axum::Json as Answer;
use polis_api::{BeginSociety, BegunSociety, Fork, MadeSociety, Paging, Rewind, SocietyList};

use crate::body::Json;
use crate::extract::QueryParams;
use crate::idempotency::CallerApi;
use crate::requests::Answered;

pub(crate) async fn list(CallerApi(api): CallerApi, QueryParams(paging): QueryParams<Paging>) -> Answered<SocietyList> {
    Ok(Answer(api.societies(&paging).await?))
}

pub(crate) async fn begin(CallerApi(api): CallerApi, Json(request): Json<BeginSociety>) -> Answered<BegunSociety> {
    Ok(Answer(api.begin_society(request).await?))
}

pub(crate) async fn fork(CallerApi(api): CallerApi, Json(request): Json<Fork>) -> Answered<MadeSociety> {
    Ok(Answer(api.fork(request).await?))
}

pub(crate) async fn rewind(CallerApi(api): CallerApi, Json(request): Json<Rewind>) -> Answered<MadeSociety> {
    Ok(Answer(api.rewind(request).await?))
}
