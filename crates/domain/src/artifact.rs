//! Artifacts: contents outside the log. The log has references to them, never their bytes.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use crate::Meta;

/// The meta key of references in messages.
const META_KEY: &str = "artifacts";

/// The longest name, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// The longest media type, in bytes.
const MAX_MEDIA_TYPE_BYTES: usize = 100;

/// The id of an artifact: the SHA-256 of its content, written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArtifactId([u8; 32]);

/// A text that is not an artifact id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an artifact's id has 64 digits from 0-9 and a-f; take it from the list of artifacts")]
pub struct BadArtifactId;

/// A reference to an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// The id of the content.
    pub id: ArtifactId,
    /// The name for people and models. Not a path.
    pub name: Arc<str>,
    /// The media type that its creator declared.
    pub media_type: Arc<str>,
    /// The length in bytes.
    pub bytes: u64,
}

impl ArtifactId {
    /// The id with this SHA-256.
    pub fn new(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    /// The SHA-256 of the content.
    pub fn digest(&self) -> [u8; 32] {
        self.0
    }
}

impl fmt::Display for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArtifactId({self})")
    }
}

impl FromStr for ArtifactId {
    type Err = BadArtifactId;

    fn from_str(text: &str) -> Result<Self, BadArtifactId> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(BadArtifactId),
        };
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return Err(BadArtifactId) };
        if pairs.len() != 32 {
            return Err(BadArtifactId);
        }
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for ArtifactId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ArtifactId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl Artifact {
    /// A reference with a cleaned name and media type: characters that cannot be shown are removed.
    pub fn new(id: ArtifactId, name: &str, media_type: &str, bytes: u64) -> Self {
        let mut cleaned: String = name.trim().chars().filter(|c| !c.is_control()).collect();
        cleaned.truncate(cleaned.floor_char_boundary(MAX_NAME_BYTES));
        let name = if cleaned.is_empty() { "unnamed" } else { &cleaned };
        let media_type = if is_media_type(media_type) { media_type } else { "application/octet-stream" };
        Self { id, name: name.into(), media_type: media_type.into(), bytes }
    }

    /// The references in the meta of a message. Invalid ones are ignored.
    pub fn attached(meta: &Meta) -> Vec<Self> {
        let attached = meta.get(META_KEY).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        attached.iter().filter_map(|value| Self::deserialize(value).ok()).collect()
    }

    /// Adds references to the meta of a message.
    pub fn attach(meta: &mut Map<String, Value>, artifacts: &[Self]) {
        if !artifacts.is_empty() {
            let list = artifacts.iter().filter_map(|artifact| serde_json::to_value(artifact).ok()).collect();
            meta.insert(META_KEY.to_owned(), Value::Array(list));
        }
    }
}

/// The text form for people and models.
impl fmt::Display for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "artifact {} ({}, {}, {} bytes)", self.id, self.name, self.media_type, self.bytes)
    }
}

fn is_media_type(text: &str) -> bool {
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    let is_token =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte));
    let is_plain = parameters.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    let halves = essence.trim().split_once('/');
    text.len() <= MAX_MEDIA_TYPE_BYTES && is_plain && halves.is_some_and(|(kind, sub)| is_token(kind) && is_token(sub))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_id_is_64_digits_and_nothing_else() {
        let text = "00ff".repeat(16);
        assert_eq!(text.parse::<ArtifactId>().unwrap().to_string(), text);
        assert_eq!(serde_json::to_value(text.parse::<ArtifactId>().unwrap()).unwrap(), json!(text));
        let bad =
            ["", "00", &"0".repeat(63), &"0".repeat(65), &"0".repeat(66), &"G".repeat(64), &"FF00".repeat(16), &"é".repeat(32)];
        for text in bad {
            assert_eq!(text.parse::<ArtifactId>(), Err(BadArtifactId), "{text}");
        }
    }

    #[test]
    fn a_name_and_a_media_type_can_always_be_shown() {
        let id = ArtifactId::new([7; 32]);
        let cleaned = |name: &str, media_type: &str| {
            let artifact = Artifact::new(id, name, media_type, 1);
            (artifact.name.to_string(), artifact.media_type.to_string())
        };
        let octets = "application/octet-stream";
        assert_eq!(
            cleaned(" a\nb.md ", "text/markdown; charset=utf-8"),
            ("ab.md".into(), "text/markdown; charset=utf-8".into())
        );
        assert_eq!(cleaned("\0", "text"), ("unnamed".into(), octets.into()));
        assert_eq!(cleaned(&"长".repeat(100), "text/a\r\nb").0.len(), 198);
        for bad in ["", "/", "text/", "text/a b", "text/html\r\nx: y", "text/x;\u{7f}", &format!("text/{}", "x".repeat(100))] {
            assert_eq!(cleaned("a", bad).1, octets, "{bad}");
        }
    }

    #[test]
    fn what_is_attached_is_found_again_and_anything_else_passed_over() {
        let artifact = Artifact::new(ArtifactId::new([7; 32]), "a.md", "text/markdown", 3);
        let mut meta = Meta::new();
        Artifact::attach(&mut meta, std::slice::from_ref(&artifact));
        assert_eq!(Artifact::attached(&meta), [artifact]);
        for strange in [json!(null), json!("x"), json!([1, { "id": "x" }])] {
            assert_eq!(Artifact::attached(&Meta::of(&json!({ "artifacts": strange }))), []);
        }
    }
}
