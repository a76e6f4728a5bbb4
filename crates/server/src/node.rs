//! The routes about what is around the conversations: models, tools, rules, usage, the log and health.

use axum::Json as Answer;
use axum::http::StatusCode;
use polis_api::{Health, HealthStatus, LogPage, LogPaging, Models, Paging, Policy, Tools, UsageReport, Version};

use crate::once::Api;
use crate::requests::Answered;
use crate::wanted::Wanted;

pub(crate) async fn models(Api(api): Api) -> Answered<Models> {
    Ok(Answer(api.models().await?))
}

pub(crate) async fn tools(Api(api): Api, Wanted(paging): Wanted<Paging>) -> Answered<Tools> {
    Ok(Answer(api.tools(&paging).await?))
}

pub(crate) async fn policy(Api(api): Api) -> Answered<Policy> {
    Ok(Answer(api.policy().await?))
}

pub(crate) async fn usage(Api(api): Api) -> Answered<UsageReport> {
    Ok(Answer(api.usage().await?))
}

pub(crate) async fn log(Api(api): Api, Wanted(paging): Wanted<LogPaging>) -> Answered<LogPage> {
    Ok(Answer(api.log(paging).await?))
}

pub(crate) async fn health(Api(api): Api) -> (StatusCode, Answer<Health>) {
    let health = api.health().await;
    let status = match health.status {
        HealthStatus::Ok | HealthStatus::Degraded => StatusCode::OK,
        HealthStatus::Down => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, Answer(health))
}

pub(crate) async fn version(Api(api): Api) -> Answered<Version> {
    Ok(Answer(api.version().await?))
}
