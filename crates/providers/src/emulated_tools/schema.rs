//! The form of a reply as a JSON schema that always closes: strings, lists and recursion have an end.
//!
//! Servers write the fields of an object in the order in which the schema has them, which is that of the alphabet. So `name`
//! comes before `parameters`, and a model has chosen the tool before it writes for it.

use polis_ports::{ModelRequest, ToolChoice, ToolSpec};
use serde_json::{Map, Value, json};

pub(super) const ANSWER: &str = "answer";
pub(super) const NAME: &str = "name";
pub(super) const PARAMETERS: &str = "parameters";

/// Most characters of a string. llama.cpp refuses a grammar that repeats anything 2,000 times.
const STRING_CHARS: u64 = 1_900;

/// Most items of a list.
const LIST_ITEMS: u64 = 32;

/// How often a reference may lead to another before it ends in null.
const REFERENCES: usize = 4;

/// A call of one of the tools, or an answer of the shape that is asked for. Where a call is demanded, an answer is none.
pub(super) fn reply(request: &ModelRequest) -> Value {
    let is_allowed = |tool: &&ToolSpec| match request.choice() {
        ToolChoice::Named(name) => tool.name == *name,
        ToolChoice::Auto | ToolChoice::None | ToolChoice::Required => true,
    };
    let mut forms: Vec<Value> = request
        .tools
        .iter()
        .filter(is_allowed)
        .map(|tool| {
            let parameters = match &tool.parameters {
                Value::Object(schema) if schema.contains_key("properties") => bounded(&tool.parameters, &tool.parameters, 0),
                _ => object(json!({}), json!([])),
            };
            object(json!({ NAME: { "enum": [tool.name] }, PARAMETERS: parameters }), json!([NAME, PARAMETERS]))
        })
        .collect();
    if request.choice().is_demand() {
        return json!({ "anyOf": forms });
    }
    let answer = match &request.format {
        Some(format) => bounded(&format.schema, &format.schema, 0),
        None => json!({ "type": "string", "maxLength": STRING_CHARS }),
    };
    forms.push(object(json!({ ANSWER: answer }), json!([ANSWER])));
    json!({ "anyOf": forms })
}

fn object(properties: Value, required: Value) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// The schema with an end to everything; keywords that only narrow it further are left to the tool. Fields that a tool does not
/// name, where it allows them, are bounded by the token limit alone.
fn bounded(schema: &Value, root: &Value, references: usize) -> Value {
    let Value::Object(given) = schema else { return anything() };
    if let Some(reference) = given.get("$ref").and_then(Value::as_str) {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return match target {
            Some(target) if references < REFERENCES => bounded(target, root, references + 1),
            Some(_) | None => json!({ "type": "null" }),
        };
    }
    for exact in ["const", "enum"] {
        if let Some(value) = given.get(exact) {
            return json!({ exact: value });
        }
    }
    let inner = |schema: &Value| bounded(schema, root, references);
    for (keyword, written) in [("anyOf", "anyOf"), ("oneOf", "anyOf"), ("allOf", "allOf")] {
        if let Some(Value::Array(schemas)) = given.get(keyword) {
            return json!({ written: schemas.iter().map(inner).collect::<Vec<_>>() });
        }
    }
    let mut kept = Map::new();
    let is_object = given.contains_key("properties") || is(given, "object");
    match given.get("type") {
        Some(kind) => drop(kept.insert("type".to_owned(), kind.clone())),
        None if is_object => drop(kept.insert("type".to_owned(), json!("object"))),
        None if given.contains_key("items") => drop(kept.insert("type".to_owned(), json!("array"))),
        None => return anything(),
    }
    let limit = |name: &str, most: u64| given.get(name).and_then(Value::as_u64).map_or(most, |own| own.min(most));
    if is(given, "string") {
        kept.insert("maxLength".to_owned(), limit("maxLength", STRING_CHARS).into());
        if given.contains_key("minLength") {
            kept.insert("minLength".to_owned(), limit("minLength", STRING_CHARS).into());
        }
    }
    if is(given, "array") || given.contains_key("items") {
        kept.insert("items".to_owned(), given.get("items").map_or_else(anything, inner));
        kept.insert("maxItems".to_owned(), limit("maxItems", LIST_ITEMS).into());
        if given.contains_key("minItems") {
            kept.insert("minItems".to_owned(), limit("minItems", LIST_ITEMS).into());
        }
    }
    if is_object {
        let properties = given.get("properties").and_then(Value::as_object);
        let properties = properties.into_iter().flatten().map(|(name, schema)| (name.clone(), inner(schema)));
        kept.insert("properties".to_owned(), Value::Object(properties.collect()));
        kept.insert("required".to_owned(), given.get("required").cloned().unwrap_or_else(|| json!([])));
        let more = match given.get("additionalProperties") {
            Some(more @ Value::Object(_)) => inner(more),
            Some(Value::Bool(true)) => anything(),
            _ => json!(false),
        };
        kept.insert("additionalProperties".to_owned(), more);
    }
    Value::Object(kept)
}

fn is(schema: &Map<String, Value>, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == kind,
        Some(Value::Array(several)) => several.iter().any(|one| one == kind),
        _ => false,
    }
}

fn anything() -> Value {
    json!({ "type": ["string", "number", "boolean", "null"], "maxLength": STRING_CHARS })
}

#[cfg(test)]
mod tests {
    use polis_ports::Format;

    use super::*;

    fn check(schema: Value, want: Value) {
        assert_eq!(bounded(&schema, &schema, 0), want);
    }

    #[test]
    fn strings_lists_and_recursion_have_an_end() {
        check(json!({ "type": "string", "pattern": ".*" }), json!({ "type": "string", "maxLength": 1900 }));
        check(
            json!({ "type": "string", "maxLength": 9, "minLength": 1 }),
            json!({ "type": "string", "maxLength": 9, "minLength": 1 }),
        );
        check(
            json!({ "type": ["string", "null"], "maxLength": 9999 }),
            json!({ "type": ["string", "null"], "maxLength": 1900 }),
        );
        check(json!({ "type": "integer", "description": "a number" }), json!({ "type": "integer" }));
        check(
            json!({ "type": "array", "items": { "type": "string" } }),
            json!({ "type": "array", "items": { "type": "string", "maxLength": 1900 }, "maxItems": 32 }),
        );
        check(json!({ "enum": ["a", "b"], "type": "string" }), json!({ "enum": ["a", "b"] }));
        check(
            json!({ "oneOf": [{ "const": 1 }, { "type": "null" }] }),
            json!({ "anyOf": [{ "const": 1 }, { "type": "null" }] }),
        );
        check(json!(true), anything());
        check(json!({}), anything());
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends_in_null() {
        let tree = json!({
            "$defs": { "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } } } },
            "properties": { "tree": { "$ref": "#/$defs/node" } },
        });
        let mut want = json!({ "type": "null" });
        for _ in 0..REFERENCES {
            want = object(json!({ "next": want }), json!([]));
        }
        check(tree, object(json!({ "tree": want }), json!([])));
    }

    #[test]
    fn a_tool_without_parameters_gets_an_empty_object_and_the_answer_comes_last() {
        let tool = |name: &str, parameters| ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters,
            class: polis_domain::EffectClass::Read,
            volatile: false,
        };
        let tools = [
            tool("now", json!({ "type": "object" })),
            tool("say", json!({ "properties": { "text": { "type": "string" } }, "required": ["text"] })),
        ];
        let string = json!({ "type": "string", "maxLength": 1900 });
        let call = |name: &str, parameters| {
            object(json!({ "name": { "enum": [name] }, "parameters": parameters }), json!(["name", "parameters"]))
        };
        let calls =
            [call("now", object(json!({}), json!([]))), call("say", object(json!({ "text": string }), json!(["text"])))];
        let answer = |shape| object(json!({ "answer": shape }), json!(["answer"]));
        let mut request = ModelRequest { tools: tools.into(), ..ModelRequest::default() };
        assert_eq!(reply(&request), json!({ "anyOf": [calls[0], calls[1], answer(string.clone())] }));
        request.tool_choice = ToolChoice::Required;
        assert_eq!(reply(&request), json!({ "anyOf": [calls[0], calls[1]] }));
        request.tool_choice = ToolChoice::Named("say".into());
        assert_eq!(reply(&request), json!({ "anyOf": [calls[1]] }));
        let format = Format { name: "n".to_owned(), schema: json!({ "type": "integer" }) };
        let request = ModelRequest { format: Some(format.into()), ..ModelRequest::default() };
        assert_eq!(reply(&request), json!({ "anyOf": [answer(json!({ "type": "integer" }))] }));
    }
}
