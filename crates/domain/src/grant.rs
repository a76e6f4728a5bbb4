//! Which calls a lasting approval covers: patterns for their arguments, so that the approval of one payment is not an
//! approval of all.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use crate::{Call, ReadTool, fits};

/// The name that matches every argument without a pattern of its own.
const OTHERS: &str = "*";

/// Names of arguments that are content, not targets.
const CONTENT: &[&str] = &[
    "body", "caption", "comment", "content", "contents", "html", "markdown", "message", "note", "notes", "subject", "summary",
    "text",
];

/// A pattern for each argument by name. An argument without a pattern must be content, such as `body` or `text`, unless there
/// is a pattern for the name `*`, which matches all others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Matching(pub BTreeMap<String, Pattern>);

/// The pattern of an argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Pattern {
    /// Exactly this value. Values other than texts are compared as JSON with sorted names.
    Is(String),
    /// This text, where `*` matches any text.
    Like(String),
    /// A number up to this.
    AtMost(Number),
}

impl Matching {
    /// Covers any arguments.
    pub fn anything() -> Self {
        Self(BTreeMap::from([(OTHERS.to_owned(), Pattern::Like(OTHERS.to_owned()))]))
    }

    /// The proposed pattern for similar calls: every argument as it is except content, and only the host of a web address.
    pub fn proposed(arguments: &str) -> Self {
        let targets = fields(arguments).into_iter().filter(|(name, value)| !is_content(name, value));
        Self(targets.map(|(name, value)| (name, proposed(text_of(&value)))).collect())
    }

    /// Whether it covers a call with these arguments.
    pub fn covers(&self, arguments: &str) -> bool {
        let fields = fields(arguments);
        let is_there = |name: &String| name == OTHERS || fields.contains_key(name);
        let is_covered = |(name, value): (&String, &Value)| match self.0.get(name).or_else(|| self.0.get(OTHERS)) {
            Some(pattern) => pattern.covers(value),
            None => is_content(name, value),
        };
        self.0.keys().all(is_there) && fields.iter().all(is_covered)
    }
}

impl Pattern {
    fn covers(&self, value: &Value) -> bool {
        let text = text_of(value);
        match self {
            Self::Is(exactly) => *exactly == text,
            Self::Like(pattern) => fits(pattern, &text),
            Self::AtMost(most) => {
                let number = value.as_f64().or_else(|| text.trim().parse().ok());
                number.zip(most.as_f64()).is_some_and(|(number, most)| number <= most && (number >= 0.0 || most < 0.0))
            }
        }
    }
}

/// The values of a call that are targets: where it goes or what it touches.
pub fn targets(arguments: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (name, value) in fields(arguments).iter().filter(|(name, value)| !is_content(name, value)) {
        gather(value, &mut found);
        // A name may be a target itself.
        found.extend(name.contains(['@', '/', '.']).then(|| name.clone()));
    }
    found
}

/// The values of a call whose argument names say that they are amounts.
pub fn amounts(arguments: &str) -> Vec<String> {
    const NAMES: &[&str] = &["amount", "quantity", "price", "sum", "total", "value", "金额", "数量"];
    let fields = fields(arguments).into_iter();
    fields.filter(|(name, _)| NAMES.contains(&&*name.to_lowercase())).map(|(_, value)| text_of(&value)).collect()
}

/// Everything nested counts, because the meaning of nested names is unknown.
fn gather(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| gather(item, found)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            found.extend(name.contains(['@', '/', '.']).then(|| name.clone()));
            gather(value, found);
        }),
        Value::Null | Value::Bool(false) => {}
        // A switch such as `purge` or `network` can change what a call does.
        Value::Bool(true) | Value::Number(_) | Value::String(_) => found.push(text_of(value)),
    }
}

/// The arguments by name. A value that is not an object is one argument without a name.
fn fields(arguments: &str) -> Map<String, Value> {
    serde_json::from_str(arguments).unwrap_or_else(|_| Map::from_iter([(String::new(), arguments.into())]))
}

/// A value as patterns see it: a text as it is, anything else as JSON with sorted names.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => {
            let mut other = other.clone();
            other.sort_all_objects();
            other.to_string()
        }
    }
}

/// Whether an argument is content rather than a target. Only a text can be content, and a lone address is always a target,
/// whatever its name.
fn is_content(name: &str, value: &Value) -> bool {
    let Value::String(text) = value else { return false };
    let is_address = text.contains("://") && !text.trim().contains(char::is_whitespace);
    // A carriage return could end a header.
    CONTENT.contains(&name.to_ascii_lowercase().as_str()) && !is_address && !text.contains('\r')
}

fn proposed(text: String) -> Pattern {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#', '\\']).next());
    match host {
        Some(host) if !host.is_empty() && !host.contains(['@', '*']) && !text.ends_with(host) => {
            let scheme = &text[..text.len() - rest.map_or(0, str::len)];
            Pattern::Like(format!("{scheme}{host}/*"))
        }
        _ => Pattern::Is(text),
    }
}

/// The text for a person.
impl fmt::Display for Matching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("there are no arguments but content");
        }
        for (place, (name, pattern)) in self.0.iter().enumerate() {
            let and = if place == 0 { "" } else { " and " };
            match (name.as_str(), pattern) {
                (OTHERS, Pattern::Like(all)) if all == OTHERS => write!(f, "{and}any other argument")?,
                (name, Pattern::Is(value)) => write!(f, "{and}{name} is {value:?}")?,
                (name, Pattern::Like(value)) => write!(f, "{and}{name} is like {value:?}")?,
                (name, Pattern::AtMost(most)) => write!(f, "{and}{name} is at most {most}")?,
            }
        }
        Ok(())
    }
}

/// What an approval with `always` would cover.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastingApproval {
    /// The name of the tool.
    pub tool: Arc<str>,
    /// The digest of its definition, if it comes from a server.
    pub identity: Option<Arc<str>>,
    /// Which arguments count as similar to those of the pending call.
    pub matching: Matching,
    /// The tools of the same server that only read.
    pub reads: Vec<ReadTool>,
}

impl LastingApproval {
    pub(crate) fn of(call: &Call) -> Self {
        let (tool, identity, reads) = (call.tool.clone(), call.identity.clone(), call.reads.clone());
        Self { tool, identity, matching: Matching::proposed(&call.arguments), reads }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(granted: &Matching, arguments: &str) -> bool {
        granted.covers(arguments)
    }

    #[test]
    fn a_yes_to_one_payment_is_no_yes_to_another() {
        let granted = Matching::proposed(r#"{"recipient":"bob","amount":10,"note":"lunch"}"#);
        assert_eq!(granted.to_string(), r#"amount is "10" and recipient is "bob""#);
        assert!(covers(&granted, r#"{"note":"dinner","amount":10,"recipient":"bob"}"#));
        for other in [
            r#"{"recipient":"eve","amount":10}"#,
            r#"{"recipient":"bob","amount":10000}"#,
            r#"{"recipient":"bob"}"#,
            r#"{"recipient":"bob","amount":10,"ssh_key":"x"}"#,
            r#"{"recipient":["bob","eve"],"amount":10}"#,
            r#"{"recipient":"bob","amount":10,"note":"https://evil.example/x"}"#,
            "[]",
        ] {
            assert!(!covers(&granted, other), "{other}");
        }
    }

    #[test]
    fn a_target_inside_content_is_a_target() {
        let granted = Matching::proposed(r#"{"message":{"toRecipients":["bob@x.example"],"body":"hi"}}"#);
        assert!(!covers(&granted, r#"{"message":{"toRecipients":["eve@x.example"],"body":"hi"}}"#));
        assert_eq!(targets(r#"{"recipients":{"eve@x.example":true}}"#), ["eve@x.example", "true"]);
        assert_eq!(targets(r#"{"message":{"note":"cc: eve"}}"#), ["cc: eve"]);
    }

    #[test]
    fn a_star_in_an_argument_stands_for_itself() {
        let odd = Matching::proposed("*");
        assert!(covers(&odd, "*") && !covers(&odd, "x") && !covers(&odd, "{}"), "no object");
        let granted = Matching::proposed(r#"{"path":"*"}"#);
        assert!(covers(&granted, r#"{"path":"*"}"#) && !covers(&granted, r#"{"path":"a"}"#));
    }

    #[test]
    fn an_address_is_granted_by_its_host() {
        let granted = Matching::proposed(r#"{"url":"https://docs.example/a?b"}"#);
        assert!(covers(&granted, r#"{"url":"https://docs.example/other"}"#));
        for other in [
            "https://docs.example.evil.test/",
            "https://docs.example@evil.test/",
            "http://docs.example/a",
            "https://docs.example",
        ] {
            assert!(!covers(&granted, &format!(r#"{{"url":"{other}"}}"#)), "{other}");
        }
        for odd in ["https://u@docs.example/a", "https://*/a", "https:///a", "https://docs.example"] {
            let exactly = BTreeMap::from([("url".to_owned(), Pattern::Is(odd.to_owned()))]);
            assert_eq!(Matching::proposed(&format!(r#"{{"url":"{odd}"}}"#)), Matching(exactly), "{odd}");
        }
    }

    #[test]
    fn a_person_can_widen_what_is_granted() {
        let read = |text: &str| serde_json::from_str::<Matching>(text).unwrap();
        let granted = read(r#"{"recipient":{"is":"bob"},"amount":{"atMost":100}}"#);
        assert!(
            covers(&granted, r#"{"recipient":"bob","amount":99.5}"#) && covers(&granted, r#"{"recipient":"bob","amount":"7"}"#)
        );
        assert!(
            !covers(&granted, r#"{"recipient":"bob","amount":101}"#)
                && !covers(&granted, r#"{"recipient":"bob","amount":"all"}"#)
        );
        let folder = read(r#"{"path":{"like":"notes/*"}}"#);
        assert!(covers(&folder, r#"{"path":"notes/a","content":"x"}"#) && !covers(&folder, r#"{"path":"b","content":"x"}"#));
        assert!(covers(&Matching::anything(), r#"{"a":{"b":1}}"#) && covers(&Matching::anything(), "{}"));
    }

    #[test]
    fn targets_are_found_at_any_depth_and_content_is_none() {
        let mut found =
            targets(r#"{"to":["a@x","b@x"],"body":"long","opts":{"path":"p","n":3,"ok":true},"text":"https://e/x"}"#);
        found.sort();
        assert_eq!(found, ["3", "a@x", "b@x", "https://e/x", "p", "true"]);
    }
}
