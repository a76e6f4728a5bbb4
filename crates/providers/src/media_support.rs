//! Which media a vendor's models do not take, as their refusals have taught.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use polis_domain::Digest;
use polis_ports::{ChatMessage, Media, MediaKind, ModelRequest};

/// Most refusals that are remembered; beyond that all are forgotten, and learned again.
const MAX_REFUSALS: usize = 1_000;

/// What vendors have refused since the start.
#[derive(Debug, Default)]
pub(crate) struct MediaRefusals(Mutex<Refused>);

#[derive(Debug, Default)]
struct Refused {
    /// Kinds that a model does not take.
    kinds: BTreeSet<(String, MediaKind)>,
    /// Single contents that it does not take, for example because they are too large.
    contents: HashSet<(String, Digest)>,
    /// Single contents that it took.
    accepted: HashSet<(String, Digest)>,
    /// By model, which of two contents is left out to see whether it is the wrong one.
    trials: HashMap<String, Trial>,
}

/// Of two contents, one is left out of the next attempt.
#[derive(Debug)]
struct Trial {
    out: Digest,
    other: Digest,
    /// Whether the other one was left out before.
    is_second: bool,
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
        // What could not be fetched says nothing about the other pictures.
        let addresses: Vec<_> = media().filter(|media| matches!(media, Media::Url(_))).map(content).collect();
        if !addresses.is_empty() && is_about_address(&reason) {
            self.with_room().suspect(model, addresses);
            return true;
        }
        let kinds: BTreeSet<_> = media().filter_map(Media::kind).filter(|kind| names(&reason, *kind)).collect();
        if kinds.is_empty() {
            return false;
        }
        let mut refused = self.with_room();
        if is_about_support(&reason) {
            refused.kinds.extend(kinds.into_iter().map(|kind| (model.to_owned(), kind)));
        } else {
            let of_kinds = media().filter(|media| media.kind().is_some_and(|kind| kinds.contains(&kind)));
            let new = |media: &&Media| !refused.accepted.contains(&(model.to_owned(), content(media)));
            let mut suspects: Vec<_> = of_kinds.clone().filter(new).collect();
            if suspects.is_empty() {
                suspects = of_kinds.collect();
            }
            if is_about_size(&reason) {
                suspects.sort_by_key(|media| std::cmp::Reverse(size(media)));
                suspects.truncate(1);
            }
            refused.suspect(model, suspects.into_iter().map(content).collect());
        }
        true
    }

    /// Remembers what a model took.
    pub(crate) fn accepted(&self, model: &str, request: &ModelRequest) {
        if !request.has_media() {
            return;
        }
        let mut refused = self.with_room();
        refused.trials.remove(model);
        let media = request.messages.iter().flat_map(ChatMessage::media);
        refused.accepted.extend(media.map(|media| (model.to_owned(), content(media))));
    }

    /// What is known; nothing where that was too much.
    fn with_room(&self) -> std::sync::MutexGuard<'_, Refused> {
        let mut refused = self.lock();
        if refused.kinds.len() + refused.contents.len() + refused.accepted.len() > MAX_REFUSALS {
            *refused = Refused::default();
        }
        refused
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Refused> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Refused {
    /// Leaves out what may be wrong. Which one of two it is, is tried: the first is left out, then the second one, then both.
    fn suspect(&mut self, model: &str, mut suspects: Vec<Digest>) {
        suspects.dedup();
        let of_model = |content: Digest| (model.to_owned(), content);
        match (self.trials.remove(model), suspects.as_slice()) {
            (None, &[first, second]) => {
                self.contents.insert(of_model(first));
                self.trials.insert(model.to_owned(), Trial { out: first, other: second, is_second: false });
            }
            (Some(Trial { out, other, is_second: false }), _) => {
                self.contents.remove(&of_model(out));
                self.contents.insert(of_model(other));
                self.trials.insert(model.to_owned(), Trial { out: other, other: out, is_second: true });
            }
            (Some(Trial { out, other, is_second: true }), _) => self.contents.extend([out, other].map(of_model)),
            (None, suspects) => self.contents.extend(suspects.iter().copied().map(of_model)),
        }
    }
}

fn size(media: &Media) -> u64 {
    match media {
        Media::Inline { data, .. } => data.len() as u64,
        Media::Url(_) => 0,
        Media::Stored(artifact) => artifact.bytes,
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

/// Whether a refusal is about the address of a content.
fn is_about_address(reason: &str) -> bool {
    // The name of the field is in refusals of all pictures.
    let reason = reason.replace("image_url", "");
    ["url", "download", "fetch"].iter().any(|word| reason.contains(word))
}

/// Whether a refusal says that one content is too large, and not all of the request.
fn is_about_size(reason: &str) -> bool {
    let of_all = ["entity too large", "payload too large", "request too large"].iter().any(|words| reason.contains(words));
    !of_all && ["exceeds", "too large", "too big", "larger than", "dimension"].iter().any(|words| reason.contains(words))
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
    fn an_address_that_cannot_be_fetched_is_left_out_and_nothing_else() {
        let url = Media::Url("https://h/i.png".into());
        let inline = Media::Inline { media_type: "image/png".into(), name: "".into(), data: "QUJD".into() };
        for reason in ["400 Error while downloading https://h/i.png", "400 unsupported image url", "400 could not fetch it"] {
            let message = ChatMessage::User { text: "look".into(), media: vec![url.clone(), inline.clone()] };
            let mut request = ModelRequest { messages: vec![message], ..ModelRequest::default() };
            let refusals = MediaRefusals::default();
            assert!(refusals.learn("m", &request, reason), "{reason}");
            refusals.leave_out("m", &mut request);
            assert_eq!(request.messages[0].media(), std::slice::from_ref(&inline), "{reason}");
            assert!(!refusals.has("m", MediaKind::Image), "{reason}");
        }
    }

    /// Which of the contents a model is shown after each refusal.
    fn attempts(reason: &str, contents: &[&str], refusals: usize) -> Vec<Vec<String>> {
        let known = MediaRefusals::default();
        let request = || {
            let media = |data: &&str| Media::Inline { media_type: "image/png".into(), name: "".into(), data: (*data).into() };
            let message = ChatMessage::User { text: "look".into(), media: contents.iter().map(media).collect() };
            ModelRequest { messages: vec![message], ..ModelRequest::default() }
        };
        let mut shown = Vec::new();
        for _ in 0..refusals {
            let mut sent = request();
            known.leave_out("m", &mut sent);
            assert!(known.learn("m", &sent, reason));
            let mut next = request();
            known.leave_out("m", &mut next);
            let data = |media: &Media| if let Media::Inline { data, .. } = media { data.to_string() } else { String::new() };
            shown.push(next.messages[0].media().iter().map(data).collect());
        }
        shown
    }

    #[test]
    fn a_good_picture_is_not_left_out_with_a_bad_one() {
        let invalid = "400 You uploaded an unsupported image. Please make sure your image is valid.";
        assert_eq!(attempts(invalid, &["A", "B"], 3), [vec!["B"], vec!["A"], vec![]]);
        assert_eq!(attempts(invalid, &["A", "B", "C"], 1), [Vec::<&str>::new()], "many are not tried one by one");
        assert_eq!(attempts("400 image exceeds 5 MB maximum", &["A", "BBBB", "CC"], 2), [vec!["A", "CC"], vec!["A"]]);
        assert_eq!(attempts("413 Request Entity Too Large", &["A"], 1), [Vec::<&str>::new()]);
    }

    #[test]
    fn what_a_model_took_before_is_not_suspected() {
        let refusals = MediaRefusals::default();
        let with = |data: &str| Media::Inline { media_type: "image/png".into(), name: "".into(), data: data.into() };
        let request = |contents: &[&str]| {
            let message = ChatMessage::User { text: "look".into(), media: contents.iter().map(|data| with(data)).collect() };
            ModelRequest { messages: vec![message], ..ModelRequest::default() }
        };
        refusals.accepted("m", &request(&["A"]));
        assert!(refusals.learn("m", &request(&["A", "B"]), "400 could not process image"));
        let mut next = request(&["A", "B"]);
        refusals.leave_out("m", &mut next);
        assert_eq!(next.messages[0].media(), [with("A")]);
    }
}
