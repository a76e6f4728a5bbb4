//! `get_artifact`: a part of a text that was kept. What is no text is only described.

use async_trait::async_trait;
use polis_domain::{ArtifactId, CallResult, EffectClass, Flow};
use polis_ports::{ArtifactError, CallContext, MediaKind, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use super::media::text_of;
use crate::results::{MAX_RESULT_BYTES, arguments, failed, good};

/// Bytes that are given if nobody says how many.
const USUAL_BYTES: usize = 16 << 10;

/// Reads artifacts.
#[derive(Debug, Default)]
pub struct GetArtifact;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    id: String,
    #[serde(default)]
    offset: u64,
    limit: Option<usize>,
}

#[async_trait]
impl Tool for GetArtifact {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "get_artifact".into(),
            description:
                "Reads a part of an artifact that is text, such as long output that was cut, and says where to go on. Shows a \
                          picture, a PDF or audio whole."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "id": { "type": "string", "description": "The artifact's id, 64 digits as list_artifacts gives it" },
                    "offset": { "type": "integer", "minimum": 0, "description": "The first byte to read; 0 if left out" },
                    "limit": { "type": "integer", "minimum": 1, "maximum": MAX_RESULT_BYTES, "description": format!("How many bytes; {USUAL_BYTES} if left out") },
                },
                "required": ["id"],
            }),
            class: EffectClass::Read,
            volatile: false,
        }
    }

    fn is_deferred(&self) -> bool {
        true
    }

    fn flow(&self, _: &str) -> Flow {
        Flow { private: true, recalls_artifacts: true, ..Flow::default() }
    }

    async fn call(&self, text: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        let Arguments { id, offset, limit } = arguments(text)?;
        let id: ArtifactId = id.trim().parse().map_err(|bad| ToolError::BadArguments(format!("id: {bad}")))?;
        let limit = limit.unwrap_or(USUAL_BYTES).clamp(4, MAX_RESULT_BYTES);
        let Some(artifact) = context.artifacts.listing.find(&id).await else {
            return Ok(failed(ArtifactError::Unknown(id)));
        };
        if MediaKind::of(&artifact.media_type).is_some() {
            return Ok(good(format!("[{artifact}]")).with_media(vec![artifact]));
        }
        let window = match context.artifacts.store.read(&id, offset, limit).await {
            Ok(window) => window,
            Err(error) => return Ok(failed(error)),
        };
        let end = offset.saturating_add(window.bytes.len() as u64);
        let Some((text, before, after)) = text_of(&window.bytes) else {
            let what = "is not text, so it cannot be read here; the person can download it";
            return Ok(failed(format_args!("{artifact} {what}")));
        };
        if offset >= window.total && window.total > 0 {
            return Ok(failed(format_args!("{artifact} ends before byte {offset}")));
        }
        let (start, end) = (offset + before as u64, end - after as u64);
        let note = match (start, end) {
            (0, end) if end == window.total => String::new(),
            (start, end) if end == window.total => format!("\n[bytes {start} to {end}: the end]"),
            (start, end) => format!("\n[bytes {start} to {end} of {}; go on with offset {end}]", window.total),
        };
        Ok(good(format!("{text}{note}")))
    }
}
