//! The routes of agents, roles and threads.

use axum::Json as Answer;
use polis_api::{
    Accepted, AgentDetail, Agents, Compress, Compressing, DeadLetters, ImportRequest, Imported, Operate, Paging, Roles,
    Terminate, Terminated, ThreadPart, Threads,
};
use polis_domain::{Org, Thread};
use serde_json::Value;

use crate::body::Json;
use crate::once::Api;
use crate::requests::Answered;
use crate::wanted::{Name, Wanted};

pub(crate) async fn agents(Api(api): Api, Wanted(paging): Wanted<Paging>) -> Answered<Agents> {
    Ok(Answer(api.agents(&paging).await?))
}

pub(crate) async fn agent(Api(api): Api, Name(id): Name) -> Answered<AgentDetail> {
    Ok(Answer(api.agent(&id.into()).await?))
}

pub(crate) async fn operate(Api(api): Api, Name(id): Name, Json(request): Json<Operate>) -> Answered<Accepted> {
    Ok(Answer(api.operate(id.into(), request).await?))
}

pub(crate) async fn compress(Api(api): Api, Name(id): Name, Json(request): Json<Compress>) -> Answered<Compressing> {
    Ok(Answer(api.compress(id.into(), request).await?))
}

pub(crate) async fn terminate(Api(api): Api, Name(id): Name, Json(request): Json<Terminate>) -> Answered<Terminated> {
    Ok(Answer(api.terminate(id.into(), request).await?))
}

pub(crate) async fn dead_letters(Api(api): Api) -> Answered<DeadLetters> {
    Ok(Answer(api.dead_letters().await?))
}

pub(crate) async fn org(Api(api): Api) -> Answered<Org> {
    Ok(Answer(api.org().await?))
}

pub(crate) async fn roles(Api(api): Api, Wanted(paging): Wanted<Paging>) -> Answered<Roles> {
    Ok(Answer(api.roles(&paging).await?))
}

pub(crate) async fn import(
    Api(api): Api,
    Wanted(how): Wanted<ImportRequest>,
    Json(document): Json<Value>,
) -> Answered<Imported> {
    Ok(Answer(api.import(document, how).await?))
}

pub(crate) async fn threads(Api(api): Api, Wanted(paging): Wanted<Paging>) -> Answered<Threads> {
    Ok(Answer(api.threads(&paging).await?))
}

pub(crate) async fn thread(Api(api): Api, Name(id): Name, Wanted(part): Wanted<ThreadPart>) -> Answered<Thread> {
    Ok(Answer(api.thread(&id.into(), &part).await?))
}
