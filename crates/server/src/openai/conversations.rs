//! Conversations of ours as OpenAI's: created, read, renamed and deleted by their id. Of their metadata the title is kept.

use std::sync::Arc;

use axum::http::StatusCode;
use polis_api::ChangeConversation;
use polis_domain::{AgentId, Message, Meta, Sender};
use polis_engine::ConversationStart;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::client_request::Item;
use super::error::{ApiError, Body};
use super::responses::items;
use crate::caller::RequestCaller;
use crate::client_files::ClientFile;
use crate::extract::{CallerState, PathParam};
use crate::state::SocietyState;

/// Most messages that a conversation may begin with.
const MAX_ITEMS: usize = 20;

/// What a conversation begins with, or what changes about it.
#[derive(Deserialize)]
pub(crate) struct Request {
    #[serde(default)]
    items: Option<Value>,
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
}

pub(crate) async fn create(
    CallerState(state): CallerState,
    Body(request): Body<Request>,
) -> Result<axum::Json<Value>, ApiError> {
    let title = title(request.metadata.as_ref())?;
    let said = request.items.as_ref().map(items).transpose()?.unwrap_or_default();
    if said.len() > MAX_ITEMS {
        return Err(ApiError::invalid("too_many_items", "items", format!("at most {MAX_ITEMS} items are allowed")));
    }
    let now = state.society.now();
    let message = |(place, item): (usize, Item)| {
        let (sender, text) = match item {
            Item::User(said) if said.files.iter().any(ClientFile::has_content) => {
                let message = "a conversation begins with texts; send files with a message";
                return Err(ApiError::invalid("unsupported_content", format!("items[{place}]"), message));
            }
            Item::User(said) => (Sender::User, said.text),
            Item::Assistant(text) => (Sender::Bot, text),
            Item::Instruction(_) | Item::Call { .. } | Item::Result(_) => {
                let message = "a conversation begins with messages of the user and the assistant";
                return Err(ApiError::invalid("unsupported_content", format!("items[{place}]"), message));
            }
        };
        Ok(Arc::new(Message { id: format!("earlier-{place}").into(), sender, text, timestamp: now, meta: Meta::new() }))
    };
    let messages = said.into_iter().enumerate().map(message).collect::<Result<Vec<_>, ApiError>>()?;
    let start = ConversationStart { title, messages, ..ConversationStart::default() };
    let id = state.society.start_conversation(start).await?;
    object(&state, &id).await
}

pub(crate) async fn retrieve(CallerState(state): CallerState, PathParam(id): PathParam) -> Result<axum::Json<Value>, ApiError> {
    object(&state, &own(&state, &id).await?).await
}

/// Renames a conversation.
pub(crate) async fn update(
    CallerState(state): CallerState,
    RequestCaller(caller): RequestCaller,
    PathParam(id): PathParam,
    Body(request): Body<Request>,
) -> Result<axum::Json<Value>, ApiError> {
    let id = own(&state, &id).await?;
    if let Some(title) = title(request.metadata.as_ref())? {
        let change = ChangeConversation { title: Some(title), ..ChangeConversation::default() };
        state.api(caller).change_conversation(&id, change).await?;
    }
    object(&state, &id).await
}

pub(crate) async fn delete(
    CallerState(state): CallerState,
    RequestCaller(caller): RequestCaller,
    PathParam(id): PathParam,
) -> Result<axum::Json<Value>, ApiError> {
    let id = own(&state, &id).await?;
    state.api(caller).delete_conversation(&id).await?;
    Ok(axum::Json(json!({ "id": id, "object": "conversation.deleted", "deleted": true })))
}

async fn own(state: &SocietyState, id: &str) -> Result<AgentId, ApiError> {
    find_conversation(state, &id.into()).await?.ok_or_else(|| unknown(id))
}

/// The title in the metadata, which is all that is kept of it.
fn title(metadata: Option<&Map<String, Value>>) -> Result<Option<String>, ApiError> {
    let metadata = metadata.into_iter().flatten();
    let mut title = None;
    for (key, value) in metadata {
        match value {
            Value::String(text) if key == "title" => title = Some(text.clone()),
            _ => {
                let message = "only a title, as a text, is kept with a conversation";
                return Err(ApiError::invalid("unsupported_value", format!("metadata.{key}"), message));
            }
        }
    }
    Ok(title.filter(|title| !title.trim().is_empty()))
}

/// The conversation as an object.
async fn object(state: &SocietyState, id: &AgentId) -> Result<axum::Json<Value>, ApiError> {
    let asked = id.clone();
    let found = state.society.look(move |spine| {
        let created = spine.agents.get(&asked)?.created_at.0 / 1_000;
        spine.conversation(&asked).map(|conversation| (created, conversation.title.clone()))
    });
    let (created, title) = found.await?.ok_or_else(|| unknown(id.as_str()))?;
    let metadata = if title.is_empty() { json!({}) } else { json!({ "title": title }) };
    Ok(axum::Json(json!({ "id": id, "object": "conversation", "created_at": created, "metadata": metadata })))
}

fn unknown(id: &str) -> ApiError {
    let message = format!("there is no conversation `{id}`; GET /api/conversations lists them");
    ApiError::new(StatusCode::NOT_FOUND, "unknown_conversation", message)
}

/// The conversation that a client names by its id.
pub(super) async fn find_conversation(state: &SocietyState, named: &Value) -> Result<Option<AgentId>, ApiError> {
    let id = match named {
        Value::Null => return Ok(None),
        Value::String(id) => id.as_str(),
        named => named.get("id").and_then(Value::as_str).unwrap_or_default(),
    };
    let (asked, visibility) = (AgentId::from(id), state.society.visibility().clone());
    let found = state.society.look(move |spine| {
        let own = spine.conversation(&asked).filter(|_| visibility.agent(spine, &asked));
        own.map(|_| asked.clone())
    });
    found.await?.map(Some).ok_or_else(|| unknown(id))
}
