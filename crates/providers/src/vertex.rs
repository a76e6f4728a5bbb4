//! Google's Vertex AI: models of Google in the dialect of Gemini and models of Anthropic in theirs, at addresses of its own.

use polis_ports::ModelRequest;

use crate::request_parts::body_bytes;
use crate::wire::Reader;
use crate::{anthropic, gemini};

/// The version of Anthropic's interface that Vertex AI has.
const ANTHROPIC_VERSION: &str = "vertex-2023-10-16";

/// Whether this is a model of Anthropic.
pub(crate) fn is_claude(model: &str) -> bool {
    model.starts_with("claude")
}

/// Where a model is asked, below the project and its location. `maker/name` is a model of that maker in Gemini's dialect.
pub(crate) fn path(model: &str) -> String {
    match model.split_once('/') {
        _ if is_claude(model) => format!("/publishers/anthropic/models/{model}:streamRawPredict"),
        Some((maker, name)) => format!("/publishers/{maker}/models/{name}:streamGenerateContent?alt=sse"),
        None => format!("/publishers/google/models/{model}:streamGenerateContent?alt=sse"),
    }
}

/// Writes the body.
pub(crate) fn body(request: &ModelRequest, model: &str) -> Vec<u8> {
    if !is_claude(model) {
        return gemini::body(request, model);
    }
    let mut fields = anthropic::fields(request, model);
    // The address names the model, and there are no service tiers.
    fields.remove("model");
    fields.remove("service_tier");
    fields.insert("anthropic_version".to_owned(), ANTHROPIC_VERSION.into());
    body_bytes(request, &fields)
}

pub(crate) fn reader(model: &str) -> Box<dyn Reader> {
    match is_claude(model) {
        true => Box::<anthropic::MessageReader>::default(),
        false => Box::<gemini::ContentReader>::default(),
    }
}
