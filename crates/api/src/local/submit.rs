//! Requests and messages of a person.

use std::sync::Arc;

use polis_domain::{
    Artifact, ArtifactId, ConversationChange, ConversationSettings, Message, Meta, ModelSettings, Refusal, Task, TaskId,
    Visibility,
};
use polis_engine::{CommandError, ConversationStart, Sent};
use polis_ports::media_type_of;
use serde_json::{Map, Value, json};

use super::Local;
use super::conversations::{check_settings, settings};
use crate::{Accepted, ApiError, Attachment, EarlierMessage, RequestContext, Scope, Send, Submit};

/// The meta key of a request with the setting for plan approval.
const PLAN_APPROVAL: &str = "planApproval";

/// How long the application's context of a request may be.
const MAX_CONTEXT_BYTES: usize = 8 << 10;

/// How many bytes tell what kind of picture, PDF or audio a content is.
const FIRST_BYTES: usize = 16;

impl Local {
    /// Submits a request: to a conversation, or to a new one.
    pub async fn submit(&self, request: Submit) -> Result<Accepted, ApiError> {
        self.caller.needs(Scope::Send)?;
        // The conversation may have been deleted since, or may have changed.
        if let Some(sent) = self.society.done_before().await?.and_then(|events| Sent::of(&events)) {
            return Ok(sent.into());
        }
        let Submit { text, conversation, context, role_id, model, strategy, settings: asked, plan_approval, artifacts } =
            request;
        self.check_model(model.as_deref())?;
        check_settings(&asked)?;
        let (earlier, application) = match context {
            RequestContext::Earlier(earlier) => (earlier, Map::new()),
            RequestContext::Application(application) => (Vec::new(), application),
        };
        let about = context_meta(application)?;
        let Some(conversation) = conversation else {
            let meta = [
                ("strategy", json!(strategy)),
                (PLAN_APPROVAL, json!(plan_approval)),
                (Task::MODEL_SETTINGS, settings_meta(&asked)),
            ];
            let meta = self.meta(artifacts, meta.into_iter().chain(about)).await?;
            let settings = settings(model, strategy, asked);
            let messages = earlier.into_iter().enumerate().map(|(place, message)| self.earlier(place, message)).collect();
            let start = ConversationStart { role: role_id, settings, messages, ..ConversationStart::default() };
            return Ok(self.society.converse(start, &text, None, meta).await?.into());
        };
        if !earlier.is_empty() || role_id.is_some() {
            let detail = "messages in `context` and `roleId` are for a new conversation; leave `conversation` out to start one";
            return Err(ApiError::bad_request("conversation_started", detail));
        }
        let known = self
            .known(&conversation)
            .await?
            .ok_or_else(|| CommandError::from(Refusal::UnknownConversation(conversation.clone())))?;
        let before = known.settings.as_deref().cloned().unwrap_or_default();
        if let Some(model) = model.filter(|model| before.model.as_deref().unwrap_or_default() != model.trim()) {
            let settings =
                ConversationSettings { model: settings(Some(model), None, ModelSettings::default()).model, ..before.clone() };
            let change = ConversationChange { settings: Some(settings), ..ConversationChange::default() };
            // The key of the request belongs to the message; this may be repeated.
            self.society.unkeyed().change_conversation(conversation.clone(), change).await?;
        }
        let strategy = strategy.map(|strategy| json!(strategy)).or_else(|| before.strategy.map(|strategy| json!(&*strategy)));
        let meta = [
            ("strategy", json!(strategy)),
            (PLAN_APPROVAL, json!(plan_approval)),
            // Those of the conversation as they are now: a turn keeps what it began with.
            (Task::MODEL_SETTINGS, settings_meta(&asked.over(&before.model_settings))),
        ];
        let meta = self.meta(artifacts, meta.into_iter().chain(about)).await?;
        Ok(self.society.send_with_meta(conversation, &text, None, meta).await?.into())
    }

    fn earlier(&self, place: usize, message: EarlierMessage) -> Arc<Message> {
        let EarlierMessage { sender, text } = message;
        Arc::new(Message {
            id: format!("earlier-{place}").into(),
            sender,
            text,
            timestamp: self.society.now(),
            meta: Meta::new(),
        })
    }

    /// Sends a message to an agent, within a request or as a new one.
    pub async fn send(&self, request: Send) -> Result<Accepted, ApiError> {
        self.caller.needs(Scope::Send)?;
        self.check_named_task(request.task_id.as_ref()).await?;
        let agent = self.society.addressee(request.agent_id).await?;
        check_settings(&request.settings)?;
        let meta = [(PLAN_APPROVAL, json!(request.plan_approval)), (Task::MODEL_SETTINGS, settings_meta(&request.settings))];
        let about = context_meta(request.context)?;
        let meta = self.meta(request.artifacts, meta.into_iter().chain(about)).await?;
        Ok(self.society.send_with_meta(agent, &request.text, request.task_id, meta).await?.into())
    }

    /// Refuses the id of a request that the caller does not have. A caller without the scope `everyone` cannot choose the ids of new
    /// requests, because another person may use them later.
    pub(super) async fn check_named_task(&self, task: Option<&TaskId>) -> Result<(), ApiError> {
        match task {
            Some(task) if *self.society.visibility() != Visibility::Everything => self.envelopes(task).await.map(drop),
            _ => Ok(()),
        }
    }

    /// The meta of a message: these fields, and the artifacts.
    async fn meta(
        &self,
        artifacts: Vec<Attachment>,
        meta: impl IntoIterator<Item = (&str, Value)>,
    ) -> Result<Map<String, Value>, ApiError> {
        let given = meta.into_iter().filter(|(_, value)| !value.is_null());
        let mut meta: Map<String, Value> = given.map(|(key, value)| (key.to_owned(), value)).collect();
        Artifact::attach(&mut meta, &self.attached(artifacts).await?);
        Ok(meta)
    }

    /// The artifacts that a message names. Each must be in the store.
    pub async fn attached(&self, attachments: Vec<Attachment>) -> Result<Vec<Artifact>, ApiError> {
        let mut artifacts = Vec::new();
        for Attachment { id, name, media_type, .. } in attachments {
            let id = artifact_id(&id)?;
            let total = self.stored_bytes(&id).await?;
            let stored = self.society.listing().find(&id).await;
            let name = name.or_else(|| stored.as_ref().map(|stored| stored.name.to_string())).unwrap_or_default();
            let media_type = media_type.or_else(|| stored.map(|stored| stored.media_type.to_string())).unwrap_or_default();
            let artifact = Artifact::new(id, &name, &media_type, total);
            artifacts.push(match &*artifact.media_type {
                "application/octet-stream" => {
                    let first = self.society.artifacts().read(&id, 0, FIRST_BYTES).await?.bytes;
                    media_type_of(&first).map_or(artifact, |known| Artifact::new(id, &name, known, total))
                }
                _ => artifact,
            });
        }
        Ok(artifacts)
    }
}

/// What the application says about a request, as entries of a message's meta.
fn context_meta(context: Map<String, Value>) -> Result<[(&'static str, Value); 2], ApiError> {
    let resource = context.get(Task::RESOURCE).filter(|value| value.is_string()).cloned().unwrap_or_default();
    let context = if context.is_empty() { Value::Null } else { Value::Object(context) };
    let bytes = context.to_string().len();
    if bytes > MAX_CONTEXT_BYTES {
        let detail =
            format!("`context` has {bytes} bytes; at most {MAX_CONTEXT_BYTES} are allowed. Send the rest as an artifact");
        return Err(ApiError::bad_request("context_too_large", detail));
    }
    Ok([(Task::RESOURCE, resource), (Task::CONTEXT, context)])
}

/// Settings as a value of a message's meta; null if nothing is set.
fn settings_meta(settings: &ModelSettings) -> Value {
    if settings.is_default() { Value::Null } else { json!(settings) }
}

/// Reads the id of an artifact.
pub fn artifact_id(id: &str) -> Result<ArtifactId, ApiError> {
    id.parse().map_err(|error: polis_domain::BadArtifactId| ApiError::bad_request("bad_artifact_id", error.to_string()))
}

impl From<Sent> for Accepted {
    fn from(sent: Sent) -> Self {
        Self { task_id: sent.task_id, conversation: sent.to, message_id: sent.message_id, seq: sent.seq }
    }
}
