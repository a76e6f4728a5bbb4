//! The routes of requests: giving one, its state, its messages and plans, and what it asks of a person.

use axum::Json as Answer;
use polis_api::{
    Accepted, Acted, Approvals, Cancel, Cancelled, ComponentAction, DecisionRequest, MessagePaging, Messages, Paging,
    PlanFilter, Plans, Resolved, Retry, Send, Submit, TaskState, Tasks,
};

use crate::body::Json;
use crate::once::Api;
use crate::problem::Problem;
use crate::wanted::{Name, Wanted};

pub(crate) type Answered<T> = Result<Answer<T>, Problem>;

pub(crate) async fn submit(Api(api): Api, Json(request): Json<Submit>) -> Answered<Accepted> {
    Ok(Answer(api.submit(request).await?))
}

pub(crate) async fn send(Api(api): Api, Json(request): Json<Send>) -> Answered<Accepted> {
    Ok(Answer(api.send(request).await?))
}

pub(crate) async fn messages(Api(api): Api, Name(task): Name, Wanted(which): Wanted<MessagePaging>) -> Answered<Messages> {
    Ok(Answer(api.messages(&task.into(), which).await?))
}

pub(crate) async fn task(Api(api): Api, Name(id): Name) -> Answered<TaskState> {
    Ok(Answer(api.task(&id.into()).await?))
}

pub(crate) async fn tasks(Api(api): Api, Wanted(paging): Wanted<Paging>) -> Answered<Tasks> {
    Ok(Answer(api.tasks(&paging).await?))
}

pub(crate) async fn cancel(Api(api): Api, Name(id): Name, Json(request): Json<Cancel>) -> Answered<Cancelled> {
    Ok(Answer(api.cancel(&id.into(), request).await?))
}

pub(crate) async fn retry(Api(api): Api, Name(id): Name, Json(Retry {}): Json<Retry>) -> Answered<Accepted> {
    Ok(Answer(api.retry(&id.into()).await?))
}

pub(crate) async fn plans(Api(api): Api, Wanted(filter): Wanted<PlanFilter>) -> Answered<Plans> {
    Ok(Answer(api.plans(filter).await?))
}

pub(crate) async fn approvals(Api(api): Api, Wanted(paging): Wanted<Paging>) -> Answered<Approvals> {
    Ok(Answer(api.approvals(&paging).await?))
}

pub(crate) async fn resolve(Api(api): Api, Name(id): Name, Json(request): Json<DecisionRequest>) -> Answered<Resolved> {
    Ok(Answer(api.resolve(&id, request.decision()?).await?))
}

pub(crate) async fn act(Api(api): Api, Json(request): Json<ComponentAction>) -> Answered<Acted> {
    Ok(Answer(api.act(request).await?))
}
