//! What a server answered, as text for the model.

use polis_domain::CallResult;
use rmcp::model::{CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult, ResourceContents, Role};

use crate::results::{MAX_RESULT_BYTES, good};

/// What a model reads of a result.
pub(super) fn rendered(result: &CallToolResult) -> CallResult {
    let mut parts: Vec<String> = result.content.iter().map(block).collect();
    if let Some(value) = &result.structured_content {
        let is_told = parts.iter().any(|part| serde_json::from_str(part).is_ok_and(|told: serde_json::Value| told == *value));
        if !is_told {
            parts.push(value.to_string());
        }
    }
    parts.retain(|part| !part.is_empty());
    let is_error = result.is_error == Some(true);
    let nothing = if is_error { "error: the tool failed and does not say why" } else { "(the tool returned nothing)" };
    let text = if parts.is_empty() { nothing.to_owned() } else { parts.join("\n") };
    CallResult { is_error, ..good(fitted(text)) }
}

/// What a resource holds.
pub(super) fn resource(result: &ReadResourceResult) -> String {
    fitted(result.contents.iter().map(contents).collect::<Vec<_>>().join("\n"))
}

/// The messages of a prompt, each with who says it.
pub(super) fn prompt(result: &GetPromptResult) -> String {
    let message = |message: &rmcp::model::PromptMessage| {
        let who = if message.role == Role::User { "user" } else { "assistant" };
        format!("{who}: {}", block(&message.content))
    };
    fitted(result.messages.iter().map(message).collect::<Vec<_>>().join("\n"))
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => attachment("image", Some(&image.mime_type), &image.data),
        ContentBlock::Audio(audio) => attachment("audio", Some(&audio.mime_type), &audio.data),
        ContentBlock::Resource(resource) => contents(&resource.resource),
        ContentBlock::ResourceLink(link) => {
            let described = link.description.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
            format!("[resource {} ({}){described}]", link.uri, link.name)
        }
        _ => "[content of a kind that is not known here]".to_owned(),
    }
}

fn contents(contents: &ResourceContents) -> String {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => format!("[resource {uri}]\n{text}"),
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            attachment(&format!("resource {uri}"), mime_type.as_deref(), blob)
        }
        _ => "[a resource of a kind that is not known here]".to_owned(),
    }
}

/// The seam for artifacts: whatever is no text comes through here and is only described for now.
fn attachment(what: &str, mime: Option<&str>, base64: &str) -> String {
    let bytes = base64.trim_end_matches('=').len() * 3 / 4;
    format!("[{what}, {}, {bytes} bytes, not shown]", mime.unwrap_or("unknown type"))
}

/// The seam for artifacts of long texts: the head of what is too long, and how much is left out.
pub(super) fn fitted(mut text: String) -> String {
    if text.len() > MAX_RESULT_BYTES {
        let (end, whole) = (text.floor_char_boundary(MAX_RESULT_BYTES), text.len());
        text.truncate(end);
        text.push_str(&format!("\n[cut here: {} of {whole} bytes are left out]", whole - end));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(result: Value, want: &str) {
        let text = rendered(&serde_json::from_value(result).unwrap());
        assert_eq!(&*text.content, want);
    }

    #[test]
    fn every_kind_of_content_is_text_for_the_model() {
        check(json!({ "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] }), "a\nb");
        check(
            json!({ "content": [{ "type": "image", "mimeType": "image/png", "data": "AAAA" }] }),
            "[image, image/png, 3 bytes, not shown]",
        );
        check(
            json!({ "content": [{ "type": "audio", "mimeType": "audio/wav", "data": "AAA=" }] }),
            "[audio, audio/wav, 2 bytes, not shown]",
        );
        let text = json!({ "uri": "a:b", "text": "inside" });
        check(json!({ "content": [{ "type": "resource", "resource": text }] }), "[resource a:b]\ninside");
        let blob = json!({ "uri": "a:b", "blob": "AAAA" });
        check(
            json!({ "content": [{ "type": "resource", "resource": blob }] }),
            "[resource a:b, unknown type, 3 bytes, not shown]",
        );
        check(json!({ "content": [{ "type": "resource_link", "uri": "a:b", "name": "n" }] }), "[resource a:b (n)]");
        check(json!({ "content": [] }), "(the tool returned nothing)");
        check(json!({ "content": [], "isError": true }), "error: the tool failed and does not say why");
    }

    #[test]
    fn structured_content_is_told_once() {
        check(json!({ "content": [], "structuredContent": { "a": 1 } }), r#"{"a":1}"#);
        check(
            json!({ "content": [{ "type": "text", "text": "{ \"a\": 1 }" }], "structuredContent": { "a": 1 } }),
            "{ \"a\": 1 }",
        );
        check(json!({ "content": [{ "type": "text", "text": "one" }], "structuredContent": [1] }), "one\n[1]");
    }

    #[test]
    fn a_failure_stays_one_and_a_long_text_is_cut() {
        let long = "ä".repeat(MAX_RESULT_BYTES);
        let result = json!({ "content": [{ "type": "text", "text": long }], "isError": true });
        let text = rendered(&serde_json::from_value(result).unwrap());
        assert!(text.is_error && text.content.len() < MAX_RESULT_BYTES + 100);
        assert!(
            text.content.ends_with("[cut here: 49152 of 98304 bytes are left out]"),
            "{}",
            &text.content[MAX_RESULT_BYTES..]
        );
    }
}
