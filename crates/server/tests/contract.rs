//! The contract, held against the table of routes and against every answer that these tests get.

use polis_server::{contract, route_table};
use serde_json::Value;

use crate::support::{Reply, Rig};

/// Every answer of a known route has a documented status and shape, and every problem a documented code.
pub(crate) fn check(method: &str, target: &str, reply: &Reply) {
    let path = target.split('?').next().unwrap();
    let path = path.strip_prefix("/s/").map_or(path, |rest| &rest[rest.find('/').unwrap()..]);
    let paths = contract()["paths"].as_object().unwrap();
    // Of two that match, the one with fewer names is meant.
    let mut matching: Vec<_> = paths.keys().filter(|pattern| matches(pattern, path)).collect();
    matching.sort_by_key(|pattern| pattern.matches('{').count());
    let Some(operation) = matching.first().and_then(|pattern| paths[*pattern].get(method.to_lowercase())) else { return };
    // What a protocol of others answers is described by it.
    if operation.get("x-protocol").is_some() {
        return;
    }
    let at = format!("{method} {target} {}", reply.status);
    if matches!(reply.status, 204 | 206 | 304) || (reply.status == 503 && path == "/api/health") {
        return;
    }
    let documented = &operation["responses"][reply.status.to_string()];
    assert!(documented.is_object(), "{at} is not in the contract: {}", String::from_utf8_lossy(&reply.body));
    if reply.status >= 400 {
        if reply.content_type == "application/problem+json" {
            let code = &reply.json()["code"];
            assert!(documented["x-codes"].as_array().unwrap().contains(code), "{at} {code} is not in the contract");
        }
        return;
    }
    let content = documented["content"].as_object().unwrap();
    let essence = reply.content_type.split(';').next().unwrap();
    let kind = content.get(essence).or_else(|| content.get("*/*"));
    let kind = kind.unwrap_or_else(|| panic!("{at} answers {essence}, which is not in the contract"));
    if let Some(schema) = kind.get("schema") {
        let mut wrong = Vec::new();
        holds(schema, &reply.json(), "", &mut wrong);
        assert!(wrong.is_empty(), "{at}: {wrong:?}: {}", reply.json());
    }
}

fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<_>, Vec<_>) = (pattern.split('/').collect(), path.split('/').collect());
    pattern.len() == path.len() && pattern.iter().zip(&path).all(|(a, b)| a == b || (a.starts_with('{') && !b.is_empty()))
}

/// As much of JSON Schema as our schemas use.
fn holds(schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
    if let Some(is_any) = schema.as_bool() {
        if !is_any {
            wrong.push(format!("{at}: nothing is allowed"));
        }
        return;
    }
    if let Some(name) = schema["$ref"].as_str() {
        let target = contract().pointer(name.trim_start_matches('#')).unwrap_or_else(|| panic!("{name} is nowhere"));
        holds(target, value, at, wrong);
    }
    let is = |kind: &str| match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    };
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is(kind)) {
        wrong.push(format!("{at}: {value} is not {kinds:?}"));
        return;
    }
    if let Some(only) = schema.get("const").filter(|only| *only != value) {
        wrong.push(format!("{at}: {value} is not {only}"));
    }
    if let Some(some) = schema["enum"].as_array().filter(|some| !some.contains(value)) {
        wrong.push(format!("{at}: {value} is none of {some:?}"));
    }
    let fits = |schema: &Value| {
        let mut wrong = Vec::new();
        holds(schema, value, at, &mut wrong);
        wrong.is_empty()
    };
    for (key, least, most) in [("anyOf", 1, usize::MAX), ("oneOf", 1, 1), ("allOf", usize::MAX, usize::MAX)] {
        let Some(several) = schema[key].as_array() else { continue };
        let fitting = several.iter().filter(|schema| fits(schema)).count();
        if fitting < least.min(several.len()) || fitting > most {
            wrong.push(format!("{at}: {value} fits {fitting} of {key}"));
        }
    }
    if let Some(object) = value.as_object() {
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !object.contains_key(name) {
                wrong.push(format!("{at}: {name} is missing"));
            }
        }
        for (name, value) in object {
            match (schema["properties"].get(name), &schema["additionalProperties"]) {
                (Some(schema), _) => holds(schema, value, &format!("{at}/{name}"), wrong),
                (None, Value::Null) => {}
                (None, rest) => holds(rest, value, &format!("{at}/{name}"), wrong),
            }
        }
    }
    for (n, value) in value.as_array().into_iter().flatten().enumerate() {
        if let Some(schema) = schema.get("items") {
            holds(schema, value, &format!("{at}/{n}"), wrong);
        }
    }
}

#[test]
fn every_route_is_in_the_contract_with_its_names_its_scope_and_what_can_go_wrong() {
    let contract = contract();
    assert_eq!(contract["openapi"], "3.1.0");
    let mut ids = Vec::new();
    for route in route_table() {
        let operation = &contract["paths"][route.path.replace("{*", "{")][route.method.to_lowercase()];
        assert_eq!(operation["summary"], route.summary, "{route:?}");
        assert_eq!(operation["x-scope"].as_str(), route.scope.map(|scope| scope.as_str()), "{route:?}");
        ids.push(operation["operationId"].as_str().unwrap());
        let named = operation["parameters"].as_array().unwrap().iter().filter(|parameter| parameter["in"] == "path").count();
        assert_eq!(named, route.path.matches('{').count(), "{route:?}");
        assert_eq!(operation["responses"].get("401").is_some(), !route.is_open, "{route:?}");
        if route.method == "POST" && route.is_plain {
            assert!(operation["requestBody"]["content"]["application/json"]["schema"].is_object(), "{route:?}");
            assert!(operation["responses"]["200"]["content"]["application/json"]["schema"].is_object(), "{route:?}");
            let has_key = operation["parameters"].as_array().unwrap().iter().any(|one| one["name"] == "Idempotency-Key");
            assert!(has_key, "{route:?} changes something and takes no Idempotency-Key");
        }
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "each has a name of its own");
    let told: usize = contract["paths"].as_object().unwrap().values().map(|path| path.as_object().unwrap().len()).sum();
    assert_eq!(told, count);
}

#[test]
fn every_code_of_the_contract_is_explained() {
    let explained = include_str!("../../../docs/errors/README.md");
    let operations = contract()["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values());
    let responses = operations.flat_map(|operation| operation["responses"].as_object().unwrap().values());
    let codes: std::collections::BTreeSet<_> =
        responses.filter_map(|response| response["x-codes"].as_array()).flatten().filter_map(Value::as_str).collect();
    assert!(codes.len() > 50, "{codes:?}");
    let missing: Vec<_> = codes.into_iter().filter(|code| !explained.contains(&format!("`{code}`"))).collect();
    assert!(missing.is_empty(), "docs/errors/README.md says nothing of {missing:?}");
}

#[test]
fn no_schema_names_one_that_is_not_there_and_none_is_named_by_a_number() {
    fn refs(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(object) => {
                found.extend(object.get("$ref").and_then(Value::as_str).map(str::to_owned));
                object.values().for_each(|value| refs(value, found));
            }
            Value::Array(list) => list.iter().for_each(|value| refs(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    refs(contract(), &mut found);
    assert!(found.len() > 50);
    for name in found {
        assert!(contract().pointer(name.trim_start_matches('#')).is_some(), "{name}");
    }
    for name in contract()["components"]["schemas"].as_object().unwrap().keys() {
        assert!(!name.ends_with(|last: char| last.is_ascii_digit()), "two types are called {name}");
    }
}

#[tokio::test]
async fn a_body_with_required_fields_is_required() {
    let rig = Rig::start().await;
    let contract = rig.get("/openapi.json").await.ok();
    let required = |path: &str| contract["paths"][path]["post"]["requestBody"]["required"].clone();
    assert_eq!(required("/api/submit").as_bool(), Some(true));
    assert_eq!(required("/api/tasks/{id}/retry").as_bool(), Some(false), "an empty body is an empty object");
}

#[tokio::test]
async fn the_contract_and_its_page_are_served_and_the_page_needs_nobody_else() {
    let rig = Rig::start().await;
    assert_eq!(&rig.get("/openapi.json").await.ok(), contract());
    let page = rig.get("/docs").await;
    let text = String::from_utf8(page.body).unwrap();
    assert!(page.content_type.starts_with("text/html") && text.contains("/api/submit"));
    assert!(page.headers["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
    assert!(!text.contains("<script") && !text.contains("src=") && !text.contains("http://") && !text.contains("https://"));
}
