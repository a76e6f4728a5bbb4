//! The contract: OpenAPI 3.1, generated from the table of routes and from the types on the wire, and a page that shows it.

use std::fmt::Write;
use std::sync::OnceLock;

use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use polis_api::ProblemDetails;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use crate::events::LiveDelta;
use crate::routes::{self, Gate, Route};

/// What can go wrong at every route that needs a token.
const EVERYWHERE: &[(u16, &str)] = &[
    (401, "unauthorized"),
    (403, "bad_host"),
    (403, "bad_origin"),
    (403, "missing_scope"),
    (404, "unknown_society"),
    (429, "too_many_requests"),
    (431, "head_too_large"),
    (503, "stopping"),
    (503, "unavailable"),
    (503, "log_failed"),
    (503, "data_damaged"),
    (503, "too_many_societies"),
    (507, "disk_full"),
    (507, "quota_exceeded"),
];

const OPEN: &[(u16, &str)] = &[(403, "bad_host"), (403, "bad_origin"), (429, "too_many_requests"), (431, "head_too_large")];
const IN_QUERY: &[(u16, &str)] = &[(400, "bad_query")];
const IN_PATH: &[(u16, &str)] = &[(400, "bad_url")];
const IN_BODY: &[(u16, &str)] = &[
    (400, "bad_json"),
    (400, "invalid_utf8"),
    (400, "bad_body"),
    (408, "body_timeout"),
    (413, "body_too_large"),
    (415, "unsupported_media_type"),
];
const WITH_KEY: &[(u16, &str)] = &[(400, "bad_idempotency_key"), (422, "key_reused")];

/// The contract as JSON.
pub fn contract() -> &'static Value {
    static CONTRACT: OnceLock<Value> = OnceLock::new();
    CONTRACT.get_or_init(build)
}

pub(crate) async fn openapi() -> axum::Json<&'static Value> {
    axum::Json(contract())
}

fn build() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.definitions_path = "/components/schemas".into();
    });
    let mut output_types = settings.clone().for_serialize().into_generator();
    // An input type may be less strict than the output type of the same name, so its schema is inlined where it is used.
    let mut input_types = settings.for_deserialize().with(|settings| settings.inline_subschemas = true).into_generator();
    let problem = output_types.subschema_for::<ProblemDetails>();
    output_types.subschema_for::<polis_domain::Recorded>();
    output_types.subschema_for::<polis_domain::Review>();
    output_types.subschema_for::<LiveDelta<'_>>();
    output_types.subschema_for::<polis_ports::StreamedStep>();
    let mut paths = Map::new();
    for route in routes::all() {
        let operation = operation(route, &mut output_types, &mut input_types, problem.as_value());
        let path = paths.entry(route.path.replace("{*", "{")).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Polis",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The HTTP API of a society of agents. Errors are application/problem+json with a stable `code`. Routes of another society of the same server begin with /s/NAME.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": output_types.take_definitions(true),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(route: &Route, output_types: &mut SchemaGenerator, input_types: &mut SchemaGenerator, problem: &Value) -> Value {
    let doc = &route.doc;
    let mut parameters = Vec::new();
    let mut problems: Vec<(u16, &str)> = Vec::new();
    for part in route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
        let name = part.trim_start_matches('*');
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
        problems.extend(IN_PATH);
    }
    if let Some(query) = doc.query {
        let schema = query(input_types).to_value();
        let required = |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|other| other == name));
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            parameters.push(json!({ "name": name, "in": "query", "required": required(name), "schema": schema }));
        }
        problems.extend(IN_QUERY);
    }
    if doc.once {
        let about = "A repeat with the same key and the same request gets the first answer and changes nothing more.";
        let schema = json!({ "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$" });
        parameters.push(json!({ "name": "Idempotency-Key", "in": "header", "description": about, "schema": schema }));
        problems.extend(WITH_KEY);
    }
    let body = match (doc.body, doc.any_body, doc.protocol) {
        (Some(body), ..) => {
            let schema = body(input_types).to_value();
            // An empty body is an empty object.
            let required = schema["required"].as_array().is_some_and(|names| !names.is_empty());
            Some(json!({ "required": required, "content": { "application/json": { "schema": schema } } }))
        }
        (None, true, _) => Some(json!({ "content": { "*/*": {} } })),
        (None, false, Some(_)) if route.method == "POST" => Some(json!({ "content": { "application/json": {} } })),
        _ => None,
    };
    if body.is_some() {
        problems.extend(IN_BODY);
    }
    problems.extend(if route.gate == Gate::Open { OPEN } else { EVERYWHERE });
    problems.extend(doc.problems);
    let schema = doc.answer.map(|answer| answer(output_types).to_value());
    let media = doc.media.unwrap_or("application/json");
    let content = match schema {
        Some(schema) => json!({ media: { "schema": schema } }),
        None => json!({ media: {} }),
    };
    let mut responses = Map::from_iter([("200".to_owned(), json!({ "description": "The result.", "content": content }))]);
    problems.sort_unstable();
    problems.dedup();
    for of_one in problems.chunk_by(|a, b| a.0 == b.0) {
        let codes: Vec<_> = of_one.iter().map(|(_, code)| *code).collect();
        responses.insert(of_one[0].0.to_string(), failed(&codes, problem));
    }
    if doc.protocol.is_some() {
        responses.insert("default".to_owned(), json!({ "description": "As the protocol says." }));
    }
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": doc.summary,
        "tags": [tag(route)],
        "parameters": parameters,
        "responses": responses,
    });
    match route.gate {
        Gate::Open => operation["security"] = json!([]),
        Gate::Known => {}
        Gate::Needs(scope) => operation["x-scope"] = json!(scope.as_str()),
    }
    if let Some(protocol) = doc.protocol {
        operation["x-protocol"] = json!(protocol);
    }
    if let Some(body) = body {
        operation["requestBody"] = body;
    }
    operation
}

fn failed(codes: &[&str], problem: &Value) -> Value {
    json!({
        "description": format!("Not done: {}.", codes.join(", ")),
        "content": { "application/problem+json": { "schema": problem } },
        "x-codes": codes,
    })
}

fn operation_id(route: &Route) -> String {
    let words = route.path.split(['/', '{', '}', '.', '-', '*']).filter(|word| !word.is_empty() && *word != "api");
    std::iter::once(route.method.as_str().to_lowercase()).chain(words.map(str::to_owned)).collect::<Vec<_>>().join("_")
}

fn tag(route: &Route) -> &str {
    let mut parts = route.path.split('/').filter(|part| !part.is_empty());
    match parts.next() {
        Some("api") => parts.next().unwrap_or("api"),
        Some(first) => first,
        None => "page",
    }
}

/// Nothing runs on the page, and nothing is fetched.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}\
details{border:1px solid #8884;border-radius:.4rem;margin:.4rem 0;padding:.4rem .8rem}summary{cursor:pointer}\
code,pre{font:14px/1.4 ui-monospace,monospace}pre{overflow:auto;background:#8881;padding:.6rem;border-radius:.3rem}\
b.m{display:inline-block;min-width:4rem}";

pub(crate) async fn docs() -> Response {
    static PAGE: OnceLock<String> = OnceLock::new();
    let page = PAGE.get_or_init(|| show(contract()));
    ([(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, POLICY)], page.as_str()).into_response()
}

fn show(contract: &Value) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Polis: the HTTP API</title><style>{STYLE}</style><h1>Polis {}</h1><p>{}</p>\
         <p>The same for programs: <a href=\"/openapi.json\">/openapi.json</a>.</p>",
        escaped(contract["info"]["version"].as_str().unwrap_or_default()),
        escaped(contract["info"]["description"].as_str().unwrap_or_default()),
    );
    for (path, operations) in contract["paths"].as_object().into_iter().flatten() {
        for (method, operation) in operations.as_object().into_iter().flatten() {
            // Writing to a string does not fail.
            let _ = write!(
                page,
                "<details><summary><b class=\"m\">{}</b><code>{}</code> {}</summary>",
                method.to_uppercase(),
                escaped(path),
                escaped(operation["summary"].as_str().unwrap_or_default())
            );
            let scope =
                operation["x-scope"].as_str().map_or("No token is needed.".to_owned(), |scope| format!("Scope: {scope}."));
            let _ = write!(page, "<p>{scope}</p>");
            for key in ["parameters", "requestBody", "responses"] {
                if let Some(part) = operation.get(key).filter(|part| part.as_array().is_none_or(|list| !list.is_empty())) {
                    let text = serde_json::to_string_pretty(part).unwrap_or_default();
                    let _ = write!(page, "<p>{key}</p><pre>{}</pre>", escaped(&text));
                }
            }
            page.push_str("</details>");
        }
    }
    page.push_str("<h2>Schemas</h2>");
    for (name, schema) in contract["components"]["schemas"].as_object().into_iter().flatten() {
        let text = serde_json::to_string_pretty(schema).unwrap_or_default();
        let _ =
            write!(page, "<details><summary><code>{}</code></summary><pre>{}</pre></details>", escaped(name), escaped(&text));
    }
    page.push_str("</html>\n");
    page
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
