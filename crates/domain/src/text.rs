//! A text that is serialised and digested again and again.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::id::{Digesting, digested};

/// A shared text, such as a prompt. It is sent to models and logged many times, so its JSON and its digest are computed once.
#[derive(Clone, Default)]
pub struct Text(Option<Arc<Inner>>);

struct Inner {
    text: Arc<str>,
    json: OnceLock<Box<RawValue>>,
    /// A cached digest: the state before this text and after it.
    digest: OnceLock<(u64, u64)>,
}

impl Text {
    /// The state of a digest after this text, cached for the first preceding state, which is nearly always the same.
    pub(crate) fn digested(&self, before: u64) -> u64 {
        let Some(inner) = &self.0 else { return digested(before, "") };
        match inner.digest.get_or_init(|| (before, digested(before, &inner.text))) {
            (known, with) if *known == before => *with,
            _ => digested(before, &inner.text),
        }
    }
}

impl Digesting {
    /// Like [`Digesting::part`], but uses the cached result if the same text followed the same parts before.
    pub fn text(&mut self, part: &Text) {
        self.0 = part.digested(self.0);
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.as_ref().map_or("", |inner| &inner.text)
    }
}

impl From<Arc<str>> for Text {
    fn from(text: Arc<str>) -> Self {
        Self((!text.is_empty()).then(|| Arc::new(Inner { text, json: OnceLock::new(), digest: OnceLock::new() })))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Arc::<str>::from(text).into()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Arc::<str>::from(text).into()
    }
}

impl From<Text> for Arc<str> {
    fn from(text: Text) -> Self {
        text.0.map(|inner| inner.text.clone()).unwrap_or_default()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text {}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(inner) = &self.0 else { return serializer.serialize_str("") };
        if inner.json.get().is_none() {
            let json = to_raw_value(&*inner.text).map_err(serde::ser::Error::custom)?;
            let _ = inner.json.set(json);
        }
        inner.json.get().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Arc::<str>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_and_read_as_the_text_that_it_is() {
        for text in ["", "plain", "two\nlines, a \"quote\", a \\, 中文 and \u{1}"] {
            let shared = Text::from(text);
            for _ in 0..2 {
                assert_eq!(serde_json::to_string(&shared).unwrap(), serde_json::to_string(text).unwrap());
                assert_eq!(serde_json::to_value(&shared).unwrap(), text);
            }
            let read: Text = serde_json::from_str(&serde_json::to_string(&shared).unwrap()).unwrap();
            assert_eq!((&read, &*read, read.to_string()), (&shared, text, text.to_owned()));
            assert_eq!(format!("{shared:?}"), format!("{text:?}"));
        }
        assert_eq!(Text::default(), Text::from(""));
    }

    #[test]
    fn its_json_is_made_once() {
        let shared = Text::from("a\nb");
        let copy = shared.clone();
        let _ = serde_json::to_string(&shared).unwrap();
        let made = |text: &Text| text.0.as_ref().and_then(|inner| inner.json.get().map(|json| json.get().as_ptr()));
        assert!(made(&copy).is_some());
        let _ = serde_json::to_string(&copy).unwrap();
        assert_eq!(made(&copy), made(&shared));
    }

    #[test]
    fn a_text_is_digested_as_the_part_that_it_is_whatever_came_before() {
        let text = Text::from("a prompt of some length");
        for before in ["m", "m", "n", "m"] {
            let mut digesting = Digesting::default();
            digesting.part(before);
            digesting.text(&text);
            digesting.text(&Text::default());
            assert_eq!(digesting.digest(), crate::Digest::of([before, &*text, ""]));
        }
        assert_eq!(crate::Digest::of(["ab", "c"]), crate::Digest::of(["ab", "c"]));
    }
}
