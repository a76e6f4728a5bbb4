//! What an agent is asked (Task), what it returns (Response), and messages between agents (Envelope).

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    AgentId, AnswerRules, EffectId, Failure, MessageId, Meta, MetaPath, ModelSettings, PersonId, Phase, SubThreadPath, TaskId,
};

/// What an agent is asked to do (R012-R014). The host utilities of the specification are methods of the turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// The person's request that this belongs to.
    pub id: TaskId,
    /// A name for people. The phase selects the handler, never this name (R050).
    pub name: Arc<str>,
    /// Whether it is a message or was queued by an agent.
    #[serde(rename = "type")]
    pub kind: TaskType,
    /// The text of the task.
    pub message: Arc<str>,
    /// Free data for the handler.
    #[serde(default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// Whether the text is not added to the thread as a user message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_user_message: bool,
    /// How many messages from agent to agent led to it; 0 if the person asked. The engine sets it, whatever a handler writes
    /// here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u32,
}

fn is_zero(hops: &u32) -> bool {
    *hops == 0
}

/// Where a task comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TaskType {
    /// A message.
    Message,
    /// A task that an agent queued (`Task.TYPE_ACTION`).
    Action,
}

/// The shared name of all message tasks.
static MESSAGE: LazyLock<Arc<str>> = LazyLock::new(|| "message".into());

impl Task {
    /// The meta key of the asking agent.
    pub const FROM: &str = "from";

    /// The key of a message's meta that says that its sender waits for no answer.
    pub const UNAWAITED: &str = "unawaited";
    /// The meta key of the addresses of a message's pictures, which the vendor of a model fetches.
    pub const PICTURES: &str = "pictures";

    /// The meta key of the resource that the request is about.
    pub const RESOURCE: &str = "currentResourceId";

    /// The meta key of what the application says about the request, an object such as `{"currentResourceId": "doc-7"}`.
    pub const CONTEXT: &str = "requestContext";

    /// The meta key of the client's tools, each with `name`, `description` and `parameters`.
    pub const CLIENT_TOOLS: &str = "lentTools";

    /// The meta key of what the client prescribes for the answer, as [`AnswerRules`].
    pub const ANSWER_RULES: &str = "answerRules";

    /// The meta key of how models are called for the request, as [`ModelSettings`].
    pub const MODEL_SETTINGS: &str = "modelSettings";

    /// A task for a message.
    pub fn message(id: TaskId, text: impl Into<Arc<str>>) -> Self {
        Self {
            id,
            name: MESSAGE.clone(),
            kind: TaskType::Message,
            message: text.into(),
            meta: Meta::new(),
            skip_user_message: false,
            hops: 0,
        }
    }

    /// A task that an agent queues; its text is not added to the thread.
    pub fn action(id: TaskId, name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), kind: TaskType::Action, skip_user_message: true, ..Self::message(id, text) }
    }

    /// Adds an entry to the meta.
    pub fn with_meta(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.meta.insert(key.to_owned(), value.into());
        self
    }

    /// Whether the person pressed retry (R043).
    pub fn is_retry(&self) -> bool {
        self.meta.get("_ui_action").is_some_and(|action| action == "retry")
    }

    /// Whether the person wants the conversation compressed, and nothing else.
    pub fn wants_compression(&self) -> bool {
        self.meta.get("_ui_action").is_some_and(|action| action == "compress")
    }

    /// What the client prescribes for the answer, if it prescribes anything.
    pub fn answer_rules(&self) -> Option<AnswerRules> {
        AnswerRules::deserialize(self.meta.get(Self::ANSWER_RULES)?).ok()
    }

    /// How models are called for the request.
    pub fn model_settings(&self) -> ModelSettings {
        let settings = self.meta.get(Self::MODEL_SETTINGS);
        settings.and_then(|settings| ModelSettings::deserialize(settings).ok()).unwrap_or_default()
    }

    /// The resource that the request is about, if the meta names one (R281).
    pub fn resource(&self) -> Option<Arc<str>> {
        self.meta.get(Self::RESOURCE)?.as_str().map(Into::into)
    }

    /// What the application says about the request.
    pub fn context(&self) -> Map<String, Value> {
        self.meta.get(Self::CONTEXT).and_then(Value::as_object).cloned().unwrap_or_default()
    }

    /// The entries of the meta that all tasks of a request share: the resource, and what the application says.
    pub fn shared_meta(&self) -> impl Iterator<Item = (String, Value)> {
        [Self::RESOURCE, Self::CONTEXT].into_iter().filter_map(|key| Some((key.to_owned(), self.meta.get(key)?.clone())))
    }

    /// The sub-thread of the task (R106); the main thread if the meta names none.
    pub fn sub_thread_path(&self) -> SubThreadPath {
        #[derive(Deserialize)]
        struct Placed {
            #[serde(rename = "subThreadPath", default)]
            path: SubThreadPath,
        }
        if self.meta.is_empty() {
            SubThreadPath::default()
        } else {
            self.meta.read().map(|Placed { path }| path).unwrap_or_default()
        }
    }
}

/// What a handler returns. It is complete; streaming happens beside it (D07).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Response {
    text: String,
    silent: bool,
    #[serde(default)]
    next_tasks: Vec<Task>,
    /// The meta of the bot message.
    #[serde(default)]
    pub meta: Meta,
    #[serde(default)]
    message_update: Option<MessageId>,
    #[serde(default)]
    sub_thread: Option<Box<SubThreadRequest>>,
    #[serde(default)]
    next_phase: Option<Phase>,
}

/// The parts of a response, for the engine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResponseParts {
    /// The text of the response.
    pub text: String,
    /// Whether no message is added: there is no text, or the thread already has it.
    pub silent: bool,
    /// The meta of the message.
    pub meta: Meta,
    /// Tasks that the same agent does next.
    pub next_tasks: Vec<Task>,
    /// The existing message to update, if no new one is added.
    pub message_update: Option<MessageId>,
    /// The sub-thread to open in that message and run.
    pub sub_thread: Option<Box<SubThreadRequest>>,
    /// The phase for the next task.
    pub next_phase: Option<Phase>,
}

impl Response {
    /// A response that adds a bot message.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// No message: the handler has already written into the thread (`Response("", false)`).
    pub fn silent() -> Self {
        Self { silent: true, ..Self::default() }
    }

    /// A response whose text is already in this message of the thread.
    pub fn standing_in(message: MessageId, text: impl Into<String>) -> Self {
        Self { text: text.into(), silent: true, message_update: Some(message), ..Self::default() }
    }

    /// Writes text and meta into an existing message of the thread (R128).
    pub fn updating(self, message: MessageId) -> Self {
        Self { message_update: Some(message), ..self }
    }

    /// Makes the message a placeholder: a sub-thread is opened in it and run, and its result becomes the text (R129).
    pub fn in_sub_thread(self, request: SubThreadRequest) -> Self {
        Self { sub_thread: Some(Box::new(request)), ..self }
    }

    /// Suggests the phase for the next task (R129). It overrides the configured one.
    pub fn to_phase(self, phase: Phase) -> Self {
        Self { next_phase: Some(phase), ..self }
    }

    /// Suggests this phase unless the response suggests one already.
    pub fn or_to_phase(mut self, phase: Phase) -> Self {
        self.next_phase.get_or_insert(phase);
        self
    }

    /// The same response with more text at its end.
    #[must_use]
    pub fn appended(&self, more: &str) -> Self {
        Self { text: format!("{}{more}", self.text), ..self.clone() }
    }

    /// The whole text (R016).
    pub fn full_message(&self) -> &str {
        &self.text
    }

    /// Whether this adds no message to the thread.
    pub fn is_silent(&self) -> bool {
        self.silent
    }

    /// Queues a task that the same agent handles next, before anything else (R017).
    pub fn add_next_task(&mut self, task: Task) {
        self.next_tasks.push(task);
    }

    /// Splits the response into its parts.
    pub fn into_parts(self) -> ResponseParts {
        ResponseParts {
            text: self.text,
            silent: self.silent,
            meta: self.meta,
            next_tasks: self.next_tasks,
            message_update: self.message_update,
            sub_thread: self.sub_thread,
            next_phase: self.next_phase,
        }
    }
}

/// A request to run a sub-thread: which of those that the handler declares, and with which message.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubThreadRequest {
    /// The name under which it is declared.
    pub name: Arc<str>,
    /// The request to the sub-thread.
    pub message: Arc<str>,
    /// The message that it hangs in; a new one if none.
    #[serde(default)]
    pub holder: Option<MessageId>,
    /// The placeholder text of a new message; a default if none.
    #[serde(default)]
    pub placeholder: Option<String>,
    /// The path in the meta of the message.
    #[serde(default)]
    pub slot: MetaPath,
    /// Free data about the sub-thread, for its units to read.
    #[serde(default)]
    pub meta: Meta,
}

impl SubThreadRequest {
    /// A request to the sub-thread of this name.
    pub fn new(name: impl Into<Arc<str>>, message: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), message: message.into(), ..Self::default() }
    }

    /// Uses an existing message of the thread.
    pub fn in_message(self, message: MessageId) -> Self {
        Self { holder: Some(message), ..self }
    }

    /// Uses a new message with this placeholder text.
    pub fn showing(self, placeholder: impl Into<String>) -> Self {
        Self { placeholder: Some(placeholder.into()), ..self }
    }

    /// Uses another path in the meta of the message.
    pub fn at(self, slot: MetaPath) -> Self {
        Self { slot, ..self }
    }

    /// Adds an entry to the meta of the sub-thread.
    pub fn with_meta(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.meta.insert(key.to_owned(), value.into());
        self
    }
}

/// A message between agents, or between an agent and the person, with its addresses (D30).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    /// The id of the message.
    pub id: MessageId,
    /// The sender.
    pub from: AgentId,
    /// The receiver.
    pub to: AgentId,
    /// The person's request that this belongs to.
    pub task_id: TaskId,
    /// The kind of message.
    pub kind: MessageKind,
    /// The content.
    pub payload: Payload,
    /// Who waits for the result.
    #[serde(default, skip_serializing_if = "ReplyTo::is_nobody")]
    pub reply_to: ReplyTo,
    /// The person who sent it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<PersonId>,
    /// The length of its chain of messages from agent to agent, this one included; 0 if the person sent it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u32,
}

impl Envelope {
    /// Whether a message that no turn sent tells the person that messages between agents were blocked. The other messages of
    /// this kind name a failure.
    pub(crate) fn reports_loop(&self) -> bool {
        self.to.is_user() && self.kind == MessageKind::Message && self.payload.meta.get(Payload::FAILURE).is_none()
    }
}

/// The kind of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum MessageKind {
    /// A message in a conversation.
    Message,
    /// The answer that ends a task.
    Answer,
    /// The failure that ends a task.
    Failure(Failure),
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Payload {
    /// The text of the message.
    pub text: Arc<str>,
    /// The meta of the task that the message becomes.
    #[serde(default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl Payload {
    /// The meta key of the person's own words, if the text contains more, such as an earlier conversation.
    pub const OWN_WORDS: &'static str = "ownWords";

    /// The meta key of the failure that the person is notified of.
    pub const FAILURE: &'static str = "failure";

    /// The part of the text that the person wrote.
    pub fn own_words(&self) -> &str {
        self.meta.get(Self::OWN_WORDS).and_then(Value::as_str).unwrap_or(&self.text)
    }

    /// A content with a text only.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), meta: Meta::new() }
    }
}

/// Who waits for the result of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ReplyTo {
    /// Nobody.
    #[default]
    Nobody,
    /// The person.
    User,
    /// The effect of a turn that asked, or that started a unit.
    Effect(EffectId),
}

impl ReplyTo {
    fn is_nobody(&self) -> bool {
        *self == Self::Nobody
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_task_keeps_the_documents_field_names() {
        let task = Task::action("t1".into(), "ContinueProcessing", "继续处理").with_meta("originalQuery", "q");
        let written = serde_json::to_value(&task).unwrap();
        let documented = json!({
            "id": "t1", "name": "ContinueProcessing", "type": "action", "message": "继续处理",
            "skipUserMessage": true, "meta": { "originalQuery": "q" }
        });
        assert_eq!(written, documented);
        assert_eq!(serde_json::from_value::<Task>(documented).unwrap(), task);
    }

    #[test]
    fn a_task_names_its_sub_thread_in_its_meta() {
        let task = Task::message("t".into(), "x").with_meta("subThreadPath", "messages[2].meta._thread");
        assert_eq!(task.sub_thread_path(), SubThreadPath::create(2));
        assert!(Task::message("t".into(), "x").sub_thread_path().is_main());
    }

    #[test]
    fn a_silent_response_has_no_text_to_add() {
        let mut response = Response::silent();
        response.add_next_task(Task::action("t".into(), "next", ""));
        let parts = response.into_parts();
        assert_eq!((parts.silent, parts.next_tasks.len()), (true, 1));
        assert_eq!(Response::new("hi").full_message(), "hi");
    }
}
