//! Whether a value has the shape that a JSON schema describes. The words that are checked: `type`, `enum`, `const`, `$ref` within
//! the schema, `anyOf`, `oneOf` (as `anyOf`), `allOf`, `properties`, `required`, `additionalProperties`, `items`, `minItems`,
//! `maxItems`, `minLength`, `maxLength`, `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`. Other words, such as
//! `pattern` and `format`, say nothing.

use serde_json::{Map, Value};

/// How many faults are reported.
const MOST: usize = 30;

/// How deep a value and its schema are looked into. A reference may lead to itself.
const MAX_DEPTH: usize = 100;

/// How many comparisons one check may take. Alternatives that refer to each other could take for ever.
const MAX_STEPS: usize = 100_000;

/// The faults of a value, each with its path, such as `todos[0].priority: must be at least 1, but is 0`.
pub fn misfits(schema: &Value, value: &Value) -> Vec<String> {
    let mut look = Look { root: schema, faults: Vec::new(), depth: 0, steps: MAX_STEPS };
    look.at(schema, value, "");
    look.faults.truncate(MOST);
    look.faults
}

/// A comparison of a value with a schema.
struct Look<'a> {
    root: &'a Value,
    faults: Vec<String>,
    depth: usize,
    /// Comparisons that are left.
    steps: usize,
}

impl Look<'_> {
    fn fault(&mut self, at: &str, what: String) {
        self.faults.push(if at.is_empty() { what } else { format!("{at}: {what}") });
    }

    fn at(&mut self, schema: &Value, value: &Value, at: &str) {
        if self.faults.len() >= MOST {
            return;
        }
        if self.depth == MAX_DEPTH || self.steps == 0 {
            return self.fault(at, "is nested too deeply".to_owned());
        }
        self.depth += 1;
        self.steps -= 1;
        self.check(schema, value, at);
        self.depth -= 1;
    }

    /// The faults of a value against another schema of the same document.
    fn faults_of(&mut self, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let mut look = Look { root: self.root, faults: Vec::new(), depth: self.depth, steps: self.steps };
        look.at(schema, value, at);
        self.steps = look.steps;
        look.faults
    }

    fn check(&mut self, schema: &Value, value: &Value, at: &str) {
        if *schema == false {
            return self.fault(at, "must not be there".to_owned());
        }
        if let Some(reference) = schema["$ref"].as_str() {
            let root = self.root;
            match reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer)) {
                Some(target) => self.at(target, value, at),
                None => self.fault(at, format!("its schema refers to `{reference}`, which is not there")),
            }
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            kind => kind.as_str().into_iter().collect(),
        };
        if !kinds.is_empty() && !kinds.iter().any(|kind| is(kind, value)) {
            let kinds = kinds.into_iter().map(in_words).collect::<Vec<_>>().join(" or ");
            return self.fault(at, format!("must be {kinds}, but is {}", display(value)));
        }
        if let Some(names) = schema["enum"].as_array()
            && !names.contains(value)
        {
            let names = names.iter().map(display).collect::<Vec<_>>().join(", ");
            self.fault(at, format!("must be one of {names}, but is {}", display(value)));
        }
        if let Some(only) = schema.get("const").filter(|only| *only != value) {
            self.fault(at, format!("must be {}, but is {}", display(only), display(value)));
        }
        self.alternatives(schema, value, at);
        match value {
            Value::Number(number) => self.number(schema, number.as_f64().unwrap_or_default(), at),
            Value::String(text) => self.text(schema, text, at),
            Value::Array(list) => self.list(schema, list, at),
            Value::Object(object) => self.fields(schema, object, at),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn alternatives(&mut self, schema: &Value, value: &Value, at: &str) {
        for all in schema["allOf"].as_array().into_iter().flatten() {
            self.at(all, value, at);
        }
        for any in ["anyOf", "oneOf"].iter().filter_map(|word| schema[*word].as_array()) {
            let faults: Vec<_> = any.iter().map(|schema| self.faults_of(schema, value, at)).collect();
            // The nearest alternative says best what is wrong.
            if !faults.iter().any(Vec::is_empty) {
                self.faults.extend(faults.into_iter().min_by_key(Vec::len).into_iter().flatten());
            }
        }
    }

    fn number(&mut self, schema: &Value, number: f64, at: &str) {
        let limit = |word: &str| schema[word].as_f64();
        let fault = match () {
            () if limit("minimum").is_some_and(|least| number < least) => ("at least", "minimum"),
            () if limit("exclusiveMinimum").is_some_and(|least| number <= least) => ("more than", "exclusiveMinimum"),
            () if limit("maximum").is_some_and(|most| number > most) => ("at most", "maximum"),
            () if limit("exclusiveMaximum").is_some_and(|most| number >= most) => ("less than", "exclusiveMaximum"),
            () => return,
        };
        self.fault(at, format!("must be {} {}, but is {number}", fault.0, schema[fault.1]));
    }

    fn text(&mut self, schema: &Value, text: &str, at: &str) {
        if (text.trim().chars().count() as u64) < schema["minLength"].as_u64().unwrap_or_default() {
            return self.fault(at, "must not be empty".to_owned());
        }
        let most = schema["maxLength"].as_u64().unwrap_or(u64::MAX);
        if text.chars().count() as u64 > most {
            self.fault(at, format!("must have at most {most} characters"));
        }
    }

    fn list(&mut self, schema: &Value, list: &[Value], at: &str) {
        let (least, most) = (schema["minItems"].as_u64(), schema["maxItems"].as_u64());
        if (list.len() as u64) < least.unwrap_or_default() || list.len() as u64 > most.unwrap_or(u64::MAX) {
            let bounds = format!("at least {} and at most {}", least.unwrap_or_default(), most.unwrap_or(u64::MAX));
            self.fault(at, format!("must have {bounds} elements, but has {}", list.len()));
        }
        for (n, element) in list.iter().enumerate() {
            self.at(&schema["items"], element, &format!("{at}[{n}]"));
        }
    }

    fn fields(&mut self, schema: &Value, object: &Map<String, Value>, at: &str) {
        let below = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
        let missing = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let missing = missing.filter(|name| !object.contains_key(*name));
        self.faults.extend(missing.map(|name| format!("{}: is missing", below(name))));
        let none = Map::new();
        let known = schema["properties"].as_object().unwrap_or(&none);
        for (name, value) in object {
            match (known.get(name), &schema["additionalProperties"]) {
                (Some(schema), _) => self.at(schema, value, &below(name)),
                (None, Value::Bool(false)) => {
                    let names = known.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                    self.faults.push(format!("{}: is not known; there are {names}", below(name)));
                }
                (None, others @ Value::Object(_)) => self.at(others, value, &below(name)),
                (None, _) => {}
            }
        }
    }
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        // 1.0 is an integer in JSON schema.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "null" => value.is_null(),
        _ => true,
    }
}

fn in_words(kind: &str) -> &str {
    match kind {
        "object" => "an object",
        "array" => "a list",
        "string" => "a text",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        other => other,
    }
}

fn display(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        other => other.to_string().chars().take(60).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_fault_is_told_with_its_place() {
        let item = json!({
            "type": "object", "required": ["id", "n"], "additionalProperties": false,
            "properties": { "id": { "type": "string", "minLength": 1 }, "n": { "type": "integer", "minimum": 1 }, "k": { "enum": ["a", "b"] }, "free": {} },
        });
        let schema = json!({
            "type": "object", "required": ["list"],
            "properties": { "list": { "type": "array", "minItems": 1, "maxItems": 2, "items": item } },
        });
        for (value, faults) in [
            (json!({ "list": [{ "id": "x", "n": 1, "k": "a", "free": [7] }], "more": 1 }), &[][..]),
            (json!([]), &["must be an object, but is a list"]),
            (json!({}), &["list: is missing"]),
            (json!({ "list": "x" }), &["list: must be a list, but is \"x\""]),
            (json!({ "list": [] }), &["list: must have at least 1 and at most 2 elements, but has 0"]),
            (
                json!({ "list": [{ "id": " ", "n": 0, "k": "c" }, { "n": 1.5, "other": 1 }] }),
                &[
                    "list[0].id: must not be empty",
                    "list[0].k: must be one of \"a\", \"b\", but is \"c\"",
                    "list[0].n: must be at least 1, but is 0",
                    "list[1].id: is missing",
                    "list[1].n: must be a whole number, but is 1.5",
                    "list[1].other: is not known; there are free, id, k, n",
                ],
            ),
        ] {
            assert_eq!(misfits(&schema, &value), faults, "{value}");
        }
    }

    #[test]
    fn references_alternatives_and_limits_are_followed() {
        let schema = json!({
            "$defs": { "node": { "type": "object", "required": ["v"], "properties": {
                "v": { "anyOf": [{ "type": "string", "maxLength": 2 }, { "type": "null" }] }, "next": { "$ref": "#/$defs/node" },
            } } },
            "type": ["object", "null"], "allOf": [{ "required": ["a"] }],
            "properties": {
                "a": { "$ref": "#/$defs/node" }, "k": { "const": 1 }, "n": { "maximum": 3, "exclusiveMinimum": 1 },
                "i": { "type": "integer" }, "gone": { "$ref": "#/$defs/none" },
            },
            "additionalProperties": { "type": "string" },
        });
        for (value, faults) in [
            (json!({ "a": { "v": "x", "next": { "v": null } }, "k": 1, "n": 3, "i": 2.0, "more": "y" }), &[][..]),
            (json!(null), &[]),
            (json!({}), &["a: is missing"]),
            (
                json!({ "a": { "v": "long", "next": { "v": 1 } } }),
                &["a.next.v: must be a text, but is 1", "a.v: must have at most 2 characters"],
            ),
            (
                json!({ "a": { "v": "x" }, "k": 2, "n": 4, "more": 1 }),
                &["k: must be 1, but is 2", "more: must be a text, but is 1", "n: must be at most 3, but is 4"],
            ),
            (
                json!({ "a": { "v": "x" }, "n": 1, "gone": 1 }),
                &["gone: its schema refers to `#/$defs/none`, which is not there", "n: must be more than 1, but is 1"],
            ),
            (json!([]), &["must be an object or null, but is a list"]),
        ] {
            assert_eq!(misfits(&schema, &value), faults, "{value}");
        }
        assert_eq!(misfits(&json!({ "$ref": "#" }), &json!(1)), ["is nested too deeply"]);
        let both = json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] });
        assert_eq!(misfits(&both, &json!(1)), ["is nested too deeply"]);
    }
}
