//! The types on the wire for the page, in TypeScript: the schemas of the contract, written another way.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::openapi::contract;

const HEAD: &str = "// Generated from the types of the server. Do not edit: UPDATE_WIRE=1 cargo test -p polis-server typescript writes it anew.

";

/// What `web/src/wire.ts` must hold.
pub fn typescript() -> String {
    let contract = contract();
    let mut out = HEAD.to_owned();
    for (name, schema) in contract["components"]["schemas"].as_object().into_iter().flatten() {
        about(&mut out, schema, "");
        // Writing to a string does not fail.
        let _ = writeln!(out, "export type {name} = {};\n", kind(schema, 0));
    }
    out.push_str("/** Every route: its query, its body and its answer. */\nexport interface Routes {\n");
    for (path, operations) in contract["paths"].as_object().into_iter().flatten() {
        for (method, operation) in operations.as_object().into_iter().flatten() {
            about(&mut out, &Value::from_iter([("description", operation["summary"].clone())]), "  ");
            let json = |of: &Value| of["content"]["application/json"].get("schema").map(|schema| kind(schema, 2));
            let none = || "undefined".to_owned();
            let _ = writeln!(
                out,
                "  \"{} {path}\": {{\n    query: {};\n    body: {};\n    answer: {};\n  }};",
                method.to_uppercase(),
                query(operation).unwrap_or_else(none),
                json(&operation["requestBody"]).unwrap_or_else(none),
                json(&operation["responses"]["200"]).unwrap_or_else(none),
            );
        }
    }
    out.push_str("}\n");
    out
}

fn query(operation: &Value) -> Option<String> {
    let parameters = operation["parameters"].as_array()?.iter().filter(|parameter| parameter["in"] == "query");
    let mut schema = Map::from_iter([
        ("properties".to_owned(), Value::Object(Map::new())),
        ("required".to_owned(), Value::Array(Vec::new())),
    ]);
    for parameter in parameters {
        let name = parameter["name"].as_str().unwrap_or_default();
        schema["properties"][name] = parameter["schema"].clone();
        if let (true, Value::Array(required)) = (parameter["required"] == true, &mut schema["required"]) {
            required.push(name.into());
        }
    }
    let is_there = schema["properties"].as_object().is_some_and(|properties| !properties.is_empty());
    is_there.then(|| kind(&Value::Object(schema), 2))
}

fn about(out: &mut String, schema: &Value, indent: &str) {
    if let Some(text) = schema["description"].as_str() {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("*/", "* /");
        let _ = writeln!(out, "{indent}/** {text} */");
    }
}

/// A schema as a type.
fn kind(schema: &Value, depth: usize) -> String {
    let mut parts: Vec<String> = Vec::new();
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        parts.push(name.to_owned());
    }
    if let Some(only) = schema.get("const") {
        return only.to_string();
    }
    if let Some(some) = schema["enum"].as_array() {
        return some.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(several) = schema[key].as_array() {
            parts.push(one_of(several.iter().map(|schema| kind(schema, depth))));
        }
    }
    if let Some(several) = schema["allOf"].as_array() {
        parts.extend(several.iter().map(|schema| kind(schema, depth)));
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ if schema.get("properties").is_some() => vec!["object"],
        _ => Vec::new(),
    };
    let has_fields = schema["properties"].as_object().is_some_and(|fields| !fields.is_empty());
    // An object that says no more adds nothing to what it is a part of.
    let is_idle = kinds == ["object"] && !has_fields && !parts.is_empty();
    if !kinds.is_empty() && !is_idle {
        parts.push(one_of(kinds.iter().map(|name| plain(name, schema, depth))));
    }
    match parts.len() {
        0 => "unknown".to_owned(),
        1 => parts.remove(0),
        _ => parts
            .iter()
            .map(|part| if part.contains(" | ") { format!("({part})") } else { part.clone() })
            .collect::<Vec<_>>()
            .join(" & "),
    }
}

fn one_of(kinds: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = Vec::new();
    for kind in kinds {
        if !all.contains(&kind) {
            all.push(kind);
        }
    }
    all.join(" | ")
}

fn plain(name: &str, schema: &Value, depth: usize) -> String {
    match name {
        "integer" | "number" => "number".to_owned(),
        "string" | "boolean" | "null" => name.to_owned(),
        "array" => match (schema.get("items"), schema["prefixItems"].as_array()) {
            (_, Some(several)) => format!("[{}]", several.iter().map(|item| kind(item, depth)).collect::<Vec<_>>().join(", ")),
            (Some(items), None) => format!("Array<{}>", kind(items, depth)),
            (None, None) => "unknown[]".to_owned(),
        },
        _ => object(schema, depth),
    }
}

fn object(schema: &Value, depth: usize) -> String {
    let fields = schema["properties"].as_object().filter(|fields| !fields.is_empty());
    let Some(fields) = fields else {
        return match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => "Record<string, never>".to_owned(),
            Some(rest) if rest.is_object() => format!("Record<string, {}>", kind(rest, depth)),
            _ => "Record<string, unknown>".to_owned(),
        };
    };
    let required = |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|other| other == name));
    let indent = "  ".repeat(depth + 1);
    let mut out = "{\n".to_owned();
    for (name, schema) in fields {
        about(&mut out, schema, &indent);
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let name_written = if plain { name.clone() } else { format!("\"{name}\"") };
        let _ = writeln!(out, "{indent}{name_written}{}: {};", if required(name) { "" } else { "?" }, kind(schema, depth + 1));
    }
    let _ = write!(out, "{}}}", "  ".repeat(depth));
    out
}
