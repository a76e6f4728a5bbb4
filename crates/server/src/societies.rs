//! The routes of societies: the list, a new one, a fork, and going on from an earlier event.

use axum::Json as Answer;
use polis_api::{BeginSociety, BegunSociety, Fork, MadeSociety, Paging, Rewind, SocietyList};

use crate::body::Json;
use crate::extract::{CallerApi, QueryParams};
use crate::requests::JsonResult;

pub(crate) async fn list(CallerApi(api): CallerApi, QueryParams(paging): QueryParams<Paging>) -> JsonResult<SocietyList> {
    Ok(Answer(api.societies(&paging).await?))
}

pub(crate) async fn begin(CallerApi(api): CallerApi, Json(request): Json<BeginSociety>) -> JsonResult<BegunSociety> {
    Ok(Answer(api.begin_society(request).await?))
}

pub(crate) async fn fork(CallerApi(api): CallerApi, Json(request): Json<Fork>) -> JsonResult<MadeSociety> {
    Ok(Answer(api.fork(request).await?))
}

pub(crate) async fn rewind(CallerApi(api): CallerApi, Json(request): Json<Rewind>) -> JsonResult<MadeSociety> {
    Ok(Answer(api.rewind(request).await?))
}
