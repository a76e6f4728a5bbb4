//! The routes of conversations.

use axum::Json as Answer;
use polis_api::{
    ChangeConversation, Conversation, ConversationPaging, Conversations, DeleteConversation, Deleted, EraseConversation,
    Erased, StartConversation,
};

use crate::body::Json;
use crate::extract::{CallerApi, PathParam, QueryParams};
use crate::requests::JsonResult;

pub(crate) async fn list(
    CallerApi(api): CallerApi,
    QueryParams(paging): QueryParams<ConversationPaging>,
) -> JsonResult<Conversations> {
    Ok(Answer(api.conversations(paging).await?))
}

pub(crate) async fn get(CallerApi(api): CallerApi, PathParam(id): PathParam) -> JsonResult<Conversation> {
    Ok(Answer(api.conversation(&id.into()).await?))
}

pub(crate) async fn start(CallerApi(api): CallerApi, Json(request): Json<StartConversation>) -> JsonResult<Conversation> {
    Ok(Answer(api.start_conversation(request).await?))
}

pub(crate) async fn change(
    CallerApi(api): CallerApi,
    PathParam(id): PathParam,
    Json(request): Json<ChangeConversation>,
) -> JsonResult<Conversation> {
    Ok(Answer(api.change_conversation(&id.into(), request).await?))
}

pub(crate) async fn delete(
    CallerApi(api): CallerApi,
    PathParam(id): PathParam,
    Json(DeleteConversation {}): Json<DeleteConversation>,
) -> JsonResult<Deleted> {
    Ok(Answer(api.delete_conversation(&id.into()).await?))
}

pub(crate) async fn erase(
    CallerApi(api): CallerApi,
    PathParam(id): PathParam,
    Json(EraseConversation {}): Json<EraseConversation>,
) -> JsonResult<Erased> {
    Ok(Answer(api.erase_conversation(&id.into()).await?))
}
