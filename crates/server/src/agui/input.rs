//! What a client of AG-UI asks for. Fields that we do not know are passed over, as the protocol wants it.

use polis_domain::{Digest, ModelSettings, PersonId, Task, TaskId};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::RunContext;
use super::interrupts::Resume;
use crate::addressee::{ClientMessage, EarlierMessage};
use crate::client_files::{BadFile, ClientFile, ClientResult, NO_WORDS, check_count};

/// The meta key with the client's part of the state.
pub(super) const STATE: &str = "aguiState";

/// The meta key with the client's id of a message.
pub(super) const MESSAGE: &str = "aguiMessage";

/// The parts of the state that are ours; the rest is the client's.
const OWN_STATE: [&str; 3] = ["taskId", "todos", "phase"];

/// `RunAgentInput`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunAgentInput {
    pub(crate) thread_id: String,
    pub(crate) run_id: String,
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default)]
    tools: Vec<ClientTool>,
    #[serde(default)]
    context: Vec<ContextEntry>,
    #[serde(default)]
    forwarded_props: Value,
    #[serde(default)]
    state: Value,
    /// Clients from before version 1.0 give none.
    #[serde(default)]
    protocol_version: Option<String>,
    #[serde(default)]
    pub(crate) resume: Vec<Resume>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    #[serde(default)]
    id: String,
    role: String,
    #[serde(default)]
    content: Value,
    tool_call_id: Option<String>,
    error: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ClientTool {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Value,
}

#[derive(Debug, Deserialize)]
struct ContextEntry {
    description: String,
    value: String,
}

/// What a thread already has.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The client's part of the state, as it was last told.
    pub(crate) state: Option<Map<String, Value>>,
    /// The words of the person that nobody has answered yet, oldest first.
    pub(crate) unanswered: Vec<String>,
}

/// What is new on a thread.
#[derive(Debug)]
pub(crate) enum NewContent {
    /// A message of the person with its files, and what the thread does not know yet.
    Text(ClientMessage),
    /// Results of the client's own tool calls.
    ToolResults(Vec<ClientResult>),
}

impl RunAgentInput {
    /// The request that a new thread becomes. The owner's has the name of the thread, where that can be a request's; others have
    /// one that is made of it, because two persons may give their threads the same name.
    pub(crate) fn task(&self, person: &PersonId) -> TaskId {
        let plain = self.plain_task().filter(|_| person.as_str() == PersonId::OWNER);
        plain.unwrap_or_else(|| self.made_task(person))
    }

    /// The request with the name of the thread, if a request can have that name.
    pub(crate) fn plain_task(&self) -> Option<TaskId> {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        let fits = !self.thread_id.is_empty() && self.thread_id.len() <= 128 && self.thread_id.chars().all(plain);
        fits.then(|| self.thread_id.as_str().into())
    }

    /// A request whose name is made of the thread's and the person's.
    pub(crate) fn made_task(&self, person: &PersonId) -> TaskId {
        let other = Some(person.as_str()).filter(|person| *person != PersonId::OWNER);
        let digest = Digest::of([self.thread_id.as_str()].into_iter().chain(other));
        let digest = serde_json::to_value(digest).unwrap_or_default();
        format!("agui-{}", digest.as_str().unwrap_or_default()).into()
    }

    /// Whether the client is from before version 1.0.
    pub(crate) fn is_before_version_1(&self) -> bool {
        self.protocol_version.is_none()
    }

    /// What the client brings along. `known` is its state as the thread has it, for a client that brings none.
    pub(crate) fn context(&self, known: Option<&Map<String, Value>>) -> RunContext {
        let own = self.own_state();
        let state = if own.is_empty() { known.cloned().unwrap_or_default() } else { own };
        RunContext { thread: self.thread_id.as_str().into(), run: self.run_id.as_str().into(), state }
    }

    /// The client's part of the state: what is not ours.
    fn own_state(&self) -> Map<String, Value> {
        let state = self.state.as_object().cloned().unwrap_or_default();
        state.into_iter().filter(|(name, _)| !OWN_STATE.contains(&&**name)).collect()
    }

    /// How models are called for the run.
    fn settings(&self) -> Result<ModelSettings, (&'static str, String)> {
        let Some(written) = self.forwarded_props.get("settings") else { return Ok(ModelSettings::default()) };
        let settings = ModelSettings::deserialize(written).map_err(|error| ("bad_setting", error.to_string()))?;
        settings.check().map_err(|wrong| ("bad_setting", wrong.to_string()))?;
        Ok(settings)
    }

    /// What goes with the message for the agent's code.
    pub(crate) fn meta(&self) -> Map<String, Value> {
        let mut meta = Map::new();
        if !self.tools.is_empty() {
            let tool = |tool: &ClientTool| {
                let parameters =
                    if tool.parameters.is_object() { tool.parameters.clone() } else { json!({ "type": "object" }) };
                json!({ "name": tool.name, "description": tool.description, "parameters": parameters })
            };
            meta.insert(Task::CLIENT_TOOLS.to_owned(), self.tools.iter().map(tool).collect());
        }
        if let Some(strategy) = self.forwarded_props.get("strategy").filter(|strategy| strategy.is_string()) {
            meta.insert("strategy".to_owned(), strategy.clone());
        }
        if let Some(settings) = self.settings().ok().filter(|settings| !settings.is_default()) {
            meta.insert(Task::MODEL_SETTINGS.to_owned(), json!(settings));
        }
        let state = self.own_state();
        if !state.is_empty() {
            meta.insert(STATE.to_owned(), Value::Object(state));
        }
        if let Some(said) = self.messages.iter().rfind(|message| message.role == "user" && !message.id.is_empty()) {
            meta.insert(MESSAGE.to_owned(), said.id.as_str().into());
        }
        meta
    }

    /// What the client sends that the thread does not have yet; otherwise an error code and what to do.
    pub(crate) fn new_content(&self, known: Option<&Known>) -> Result<NewContent, (&'static str, String)> {
        let is_known = known.is_some();
        if !self.state.is_null() && !self.state.is_object() {
            return Err(("unsupported_content", "the state must be an object".to_owned()));
        }
        self.settings()?;
        let answered = self.messages.iter().rposition(|message| message.role == "assistant");
        let new = &self.messages[answered.map_or(0, |place| place + 1)..];
        let results: Vec<_> = new.iter().filter(|message| message.role == "tool").collect();
        let words: Vec<_> = new.iter().filter(|message| message.role == "user").collect();
        if words.is_empty() && !results.is_empty() {
            let result = |message: &&Message| {
                let (text, files) = content_of(&message.content)?;
                check_count(&files)?;
                let text = message.error.as_ref().map_or(text, |error| format!("it failed: {error}"));
                Ok(ClientResult { call: message.tool_call_id.clone().unwrap_or_default(), text, files })
            };
            return Ok(NewContent::ToolResults(results.iter().map(result).collect::<Result<_, _>>()?));
        }
        let said = words.iter().map(|message| content_of(&message.content)).collect::<Result<Vec<_>, _>>()?;
        let words: Vec<String> = said.iter().map(|(text, _)| text.clone()).collect();
        let first = first_new(&words, known.map_or(&[], |known| &known.unanswered));
        let words = words[first..].join("\n\n");
        let files: Vec<ClientFile> = said[first..].iter().flat_map(|(_, files)| files).cloned().collect();
        if words.trim().is_empty() {
            return Err(("no_message", "the thread has no new message of the user; send one, or connect to it".to_owned()));
        }
        let mut instructions = Vec::new();
        for message in self.messages.iter().filter(|message| !is_known && matches!(&*message.role, "system" | "developer")) {
            instructions.push(text_of(&message.content)?);
        }
        instructions.extend(self.context.iter().map(|context| format!("{}: {}", context.description, context.value)));
        let state = self.own_state();
        if !state.is_empty() && known.is_none_or(|known| known.state.as_ref() != Some(&state)) {
            instructions.push(format!("The state of the application: {}", Value::Object(state)));
        }
        let mut before = Vec::new();
        if let (false, Some(place)) = (is_known, answered) {
            for message in &self.messages[..=place] {
                let by_assistant = message.role == "assistant";
                let (text, files) = content_of(&message.content)?;
                if (by_assistant || message.role == "user") && !text.trim().is_empty() {
                    before.push(EarlierMessage { by_assistant, text, files });
                }
            }
        }
        check_count(&files)?;
        Ok(NewContent::Text(ClientMessage { words, instructions, earlier: before, files, meta: self.meta() }))
    }
}

/// The first of the person's messages that is new. A client that sends its whole list again has some in it that are already worked
/// on; if all of them are, it says the same again.
pub(crate) fn first_new(words: &[String], unanswered: &[String]) -> usize {
    let sent = words.iter().zip(unanswered).take_while(|(word, sent)| word == sent).count();
    if sent < words.len() { sent } else { 0 }
}

/// The text of a content that can have no files.
fn text_of(content: &Value) -> Result<String, BadFile> {
    match content_of(content)? {
        (text, files) if !files.iter().any(ClientFile::has_content) => Ok(text),
        _ => Err(("unsupported_content", "only messages of the user can have files; send text".to_owned())),
    }
}

/// The text and the files of a content, which may come in parts.
fn content_of(content: &Value) -> Result<(String, Vec<ClientFile>), BadFile> {
    let parts = match content {
        Value::Null => return Ok((String::new(), Vec::new())),
        Value::String(text) => return Ok((text.clone(), Vec::new())),
        Value::Array(parts) => parts,
        _ => return Err(("unsupported_content", "a message's content is a text or a list of parts".to_owned())),
    };
    let (mut texts, mut files) = (Vec::new(), Vec::new());
    for part in parts {
        let field = |part: &Value, name: &str| part.get(name).and_then(Value::as_str).map(str::to_owned);
        let kind = field(part, "type").unwrap_or_else(|| "unknown".to_owned());
        match &*kind {
            "text" => texts.extend(field(part, "text")),
            // Clients from before version 1.0 have one kind for all files, with the data in the part itself.
            "binary" | "image" | "audio" | "video" | "document" => {
                let source = part.get("source").unwrap_or(part);
                let name = field(part, "filename").or_else(|| field(part.get("metadata")?, "filename")).unwrap_or_default();
                let media_type = field(source, "mimeType").unwrap_or_default();
                let is_url = field(source, "type").is_some_and(|kind| kind == "url");
                let url = if is_url { field(source, "value") } else { field(source, "url") };
                let data = if is_url { None } else { field(source, "value").or_else(|| field(source, "data")) };
                match (data, url) {
                    (Some(data), _) => files.push(ClientFile::from_base64(&name, &media_type, &data)?),
                    (None, Some(url)) => match ClientFile::from_data_url(&name, &url) {
                        Some(file) => files.push(file?),
                        // The agent is told where it is, and may fetch it; the vendor of its model may fetch a picture.
                        None => {
                            let is_picture = kind == "image" || media_type.starts_with("image/");
                            files.extend(ClientFile::picture_at(&url).filter(|_| is_picture));
                            texts.push(format!("[{kind}: {url}]"));
                        }
                    },
                    (None, None) => {
                        return Err(("unsupported_content", format!("a part of the kind `{kind}` needs data or a url")));
                    }
                }
            }
            _ => {
                let message = format!("parts of the kind `{kind}` are not supported; send text, or upload it as an artifact");
                return Err(("unsupported_content", message));
            }
        }
    }
    let text = if texts.is_empty() && !files.is_empty() { NO_WORDS.to_owned() } else { texts.join("\n") };
    Ok((text, files))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(more: Value) -> RunAgentInput {
        let mut whole = json!({ "threadId": "t1", "runId": "r1" });
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn only_what_the_thread_does_not_know_is_said() {
        let messages = json!([
            { "id": "1", "role": "system", "content": "be brief" },
            { "id": "2", "role": "user", "content": "one" },
            { "id": "3", "role": "assistant", "content": "1" },
            { "id": "4", "role": "user", "content": [{ "type": "text", "text": "two" }] },
        ]);
        let input = input(json!({ "messages": messages, "unknown": 7 }));
        let new = |is_known: bool| match input.new_content(is_known.then(Known::default).as_ref()) {
            Ok(NewContent::Text(message)) => message,
            other => panic!("{other:?}"),
        };
        let known = new(true);
        assert_eq!((known.words.as_str(), known.instructions.len(), known.earlier.len()), ("two", 0, 0));
        let ClientMessage { words, instructions, earlier, .. } = new(false);
        let earlier: Vec<_> = earlier.iter().map(|message| (message.by_assistant, message.text.as_str())).collect();
        assert_eq!((words.as_str(), instructions), ("two", vec!["be brief".to_owned()]));
        assert_eq!(earlier, [(false, "one"), (true, "1")]);
    }

    #[test]
    fn what_came_of_a_call_answers_it_and_what_is_no_file_is_refused() {
        let with = |role: &str, content: Value| {
            input(json!({ "messages": [{ "id": "1", "role": role, "content": content, "toolCallId": "c" }] }))
                .new_content(Some(&Known::default()))
        };
        let Ok(NewContent::ToolResults(results)) = with("tool", json!("21")) else { panic!("no results") };
        assert_eq!(results, [ClientResult { call: "c".to_owned(), text: "21".to_owned(), files: Vec::new() }]);
        assert_eq!(with("user", json!([{ "type": "image" }])).unwrap_err().0, "unsupported_content");
        assert_eq!(with("user", json!(" ")).unwrap_err().0, "no_message");
        assert_eq!(with("user", json!([{ "type": "hologram" }])).unwrap_err().0, "unsupported_content");
        let bad = json!([{ "type": "binary", "mimeType": "image/png", "data": "!" }]);
        assert_eq!(with("user", bad).unwrap_err().0, "bad_attachment");
        let picture = json!([{ "type": "binary", "mimeType": "image/png", "data": "QUJD" }]);
        let Ok(NewContent::ToolResults(results)) = with("tool", picture) else { panic!("no results") };
        assert_eq!(results[0].files.len(), 1);
    }

    #[test]
    fn files_are_read_in_the_forms_of_both_versions() {
        let file = |name: &str, media_type: &str| ClientFile::new(name, media_type, b"ABC".to_vec()).unwrap();
        let content = json!([
            { "type": "binary", "mimeType": "image/png", "data": "QUJD", "filename": "a.png" },
            { "type": "image", "source": { "type": "data", "value": "QUJD", "mimeType": "image/jpeg" } },
            { "type": "document", "source": { "type": "data", "value": "QUJD", "mimeType": "application/pdf" }, "metadata": { "filename": "b.pdf" } },
            { "type": "binary", "mimeType": "audio/wav", "url": "data:audio/wav;base64,QUJD" },
            { "type": "image", "source": { "type": "url", "value": "https://h/i.png" } },
        ]);
        let want = vec![
            file("a.png", "image/png"),
            file("", "image/jpeg"),
            file("b.pdf", "application/pdf"),
            file("", "audio/wav"),
            ClientFile::picture_at("https://h/i.png").unwrap(),
        ];
        assert_eq!(content_of(&content), Ok(("[image: https://h/i.png]".to_owned(), want)));
        let alone = json!([{ "type": "binary", "mimeType": "image/png", "data": "QUJD" }]);
        assert_eq!(content_of(&alone).unwrap().0, NO_WORDS);
    }

    #[test]
    fn the_clients_part_of_the_state_is_told_when_it_has_changed() {
        let told = |state: Value, known: Option<Value>| {
            let messages = json!([{ "id": "u1", "role": "user", "content": "hi" }]);
            let known = Known { state: known.map(|known| known.as_object().unwrap().clone()), unanswered: Vec::new() };
            match input(json!({ "messages": messages, "state": state })).new_content(Some(&known)) {
                Ok(NewContent::Text(message)) => message.instructions,
                other => panic!("{other:?}"),
            }
        };
        let changed = json!({ "page": 2, "todos": [], "taskId": "t" });
        assert_eq!(told(changed.clone(), None), ["The state of the application: {\"page\":2}"]);
        assert_eq!(told(changed.clone(), Some(json!({ "page": 1 }))).len(), 1);
        assert!(told(changed, Some(json!({ "page": 2 }))).is_empty());
        assert!(told(json!({ "phase": "x" }), None).is_empty(), "what is ours is not the client's");
        let odd = input(json!({ "messages": [{ "role": "user", "content": "hi" }], "state": [1] }));
        assert_eq!(odd.new_content(None).unwrap_err().0, "unsupported_content");
    }

    #[test]
    fn a_run_has_settings_of_its_own() {
        let with = |settings: Value| {
            let messages = json!([{ "id": "1", "role": "user", "content": "hi" }]);
            input(json!({ "messages": messages, "forwardedProps": { "settings": settings } })).new_content(None)
        };
        let Ok(NewContent::Text(message)) = with(json!({ "effort": "high", "temperature": 0.2 })) else { panic!("no text") };
        assert_eq!(message.meta[Task::MODEL_SETTINGS], json!({ "effort": "high", "temperature": 0.2 }));
        for wrong in [json!({ "effort": "much" }), json!({ "temperature": 3 }), json!({ "heat": 1 })] {
            assert_eq!(with(wrong).unwrap_err().0, "bad_setting");
        }
    }

    #[test]
    fn a_thread_is_a_request_of_its_name_or_of_one_made_of_it() {
        assert_eq!(input(json!({})).task(&PersonId::owner()).as_str(), "t1");
        let odd = input(json!({ "threadId": "a/b c" })).task(&PersonId::owner());
        assert!(odd.as_str().starts_with("agui-"), "{odd}");
        assert_eq!(odd, input(json!({ "threadId": "a/b c" })).task(&PersonId::owner()));
    }
}
