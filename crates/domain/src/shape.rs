//! Whether a value has the shape that a JSON schema describes, as far as our own questions use the language: `type`, `enum`,
//! `properties`, `required`, `additionalProperties`, `items`, `minItems`, `maxItems`, `minLength`, `minimum`. Other words say
//! nothing.

use serde_json::{Map, Value};

/// How many faults are reported.
const MOST: usize = 30;

/// The faults of a value, each with its path, such as `todos[0].priority: must be at least 1, but is 0`.
pub fn misfits(schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    look(schema, value, "", &mut faults);
    faults.truncate(MOST);
    faults
}

fn look(schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    if faults.len() >= MOST {
        return;
    }
    let mut fault = |what: String| faults.push(if at.is_empty() { what } else { format!("{at}: {what}") });
    if let Some(kind) = schema["type"].as_str()
        && !is(kind, value)
    {
        return fault(format!("must be {}, but is {}", in_words(kind), display(value)));
    }
    if let Some(names) = schema["enum"].as_array()
        && !names.contains(value)
    {
        let names = names.iter().map(display).collect::<Vec<_>>().join(", ");
        fault(format!("must be one of {names}, but is {}", display(value)));
    }
    if let (Some(least), Some(number)) = (schema["minimum"].as_f64(), value.as_f64())
        && number < least
    {
        fault(format!("must be at least {least}, but is {}", display(value)));
    }
    match value {
        Value::String(text) if (text.trim().chars().count() as u64) < schema["minLength"].as_u64().unwrap_or_default() => {
            fault("must not be empty".to_owned());
        }
        Value::Array(list) => {
            let (least, most) = (schema["minItems"].as_u64(), schema["maxItems"].as_u64());
            if (list.len() as u64) < least.unwrap_or_default() || list.len() as u64 > most.unwrap_or(u64::MAX) {
                let bounds = format!("at least {} and at most {}", least.unwrap_or_default(), most.unwrap_or(u64::MAX));
                fault(format!("must have {bounds} elements, but has {}", list.len()));
            }
            for (n, element) in list.iter().enumerate() {
                look(&schema["items"], element, &format!("{at}[{n}]"), faults);
            }
        }
        Value::Object(object) => fields(schema, object, at, faults),
        _ => {}
    }
}

fn fields(schema: &Value, object: &Map<String, Value>, at: &str, faults: &mut Vec<String>) {
    let below = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    let missing = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let missing = missing.filter(|name| !object.contains_key(*name));
    faults.extend(missing.map(|name| format!("{}: is missing", below(name))));
    let none = Map::new();
    let known = schema["properties"].as_object().unwrap_or(&none);
    for (name, value) in object {
        match known.get(name) {
            Some(schema) => look(schema, value, &below(name), faults),
            None if schema["additionalProperties"] == false => {
                let names = known.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                faults.push(format!("{}: is not known; there are {names}", below(name)));
            }
            None => {}
        }
    }
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
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
}
