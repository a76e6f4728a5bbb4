//! Messages of the protocol: reads those of clients, and writes those of a task.

use polis_domain::{Digest, Envelope, PersonId, TaskId};
use serde_json::{Map, Value, json};

use super::Call;
use super::error::{Reason, protocol_error};
use super::task_index::META;
use crate::client_files::{ClientFile, NO_WORDS, attach_files, check_count};
use crate::problem::Problem;
use crate::rpc::Fault;

/// A message of a client.
pub(super) struct Message {
    pub(super) id: String,
    pub(super) context: Option<String>,
    pub(super) task: Option<TaskId>,
    /// Its text; data as JSON, and links to files.
    pub(super) text: String,
    /// Its data, if any.
    pub(super) data: Option<Map<String, Value>>,
    pub(super) metadata: Map<String, Value>,
    files: Vec<ClientFile>,
    whole: Value,
}

impl Message {
    pub(super) fn read(params: &Map<String, Value>) -> Result<Self, Fault> {
        let whole = params.get("message").cloned().unwrap_or_default();
        let message = whole.as_object().ok_or_else(|| Fault::invalid("`message` is missing"))?;
        // An empty text is what the protocol writes for none.
        let text = |name: &str| message.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
        let id = text("messageId").ok_or_else(|| Fault::invalid("`message.messageId` is missing"))?;
        if text("role").as_deref() != Some("ROLE_USER") {
            return Err(Fault::invalid("`message.role` must be ROLE_USER"));
        }
        let parts = message.get("parts").and_then(Value::as_array).filter(|parts| !parts.is_empty());
        let parts = parts.ok_or_else(|| Fault::invalid("`message.parts` needs at least one part"))?;
        let metadata = message.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        let (context, task) = (text("contextId"), text("taskId").map(TaskId::from));
        let mut read =
            Self { id, context, task, text: String::new(), data: None, metadata, files: Vec::new(), whole: Value::Null };
        for part in parts {
            read.take(part)?;
        }
        if read.text.trim().is_empty() && !read.files.is_empty() {
            NO_WORDS.clone_into(&mut read.text);
        }
        check_count(&read.files).map_err(|(_, message)| Fault::invalid(message))?;
        Ok(Self { whole, ..read })
    }

    fn take(&mut self, part: &Value) -> Result<(), Fault> {
        let field = |name: &str| part.get(name).and_then(Value::as_str).unwrap_or_default();
        let name = if field("filename").is_empty() { "file" } else { field("filename") };
        let words = if let Some(text) = part.get("text").and_then(Value::as_str) {
            text.to_owned()
        } else if let Some(data) = part.get("data") {
            self.data = self.data.take().or_else(|| data.as_object().cloned());
            data.to_string()
        } else if let Some(url) = part.get("url").and_then(Value::as_str) {
            if field("mediaType").starts_with("image/") {
                self.files.extend(ClientFile::picture_at(url));
            }
            format!("{name}: {url}")
        } else if let Some(raw) = part.get("raw").and_then(Value::as_str) {
            let file = ClientFile::from_base64(name, field("mediaType"), raw);
            self.files.push(file.map_err(|(_, message)| Fault::invalid(message))?);
            return Ok(());
        } else {
            let message = "a part must have `text`, `data`, `url` or `raw`";
            return Err(protocol_error(Reason::ContentTypeNotSupported, message, &[]));
        };
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&words);
        Ok(())
    }

    /// The task that a message begins: the same for the same message, so that one that comes twice is known. The server
    /// chooses it; a client cannot choose the task of another message.
    /// Two persons may send the same.
    pub(super) fn new_task(&self, person: &PersonId) -> TaskId {
        let whole = self.whole.to_string();
        let person = Some(person.as_str()).filter(|person| *person != PersonId::OWNER);
        let half = |salt: &str| Digest::of([salt, whole.as_str()].into_iter().chain(person));
        let half = |salt: &str| serde_json::to_value(half(salt)).unwrap_or_default();
        let half = |salt: &str| half(salt).as_str().unwrap_or_default().to_owned();
        TaskId::from(format!("a2a-{}{}", half("task"), half("of a message")))
    }

    /// What goes along with its message: which message it was, and its files.
    pub(super) async fn meta(&mut self, call: &Call, context: &str) -> Result<Map<String, Value>, Problem> {
        let mut meta = Map::from_iter([(META.to_owned(), json!({ "messageId": self.id, "contextId": context }))]);
        let files = std::mem::take(&mut self.files);
        attach_files(&call.peer.state.society, &files, &mut meta).await?;
        Ok(meta)
    }
}

/// The message that a message was, if it came as one.
pub(super) fn message_id(envelope: &Envelope) -> Option<&str> {
    envelope.payload.meta.get(META)?.get("messageId")?.as_str()
}

/// A message as a message.
pub(super) fn write(envelope: &Envelope, context: &str) -> Value {
    let role = if envelope.from.is_user() { "ROLE_USER" } else { "ROLE_AGENT" };
    json!({
        "messageId": message_id(envelope).unwrap_or(envelope.id.as_str()),
        "contextId": context,
        "taskId": envelope.task_id.as_str(),
        "role": role,
        "parts": [{ "text": &*envelope.payload.text }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: Value) -> Result<Message, Fault> {
        Message::read(json!({ "message": message }).as_object().unwrap())
    }

    #[test]
    fn the_same_message_begins_the_same_task_and_another_does_not() {
        let message = |id: &str, text: &str| json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] });
        let task = |message: Value| read(message).unwrap().new_task(&PersonId::owner());
        assert_eq!(task(message("1", "a")), task(message("1", "a")));
        assert_ne!(task(message("1", "a")), task(message("2", "a")));
        assert_ne!(task(message("1", "a")), task(message("1", "b")));
    }

    #[test]
    fn parts_become_words_data_and_files() {
        let parts = json!([{ "text": "look" }, { "data": { "approved": true } }, { "url": "https://h/x", "filename": "x" }, { "raw": "aGk=" }]);
        let message =
            read(json!({ "messageId": "1", "role": "ROLE_USER", "contextId": "", "taskId": "", "parts": parts })).unwrap();
        assert_eq!(message.text, "look\n{\"approved\":true}\nx: https://h/x");
        let file = ClientFile::new("file", "", b"hi".to_vec()).unwrap();
        assert_eq!((message.files, message.context, message.task), (vec![file], None, None));
        assert!(message.data.unwrap().contains_key("approved"));
        for (bad, code) in [
            (json!({ "role": "ROLE_USER", "parts": [{ "text": "a" }] }), -32602),
            (json!({ "messageId": "1", "role": "ROLE_AGENT", "parts": [{ "text": "a" }] }), -32602),
            (json!({ "messageId": "1", "role": "ROLE_USER", "parts": [] }), -32602),
            (json!({ "messageId": "1", "role": "ROLE_USER", "parts": [{ "raw": "%" }] }), -32602),
            (json!({ "messageId": "1", "role": "ROLE_USER", "parts": [{ "file": {} }] }), -32005),
        ] {
            assert_eq!(read(bad.clone()).map(drop).map_err(|fault| fault.code), Err(code), "{bad}");
        }
    }
}
