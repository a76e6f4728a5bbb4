//! What an agent is asked (Task), what it gives back (Response), and the envelope between them (Message).

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AgentId, EffectId, MessageId, Meta, MetaPath, Phase, SubThreadPath, TaskId};

/// What an agent is asked to do (R012-R014). The host utilities of the documents are the turn that it comes with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// The person's request that this belongs to.
    pub id: TaskId,
    /// A name for people; what happens is decided by the phase, never by it (R050).
    pub name: Arc<str>,
    /// Said by somebody, or arranged by an agent.
    #[serde(rename = "type")]
    pub kind: TaskType,
    /// The text.
    pub message: Arc<str>,
    /// Whatever the next handler needs to know.
    #[serde(default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// Whether the text stays out of the thread.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_user_message: bool,
    /// How many messages from agent to agent led to it; none when the person asked. Whatever a handler says here is overruled.
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
    /// Somebody said it.
    Message,
    /// An agent arranged it (`Task.TYPE_ACTION`).
    Action,
}

/// The name of whatever is stated in words, kept once.
static MESSAGE: LazyLock<Arc<str>> = LazyLock::new(|| "message".into());

impl Task {
    /// The key of the meta that names the agent who asks.
    pub const FROM: &str = "from";

    /// The key of the meta that names what the request is about.
    pub const RESOURCE: &str = "currentResourceId";

    /// The key of the meta that lists tools of whoever asks, each with `name`, `description` and `parameters`.
    pub const CLIENT_TOOLS: &str = "lentTools";

    /// A task that somebody states in words.
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

    /// A task that an agent arranges; its text stays out of the thread.
    pub fn action(id: TaskId, name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), kind: TaskType::Action, skip_user_message: true, ..Self::message(id, text) }
    }

    /// The same task with one more entry in its meta.
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

    /// What the request is about, where somebody has said so (R281).
    pub fn resource(&self) -> Option<Arc<str>> {
        self.meta.get(Self::RESOURCE)?.as_str().map(Into::into)
    }

    /// The sub-thread that the task is about (R106); the main thread when the meta names none.
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

/// What a handler gives back. It is whole; what streams, streams beside it (D07).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Response {
    text: String,
    silent: bool,
    #[serde(default)]
    next_tasks: Vec<Task>,
    /// Goes into the meta of the bot message.
    #[serde(default)]
    pub meta: Meta,
    #[serde(default)]
    message_update: Option<MessageId>,
    #[serde(default)]
    sub_thread: Option<Box<SubThreadRequest>>,
    #[serde(default)]
    next_phase: Option<Phase>,
}

/// A response, taken apart for whoever carries it out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResponseParts {
    /// The text.
    pub text: String,
    /// Whether the text is not to be written: there is none, or it stands in the thread already.
    pub silent: bool,
    /// Goes into the meta of the message.
    pub meta: Meta,
    /// Tasks that the same agent does next.
    pub next_tasks: Vec<Task>,
    /// The message that the text goes into, where it is not a new one.
    pub message_update: Option<MessageId>,
    /// The sub-thread that is to be opened in that message and run.
    pub sub_thread: Option<Box<SubThreadRequest>>,
    /// The phase for the next task.
    pub next_phase: Option<Phase>,
}

impl Response {
    /// A text that becomes the bot message.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// No message: the handler has already written into the thread (`Response("", false)`).
    pub fn silent() -> Self {
        Self { silent: true, ..Self::default() }
    }

    /// A text that stands in this message of the thread already.
    pub fn standing_in(message: MessageId, text: impl Into<String>) -> Self {
        Self { text: text.into(), silent: true, message_update: Some(message), ..Self::default() }
    }

    /// The same response, whose text and meta go into a message that stands in the thread already (R128).
    pub fn updating(self, message: MessageId) -> Self {
        Self { message_update: Some(message), ..self }
    }

    /// The same response, whose message is a placeholder: the sub-thread is opened in it and run, and what comes of that
    /// becomes its text (R129).
    pub fn in_sub_thread(self, request: SubThreadRequest) -> Self {
        Self { sub_thread: Some(Box::new(request)), ..self }
    }

    /// The same response, suggesting the phase for the next task (R129). It stands against the configured one.
    pub fn to_phase(self, phase: Phase) -> Self {
        Self { next_phase: Some(phase), ..self }
    }

    /// The same response, suggesting this phase unless it suggests one already.
    pub fn or_to_phase(mut self, phase: Phase) -> Self {
        self.next_phase.get_or_insert(phase);
        self
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

    /// Takes the response apart.
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

/// A sub-thread that is to be opened and run: which of those that the handler declares, and what it is asked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubThreadRequest {
    /// The name under which the handler, unit or agent declares it.
    pub name: Arc<str>,
    /// What it is asked.
    pub message: Arc<str>,
    /// The message that it hangs in; a new one when there is none.
    #[serde(default)]
    pub holder: Option<MessageId>,
    /// What a new message says until the result is there; a word about waiting when there is none.
    #[serde(default)]
    pub placeholder: Option<String>,
    /// Where in the message's meta it hangs.
    #[serde(default)]
    pub slot: MetaPath,
    /// Free data about the sub-thread, for its units to read.
    #[serde(default)]
    pub meta: Meta,
}

impl SubThreadRequest {
    /// Asks the sub-thread of this name.
    pub fn new(name: impl Into<Arc<str>>, message: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), message: message.into(), ..Self::default() }
    }

    /// The same request, in a message that stands in the thread already.
    pub fn in_message(self, message: MessageId) -> Self {
        Self { holder: Some(message), ..self }
    }

    /// The same request, in a new message that says this until the result is there.
    pub fn showing(self, placeholder: impl Into<String>) -> Self {
        Self { placeholder: Some(placeholder.into()), ..self }
    }

    /// The same request, at another place of the message's meta.
    pub fn at(self, slot: MetaPath) -> Self {
        Self { slot, ..self }
    }

    /// The same request with one more entry in the sub-thread's meta.
    pub fn with_meta(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.meta.insert(key.to_owned(), value.into());
        self
    }
}

/// A message between agents, or between an agent and the person: the one envelope (D30).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    /// Its name.
    pub id: MessageId,
    /// Who sends.
    pub from: AgentId,
    /// Who receives.
    pub to: AgentId,
    /// The person's request that this belongs to.
    pub task_id: TaskId,
    /// What it is.
    pub kind: MessageKind,
    /// What it says.
    pub payload: Payload,
    /// Who waits for what comes of it.
    #[serde(default, skip_serializing_if = "ReplyTo::is_nobody")]
    pub reply_to: ReplyTo,
    /// How many messages from agent to agent its chain has, this one included; none when it is the person's.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u32,
}

/// What a message is to its receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum MessageKind {
    /// Something said along the way.
    Message,
    /// The result of a task, which ends it.
    Answer,
    /// The task ended without a result.
    Failure(Failure),
}

/// What a message says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Payload {
    /// The text.
    pub text: Arc<str>,
    /// Goes into the meta of the task that the message becomes.
    #[serde(default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl Payload {
    /// Where the meta of a message has the person's own words, if its text holds more than them: an earlier conversation, say.
    pub const OWN_WORDS: &'static str = "ownWords";

    /// What the person wrote themselves.
    pub fn own_words(&self) -> &str {
        self.meta.get(Self::OWN_WORDS).and_then(Value::as_str).unwrap_or(&self.text)
    }

    /// A text and nothing else.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), meta: Meta::new() }
    }
}

/// Who waits for what comes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ReplyTo {
    /// Nobody.
    #[default]
    Nobody,
    /// The person.
    User,
    /// A turn that asked, or that started a unit.
    Effect(EffectId),
}

impl ReplyTo {
    fn is_nobody(&self) -> bool {
        *self == Self::Nobody
    }
}

/// Why work came to nothing, for programs (`code`) and for people (`message`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{message} ({code})")]
pub struct Failure {
    /// Stable, `snake_case`.
    pub code: Arc<str>,
    /// What happened and what to do.
    pub message: String,
}

impl Failure {
    /// Names a failure.
    pub fn new(code: impl Into<Arc<str>>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
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
