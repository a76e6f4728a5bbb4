//! Media in messages to models: pictures, PDFs and audio, how many of them a request may have, and what stands in the place of
//! those that a model is not shown.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polis_domain::{Artifact, Meta, Task};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{ChatMessage, ModelRequest};

/// The most bytes of one content that a model is shown.
pub const MAX_MEDIA_BYTES: u64 = 10 << 20;

/// The most bytes of all contents of a request: vendors take bodies of about 20 MB, and base64 adds a third.
pub const MAX_REQUEST_MEDIA_BYTES: u64 = 14 << 20;

/// The most contents of a request.
pub const MAX_REQUEST_MEDIA: usize = 20;

/// The tokens of a picture, roughly.
const IMAGE_TOKENS: u64 = 1_600;

/// Bytes of a PDF for one token, roughly: a page has 50 KB and 2,000 tokens.
const DOCUMENT_BYTES_PER_TOKEN: u64 = 25;

/// Bytes of audio for one token, roughly: a second has 16 KB and 32 tokens.
const AUDIO_BYTES_PER_TOKEN: u64 = 500;

/// The longest address of a picture, in bytes.
const MAX_URL_BYTES: usize = 4 << 10;

/// A content that is not text, in a message to a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Media {
    /// An artifact. Agents write this; the engine reads the bytes when it sends the request, so no vendor sees it.
    Stored(Artifact),
    /// The content itself.
    Inline {
        /// The media type, such as `image/png`.
        media_type: Arc<str>,
        /// The name of the file; may be empty.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        name: Arc<str>,
        /// The bytes in base64.
        data: Arc<str>,
    },
    /// An address from which the vendor can fetch a picture.
    Url(Arc<str>),
}

/// The kinds of media that models take or do not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MediaKind {
    /// A picture.
    Image,
    /// A PDF.
    Document,
    /// Recorded sound.
    Audio,
}

impl MediaKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Image, Self::Document, Self::Audio];

    /// The kind of a media type; none for text and for what no model takes.
    pub fn of(media_type: &str) -> Option<Self> {
        let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match &*essence {
            "image/png" | "image/jpeg" | "image/jpg" | "image/gif" | "image/webp" => Some(Self::Image),
            "application/pdf" => Some(Self::Document),
            "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" | "audio/mpeg" | "audio/mp3" | "audio/ogg"
            | "audio/flac" | "audio/aac" | "audio/aiff" | "audio/mp4" | "audio/x-m4a" => Some(Self::Audio),
            _ => None,
        }
    }

    /// The kind in words.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Image => "pictures",
            Self::Document => "PDFs",
            Self::Audio => "audio",
        }
    }
}

impl Media {
    /// The action of a live step that says that a model is not shown a file; its component says which and why.
    pub const NOT_SHOWN: &'static str = "media_not_shown";

    /// An artifact, if it is of a kind that models take.
    pub fn stored(artifact: &Artifact) -> Option<Self> {
        MediaKind::of(&artifact.media_type).map(|_| Self::Stored(artifact.clone()))
    }

    /// The pictures of a message that are elsewhere. Only encrypted addresses count, and as many as a request has room for.
    pub fn addressed(meta: &Meta) -> Vec<Self> {
        let listed = meta.get(Task::PICTURES).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let fetched = listed.filter(|url| is_fetched(url)).map(|url| Self::Url(url.into()));
        fetched.take(MAX_REQUEST_MEDIA).collect()
    }

    /// Puts pictures that are elsewhere into a message's meta.
    pub fn attach_addresses<'a>(meta: &mut Map<String, Value>, urls: impl IntoIterator<Item = &'a str>) {
        let urls: Vec<Value> = urls.into_iter().map(Value::from).collect();
        if !urls.is_empty() {
            meta.insert(Task::PICTURES.to_owned(), urls.into());
        }
    }

    /// A content that was read. Its first bytes decide the media type: vendors refuse a picture with the wrong one. An error
    /// if the bytes are not what the type says.
    pub fn read(artifact: &Artifact, bytes: &[u8]) -> Result<Self, NotMedia> {
        let kind = MediaKind::of(&artifact.media_type).ok_or(NotMedia)?;
        let media_type = match (media_type_of(bytes), kind) {
            (Some(found), _) if MediaKind::of(found) == Some(kind) => found,
            // Too many containers of audio begin in their own way.
            (None, MediaKind::Audio) if !bytes.is_empty() => &artifact.media_type,
            _ => return Err(NotMedia),
        };
        Ok(Self::Inline { media_type: media_type.into(), name: artifact.name.clone(), data: STANDARD.encode(bytes).into() })
    }

    /// Its kind. An address is that of a picture.
    pub fn kind(&self) -> Option<MediaKind> {
        match self {
            Self::Stored(artifact) => MediaKind::of(&artifact.media_type),
            Self::Inline { media_type, .. } => MediaKind::of(media_type),
            Self::Url(_) => Some(MediaKind::Image),
        }
    }

    /// Its length in bytes; 0 for an address.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Stored(artifact) => artifact.bytes,
            Self::Inline { data, .. } => data.len() as u64 / 4 * 3,
            Self::Url(_) => 0,
        }
    }

    /// The line that stands in its place where it is not shown.
    pub fn not_shown(&self, why: &str) -> String {
        match self {
            Self::Stored(artifact) => format!("[not shown: {artifact}, because {why}]"),
            Self::Inline { media_type, name, .. } => {
                let name = if name.is_empty() { "unnamed" } else { name };
                format!("[not shown: {name} ({media_type}, {} bytes), because {why}]", self.bytes())
            }
            Self::Url(url) => format!("[not shown: {url}, because {why}]"),
        }
    }

    /// The tokens that it takes, roughly.
    pub(crate) fn tokens(&self) -> u64 {
        match self.kind() {
            Some(MediaKind::Document) => (self.bytes() / DOCUMENT_BYTES_PER_TOKEN).max(IMAGE_TOKENS),
            Some(MediaKind::Audio) => self.bytes() / AUDIO_BYTES_PER_TOKEN,
            Some(MediaKind::Image) | None => IMAGE_TOKENS,
        }
    }

    /// What identifies its content.
    pub(crate) fn identity(&self) -> String {
        match self {
            Self::Stored(artifact) => artifact.id.to_string(),
            Self::Inline { data, .. } => data.to_string(),
            Self::Url(url) => url.to_string(),
        }
    }
}

/// Whether vendors fetch pictures from an address.
pub fn is_fetched(url: &str) -> bool {
    let scheme = "https://";
    url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)) && url.len() <= MAX_URL_BYTES
}

/// Bytes that are not of the kind that their media type says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its content is not of the type that it is declared as")]
pub struct NotMedia;

/// The media type of a picture, a PDF or audio by its first bytes.
pub fn media_type_of(bytes: &[u8]) -> Option<&'static str> {
    Some(match bytes {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => "audio/wav",
        [b'%', b'P', b'D', b'F', ..] => "application/pdf",
        [b'I', b'D', b'3', ..] => "audio/mpeg",
        _ => return None,
    })
}

impl ChatMessage {
    /// Its media; an assistant's message has none.
    pub fn media(&self) -> &[Media] {
        match self {
            Self::User { media, .. } | Self::Tool { media, .. } => media,
            Self::Assistant { .. } => &[],
        }
    }

    /// The same message with each of its media kept (`Ok`), or replaced by a line of its text (`Err`).
    #[must_use]
    pub fn with_media(self, mut show: impl FnMut(Media) -> Result<Media, String>) -> Self {
        let mut lines = Vec::new();
        let mut shown = |media: Vec<Media>| {
            media.into_iter().filter_map(|media| show(media).map_err(|line| lines.push(line)).ok()).collect()
        };
        match self {
            Self::User { text, media } => {
                let media = shown(media);
                Self::User { text: with_lines(text, &lines), media }
            }
            Self::Tool { call_id, name, content, is_error, media } => {
                let media = shown(media);
                Self::Tool { call_id, name, content: with_lines(content, &lines), is_error, media }
            }
            assistant @ Self::Assistant { .. } => assistant,
        }
    }
}

fn with_lines(text: Arc<str>, lines: &[String]) -> Arc<str> {
    match (lines.is_empty(), text.is_empty()) {
        (true, _) => text,
        (false, true) => lines.join("\n").into(),
        (false, false) => format!("{text}\n{}", lines.join("\n")).into(),
    }
}

impl ModelRequest {
    /// Whether a message has media.
    pub fn has_media(&self) -> bool {
        self.messages.iter().any(|message| !message.media().is_empty())
    }

    /// Leaves out media that are too large, and the oldest ones where there are too many. Lines stand in their place. Returns what
    /// was left out, and why.
    pub fn fit_media(&mut self) -> Vec<(Media, String)> {
        let mut left_out = Vec::new();
        if !self.has_media() {
            return left_out;
        }
        let (mut count, mut bytes, mut is_full) = (0, 0, false);
        // Whether each is shown, newest first.
        let shown: Vec<_> = (self.messages.iter().rev().flat_map(|message| message.media().iter().rev()))
            .map(|media| {
                if media.bytes() > MAX_MEDIA_BYTES {
                    return Some(format!("it is longer than {} MB", MAX_MEDIA_BYTES >> 20));
                }
                is_full |= count == MAX_REQUEST_MEDIA || bytes + media.bytes() > MAX_REQUEST_MEDIA_BYTES;
                if is_full {
                    return Some("newer ones take all the room".to_owned());
                }
                (count, bytes) = (count + 1, bytes + media.bytes());
                None
            })
            .collect();
        let mut oldest_first = shown.into_iter().rev();
        for message in &mut self.messages {
            *message =
                std::mem::replace(message, ChatMessage::user("")).with_media(|media| match oldest_first.next().flatten() {
                    Some(why) => {
                        let line = media.not_shown(&why);
                        left_out.push((media, why));
                        Err(line)
                    }
                    None => Ok(media),
                });
        }
        left_out
    }
}

#[cfg(test)]
mod tests {
    use polis_domain::ArtifactId;

    use super::*;

    fn artifact(name: &str, media_type: &str, bytes: u64) -> Artifact {
        Artifact::new(ArtifactId::new([7; 32]), name, media_type, bytes)
    }

    fn stored(name: &str, bytes: u64) -> Media {
        Media::stored(&artifact(name, "image/png", bytes)).unwrap()
    }

    #[test]
    fn only_what_models_take_is_media() {
        let kinds = ["image/png", "IMAGE/JPEG; x=1", "application/pdf", "audio/wav", "image/svg+xml", "text/html", ""]
            .map(MediaKind::of);
        let (image, document, audio) = (Some(MediaKind::Image), Some(MediaKind::Document), Some(MediaKind::Audio));
        assert_eq!(kinds, [image, image, document, audio, None, None, None]);
        assert_eq!(Media::stored(&artifact("a.svg", "image/svg+xml", 1)), None);
    }

    #[test]
    fn pictures_that_are_elsewhere_have_encrypted_addresses() {
        let mut meta = Map::new();
        let long = format!("https://h/{}", "x".repeat(MAX_URL_BYTES));
        Media::attach_addresses(&mut meta, ["https://h/a", "HTTPS://h/b", "http://h/c", "file:///d", "数据", &long]);
        let url = |url: &str| Media::Url(url.into());
        assert_eq!(Media::addressed(&Meta::of(&Value::Object(meta))), [url("https://h/a"), url("HTTPS://h/b")]);
        let strange = serde_json::json!({ "pictures": { "a": 1 } });
        assert_eq!(Media::addressed(&Meta::of(&strange)), []);
        let many = serde_json::json!({ "pictures": vec!["https://h/a"; MAX_REQUEST_MEDIA + 1] });
        assert_eq!(Media::addressed(&Meta::of(&many)).len(), MAX_REQUEST_MEDIA);
    }

    #[test]
    fn the_first_bytes_decide_the_type_within_a_kind() {
        let read = |media_type: &str, bytes: &[u8]| match Media::read(&artifact("a", media_type, 1), bytes) {
            Ok(Media::Inline { media_type, .. }) => Ok(media_type.to_string()),
            Ok(_) => panic!(),
            Err(error) => Err(error),
        };
        assert_eq!(read("image/png", b"\xff\xd8\xff\xe0"), Ok("image/jpeg".to_owned()));
        assert_eq!(read("application/pdf", b"%PDF-1.7"), Ok("application/pdf".to_owned()));
        assert_eq!(read("audio/ogg", b"OggS"), Ok("audio/ogg".to_owned()));
        assert_eq!(read("image/png", b"%PDF-1.7"), Err(NotMedia));
        assert_eq!(read("image/png", b"hello"), Err(NotMedia));
        assert_eq!(read("audio/wav", b""), Err(NotMedia));
        assert_eq!(read("text/plain", b"\x89PNG"), Err(NotMedia));
    }

    #[test]
    fn the_newest_media_are_shown_and_lines_name_the_others() {
        let user = |media| ChatMessage::User { text: "look".into(), media };
        let big = MAX_REQUEST_MEDIA_BYTES / 2;
        let tool = ChatMessage::Tool {
            call_id: "c".into(),
            name: "t".into(),
            content: "".into(),
            is_error: false,
            media: vec![stored("huge.png", MAX_MEDIA_BYTES + 1), stored("new.png", big)],
        };
        let mut request = ModelRequest {
            messages: vec![user(vec![stored("old.png", 1)]), user(vec![stored("a.png", big), stored("b.png", big)]), tool],
            ..ModelRequest::default()
        };
        let left_out = request.fit_media();
        let left_out: Vec<_> = left_out.iter().map(|(media, _)| media.clone()).collect();
        assert_eq!(left_out, [stored("old.png", 1), stored("a.png", big), stored("huge.png", MAX_MEDIA_BYTES + 1)]);
        let shown: Vec<_> = request.messages.iter().flat_map(ChatMessage::media).cloned().collect();
        assert_eq!(shown, [stored("b.png", big), stored("new.png", big)]);
        let id = ArtifactId::new([7; 32]);
        let texts: Vec<_> = (request.messages.iter())
            .map(|message| match message {
                ChatMessage::User { text, .. } => text.to_string(),
                ChatMessage::Tool { content, .. } => content.to_string(),
                ChatMessage::Assistant { .. } => panic!(),
            })
            .collect();
        assert_eq!(
            texts[0],
            format!("look\n[not shown: artifact {id} (old.png, image/png, 1 bytes), because newer ones take all the room]")
        );
        assert!(texts[1].contains("(a.png, ") && !texts[1].contains("(b.png, "), "{}", texts[1]);
        assert!(texts[2].starts_with("[not shown: ") && texts[2].ends_with("because it is longer than 10 MB]"), "{}", texts[2]);
        let many: Vec<_> = (0..=MAX_REQUEST_MEDIA).map(|n| stored(&format!("{n}.png"), 1)).collect();
        let mut request = ModelRequest { messages: vec![user(many.clone())], ..ModelRequest::default() };
        request.fit_media();
        assert_eq!(request.messages[0].media(), &many[1..]);
    }
}
