//! Requests that servers send while a call runs, sampling and elicitation: converts them to our types and the answers back.

#![allow(deprecated, reason = "servers of today still ask for samples")]

use std::sync::Arc;

use polis_domain::{Finish, Question, Reply, Verdict, Wanted};
use polis_ports::{ChatMessage, Media, ModelRequest, ModelSettings};
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ElicitationAction, Role,
    SamplingMessage, SamplingMessageContentBlock,
};

/// Longest text of a question, in characters.
const MAX_QUESTION_CHARS: usize = 4_000;

/// Largest form, in bytes.
const MAX_FORM_BYTES: usize = 64 << 10;

/// Longest address, in characters.
const MAX_URL_CHARS: usize = 2_000;

/// What the person is asked; or why they are not.
pub(super) fn question_for_person(server: &str, params: ElicitRequestParams) -> Result<Question, String> {
    let (message, wanted) = match params {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            let schema = serde_json::to_value(requested_schema).map_err(|error| error.to_string())?;
            if schema.to_string().len() > MAX_FORM_BYTES {
                return Err(format!("the form is larger than {MAX_FORM_BYTES} bytes"));
            }
            (message, Wanted::Form { schema })
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            let is_plain = !url.contains(|c: char| c.is_control() || c.is_whitespace());
            if !is_plain || url.chars().count() > MAX_URL_CHARS || !(url.starts_with("https://") || url.starts_with("http://"))
            {
                return Err("the address is none that a person could visit".to_owned());
            }
            (message, Wanted::Visit { url })
        }
        _ => return Err("a question of this kind is not known here".to_owned()),
    };
    let message: String = message.chars().filter(|c| *c == '\n' || !c.is_control()).take(MAX_QUESTION_CHARS).collect();
    Ok(Question { text: format!("The server `{server}` asks: {message}"), wanted, patience_ms: None })
}

/// The person's answer, as the server receives it.
pub(super) fn elicit_result(verdict: Option<Verdict>) -> ElicitResult {
    match verdict {
        None => ElicitResult::new(ElicitationAction::Cancel),
        Some(Verdict { approved: false, .. }) => ElicitResult::new(ElicitationAction::Decline),
        Some(Verdict { answer: Some(content), .. }) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
        Some(_) => ElicitResult::new(ElicitationAction::Accept),
    }
}

/// What a model is asked. Which model it is, is ours to choose; tools and context of others are not passed on.
pub(super) fn model_request(params: &CreateMessageRequestParams) -> Result<ModelRequest, String> {
    let messages = params.messages.iter().map(message).collect::<Result<Vec<_>, _>>()?;
    if messages.is_empty() {
        return Err("there is no message".to_owned());
    }
    Ok(ModelRequest {
        system: params.system_prompt.as_deref().unwrap_or_default().into(),
        messages,
        settings: ModelSettings {
            temperature: params.temperature.map(f64::from),
            max_tokens: Some(params.max_tokens),
            ..ModelSettings::default()
        },
        ..ModelRequest::default()
    })
}

fn message(message: &SamplingMessage) -> Result<ChatMessage, String> {
    let (mut texts, mut media) = (Vec::new(), Vec::new());
    for block in message.content.clone().into_vec() {
        match block {
            SamplingMessageContentBlock::Text(text) => texts.push(text.text),
            SamplingMessageContentBlock::Image(image) => {
                media.push(inline(image.mime_type, image.data));
            }
            SamplingMessageContentBlock::Audio(audio) => media.push(inline(audio.mime_type, audio.data)),
            _ => return Err("only texts, pictures and audio can be shown to a model here".to_owned()),
        }
    }
    let text: Arc<str> = texts.join("\n").into();
    match message.role {
        Role::User => Ok(ChatMessage::User { text, media }),
        Role::Assistant => Ok(ChatMessage::assistant(text)),
    }
}

fn inline(media_type: String, data: String) -> Media {
    Media::Inline { media_type: media_type.into(), name: "".into(), data: data.into() }
}

/// The model's reply as the server receives it, cut at its stop sequences.
pub(super) fn sample_result(params: &CreateMessageRequestParams, reply: Reply) -> CreateMessageResult {
    let stops = params.stop_sequences.iter().flatten().filter(|stop| !stop.is_empty());
    let stop = stops.filter_map(|stop| reply.text.find(stop.as_str())).min();
    let reason = match (stop, &reply.finish) {
        (Some(_), _) => CreateMessageResult::STOP_REASON_END_SEQUENCE,
        (None, Finish::Length) => CreateMessageResult::STOP_REASON_END_MAX_TOKEN,
        (None, _) => CreateMessageResult::STOP_REASON_END_TURN,
    };
    let mut text = reply.text;
    text.truncate(stop.unwrap_or(text.len()));
    let model = if reply.model.is_empty() { "unknown".to_owned() } else { reply.model.to_string() };
    CreateMessageResult::new(SamplingMessage::assistant_text(text), model).with_stop_reason(reason)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A request of a server as it stands on the wire.
    fn read<T: serde::de::DeserializeOwned>(params: Value) -> T {
        serde_json::from_value(params).unwrap()
    }

    #[test]
    fn a_question_names_its_server_and_what_it_wants() {
        let form = json!({ "message": "your\u{1b}[2J name?", "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } } });
        let asked = question_for_person("git", read(form)).unwrap();
        assert_eq!(asked.text, "The server `git` asks: your[2J name?");
        assert!(matches!(asked.wanted, Wanted::Form { schema } if schema["properties"]["name"]["type"] == "string"));
        let visit = |url: &str| read(json!({ "mode": "url", "message": "sign in", "url": url, "elicitationId": "1" }));
        let asked = question_for_person("git", visit("https://a.example/x?y=1")).unwrap();
        assert_eq!(asked.wanted, Wanted::Visit { url: "https://a.example/x?y=1".to_owned() });
        for url in ["javascript:alert(1)", "file:///etc/passwd", "https://a.example/\u{7}", "https://a b"] {
            assert!(question_for_person("git", visit(url)).is_err(), "{url}");
        }
    }

    #[test]
    fn a_server_is_told_accept_decline_or_cancel() {
        let result = |verdict| serde_json::to_value(elicit_result(verdict)).unwrap();
        let filled = Verdict { answer: Some(json!({ "name": "Ada" })), ..Verdict::yes() };
        assert_eq!(result(Some(filled)), json!({ "action": "accept", "content": { "name": "Ada" } }));
        assert_eq!(result(Some(Verdict::yes())), json!({ "action": "accept" }));
        assert_eq!(result(Some(Verdict::no("why"))), json!({ "action": "decline" }));
        assert_eq!(result(None), json!({ "action": "cancel" }));
    }

    #[test]
    fn a_sample_is_asked_for_as_the_server_says_and_stops_where_it_says() {
        let text = |role: &str, text: &str| json!({ "role": role, "content": { "type": "text", "text": text } });
        let mut wire = json!({
            "messages": [text("user", "hi"), text("assistant", "hello")], "systemPrompt": "be brief", "maxTokens": 9,
            "stopSequences": ["END", "", "!"],
        });
        let params: CreateMessageRequestParams = read(wire.clone());
        let asked = model_request(&params).unwrap();
        assert_eq!((&*asked.system, asked.settings.max_tokens), ("be brief", Some(9)));
        assert_eq!(asked.messages, [ChatMessage::user("hi"), ChatMessage::assistant("hello")]);
        let reply = Reply { text: "so it goes! END".to_owned(), model: "v/m".into(), ..Reply::default() };
        let result = serde_json::to_value(sample_result(&params, reply)).unwrap();
        assert_eq!(
            (&result["content"]["text"], &result["stopReason"], &result["model"]),
            (&json!("so it goes"), &json!("stopSequence"), &json!("v/m"))
        );
        wire["messages"] = json!([]);
        assert!(model_request(&read(wire.clone())).is_err());
        wire["messages"] = json!([{ "role": "user", "content": { "type": "audio", "data": "QUJD", "mimeType": "audio/wav" } }]);
        let media = vec![inline("audio/wav".to_owned(), "QUJD".to_owned())];
        assert_eq!(model_request(&read(wire.clone())).unwrap().messages, [ChatMessage::User { text: "".into(), media }]);
        let call = json!({ "type": "tool_use", "id": "c", "name": "f", "input": {} });
        wire["messages"] = json!([{ "role": "assistant", "content": call }]);
        assert!(model_request(&read(wire)).is_err());
    }
}
