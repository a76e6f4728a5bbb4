//! The routes about what is around the conversations: models, tools, rules, usage, the log and health.

use axum::Json as Answer;
use axum::http::StatusCode;
use polis_api::{
    Deployment, Drain, Drained, Health, HealthStatus, LogPage, LogPaging, Models, NodeList, Paging, Policy, Tools, UsageReport,
    Version,
};

use crate::body::Json;
use crate::extract::{CallerApi, PathParam, QueryParams};
use crate::requests::JsonResult;

pub(crate) async fn models(CallerApi(api): CallerApi) -> JsonResult<Models> {
    Ok(Answer(api.models().await?))
}

pub(crate) async fn tools(CallerApi(api): CallerApi, QueryParams(paging): QueryParams<Paging>) -> JsonResult<Tools> {
    Ok(Answer(api.tools(&paging).await?))
}

pub(crate) async fn policy(CallerApi(api): CallerApi) -> JsonResult<Policy> {
    Ok(Answer(api.policy().await?))
}

pub(crate) async fn usage(CallerApi(api): CallerApi) -> JsonResult<UsageReport> {
    Ok(Answer(api.usage().await?))
}

pub(crate) async fn deployment(CallerApi(api): CallerApi) -> JsonResult<Deployment> {
    Ok(Answer(api.deployment().await?))
}

pub(crate) async fn log(CallerApi(api): CallerApi, QueryParams(paging): QueryParams<LogPaging>) -> JsonResult<LogPage> {
    Ok(Answer(api.log(paging).await?))
}

pub(crate) async fn nodes(CallerApi(api): CallerApi) -> JsonResult<NodeList> {
    Ok(Answer(api.nodes().await?))
}

pub(crate) async fn drain(
    CallerApi(api): CallerApi,
    PathParam(node): PathParam,
    Json(request): Json<Drain>,
) -> JsonResult<Drained> {
    Ok(Answer(api.drain(node, request).await?))
}

pub(crate) async fn health(CallerApi(api): CallerApi) -> (StatusCode, Answer<Health>) {
    let health = api.health().await;
    let status = match health.status {
        HealthStatus::Ok | HealthStatus::Degraded => StatusCode::OK,
        HealthStatus::Down => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, Answer(health))
}

pub(crate) async fn version(CallerApi(api): CallerApi) -> JsonResult<Version> {
    Ok(Answer(api.version().await?))
}
