//! The ids of tool calls as a vendor takes them. A conversation may have ids of other vendors, from before its model was changed,
//! and some models give one id to two calls.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use polis_domain::Digest;
use polis_ports::{ChatMessage, ModelRequest};
use serde_json::Value;

/// Which ids of calls a vendor takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallIds {
    /// Any.
    Any,
    /// Any of at most so many bytes.
    UpTo(usize),
    /// At most 64 letters, digits, `_` and `-`.
    Words,
    /// Exactly nine letters and digits.
    Nine,
}

/// The most characters in an id of [`CallIds::Words`].
const MAX_WORD_BYTES: usize = 64;

/// The length of an id of [`CallIds::Nine`].
const NINE: usize = 9;

impl CallIds {
    /// The request with ids that this vendor takes, each of its own. Requests that begin alike get the same ids.
    pub(crate) fn fit(self, request: &ModelRequest) -> Cow<'_, ModelRequest> {
        let mut used = BTreeSet::new();
        let is_fine = request.messages.iter().all(|message| match message {
            ChatMessage::Assistant { tool_calls, .. } => {
                tool_calls.iter().all(|call| self.takes(&call.id) && used.insert(call.id.clone()))
            }
            ChatMessage::Tool { call_id, .. } => self.takes(call_id),
            ChatMessage::User { .. } => true,
        });
        if is_fine {
            return Cow::Borrowed(request);
        }
        let mut request = request.clone();
        let (mut used, mut open) = (BTreeSet::new(), VecDeque::new());
        for message in &mut request.messages {
            match message {
                ChatMessage::User { .. } => {}
                ChatMessage::Assistant { tool_calls, echo, .. } => {
                    open.clear();
                    for call in tool_calls.iter_mut() {
                        let own = std::mem::take(&mut call.id);
                        call.id = self.unused(&own, &mut used);
                        open.push_back((own, call.id.clone()));
                    }
                    if let Some(echo) = echo.as_mut().filter(|_| open.iter().any(|(own, new)| own != new)) {
                        rename(Arc::make_mut(echo), &mut open.clone());
                    }
                }
                ChatMessage::Tool { call_id, .. } => {
                    // Calls that share an id are answered in their order.
                    let place = open.iter().position(|(own, _)| own == call_id);
                    *call_id = match place.and_then(|place| open.remove(place)) {
                        Some((_, new)) => new,
                        None => self.fitting(call_id, 0),
                    };
                }
            }
        }
        Cow::Owned(request)
    }

    fn takes(self, id: &str) -> bool {
        match self {
            Self::Any => true,
            Self::UpTo(bytes) => id.len() <= bytes,
            Self::Words => !id.is_empty() && id.len() <= MAX_WORD_BYTES && id.bytes().all(is_word),
            Self::Nine => id.len() == NINE && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        }
    }

    fn unused(self, id: &str, used: &mut BTreeSet<Arc<str>>) -> Arc<str> {
        let mut candidates = (0..).map(|attempt| self.fitting(id, attempt));
        candidates.find(|candidate| used.insert(candidate.clone())).expect("one attempt gives an id that is not used")
    }

    /// An id that is taken, made of another; each attempt gives another one.
    fn fitting(self, id: &str, attempt: u32) -> Arc<str> {
        if attempt == 0 && self.takes(id) {
            return id.into();
        }
        let similar: String = id.chars().map(|c| if c.is_ascii() && is_word(c as u8) { c } else { '_' }).collect();
        if attempt == 0 && self == Self::Words && self.takes(&similar) {
            return similar.into();
        }
        let made = letters(&Digest::of([id, &attempt.to_string()]));
        if self == Self::Nine { made.into() } else { format!("call_{made}").into() }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The beginning of a digest in letters and digits.
fn letters(digest: &Digest) -> String {
    let text = serde_json::to_value(digest).unwrap_or_default();
    let text = text.as_str().unwrap_or_default().chars().filter(char::is_ascii_alphanumeric);
    text.chain(std::iter::repeat('0')).take(NINE).collect()
}

/// Gives the calls in an echo their new ids, in order.
fn rename(echo: &mut Value, open: &mut VecDeque<(Arc<str>, Arc<str>)>) {
    for item in echo["items"].as_array_mut().into_iter().flatten() {
        let id = match item["type"].as_str() {
            Some("tool_use") => item.get_mut("id"),
            Some("function_call") => item.get_mut("call_id"),
            _ if item.get("toolUse").is_some() => item["toolUse"].get_mut("toolUseId"),
            _ => item.get_mut("functionCall").and_then(|call| call.get_mut("id")),
        };
        let Some(id) = id else { continue };
        let place = open.iter().position(|(own, _)| *id == **own);
        if let Some((_, new)) = place.and_then(|place| open.remove(place)) {
            *id = Value::from(&*new);
        }
    }
}

#[cfg(test)]
mod tests {
    use polis_domain::ToolCall;
    use serde_json::json;

    use super::*;

    fn calls(ids: &[&str]) -> ChatMessage {
        let call = |id: &&str| ToolCall { id: (*id).into(), name: "f".into(), arguments: "{}".into() };
        ChatMessage::Assistant { text: "".into(), reasoning: "".into(), tool_calls: ids.iter().map(call).collect(), echo: None }
    }

    fn result(id: &str) -> ChatMessage {
        ChatMessage::Tool { call_id: id.into(), name: "f".into(), content: "".into(), is_error: false, media: Vec::new() }
    }

    /// The ids of calls and results, in order.
    fn ids(request: &ModelRequest) -> Vec<String> {
        let of = |message: &ChatMessage| match message {
            ChatMessage::User { .. } => vec![],
            ChatMessage::Assistant { tool_calls, .. } => tool_calls.iter().map(|call| call.id.to_string()).collect(),
            ChatMessage::Tool { call_id, .. } => vec![call_id.to_string()],
        };
        request.messages.iter().flat_map(of).collect()
    }

    fn request(messages: Vec<ChatMessage>) -> ModelRequest {
        ModelRequest { messages, ..ModelRequest::default() }
    }

    #[test]
    fn ids_that_are_taken_stay() {
        let kept = request(vec![calls(&["abcDEF123", "000000000"]), result("000000000"), result("abcDEF123")]);
        for rule in [CallIds::Any, CallIds::UpTo(40), CallIds::Words, CallIds::Nine] {
            assert!(matches!(rule.fit(&kept), Cow::Borrowed(_)), "{rule:?}");
        }
    }

    #[test]
    fn every_vendor_gets_ids_that_it_takes_and_results_follow_their_calls() {
        let long = "call_".repeat(20);
        let asked = request(vec![
            calls(&["call_PTLP8xhu3uwZk4l3nlnrrJha", "functions.f:0", &long]),
            result("functions.f:0"),
            result(&long),
            result("call_PTLP8xhu3uwZk4l3nlnrrJha"),
            calls(&["", "调用"]),
            result("调用"),
            result(""),
        ]);
        for rule in [CallIds::Any, CallIds::UpTo(40), CallIds::Words, CallIds::Nine] {
            let fitted = ids(&rule.fit(&asked));
            assert!(fitted.iter().all(|id| rule.takes(id)), "{rule:?} {fitted:?}");
            let [a, b, c, result_b, result_c, result_a, d, e, result_e, result_d] = &fitted[..] else { panic!("{fitted:?}") };
            assert_eq!([a, b, c, d, e], [result_a, result_b, result_c, result_d, result_e], "{rule:?}");
            assert_eq!(BTreeSet::from([a, b, c, d, e]).len(), 5, "{rule:?} {fitted:?}");
            let beginning = request(asked.messages[..4].to_vec());
            assert_eq!(ids(&rule.fit(&beginning)), fitted[..6], "{rule:?}: the beginning stays as it was");
        }
        assert_eq!(ids(&CallIds::Words.fit(&asked))[1], "functions_f_0");
    }

    #[test]
    fn two_calls_with_one_id_get_two_ids_in_every_part_of_the_request() {
        let mut twice = calls(&["a", "a"]);
        if let ChatMessage::Assistant { echo, .. } = &mut twice {
            *echo = Some(Arc::new(json!({ "dialect": "anthropic", "items": [
                { "type": "thinking", "thinking": "hm" },
                { "type": "tool_use", "id": "a" },
                { "type": "tool_use", "id": "a" },
            ] })));
        }
        let asked = request(vec![twice, result("a"), result("a"), calls(&["a"]), result("a")]);
        for rule in [CallIds::Any, CallIds::UpTo(40), CallIds::Words] {
            let fitted = rule.fit(&asked);
            let ids = ids(&fitted);
            assert_eq!(ids[..2], ids[2..4], "{rule:?}");
            assert_eq!((ids[0].as_str(), &ids[4]), ("a", &ids[5]), "{rule:?}");
            assert_eq!(BTreeSet::from([&ids[0], &ids[1], &ids[4]]).len(), 3, "{rule:?} {ids:?}");
            let ChatMessage::Assistant { echo: Some(echo), .. } = &fitted.messages[0] else { panic!("no echo") };
            assert_eq!([&echo["items"][1]["id"], &echo["items"][2]["id"]], [&json!(ids[0]), &json!(ids[1])]);
        }
    }
}
