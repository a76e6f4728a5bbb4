//! Questions to a person that need more than a yes: a text, one of several options, a form, a visit of a page. And whether an
//! answer fits.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{AnswerRules, Artifact, CallResult, Matching, PersonId};

/// A question to the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// The text of the question.
    pub text: String,
    /// The form of the answer.
    #[serde(default, skip_serializing_if = "Wanted::is_agreement")]
    pub wanted: Wanted,
    /// How many milliseconds to wait for an answer; without limit if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience_ms: Option<u64>,
}

/// The form of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Wanted {
    /// A yes or no.
    #[default]
    Agreement,
    /// A text.
    Text {
        /// If there are any, the answer must be one of these.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
    },
    /// An object that matches a schema: one level of texts, numbers, booleans and choices.
    Form {
        /// The JSON schema of the object.
        schema: Value,
    },
    /// A visit of a page by the person. Polis never opens it itself.
    Visit {
        /// The address of the page.
        url: String,
    },
}

impl Question {
    /// A question for a text or, if there are options, for one of them.
    pub fn words(text: impl Into<String>, options: Vec<String>) -> Self {
        Self { text: text.into(), wanted: Wanted::Text { options }, patience_ms: None }
    }

    /// Limits how long to wait for the answer.
    #[must_use]
    pub fn within(self, patience_ms: u64) -> Self {
        Self { patience_ms: Some(patience_ms), ..self }
    }
}

impl Wanted {
    pub(crate) fn is_agreement(&self) -> bool {
        *self == Self::Agreement
    }

    /// The decision with the defaults of the form in the fields that the person left out. A default that the form itself does not
    /// allow is left out too.
    pub fn with_defaults(&self, mut verdict: Verdict) -> Verdict {
        let (Self::Form { schema }, Some(Value::Object(filled))) = (self, &mut verdict.answer) else { return verdict };
        for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let default = field.get("default").filter(|default| wrong_with(field, default).is_none());
            if let (Some(default), false) = (default, filled.contains_key(name)) {
                filled.insert(name.clone(), default.clone());
            }
        }
        verdict
    }

    /// Checks that a decision answers the question. Declining is always possible.
    pub fn check(&self, verdict: &Verdict) -> Result<(), String> {
        match (self, &verdict.answer) {
            _ if !verdict.approved => Ok(()),
            (Self::Agreement | Self::Visit { .. }, None) => Ok(()),
            (Self::Agreement | Self::Visit { .. }, Some(_)) => Err("it wants a yes or a no, and no other words".to_owned()),
            (Self::Text { .. }, None) => Err("it wants words: say an answer".to_owned()),
            (Self::Text { options }, Some(Value::String(text))) => match options.iter().any(|option| option == text) {
                _ if text.trim().is_empty() => Err("the answer is empty".to_owned()),
                false if !options.is_empty() => Err(format!("the answer must be one of: {}", options.join(", "))),
                _ => Ok(()),
            },
            (Self::Text { .. }, Some(_)) => Err("the answer must be a text".to_owned()),
            (Self::Form { .. }, None) => Err("it wants a form filled in: give an object".to_owned()),
            (Self::Form { schema }, Some(Value::Object(filled))) => check_form(schema, filled),
            (Self::Form { .. }, Some(_)) => Err("the answer must be an object".to_owned()),
        }
    }
}

fn check_form(schema: &Value, filled: &Map<String, Value>) -> Result<(), String> {
    let none = Map::new();
    let fields = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    if let Some(unknown) = filled.keys().find(|name| !fields.contains_key(*name)) {
        let known = fields.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        return Err(format!("there is no field `{unknown}`; the fields are {known}"));
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.into_iter().find(|name| !filled.contains_key(*name)) {
        return Err(format!("the field `{missing}` is missing"));
    }
    for (name, value) in filled {
        let wrong = fields.get(name).and_then(|field| wrong_with(field, value));
        if let Some(wrong) = wrong {
            return Err(format!("the field `{name}` {wrong}"));
        }
    }
    Ok(())
}

/// Checks the value of a field.
fn wrong_with(field: &Value, value: &Value) -> Option<String> {
    let number = |name: &str| field.get(name).and_then(Value::as_f64);
    let must = |is_so: bool, what: String| (!is_so).then(|| format!("must {what}"));
    let within = |size: f64, least: &str, most: &str, of: &str| {
        let low = number(least).filter(|least| size < *least).map(|least| format!("must have at least {least} {of}"));
        low.or_else(|| number(most).filter(|most| size > *most).map(|most| format!("must have at most {most} {of}")))
    };
    match (field.get("type").and_then(Value::as_str), value) {
        (Some("string"), Value::String(text)) => match choices(field) {
            Some(choices) => must(choices.contains(&text.as_str()), format!("be one of {}", choices.join(", "))),
            None => within(text.chars().count() as f64, "minLength", "maxLength", "characters").or_else(|| {
                let format = field.get("format").and_then(Value::as_str)?;
                must(has_format(format, text), format!("be a text of the format {format}"))
            }),
        },
        (Some("boolean"), Value::Bool(_)) => None,
        (Some(kind @ ("number" | "integer")), Value::Number(given)) => {
            let given = given.as_f64().unwrap_or(f64::NAN);
            if kind == "integer" && given.fract() != 0.0 {
                return Some("must be a whole number".to_owned());
            }
            let low = number("minimum").filter(|least| given < *least).map(|least| format!("must be at least {least}"));
            low.or_else(|| number("maximum").filter(|most| given > *most).map(|most| format!("must be at most {most}")))
        }
        (Some("array"), Value::Array(chosen)) => {
            let known = field.get("items").and_then(choices).unwrap_or_default();
            let is_known = |one: &Value| one.as_str().is_some_and(|text| known.contains(&text));
            must(chosen.iter().all(is_known), format!("hold only {}", known.join(", ")))
                .or_else(|| within(chosen.len() as f64, "minItems", "maxItems", "entries"))
        }
        (Some(kind), _) => Some(format!("must be of the type {kind}")),
        (None, Value::Object(_) | Value::Array(_)) => Some("must be one plain value".to_owned()),
        (None, _) => None,
    }
}

/// The allowed values of a field, if they are listed.
fn choices(field: &Value) -> Option<Vec<&str>> {
    if let Some(values) = field.get("enum").and_then(Value::as_array) {
        return Some(values.iter().filter_map(Value::as_str).collect());
    }
    let titled = field.get("oneOf").or_else(|| field.get("anyOf")).and_then(Value::as_array)?;
    Some(titled.iter().filter_map(|one| one.get("const")?.as_str()).collect())
}

/// A rough check of the four formats that the MCP elicitation schema has.
fn has_format(format: &str, text: &str) -> bool {
    let digits = |text: &str, parts: &[usize], by: char| {
        let lengths: Vec<usize> = text.split(by).map(str::len).collect();
        lengths == parts && text.chars().all(|c| c == by || c.is_ascii_digit())
    };
    let is_date = |text: &str| digits(text, &[4, 2, 2], '-');
    match format {
        "email" => text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.')),
        "uri" => text.split_once(':').is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty()),
        "date" => is_date(text),
        "date-time" => text
            .split_once(['T', 't'])
            .is_some_and(|(date, time)| is_date(date) && time.get(..8).is_some_and(|time| digits(time, &[2, 2, 2], ':'))),
        _ => true,
    }
}

/// The decision of a person about an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// Whether they approve.
    pub approved: bool,
    /// The reason, for the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For a call: changed arguments, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Arc<str>>,
    /// For a call: which similar calls need no further approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<Always>,
    /// With `always`: the pattern of the calls that are covered; the proposed one if none is given.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub matching: Option<Matching>,
    /// The answer of the person, if a yes or no is not enough: a text or an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// The person who decided. The society sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<PersonId>,
    /// For a call of a client's tool: what the client prescribes for the answer from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Arc<AnswerRules>>,
    /// For a call of a client's tool: the files of its result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
}

impl Verdict {
    /// The reason of a refusal that no person gave, because the run was started without approvals.
    pub const NOBODY_ASKED: &str = "approvals are turned off for this run (--approve never)";

    /// A plain approval.
    pub fn yes() -> Self {
        Self {
            approved: true,
            reason: String::new(),
            arguments: None,
            always: None,
            matching: None,
            answer: None,
            by: None,
            rules: None,
            artifacts: Vec::new(),
        }
    }

    /// An approval with a text as its answer.
    pub fn words(text: impl Into<String>) -> Self {
        Self { answer: Some(Value::String(text.into())), ..Self::yes() }
    }

    /// The answer as the result of a call that asked for it; none without an answer.
    pub fn result(&self) -> Option<CallResult> {
        let answer = self.answer.as_ref().filter(|_| self.approved)?;
        let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
        Some(CallResult { media: self.artifacts.clone(), ..CallResult::good(text) })
    }

    /// A refusal.
    pub fn no(reason: impl Into<String>) -> Self {
        Self { approved: false, reason: reason.into(), ..Self::yes() }
    }
}

/// How far an approval goes beyond the one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Always {
    /// Calls of this agent, from now on.
    Agent,
    /// Calls for this request, of any agent.
    Task,
    /// Calls of any agent, from now on.
    Tool,
    /// Calls of any agent, from now on, of all tools that the same server declares as read-only.
    Reads,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answered(answer: Value) -> Verdict {
        Verdict { answer: Some(answer), ..Verdict::yes() }
    }

    #[test]
    fn words_are_any_or_one_of_the_options() {
        let any = Wanted::Text { options: Vec::new() };
        let colours = Wanted::Text { options: vec!["red".to_owned(), "蓝".to_owned()] };
        for (wanted, verdict, fits) in [
            (&any, answered(json!("whatever")), true),
            (&any, answered(json!("  ")), false),
            (&any, answered(json!(7)), false),
            (&any, Verdict::yes(), false),
            (&any, Verdict::no("not now"), true),
            (&colours, answered(json!("蓝")), true),
            (&colours, answered(json!("green")), false),
            (&Wanted::Agreement, Verdict::yes(), true),
            (&Wanted::Agreement, answered(json!("yes")), false),
            (&Wanted::Visit { url: "https://a.example".to_owned() }, Verdict::yes(), true),
        ] {
            assert_eq!(wanted.check(&verdict).is_ok(), fits, "{wanted:?} {verdict:?}");
        }
    }

    #[test]
    fn fields_that_are_left_out_get_their_defaults() {
        let wanted = Wanted::Form {
            schema: json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string", "default": "Ada" },
                    "age": { "type": "integer", "default": 36 },
                    "colour": { "type": "string", "enum": ["red", "blue"], "default": "blue" },
                    "pets": { "type": "array", "items": { "enum": ["cat"] }, "default": ["cat"] },
                    "size": { "type": "integer", "default": "large" },
                    "note": { "type": "string" },
                },
                "required": ["name", "age"],
            }),
        };
        let check = |answer: Option<Value>, want: Option<Value>| {
            let verdict = wanted.with_defaults(Verdict { answer, ..Verdict::yes() });
            assert_eq!(verdict.answer, want);
        };
        let all = json!({ "name": "Ada", "age": 36, "colour": "blue", "pets": ["cat"] });
        check(Some(json!({})), Some(all.clone()));
        check(
            Some(json!({ "name": "Bob", "note": "" })),
            Some({
                let mut some = all;
                (some["name"], some["note"]) = (json!("Bob"), json!(""));
                some
            }),
        );
        check(Some(json!("text")), Some(json!("text")));
        check(None, None);
        let words = Wanted::Text { options: Vec::new() };
        assert_eq!(words.with_defaults(answered(json!({}))).answer, Some(json!({})));
    }

    #[test]
    fn a_form_is_checked_field_by_field() {
        let wanted = Wanted::Form {
            schema: json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string", "minLength": 2, "maxLength": 5 },
                    "email": { "type": "string", "format": "email" },
                    "born": { "type": "string", "format": "date" },
                    "at": { "type": "string", "format": "date-time" },
                    "home": { "type": "string", "format": "uri" },
                    "age": { "type": "integer", "minimum": 0, "maximum": 150 },
                    "share": { "type": "number" },
                    "agrees": { "type": "boolean" },
                    "colour": { "type": "string", "enum": ["red", "blue"] },
                    "size": { "type": "string", "oneOf": [{ "const": "s", "title": "Small" }] },
                    "pets": { "type": "array", "maxItems": 1, "items": { "anyOf": [{ "const": "cat" }, { "const": "dog" }] } },
                },
                "required": ["name"],
            }),
        };
        let with = |field: &str, value: Value| {
            let mut filled = json!({ "name": "Ada" });
            filled[field] = value;
            wanted.check(&answered(filled))
        };
        for (field, value) in [
            ("name", json!("小明")),
            ("email", json!("a@b.example")),
            ("born", json!("1815-12-10")),
            ("at", json!("1815-12-10T08:00:00Z")),
            ("home", json!("https://a.example")),
            ("age", json!(36)),
            ("age", json!(36.0)),
            ("share", json!(0.5)),
            ("agrees", json!(false)),
            ("colour", json!("red")),
            ("size", json!("s")),
            ("pets", json!(["cat"])),
        ] {
            assert_eq!(with(field, value.clone()), Ok(()), "{field} {value}");
        }
        for (field, value) in [
            ("name", json!("A")),
            ("name", json!("Augusta")),
            ("name", json!(null)),
            ("email", json!("nobody")),
            ("born", json!("10.12.1815")),
            ("at", json!("1815-12-10")),
            ("home", json!("here")),
            ("age", json!(-1)),
            ("age", json!(151)),
            ("age", json!(1.5)),
            ("age", json!("36")),
            ("share", json!("half")),
            ("agrees", json!("yes")),
            ("colour", json!("green")),
            ("size", json!("Small")),
            ("pets", json!(["cat", "dog"])),
            ("pets", json!(["cow"])),
            ("pets", json!("cat")),
            ("other", json!(1)),
        ] {
            assert!(with(field, value.clone()).is_err_and(|why| why.contains(field)), "{field} {value}");
        }
        assert_eq!(wanted.check(&answered(json!({}))), Err("the field `name` is missing".to_owned()));
        assert!(wanted.check(&answered(json!("Ada"))).is_err() && wanted.check(&Verdict::yes()).is_err());
    }
}
