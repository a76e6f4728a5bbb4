//! Requests that happen once: a client that never saw the answer sends the same request again and gets the first answer.
//!
//! The key of a request is in the log, in the same append as what the request did. A repeat is therefore recognised after a crash
//! and by any process that has folded the log, and it is forgotten where the log is rewound to a place before it.

use std::collections::VecDeque;
use std::fmt;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{Digest, Seq};

/// Most requests that are remembered; the oldest are forgotten first.
const MAX_REQUESTS: usize = 10_000;

/// Tells the requests of all clients of a society apart: 128 bits of a digest, written as hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(pub u128);

impl IdempotencyKey {
    /// The key of these parts, each apart from its neighbours. Not cryptographic.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a str> + Clone) -> Self {
        let half = |name: &'a str| Digest::of(std::iter::once(name).chain(parts.clone())).bits();
        Self(u128::from(half("first")) << 64 | u128::from(half("second")))
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Serialize for IdempotencyKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for IdempotencyKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16).map(Self).map_err(de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for IdempotencyKey {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "IdempotencyKey".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }

    fn inline_schema() -> bool {
        true
    }
}

/// A request that happens once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// The same for a repeat.
    pub key: IdempotencyKey,
    /// Digest of everything that was asked: another request with the same key is a mistake of the client.
    pub fingerprint: Digest,
}

/// Where the log has what a request did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoneRequest {
    /// The request.
    pub request: Request,
    /// The event that recorded it.
    pub seq: Seq,
    /// How many events right before that one are its effect.
    pub events: u32,
}

/// The newest requests that were done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Requests {
    by_key: FxHashMap<IdempotencyKey, DoneRequest>,
    /// Oldest first.
    order: VecDeque<IdempotencyKey>,
}

impl Requests {
    /// The request of this key, if it was done.
    pub fn get(&self, key: IdempotencyKey) -> Option<&DoneRequest> {
        self.by_key.get(&key)
    }

    pub(crate) fn insert(&mut self, request: Request, seq: Seq, events: u32) {
        let key = request.key;
        if self.by_key.insert(key, DoneRequest { request, seq, events }).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > MAX_REQUESTS {
            let oldest = self.order.pop_front();
            oldest.and_then(|oldest| self.by_key.remove(&oldest));
        }
    }
}

impl Serialize for Requests {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.order.iter().filter_map(|key| self.by_key.get(key)))
    }
}

impl<'de> Deserialize<'de> for Requests {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut requests = Self::default();
        for DoneRequest { request, seq, events } in Vec::deserialize(deserializer)? {
            requests.insert(request, seq, events);
        }
        Ok(requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_requests_are_forgotten_and_the_others_are_read_back() {
        let mut requests = Requests::default();
        let request = |n: u64| Request { key: IdempotencyKey(n.into()), fingerprint: Digest::of(["a"]) };
        let done = |n: u64| DoneRequest { request: request(n), seq: Seq(n), events: 1 };
        (0..MAX_REQUESTS as u64 + 2).for_each(|n| requests.insert(request(n), Seq(n), 1));
        assert_eq!((requests.order.len(), requests.by_key.len()), (MAX_REQUESTS, MAX_REQUESTS));
        assert_eq!(requests.get(IdempotencyKey(1)), None);
        assert_eq!(requests.get(IdempotencyKey(2)), Some(&done(2)));
        let written = serde_json::to_string(&requests).unwrap();
        assert_eq!(serde_json::from_str::<Requests>(&written).unwrap(), requests);
    }
}
