//! The routes of agents, roles and threads.

use axum::Json as Answer;
use polis_api::{
    Accepted, AgentDetail, Agents, Compress, Compressing, DeadLetters, ImportRequest, Imported, Operate, Paging, Roles,
    Terminate, Terminated, ThreadPart, Threads,
};
use polis_domain::{Org, Thread};
use serde_json::Value;

use crate::body::Json;
use crate::extract::{CallerApi, PathParam, QueryParams};
use crate::requests::JsonResult;

pub(crate) async fn agents(CallerApi(api): CallerApi, QueryParams(paging): QueryParams<Paging>) -> JsonResult<Agents> {
    Ok(Answer(api.agents(&paging).await?))
}

pub(crate) async fn agent(CallerApi(api): CallerApi, PathParam(id): PathParam) -> JsonResult<AgentDetail> {
    Ok(Answer(api.agent(&id.into()).await?))
}

pub(crate) async fn operate(
    CallerApi(api): CallerApi,
    PathParam(id): PathParam,
    Json(request): Json<Operate>,
) -> JsonResult<Accepted> {
    Ok(Answer(api.operate(id.into(), request).await?))
}

pub(crate) async fn compress(
    CallerApi(api): CallerApi,
    PathParam(id): PathParam,
    Json(request): Json<Compress>,
) -> JsonResult<Compressing> {
    Ok(Answer(api.compress(id.into(), request).await?))
}

pub(crate) async fn terminate(
    CallerApi(api): CallerApi,
    PathParam(id): PathParam,
    Json(request): Json<Terminate>,
) -> JsonResult<Terminated> {
    Ok(Answer(api.terminate(id.into(), request).await?))
}

pub(crate) async fn dead_letters(CallerApi(api): CallerApi) -> JsonResult<DeadLetters> {
    Ok(Answer(api.dead_letters().await?))
}

pub(crate) async fn org(CallerApi(api): CallerApi) -> JsonResult<Org> {
    Ok(Answer(api.org().await?))
}

pub(crate) async fn roles(CallerApi(api): CallerApi, QueryParams(paging): QueryParams<Paging>) -> JsonResult<Roles> {
    Ok(Answer(api.roles(&paging).await?))
}

pub(crate) async fn import(
    CallerApi(api): CallerApi,
    QueryParams(how): QueryParams<ImportRequest>,
    Json(document): Json<Value>,
) -> JsonResult<Imported> {
    Ok(Answer(api.import(document, how).await?))
}

pub(crate) async fn threads(CallerApi(api): CallerApi, QueryParams(paging): QueryParams<Paging>) -> JsonResult<Threads> {
    Ok(Answer(api.threads(&paging).await?))
}

pub(crate) async fn thread(
    CallerApi(api): CallerApi,
    PathParam(id): PathParam,
    QueryParams(part): QueryParams<ThreadPart>,
) -> JsonResult<Thread> {
    Ok(Answer(api.thread(&id.into(), &part).await?))
}
