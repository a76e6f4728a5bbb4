//! What a server answered, as text for the model.

use base64::Engine;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::GeneralPurposeConfig;
use polis_domain::{Artifact, CallResult};
use polis_ports::{ArtifactError, Artifacts, MediaKind};
use rmcp::model::{CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult, ResourceContents, Role};

use crate::results::good;
use crate::spill::fitted;

/// What a model reads of a result. What is no text, or too long, is kept as an artifact.
pub(super) async fn rendered(tool: &str, result: &CallToolResult, store: &dyn Artifacts) -> CallResult {
    let mut reading = Reading { tool, store, artifacts: Vec::new() };
    let mut parts = Vec::new();
    for block in &result.content {
        parts.push(reading.block(block).await);
    }
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
    CallResult { is_error, ..reading.told(vec![text]).await }
}

/// What a resource holds.
pub(super) async fn resource(result: &ReadResourceResult, store: &dyn Artifacts) -> CallResult {
    let mut reading = Reading { tool: "resource", store, artifacts: Vec::new() };
    let mut parts = Vec::new();
    for contents in &result.contents {
        parts.push(reading.contents(contents).await);
    }
    reading.told(parts).await
}

/// The messages of a prompt, each with who says it.
pub(super) async fn prompt(result: &GetPromptResult, store: &dyn Artifacts) -> CallResult {
    let mut reading = Reading { tool: "prompt", store, artifacts: Vec::new() };
    let mut parts = Vec::new();
    for message in &result.messages {
        let who = if message.role == Role::User { "user" } else { "assistant" };
        parts.push(format!("{who}: {}", reading.block(&message.content).await));
    }
    reading.told(parts).await
}

/// A result that is being read, and what of it was kept.
struct Reading<'a> {
    tool: &'a str,
    store: &'a dyn Artifacts,
    artifacts: Vec<Artifact>,
}

impl Reading<'_> {
    /// All of it, or its beginning and end where it is too long.
    async fn told(mut self, parts: Vec<String>) -> CallResult {
        let (text, whole) = fitted(parts.join("\n"), &format!("{}.txt", self.tool), self.store).await;
        self.artifacts.extend(whole);
        let is_shown = |artifact: &&Artifact| MediaKind::of(&artifact.media_type).is_some();
        let media = self.artifacts.iter().filter(is_shown).cloned().collect();
        good(text).with_artifacts(self.artifacts).with_media(media)
    }

    async fn block(&mut self, block: &ContentBlock) -> String {
        match block {
            ContentBlock::Text(text) => text.text.clone(),
            ContentBlock::Image(image) => self.attachment("image", Some(&image.mime_type), &image.data).await,
            ContentBlock::Audio(audio) => self.attachment("audio", Some(&audio.mime_type), &audio.data).await,
            ContentBlock::Resource(resource) => self.contents(&resource.resource).await,
            ContentBlock::ResourceLink(link) => {
                let described = link.description.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
                format!("[resource {} ({}){described}]", link.uri, link.name)
            }
            _ => "[content of a kind that is not known here]".to_owned(),
        }
    }

    async fn contents(&mut self, contents: &ResourceContents) -> String {
        match contents {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[resource {uri}]\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                self.attachment(&format!("resource {uri}"), mime_type.as_deref(), blob).await
            }
            _ => "[a resource of a kind that is not known here]".to_owned(),
        }
    }

    /// Keeps what is no text, and says where.
    async fn attachment(&mut self, what: &str, mime: Option<&str>, base64: &str) -> String {
        let kind = mime.unwrap_or("unknown type");
        let Ok(content) = LENIENT.decode(base64) else {
            return format!("[{what}, {kind}, not shown: its content is no base64]");
        };
        let bytes = content.len();
        match self.store.put(content.into()).await {
            Ok(id) => {
                let ending = mime.and_then(|mime| mime.split_once('/')).and_then(|(_, kind)| kind.split(['+', ';']).next());
                let ending = ending.map(|ending| format!(".{}", ending.trim())).unwrap_or_default();
                let name = format!("{}-{}{ending}", self.tool, self.artifacts.len() + 1);
                let artifact = Artifact::new(id, &name, kind, bytes as u64);
                let is_shown = MediaKind::of(&artifact.media_type).is_some();
                let told = format!("[{what}{}: {artifact}]", if is_shown { "" } else { ", not shown" });
                self.artifacts.push(artifact);
                told
            }
            Err(ArtifactError::None) => format!("[{what}, {kind}, {bytes} bytes, not shown]"),
            Err(error) => format!("[{what}, {kind}, {bytes} bytes, not shown and not kept: {error}]"),
        }
    }
}

/// Takes base64 with and without its padding.
const LENIENT: GeneralPurpose = {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent);
    GeneralPurpose::new(&base64::alphabet::STANDARD, config)
};

#[cfg(test)]
mod tests {
    use polis_ports::NoArtifacts;
    use polis_testkit::MemoryArtifacts;
    use serde_json::{Value, json};

    use super::*;
    use crate::results::MAX_RESULT_BYTES;

    async fn check(result: Value, want: &str) {
        let text = rendered("tool", &serde_json::from_value(result).unwrap(), &NoArtifacts).await;
        assert_eq!(&*text.content, want);
    }

    #[tokio::test]
    async fn every_kind_of_content_is_text_for_the_model() {
        check(json!({ "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] }), "a\nb").await;
        check(
            json!({ "content": [{ "type": "image", "mimeType": "image/png", "data": "AAAA" }] }),
            "[image, image/png, 3 bytes, not shown]",
        )
        .await;
        check(
            json!({ "content": [{ "type": "audio", "mimeType": "audio/wav", "data": "AAA=" }] }),
            "[audio, audio/wav, 2 bytes, not shown]",
        )
        .await;
        let text = json!({ "uri": "a:b", "text": "inside" });
        check(json!({ "content": [{ "type": "resource", "resource": text }] }), "[resource a:b]\ninside").await;
        let blob = json!({ "uri": "a:b", "blob": "AAAA" });
        check(
            json!({ "content": [{ "type": "resource", "resource": blob }] }),
            "[resource a:b, unknown type, 3 bytes, not shown]",
        )
        .await;
        check(json!({ "content": [{ "type": "resource_link", "uri": "a:b", "name": "n" }] }), "[resource a:b (n)]").await;
        check(json!({ "content": [] }), "(the tool returned nothing)").await;
        check(json!({ "content": [], "isError": true }), "error: the tool failed and does not say why").await;
    }

    #[tokio::test]
    async fn structured_content_is_told_once() {
        check(json!({ "content": [], "structuredContent": { "a": 1 } }), r#"{"a":1}"#).await;
        check(
            json!({ "content": [{ "type": "text", "text": "{ \"a\": 1 }" }], "structuredContent": { "a": 1 } }),
            "{ \"a\": 1 }",
        )
        .await;
        check(json!({ "content": [{ "type": "text", "text": "one" }], "structuredContent": [1] }), "one\n[1]").await;
    }

    #[tokio::test]
    async fn a_failure_stays_one_and_a_long_text_is_cut() {
        let long = "ä".repeat(MAX_RESULT_BYTES);
        let result = json!({ "content": [{ "type": "text", "text": long }], "isError": true });
        let text = rendered("tool", &serde_json::from_value(result).unwrap(), &NoArtifacts).await;
        assert!(text.is_error && text.content.len() < MAX_RESULT_BYTES + 100);
        assert!(text.content.contains("[cut: 49152 bytes are left out here]"), "{}", text.content);
    }

    #[tokio::test]
    async fn what_is_no_text_or_too_long_is_kept() {
        let store = MemoryArtifacts::new();
        let long = "x".repeat(MAX_RESULT_BYTES + 1);
        let result = json!({ "content": [
            { "type": "image", "mimeType": "image/svg+xml", "data": "AAEC" },
            { "type": "resource", "resource": { "uri": "a:b", "blob": "AAECAw" } },
            { "type": "audio", "mimeType": "audio/wav", "data": "!" },
            { "type": "text", "text": long },
            { "type": "image", "mimeType": "image/png", "data": "iVBORw==" },
        ] });
        let told = rendered("draw", &serde_json::from_value(result).unwrap(), &store).await;
        let kept: Vec<_> = told.artifacts.iter().map(|it| (&*it.name, &*it.media_type, it.bytes)).collect();
        let octets = "application/octet-stream";
        assert_eq!(kept[..2], [("draw-1.svg", "image/svg+xml", 3), ("draw-2", octets, 4)]);
        assert_eq!((kept[2], kept[3].0, kept.len()), (("draw-3.png", "image/png", 4), "draw.txt", 4));
        assert_eq!(told.media, [told.artifacts[2].clone()], "the model is shown what it can be");
        for part in [
            "[image, not shown: artifact ",
            "[image: artifact ",
            "[resource a:b, not shown: artifact ",
            "its content is no base64]",
            "; all of it is artifact ",
        ] {
            assert!(told.content.contains(part), "{part}: {}", told.content);
        }
        assert_eq!(store.read(&told.artifacts[1].id, 0, 9).await.unwrap().bytes, [0, 1, 2, 3]);
        assert_eq!(store.read(&told.artifacts[3].id, 0, 0).await.unwrap().total, kept[3].2);
    }
}
