//! The routes of requests: giving one, its state, its messages and plans, and what it asks of a person.

use axum::Json as Answer;
use polis_api::{
    Accepted, Acted, Approvals, Cancel, Cancelled, ComponentAction, DecisionRequest, MessagePaging, Messages, Paging,
    PendingChange, PlanFilter, Plans, Resolved, Retry, Send, Submit, TaskState, Tasks,
};

use crate::body::Json;
use crate::extract::{CallerApi, PathParam, QueryParams};
use crate::problem::Problem;

pub(crate) type JsonResult<T> = Result<Answer<T>, Problem>;

pub(crate) async fn submit(CallerApi(api): CallerApi, Json(request): Json<Submit>) -> JsonResult<Accepted> {
    Ok(Answer(api.submit(request).await?))
}

pub(crate) async fn send(CallerApi(api): CallerApi, Json(request): Json<Send>) -> JsonResult<Accepted> {
    Ok(Answer(api.send(request).await?))
}

pub(crate) async fn messages(
    CallerApi(api): CallerApi,
    PathParam(task): PathParam,
    QueryParams(which): QueryParams<MessagePaging>,
) -> JsonResult<Messages> {
    Ok(Answer(api.messages(&task.into(), which).await?))
}

pub(crate) async fn task(CallerApi(api): CallerApi, PathParam(id): PathParam) -> JsonResult<TaskState> {
    Ok(Answer(api.task(&id.into()).await?))
}

pub(crate) async fn tasks(CallerApi(api): CallerApi, QueryParams(paging): QueryParams<Paging>) -> JsonResult<Tasks> {
    Ok(Answer(api.tasks(&paging).await?))
}

pub(crate) async fn cancel(
    CallerApi(api): CallerApi,
    PathParam(id): PathParam,
    Json(request): Json<Cancel>,
) -> JsonResult<Cancelled> {
    Ok(Answer(api.cancel(&id.into(), request).await?))
}

pub(crate) async fn retry(
    CallerApi(api): CallerApi,
    PathParam(id): PathParam,
    Json(Retry {}): Json<Retry>,
) -> JsonResult<Accepted> {
    Ok(Answer(api.retry(&id.into()).await?))
}

pub(crate) async fn plans(CallerApi(api): CallerApi, QueryParams(filter): QueryParams<PlanFilter>) -> JsonResult<Plans> {
    Ok(Answer(api.plans(filter).await?))
}

pub(crate) async fn approvals(CallerApi(api): CallerApi, QueryParams(paging): QueryParams<Paging>) -> JsonResult<Approvals> {
    Ok(Answer(api.approvals(&paging).await?))
}

pub(crate) async fn pending_change(CallerApi(api): CallerApi, PathParam(id): PathParam) -> JsonResult<PendingChange> {
    Ok(Answer(api.pending_change(&id).await?))
}

pub(crate) async fn resolve(
    CallerApi(api): CallerApi,
    PathParam(id): PathParam,
    Json(request): Json<DecisionRequest>,
) -> JsonResult<Resolved> {
    Ok(Answer(api.resolve(&id, request.decision()?).await?))
}

pub(crate) async fn act(CallerApi(api): CallerApi, Json(request): Json<ComponentAction>) -> JsonResult<Acted> {
    Ok(Answer(api.act(request).await?))
}
