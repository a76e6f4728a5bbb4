//! A JSON value that should be a string and, with some vendors, is not.

use std::fmt;

use memchr::memchr;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// A string, read directly, or any other value.
#[derive(Debug)]
pub(crate) enum LooseText {
    Text(String),
    Other(Value),
}

impl LooseText {
    /// Reads what was left as it was written. Texts that hold JSON are full of escapes, and a parser that does not know how long
    /// they become makes room for them again and again. A number is its digits, which may be more than a parser takes.
    pub(crate) fn from_raw(raw: &RawValue) -> Result<Self, serde_json::Error> {
        if raw.get().starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            return Ok(Self::Text(raw.get().to_owned()));
        }
        unescaped(raw.get()).map_or_else(|| serde_json::from_str(raw.get()), |text| Ok(Self::Text(text)))
    }

    /// Whether there are no words in it.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Other(value) => value.is_null(),
        }
    }

    /// The text; of anything else its JSON, and of `null` nothing.
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Other(value) => text(&value),
        }
    }

    /// Reasoning and text of a content that may be a list of typed parts.
    pub(crate) fn into_parts(self) -> (String, String) {
        let parts = match self {
            Self::Text(text) => return (String::new(), text),
            Self::Other(Value::Array(parts)) => parts,
            Self::Other(value) => return (String::new(), text(&value)),
        };
        let (mut reasoning, mut content) = (String::new(), String::new());
        for part in &parts {
            if let Some(thought) = part.get("thinking") {
                reasoning.push_str(&plain(thought));
            } else {
                content.push_str(&plain(part));
            }
        }
        (reasoning, content)
    }
}

/// The text of a JSON string; nothing for any other value, and for the rarer escapes.
fn unescaped(raw: &str) -> Option<String> {
    let mut rest = raw.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(rest.len());
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        let meant = match rest.as_bytes().get(at + 1)? {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            plain @ (b'"' | b'\\' | b'/') => char::from(*plain),
            _ => return None,
        };
        text.push_str(&rest[..at]);
        text.push(meant);
        rest = &rest[at + 2..];
    }
    text.push_str(rest);
    Some(text)
}

/// The text of any value: strings as they are, `null` as nothing, the rest as JSON.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The words in a part of a content: a string, a list of parts, or an object with a `text`.
fn plain(part: &Value) -> String {
    match part {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        part => part.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
    }
}

impl<'de> Deserialize<'de> for LooseText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = LooseText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<LooseText, E> {
        Ok(LooseText::Text(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<LooseText, E> {
        Ok(LooseText::Text(text))
    }

    fn visit_unit<E: de::Error>(self) -> Result<LooseText, E> {
        Ok(LooseText::Other(Value::Null))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<LooseText, E> {
        Ok(LooseText::Other(value.into()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<LooseText, E> {
        Ok(LooseText::Other(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<LooseText, E> {
        Ok(LooseText::Other(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<LooseText, E> {
        Ok(LooseText::Other(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<LooseText, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(seq)).map(LooseText::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LooseText, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(map)).map(LooseText::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_as_any_parser_reads_it() {
        for text in ["", "plain", "a \"b\" \\ / \n\t\r", "\u{8}\u{c}\u{1}", "é 😀 长", "\\n", "\\"] {
            let escaped = serde_json::to_string(text).unwrap();
            let all: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            for raw in [escaped, format!("\"{all}\"")] {
                let raw = RawValue::from_string(raw.clone()).unwrap();
                assert_eq!(LooseText::from_raw(&raw).unwrap().into_text(), text, "{raw}");
            }
        }
        let from_raw = |raw: &str| LooseText::from_raw(&RawValue::from_string(raw.to_owned()).unwrap());
        assert_eq!(from_raw(r#""\/""#).unwrap().into_text(), "/");
        assert_eq!(from_raw("[1]").unwrap().into_text(), "[1]");
        assert_eq!(from_raw("null").unwrap().into_text(), "");
        assert_eq!(from_raw("-1e400").unwrap().into_text(), "-1e400");
        assert!(from_raw(r#""\ud800""#).is_err(), "half a character");
    }
}
