//! What models were asked. The log has only the digest of a request, so the requests of this process are held in memory until their
//! spans are made. A span that another process left behind is made without them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use polis_domain::{EffectId, SocietyId, Usage};
use polis_ports::{ChatMessage, DeltaStream, Media, MediaKind, Model, ModelDescription, ModelError, ModelRequest, ToolSpec};
use serde_json::{Value, json};

use crate::otlp::Attributes;
use crate::spans::{cut, tool_call};

/// The longest list of messages or tools that a span carries; the oldest messages are left out first.
const MAX_LIST_BYTES: usize = 64 << 10;

/// The most that is held. Requests whose spans are late because the collector is down are dropped, the oldest first.
const MAX_HELD_BYTES: usize = 8 << 20;

/// The requests whose spans have not been made yet.
#[derive(Debug, Default)]
pub(crate) struct Requests(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    requests: VecDeque<HeldRequest>,
    bytes: usize,
}

#[derive(Debug)]
struct HeldRequest {
    society: SocietyId,
    effect: EffectId,
    attributes: Attributes,
    bytes: usize,
}

impl Requests {
    /// What the span of a model call says of its request; nothing if it is not known.
    pub(crate) fn take(&self, society: &SocietyId, effect: EffectId) -> Attributes {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.remove(society, effect).map(|request| request.attributes).unwrap_or_default()
    }

    fn hold(&self, society: &SocietyId, effect: EffectId, request: &ModelRequest) {
        let (attributes, bytes) = describe(request);
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another attempt at the same call.
        held.remove(society, effect);
        held.bytes += bytes;
        held.requests.push_back(HeldRequest { society: society.clone(), effect, attributes, bytes });
        while held.bytes > MAX_HELD_BYTES {
            let Some(oldest) = held.requests.pop_front() else { break };
            held.bytes -= oldest.bytes;
        }
    }
}

impl Held {
    fn remove(&mut self, society: &SocietyId, effect: EffectId) -> Option<HeldRequest> {
        let place = self.requests.iter().position(|request| request.effect == effect && request.society == *society)?;
        let request = self.requests.remove(place)?;
        self.bytes -= request.bytes;
        Some(request)
    }
}

/// A model that notes what it is asked.
pub(crate) struct ObservedModel {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) society: SocietyId,
    pub(crate) requests: Arc<Requests>,
}

#[async_trait]
impl Model for ObservedModel {
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError> {
        if let Some(effect) = request.effect {
            self.requests.hold(&self.society, effect, &request);
        }
        self.model.stream(request).await
    }

    fn estimate(&self, request: &ModelRequest) -> Usage {
        self.model.estimate(request)
    }

    fn name(&self, model: &str) -> Arc<str> {
        self.model.name(model)
    }

    fn refuses(&self, model: &str) -> Option<String> {
        self.model.refuses(model)
    }

    fn description(&self, model: &str) -> ModelDescription {
        self.model.description(model)
    }
}

/// A request by the GenAI conventions, and how long that is.
fn describe(request: &ModelRequest) -> (Attributes, usize) {
    let system = (!request.system.is_empty()).then(|| json!([text(&request.system)]).to_string());
    let (messages, omitted) = newest(&request.messages);
    let tools = (!request.tools.is_empty()).then(|| tools(&request.tools));
    let bytes = system.as_ref().map_or(0, String::len) + messages.len() + tools.as_ref().map_or(0, String::len);
    let attributes = Attributes::default()
        .with_some("gen_ai.system_instructions", system)
        .with("gen_ai.input.messages", messages)
        .with_some("polis.input.messages_omitted", (omitted > 0).then_some(omitted))
        .with_some("gen_ai.tool.definitions", tools);
    (attributes, bytes)
}

/// The newest messages that fit, and how many do not.
fn newest(messages: &[ChatMessage]) -> (String, u64) {
    let mut parts = Vec::new();
    let mut bytes = 0;
    for message in messages.iter().rev() {
        let part = chat_message(message).to_string();
        bytes += part.len();
        if bytes > MAX_LIST_BYTES && !parts.is_empty() {
            break;
        }
        parts.push(part);
    }
    let omitted = messages.len() - parts.len();
    parts.reverse();
    (format!("[{}]", parts.join(",")), omitted as u64)
}

fn chat_message(message: &ChatMessage) -> Value {
    match message {
        ChatMessage::User { text: said, media } => {
            let parts: Vec<_> = std::iter::once(text(said)).chain(media.iter().map(media_part)).collect();
            json!({ "role": "user", "parts": parts })
        }
        ChatMessage::Assistant { text: said, reasoning, tool_calls, .. } => {
            let reasoning = (!reasoning.is_empty()).then(|| json!({ "type": "reasoning", "content": cut(reasoning) }));
            let said = (!said.is_empty()).then(|| text(said));
            let parts: Vec<_> = reasoning.into_iter().chain(said).chain(tool_calls.iter().map(tool_call)).collect();
            json!({ "role": "assistant", "parts": parts })
        }
        ChatMessage::Tool { call_id, content, media, .. } => {
            let response = json!({ "type": "tool_call_response", "id": call_id, "response": cut(content) });
            let parts: Vec<_> = std::iter::once(response).chain(media.iter().map(media_part)).collect();
            json!({ "role": "tool", "parts": parts })
        }
    }
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "content": cut(text) })
}

/// A content without its bytes, which are too many for a span.
fn media_part(media: &Media) -> Value {
    let modality = match media.kind() {
        Some(MediaKind::Image) => "image",
        Some(MediaKind::Document) | None => "document",
        Some(MediaKind::Audio) => "audio",
    };
    match media {
        Media::Inline { media_type, .. } => {
            json!({ "type": "blob", "modality": modality, "mime_type": media_type, "content": "" })
        }
        Media::Url(uri) => json!({ "type": "uri", "modality": modality, "uri": uri }),
        Media::Stored(artifact) => json!({ "type": "file", "modality": modality, "file_id": artifact.id.to_string() }),
    }
}

/// The definitions of tools; only their names if the whole is too long.
fn tools(tools: &[ToolSpec]) -> String {
    let whole = |tool: &ToolSpec| json!({ "type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters });
    let text = Value::from_iter(tools.iter().map(whole)).to_string();
    if text.len() <= MAX_LIST_BYTES {
        return text;
    }
    Value::from_iter(tools.iter().map(|tool| json!({ "type": "function", "name": tool.name }))).to_string()
}
