//! Which media a vendor's models take: what is known beforehand, and what their refusals have taught.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Mutex, PoisonError};

use polis_domain::Digest;
use polis_ports::{ChatMessage, Media, MediaKind, ModelRequest};

use crate::{Dialect, vertex};

/// Beginnings of the names of models that take text alone.
const TEXT_MODELS: &[&str] = &[
    "codestral",
    "command-r",
    "deepseek-chat",
    "deepseek-coder",
    "deepseek-r1",
    "deepseek-reasoner",
    "deepseek-v3",
    "gpt-3.5",
    "gpt-oss",
    "mixtral",
    "o1-mini",
    "o3-mini",
    "qwen3-coder",
    "smollm2",
];

/// Most refusals that are remembered; beyond that all are forgotten, and learned again.
const MAX_REFUSALS: usize = 1_000;

/// Whether a model takes media of this kind; none if that is not known.
pub(crate) fn takes(dialect: Dialect, model: &str, kind: MediaKind) -> Option<bool> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let is_text_model = TEXT_MODELS.iter().any(|start| name.starts_with(start));
    let has_no_form = match (dialect, kind) {
        (Dialect::Ollama, MediaKind::Document | MediaKind::Audio) => true,
        (Dialect::Anthropic | Dialect::OpenAiResponses | Dialect::Bedrock, MediaKind::Audio) => true,
        (Dialect::Vertex, MediaKind::Audio) => vertex::is_claude(model),
        (_, MediaKind::Image | MediaKind::Document | MediaKind::Audio) => false,
    };
    (is_text_model || has_no_form).then_some(false)
}

/// What vendors have refused since the start.
#[derive(Debug, Default)]
pub(crate) struct MediaRefusals(Mutex<Refused>);

#[derive(Debug, Default)]
struct Refused {
    /// Kinds that a model does not take.
    kinds: BTreeSet<(String, MediaKind)>,
    /// Single contents that it does not take, for example because they are too large.
    contents: HashSet<(String, Digest)>,
}

impl MediaRefusals {
    /// Whether the model has refused this kind.
    pub(crate) fn has(&self, model: &str, kind: MediaKind) -> bool {
        self.lock().kinds.contains(&(model.to_owned(), kind))
    }

    /// Puts lines in the place of the contents that were refused.
    pub(crate) fn leave_out(&self, model: &str, request: &mut ModelRequest) {
        if !request.has_media() {
            return;
        }
        let refused = self.lock();
        for message in &mut request.messages {
            if message.media().is_empty() {
                continue;
            }
            *message = message.clone().with_media(|media| {
                let is_refused = media.kind().is_some_and(|kind| refused.kinds.contains(&(model.to_owned(), kind)))
                    || refused.contents.contains(&(model.to_owned(), content(&media)));
                if is_refused { Err(media.not_shown("the vendor of this model refuses it")) } else { Ok(media) }
            });
        }
    }

    /// Learns from the reason of a refusal. Whether it was about media of the request, so that another attempt without them may
    /// succeed.
    pub(crate) fn learn(&self, model: &str, request: &ModelRequest, reason: &str) -> bool {
        let reason = reason.to_lowercase();
        let media = || request.messages.iter().flat_map(ChatMessage::media);
        let kinds: BTreeSet<_> = media().filter_map(Media::kind).filter(|kind| names(&reason, *kind)).collect();
        if kinds.is_empty() {
            return false;
        }
        let mut refused = self.lock();
        if refused.kinds.len() + refused.contents.len() > MAX_REFUSALS {
            *refused = Refused::default();
        }
        if is_about_support(&reason) {
            refused.kinds.extend(kinds.into_iter().map(|kind| (model.to_owned(), kind)));
        } else {
            let of_kinds = media().filter(|media| media.kind().is_some_and(|kind| kinds.contains(&kind)));
            refused.contents.extend(of_kinds.map(|media| (model.to_owned(), content(media))));
        }
        true
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Refused> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn content(media: &Media) -> Digest {
    match media {
        Media::Inline { data, .. } => Digest::of([&**data]),
        Media::Url(url) => Digest::of([&**url]),
        Media::Stored(artifact) => Digest::of([artifact.id.to_string().as_str()]),
    }
}

/// Whether a refusal names this kind, or the parts of a content in general.
fn names(reason: &str, kind: MediaKind) -> bool {
    const PARTS: &[&str] = &[
        "multimodal",
        "multi-modal",
        "modalit",
        "content must be a string",
        "content type",
        "content part",
        "entity too large",
        "payload too large",
        "request too large",
    ];
    let words: &[&str] = match kind {
        MediaKind::Image => &["image", "vision", "picture", "pixel"],
        MediaKind::Document => &["document", "pdf", "file", "page"],
        MediaKind::Audio => &["audio"],
    };
    words.iter().chain(PARTS).any(|word| reason.contains(word))
}

/// Whether a refusal says that the model takes no such thing, and not that this one is wrong.
fn is_about_support(reason: &str) -> bool {
    let of_this_one = ["format", "mime", "media type", "media_type", "valid", "uploaded", "corrupt", "process", "decode"];
    let is_format = of_this_one.iter().any(|word| reason.contains(word));
    let words =
        ["support", "not allowed", "unknown variant", "vision", "modal", "must be a string", "does not have", "cannot read"];
    !is_format && words.iter().any(|word| reason.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(media_types: &[&str]) -> ModelRequest {
        let media =
            |media_type: &&str| Media::Inline { media_type: (*media_type).into(), name: "".into(), data: "QUJD".into() };
        let message = ChatMessage::User { text: "look".into(), media: media_types.iter().map(media).collect() };
        ModelRequest { messages: vec![message], ..ModelRequest::default() }
    }

    fn shown(refusals: &MediaRefusals, model: &str, mut request: ModelRequest) -> usize {
        refusals.leave_out(model, &mut request);
        request.messages[0].media().len()
    }

    #[test]
    fn a_refusal_of_a_kind_counts_for_the_model_and_one_of_a_content_for_that_content() {
        for reason in [
            "400 messages[0]: unknown variant `image_url`, expected `text`",
            "404 No endpoints found that support image input",
            "400 this model does not support vision",
            "400 messages.0.content must be a string",
        ] {
            let refusals = MediaRefusals::default();
            assert!(refusals.learn("m", &asking(&["image/png"]), reason), "{reason}");
            assert!(refusals.has("m", MediaKind::Image) && !refusals.has("n", MediaKind::Image), "{reason}");
            assert_eq!(shown(&refusals, "m", asking(&["image/jpeg", "application/pdf"])), 1);
        }
        let refusals = MediaRefusals::default();
        assert!(refusals.learn("m", &asking(&["image/png"]), "400 image exceeds 5 MB maximum"));
        assert!(!refusals.has("m", MediaKind::Image));
        assert_eq!((shown(&refusals, "m", asking(&["image/png"])), shown(&refusals, "n", asking(&["image/png"]))), (0, 1));
    }

    #[test]
    fn a_refusal_of_something_else_teaches_nothing() {
        let refusals = MediaRefusals::default();
        assert!(!refusals.learn("m", &asking(&["image/png"]), "400 max_tokens is too large"));
        assert!(!refusals.learn("m", &asking(&[]), "400 this model does not support image input"));
        assert!(!refusals.learn("m", &asking(&["image/png"]), "400 audio is not supported"));
        assert_eq!(shown(&refusals, "m", asking(&["image/png"])), 1);
    }

    #[test]
    fn what_a_dialect_or_a_family_does_not_take_is_known() {
        assert_eq!(takes(Dialect::Ollama, "llava", MediaKind::Image), None);
        assert_eq!(takes(Dialect::Ollama, "llava", MediaKind::Document), Some(false));
        assert_eq!(takes(Dialect::Anthropic, "claude-sonnet-5", MediaKind::Audio), Some(false));
        assert_eq!(takes(Dialect::OpenAiChat, "deepseek/deepseek-chat", MediaKind::Image), Some(false));
        assert_eq!(takes(Dialect::OpenAiChat, "gpt-5", MediaKind::Document), None);
    }
}
