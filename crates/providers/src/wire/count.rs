//! A JSON value that should be a count and, with some vendors, is a fraction, a text or nothing.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The largest count that is believed: no reply has more tokens, and a sum of such counts cannot run over.
const MAX: u64 = 1_000_000_000;

/// A count, read from `12`, `12.0` or `"12"`; anything else is none, also what no reply can have.
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
        Ok(Count(Some(value).filter(|value| *value <= MAX)))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Count, E> {
        u64::try_from(value).map_or(Ok(Count(None)), |value| self.visit_u64(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Count, E> {
        // The conversion cuts off what is too large.
        if value >= 0.0 { self.visit_u64(value as u64) } else { Ok(Count(None)) }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Count, E> {
        match text.trim().parse() {
            Ok(value) => self.visit_u64(value),
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
            ("1e300", None),
            ("18446744073709551615", None),
            ("1000000000", Some(1_000_000_000)),
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
