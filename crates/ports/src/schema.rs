//! The texts of a JSON schema that only describe: what a model reads, and no value is checked against. It changes nothing else.

use serde_json::{Map, Value};

/// What describes.
const TEXTS: [&str; 3] = ["title", "description", "$comment"];

/// What holds schemas by names, which may be any.
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// What holds a schema, or several.
const NESTED: [&str; 16] = [
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "contentSchema",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
];

/// The schema with each text that describes replaced by what `change` makes of it. Names of properties, `enum`, `const`,
/// `default`, `pattern` and all other values stay as they are: a server compares them with what it is sent.
pub fn with_texts(schema: Value, change: &dyn Fn(&str) -> String) -> Value {
    match schema {
        Value::Object(fields) => Value::Object(fields.into_iter().map(|(name, value)| field(name, value, change)).collect()),
        Value::Array(schemas) => schemas.into_iter().map(|schema| with_texts(schema, change)).collect(),
        other => other,
    }
}

fn field(name: String, value: Value, change: &dyn Fn(&str) -> String) -> (String, Value) {
    let value = match value {
        Value::String(text) if TEXTS.contains(&&*name) => Value::String(change(&text)),
        Value::Object(named) if NAMED.contains(&&*name) => {
            let each = named.into_iter().map(|(name, schema)| (name, with_texts(schema, change)));
            Value::Object(each.collect::<Map<_, _>>())
        }
        value if NESTED.contains(&&*name) => with_texts(value, change),
        other => other,
    };
    (name, value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_describes_is_changed_however_deep_and_whatever_properties_are_called() {
        let schema = |d: &str| {
            json!({
                "type": "object", "title": d, "description": d,
                "properties": {
                    "description": { "type": "string", "description": d, "default": "x", "enum": ["x", "y"], "const": "x" },
                    "items": { "type": "array", "items": { "anyOf": [{ "description": d, "pattern": "x" }, { "$ref": "x" }] } },
                    "enum": { "additionalProperties": { "description": d }, "examples": [{ "description": "x" }] },
                    "open": { "additionalProperties": true, "default": { "description": "x", "title": "x" } },
                },
                "required": ["x"], "$defs": { "title": { "title": d, "format": "x" } },
            })
        };
        assert_eq!(with_texts(schema("x"), &|text| format!("<{text}>")), schema("<x>"));
        for odd in [json!(null), json!(true), json!("x"), json!([1]), json!({ "properties": 7, "items": "x" })] {
            assert_eq!(with_texts(odd.clone(), &|_| "y".to_owned()), odd);
        }
    }
}
