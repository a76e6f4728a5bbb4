//! Google's Vertex AI: models of Google in the dialect of Gemini, models of Anthropic in theirs, and those of other makers
//! (`maker/name`) in OpenAI's chat, each at an address of its own.

use polis_ports::ModelRequest;

use crate::request_parts::body_bytes;
use crate::wire::Reader;
use crate::{Quirks, anthropic, gemini, openai_chat};

/// The version of Anthropic's interface that Vertex AI has.
const ANTHROPIC_VERSION: &str = "vertex-2023-10-16";

enum Maker {
    Google,
    Anthropic,
    Other,
}

impl Maker {
    fn of(model: &str) -> Self {
        match model {
            _ if is_claude(model) => Self::Anthropic,
            _ if model.contains('/') => Self::Other,
            _ => Self::Google,
        }
    }
}

/// Whether this is a model of Anthropic.
pub(crate) fn is_claude(model: &str) -> bool {
    model.starts_with("claude")
}

/// Where a model is asked, below the project and its location.
pub(crate) fn path(model: &str) -> String {
    match Maker::of(model) {
        Maker::Google => format!("/publishers/google/models/{model}:streamGenerateContent?alt=sse"),
        Maker::Anthropic => format!("/publishers/anthropic/models/{model}:streamRawPredict"),
        Maker::Other => "/endpoints/openapi/chat/completions".to_owned(),
    }
}

/// Writes the body.
pub(crate) fn body(request: &ModelRequest, model: &str) -> Vec<u8> {
    match Maker::of(model) {
        Maker::Google => gemini::body(request, model, &[]),
        Maker::Other => openai_chat::body(request, model, Quirks::PLAIN),
        Maker::Anthropic => {
            let mut fields = anthropic::fields(request, model);
            // The address names the model, and there are no service tiers.
            fields.remove("model");
            fields.remove("service_tier");
            fields.insert("anthropic_version".to_owned(), ANTHROPIC_VERSION.into());
            body_bytes(request, &fields)
        }
    }
}

pub(crate) fn reader(model: &str) -> Box<dyn Reader> {
    match Maker::of(model) {
        Maker::Google => Box::<gemini::ContentReader>::default(),
        Maker::Anthropic => Box::<anthropic::MessageReader>::default(),
        Maker::Other => Box::<openai_chat::ChatReader>::default(),
    }
}
