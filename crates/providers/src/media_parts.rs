//! Media as the dialects write them.

use std::borrow::Cow;

use polis_ports::{ChatMessage, Media, MediaKind};

/// A content in the form that each dialect writes in its own way.
pub(crate) enum MediaPart<'a> {
    /// A picture.
    Image(&'a Media),
    /// A PDF, its name, its media type and its base64.
    Document { name: &'a str, media_type: &'a str, data: &'a str },
    /// Audio, its media type and its base64.
    Audio { media_type: &'a str, data: &'a str },
    /// What cannot be shown: the line that stands for it.
    Absent(String),
}

impl<'a> MediaPart<'a> {
    pub(crate) fn of(media: &'a Media) -> Self {
        match (media, media.kind()) {
            (Media::Url(_), _) | (Media::Inline { .. }, Some(MediaKind::Image)) => Self::Image(media),
            (Media::Inline { media_type, name, data }, Some(MediaKind::Document)) => {
                Self::Document { name: if name.is_empty() { "document.pdf" } else { name }, media_type, data }
            }
            (Media::Inline { media_type, data, .. }, Some(MediaKind::Audio)) => Self::Audio { media_type, data },
            (Media::Inline { .. } | Media::Stored(_), _) => Self::Absent(not_sent(media)),
        }
    }
}

/// The line for a content that the dialect has no form for.
pub(crate) fn not_sent(media: &Media) -> String {
    media.not_shown("it cannot be sent to this model")
}

/// A content as the address that OpenAI's dialects want.
pub(crate) fn data_url(media: &Media) -> Cow<'_, str> {
    match media {
        Media::Inline { media_type, data, .. } => format!("data:{media_type};base64,{data}").into(),
        Media::Url(url) => Cow::Borrowed(url),
        Media::Stored(artifact) => artifact.to_string().into(),
    }
}

/// The messages for dialects whose tool results are only text: the media of results follow in a message of the user, after
/// the last of the results.
pub(crate) fn with_media_after_results(messages: &[ChatMessage]) -> Cow<'_, [ChatMessage]> {
    let has_media = |message: &ChatMessage| matches!(message, ChatMessage::Tool { media, .. } if !media.is_empty());
    if !messages.iter().any(has_media) {
        return Cow::Borrowed(messages);
    }
    let mut written = Vec::with_capacity(messages.len() + 1);
    let (mut lines, mut waiting) = (Vec::new(), Vec::new());
    for message in messages {
        if let ChatMessage::Tool { call_id, name, content, is_error, media } = message {
            if !media.is_empty() {
                lines.push(media_line(name, call_id, media.len()));
                waiting.extend(media.iter().cloned());
            }
            let (call_id, name, content) = (call_id.clone(), name.clone(), content.clone());
            written.push(ChatMessage::Tool { call_id, name, content, is_error: *is_error, media: Vec::new() });
            continue;
        }
        if !waiting.is_empty() {
            written.push(media_message(&mut lines, &mut waiting));
        }
        written.push(message.clone());
    }
    if !waiting.is_empty() {
        written.push(media_message(&mut lines, &mut waiting));
    }
    Cow::Owned(written)
}

fn media_message(lines: &mut Vec<String>, waiting: &mut Vec<Media>) -> ChatMessage {
    let text = std::mem::take(lines).join("\n").into();
    ChatMessage::User { text, media: std::mem::take(waiting) }
}

/// Says which result the media after it belong to.
pub(crate) fn media_line(tool: &str, call_id: &str, count: usize) -> String {
    let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    format!("[{files} of the result of {tool} ({call_id})]")
}

#[cfg(test)]
mod tests {
    use polis_domain::ToolCall;
    use polis_ports::ModelRequest;
    use serde_json::{Value, json};

    use super::*;
    use crate::{anthropic, gemini, ollama, openai_chat, openai_responses};

    #[test]
    fn media_of_results_follow_the_last_result() {
        let picture = |data: &str| Media::Inline { media_type: "image/png".into(), name: "".into(), data: data.into() };
        let result = |id: &str, media| ChatMessage::Tool {
            call_id: id.into(),
            name: "look".into(),
            content: "seen".into(),
            is_error: false,
            media,
        };
        let plain = [ChatMessage::user("hi"), result("a", vec![])];
        assert!(matches!(with_media_after_results(&plain), Cow::Borrowed(_)));
        let messages = [
            result("a", vec![picture("AAAA")]),
            result("b", vec![picture("BBBB"), picture("CCCC")]),
            ChatMessage::assistant("hm"),
            result("c", vec![picture("DDDD")]),
        ];
        let follow = |text: &str, media| ChatMessage::User { text: text.into(), media };
        let first = "[1 file of the result of look (a)]\n[2 files of the result of look (b)]";
        let want = [
            result("a", vec![]),
            result("b", vec![]),
            follow(first, vec![picture("AAAA"), picture("BBBB"), picture("CCCC")]),
            ChatMessage::assistant("hm"),
            result("c", vec![]),
            follow("[1 file of the result of look (c)]", vec![picture("DDDD")]),
        ];
        assert_eq!(*with_media_after_results(&messages), want);
    }

    fn inline(media_type: &str, name: &str, data: &str) -> Media {
        Media::Inline { media_type: media_type.into(), name: name.into(), data: data.into() }
    }

    /// A picture, a PDF and audio from the person, and a picture and a PDF in the result of a call.
    fn showing() -> ModelRequest {
        let call = ToolCall { id: "c1".into(), name: "shoot".into(), arguments: "{}".into() };
        let seen = vec![inline("image/png", "s.png", "UE5H"), inline("application/pdf", "", "UERG")];
        ModelRequest {
            messages: vec![
                ChatMessage::User {
                    text: "look".into(),
                    media: vec![
                        inline("image/jpeg", "a.jpg", "SlBH"),
                        inline("application/pdf", "b.pdf", "UERG"),
                        inline("audio/wav", "c.wav", "V0FW"),
                        inline("audio/ogg", "d.ogg", "T0dH"),
                    ],
                },
                ChatMessage::Assistant { text: "".into(), reasoning: "".into(), tool_calls: vec![call], echo: None },
                ChatMessage::Tool {
                    call_id: "c1".into(),
                    name: "shoot".into(),
                    content: "done".into(),
                    is_error: false,
                    media: seen,
                },
            ],
            ..ModelRequest::default()
        }
    }

    const NO_WAV: &str = "[not shown: c.wav (audio/wav, 3 bytes), because it cannot be sent to this model]";
    const NO_OGG: &str = "[not shown: d.ogg (audio/ogg, 3 bytes), because it cannot be sent to this model]";

    fn messages(body: Vec<u8>, field: &str) -> Value {
        serde_json::from_slice::<Value>(&body).unwrap()[field].take()
    }

    #[test]
    fn openai_chat_takes_every_kind_and_shows_results_after_them() {
        let got = messages(openai_chat::body(&showing(), "m", openai_chat::Quirks::default()), "messages");
        let no_ogg = "[not shown: d.ogg (audio/ogg, 3 bytes), because this model takes wav and mp3 alone]";
        let want = json!([
            { "type": "text", "text": "look" },
            { "type": "image_url", "image_url": { "url": "data:image/jpeg;base64,SlBH" } },
            { "type": "file", "file": { "filename": "b.pdf", "file_data": "data:application/pdf;base64,UERG" } },
            { "type": "input_audio", "input_audio": { "data": "V0FW", "format": "wav" } },
            { "type": "text", "text": no_ogg },
        ]);
        assert_eq!(got[0], json!({ "role": "user", "content": want }));
        assert_eq!(got[2], json!({ "role": "tool", "tool_call_id": "c1", "content": "done" }));
        let want = json!([
            { "type": "text", "text": "[2 files of the result of shoot (c1)]" },
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,UE5H" } },
            { "type": "file", "file": { "filename": "document.pdf", "file_data": "data:application/pdf;base64,UERG" } },
        ]);
        assert_eq!(got[3], json!({ "role": "user", "content": want }));
    }

    #[test]
    fn openai_responses_takes_pictures_and_pdfs_in_results_too() {
        let got = messages(openai_responses::body(&showing(), "gpt-5", &[]), "input");
        let want = json!([
            { "type": "input_text", "text": "look" },
            { "type": "input_image", "image_url": "data:image/jpeg;base64,SlBH" },
            { "type": "input_file", "filename": "b.pdf", "file_data": "data:application/pdf;base64,UERG" },
            { "type": "input_text", "text": NO_WAV },
            { "type": "input_text", "text": NO_OGG },
        ]);
        assert_eq!(got[0], json!({ "role": "user", "content": want }));
        let want = json!([
            { "type": "input_text", "text": "done" },
            { "type": "input_image", "image_url": "data:image/png;base64,UE5H" },
            { "type": "input_file", "filename": "document.pdf", "file_data": "data:application/pdf;base64,UERG" },
        ]);
        assert_eq!(got[2], json!({ "type": "function_call_output", "call_id": "c1", "output": want }));
    }

    #[test]
    fn anthropic_takes_pictures_and_pdfs_in_results_too() {
        let got = messages(anthropic::body(&showing(), "claude-sonnet-5"), "messages");
        let source = |media_type: &str, data: &str| json!({ "type": "base64", "media_type": media_type, "data": data });
        let want = json!([
            { "type": "image", "source": source("image/jpeg", "SlBH") },
            { "type": "document", "source": source("application/pdf", "UERG"), "title": "b.pdf" },
            { "type": "text", "text": NO_WAV },
            { "type": "text", "text": NO_OGG },
            { "type": "text", "text": "look" },
        ]);
        assert_eq!(got[0], json!({ "role": "user", "content": want }));
        let want = json!([
            { "type": "text", "text": "done" },
            { "type": "image", "source": source("image/png", "UE5H") },
            { "type": "document", "source": source("application/pdf", "UERG"), "title": "document.pdf" },
        ]);
        assert_eq!(got[2]["content"][0]["content"], want);
    }

    #[test]
    fn gemini_takes_every_kind_and_its_third_generation_inside_results() {
        let data = |media_type: &str, data: &str| json!({ "inlineData": { "mimeType": media_type, "data": data } });
        let (png, pdf) = (data("image/png", "UE5H"), data("application/pdf", "UERG"));
        let response = json!({ "name": "shoot", "response": { "result": "done" } });
        let got = messages(gemini::body(&showing(), "gemini-3-flash", &[]), "contents");
        let want =
            json!([data("image/jpeg", "SlBH"), pdf, data("audio/wav", "V0FW"), data("audio/ogg", "T0dH"), { "text": "look" }]);
        assert_eq!(got[0], json!({ "role": "user", "parts": want }));
        let mut nested = response.clone();
        nested["parts"] = json!([png, pdf]);
        assert_eq!(got[2]["parts"], json!([{ "functionResponse": nested }]));
        let got = messages(gemini::body(&showing(), "gemini-2.5-flash", &[]), "contents");
        let line = json!({ "text": "[2 files of the result of shoot (c1)]" });
        assert_eq!(got[2]["parts"], json!([{ "functionResponse": response }, line, png, pdf]));
    }

    #[test]
    fn ollama_takes_pictures_alone_and_shows_results_after_them() {
        let got = messages(ollama::body(&showing(), "m"), "messages");
        let text = got[0]["content"].as_str().unwrap();
        assert!(text.starts_with("look\n[not shown: b.pdf (application/pdf, ") && text.ends_with(NO_OGG), "{text}");
        assert_eq!(got[0]["images"], json!(["SlBH"]));
        assert_eq!((&got[2]["role"], got[2].get("images")), (&json!("tool"), None));
        assert_eq!((&got[3]["role"], &got[3]["images"]), (&json!("user"), &json!(["UE5H"])));
    }
}
