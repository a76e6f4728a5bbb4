//! A JSON value that should be a count and, with some vendors, is a fraction, a text or nothing.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A count, read from `12`, `12.0` or `"12"`; anything else is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Count(Option<u64>);

impl Count {
    /// The number; zero if there is none.
    pub(crate) fn or_zero(self) -> u64 {
        self.0.unwrap_or_default()
    }

    /// This count, or else another.
    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0.or(other.0))
    }

    /// The number, if there is one.
    pub(crate) fn get(self) -> Option<u64> {
        self.0
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor)
    }
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Count, E> {
        Ok(Count(Some(value)))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Count, E> {
        Ok(Count(u64::try_from(value).ok()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Count, E> {
        // The conversion cuts off what is too large.
        Ok(Count((value >= 0.0).then_some(value as u64)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Count, E> {
        match text.trim().parse() {
            Ok(value) => Ok(Count(Some(value))),
            Err(_) => text.trim().parse().map_or(Ok(Count(None)), |value| self.visit_f64(value)),
        }
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Count, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Count(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Count, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Count(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_read_from_any_value() {
        for (raw, want) in [
            ("12", Some(12)),
            ("12.0", Some(12)),
            ("\"12\"", Some(12)),
            ("\" 12.0 \"", Some(12)),
            ("0", Some(0)),
            ("1e3", Some(1000)),
            ("1e300", Some(u64::MAX)),
            ("-3", None),
            ("-3.5", None),
            ("null", None),
            ("true", None),
            ("\"many\"", None),
            ("\"NaN\"", None),
            ("[1,{}]", None),
            ("{\"a\":[2]}", None),
        ] {
            assert_eq!(serde_json::from_str::<Count>(raw).unwrap().get(), want, "{raw}");
        }
    }
}
