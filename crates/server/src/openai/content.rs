//! The content of a client's message: text, and files inside it.

use serde_json::Value;

use super::error::ApiError;
use crate::client_files::{BadFile, ClientFile, ClientResult, NO_WORDS, check_count};

/// What the user says, and the files that go with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct UserMessage {
    pub(super) text: String,
    pub(super) files: Vec<ClientFile>,
}

impl From<String> for UserMessage {
    fn from(text: String) -> Self {
        Self { text, files: Vec::new() }
    }
}

impl UserMessage {
    /// What identifies it among the messages of a conversation.
    pub(super) fn identity(&self) -> String {
        self.files.iter().filter_map(ClientFile::id).fold(self.text.clone(), |text, id| format!("{text}\n[{id}]"))
    }
}

/// The content of a user's message, which may come in parts.
pub(super) fn content_of(content: &Value, param: &str) -> Result<UserMessage, ApiError> {
    let parts = match content {
        Value::Null => return Ok(UserMessage::default()),
        Value::String(text) => return Ok(text.clone().into()),
        Value::Array(parts) => parts,
        _ => return Err(ApiError::invalid("unsupported_content", param, "content must be a text or a list of parts")),
    };
    let (mut texts, mut files) = (Vec::new(), Vec::new());
    for (place, part) in parts.iter().enumerate() {
        let invalid = |(code, message): BadFile| ApiError::invalid(code, format!("{param}[{place}]"), message);
        match read_part(part).map_err(invalid)? {
            Part::Text(text) => texts.push(text),
            Part::File(file) => files.push(file),
            Part::At { line, picture } => {
                texts.push(line);
                files.extend(picture);
            }
        }
    }
    let text = if texts.is_empty() && !files.is_empty() { NO_WORDS.to_owned() } else { texts.join("\n") };
    Ok(UserMessage { text, files })
}

/// The result of a call that the client made.
pub(super) fn result_of(call: &str, content: &Value, param: &str) -> Result<ClientResult, ApiError> {
    let UserMessage { text, files } = content_of(content, param)?;
    check_count(&files).map_err(|(code, message)| ApiError::invalid(code, param, message))?;
    Ok(ClientResult { call: call.to_owned(), text, files })
}

/// The text of a content that can have no files.
pub(super) fn text_of(content: &Value, param: &str) -> Result<String, ApiError> {
    let UserMessage { text, files } = content_of(content, param)?;
    if files.iter().any(ClientFile::has_content) {
        let message = "only messages of the user and results of calls can have files; send text";
        return Err(ApiError::invalid("unsupported_content", param, message));
    }
    Ok(text)
}

enum Part {
    Text(String),
    File(ClientFile),
    /// A file elsewhere: the line that names it, and the picture if it is one.
    At {
        line: String,
        picture: Option<ClientFile>,
    },
}

fn read_part(part: &Value) -> Result<Part, BadFile> {
    let field = |part: &Value, name: &str| part.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let kind = field(part, "type");
    let unsupported = |message: String| ("unsupported_content", message);
    match &*kind {
        "text" | "input_text" | "output_text" | "refusal" => {
            let text = part.get("text").or_else(|| part.get("refusal")).and_then(Value::as_str);
            text.map(|text| Part::Text(text.to_owned()))
                .ok_or_else(|| unsupported(format!("a part of the kind `{kind}` has no text")))
        }
        // The address is an object in chat completions and a text in responses.
        "image_url" | "input_image" => {
            let url = part.get("image_url").map(|url| url.as_str().map_or_else(|| field(url, "url"), str::to_owned));
            let url = url.unwrap_or_default();
            read_url("", &url, "image", ClientFile::picture_at(&url))
        }
        "file" | "input_file" => {
            let file = part.get("file").unwrap_or(part);
            let (name, data) = (field(file, "filename"), field(file, "file_data"));
            match ClientFile::from_data_url(&name, &data) {
                Some(read) => read.map(Part::File),
                None if !data.is_empty() => ClientFile::from_base64(&name, "", &data).map(Part::File),
                None => read_url(&name, &field(file, "file_url"), "file", None),
            }
        }
        "input_audio" => {
            let audio = part.get("input_audio").unwrap_or(part);
            let media_type = match &*field(audio, "format") {
                "mp3" => "audio/mpeg".to_owned(),
                format => format!("audio/{format}"),
            };
            ClientFile::from_base64("", &media_type, &field(audio, "data")).map(Part::File)
        }
        other => {
            let kind = if other.is_empty() { "unknown" } else { other };
            Err(unsupported(format!("parts of the kind `{kind}` are not supported; send text, or upload it as an artifact")))
        }
    }
}

/// A `data:` URL is a file. The agent is told any other address: it may fetch what is there, and the vendor of its model a picture.
fn read_url(name: &str, url: &str, what: &str, picture: Option<ClientFile>) -> Result<Part, BadFile> {
    if let Some(read) = ClientFile::from_data_url(name, url) {
        return read.map(Part::File);
    }
    match url.starts_with("https://") || url.starts_with("http://") {
        true => Ok(Part::At { line: format!("[{what}: {url}]"), picture }),
        false => Err(("unsupported_content", format!("send the {what} as a data: URL or an http(s) address"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(content: Value) -> Result<UserMessage, (String, Value)> {
        content_of(&content, "c").map_err(|error| (error.code().to_owned(), error.to_json()["error"]["param"].clone()))
    }

    #[test]
    fn pictures_files_and_audio_are_read_in_the_forms_of_both_endpoints() {
        let file = |name: &str, media_type: &str| ClientFile::new(name, media_type, b"ABC".to_vec()).unwrap();
        let chat = json!([
            { "type": "text", "text": "look" },
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,QUJD", "detail": "low" } },
            { "type": "file", "file": { "filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD" } },
            { "type": "input_audio", "input_audio": { "data": "QUJD", "format": "mp3" } },
            { "type": "image_url", "image_url": { "url": "https://h/i.png" } },
            { "type": "image_url", "image_url": { "url": "http://h/plain.png" } },
            { "type": "file", "file": { "file_url": "https://h/a.pdf" } },
        ]);
        let there = ClientFile::picture_at("https://h/i.png").unwrap();
        let files = vec![file("", "image/png"), file("a.pdf", "application/pdf"), file("", "audio/mpeg"), there];
        let text = "look\n[image: https://h/i.png]\n[image: http://h/plain.png]\n[file: https://h/a.pdf]".to_owned();
        assert_eq!(read(chat), Ok(UserMessage { text, files }));
        let responses = json!([
            { "type": "input_image", "image_url": "data:image/png;base64,QUJD" },
            { "type": "input_file", "filename": "a.pdf", "file_data": "JVBERi0=" },
        ]);
        let pdf = ClientFile::new("a.pdf", "application/pdf", b"%PDF-".to_vec()).unwrap();
        let files = vec![file("", "image/png"), pdf];
        assert_eq!(read(responses), Ok(UserMessage { text: NO_WORDS.to_owned(), files }));
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_place() {
        for (part, code) in [
            (json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,!" } }), "bad_attachment"),
            (json!({ "type": "image_url", "image_url": { "url": "file:///etc/passwd" } }), "unsupported_content"),
            (json!({ "type": "input_image", "file_id": "f" }), "unsupported_content"),
            (json!({ "type": "file", "file": { "file_id": "f" } }), "unsupported_content"),
            (json!({ "type": "text" }), "unsupported_content"),
            (json!({ "type": "video" }), "unsupported_content"),
            (json!(7), "unsupported_content"),
        ] {
            assert_eq!(
                read(json!([{ "type": "text", "text": "see" }, part.clone()])),
                Err((code.to_owned(), json!("c[1]"))),
                "{part}"
            );
        }
    }
}
