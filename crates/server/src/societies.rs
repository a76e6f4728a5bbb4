//! The routes of societies: the list, a new one, a fork, and going on from an earlier event.

use axum::Json as Answer;
use polis_api::{BeginSociety, BegunSociety, Fork, MadeSociety, Paging, Rewind, SocietyList};

use crate::body::Json;
use crate::once::Api;
use crate::requests::Answered;
use crate::wanted::Wanted;

pub(crate) async fn list(Api(api): Api, Wanted(paging): Wanted<Paging>) -> Answered<SocietyList> {
    Ok(Answer(api.societies(&paging).await?))
}

pub(crate) async fn begin(Api(api): Api, Json(request): Json<BeginSociety>) -> Answered<BegunSociety> {
    Ok(Answer(api.begin_society(request).await?))
}

pub(crate) async fn fork(Api(api): Api, Json(request): Json<Fork>) -> Answered<MadeSociety> {
    Ok(Answer(api.fork(request).await?))
}

pub(crate) async fn rewind(Api(api): Api, Json(request): Json<Rewind>) -> Answered<MadeSociety> {
    Ok(Answer(api.rewind(request).await?))
}
