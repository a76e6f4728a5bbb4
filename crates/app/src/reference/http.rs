//! The reference of the routes: for each what it takes and answers, field by field, from the contract.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{cell, check};

/// Types that another page explains.
const ELSEWHERE: [(&str, &str); 1] = [("Event", "events.md")];

/// How deep fields within fields are described.
const DEPTH: usize = 3;

#[test]
fn the_reference_of_the_routes_is_current() {
    let contract = polis_server::contract();
    let mut page = Page { contract, text: HEAD.to_owned(), named: BTreeSet::new() };
    let common = common_codes(contract);
    page.routes();
    let _ = write!(page.text, "\n## Errors of every route\n\n{}.\n", quoted(&common));
    for (path, operations) in contract["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            page.route(&method.to_uppercase(), path, operation, &common);
        }
    }
    page.types();
    check("http.md", &page.text);
}

const HEAD: &str = "# HTTP routes\n\nGenerated from the table of routes and the types of what they take and answer. [HTTP](../http.md) explains what they \
                    share; a running server has the same at `/docs` and `/openapi.json`. A field with `*` must be there; the others may \
                    be left out, also of an answer. Each `POST` takes the header `Idempotency-Key`: a repeat with the same key and the \
                    same request gets the first answer and changes nothing more.\n";

struct Page<'a> {
    contract: &'a Value,
    text: String,
    /// The types that the text names so far.
    named: BTreeSet<String>,
}

impl Page<'_> {
    fn routes(&mut self) {
        self.text.push_str("\n| route | does | scope |\n|---|---|---|\n");
        for (path, operations) in self.contract["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                let title = format!("{} {path}", method.to_uppercase());
                let summary = cell(operation["summary"].as_str().unwrap());
                let _ = writeln!(self.text, "| [`{title}`](#{}) | {summary} | {} |", anchor(&title), scope(operation));
            }
        }
    }

    fn route(&mut self, method: &str, path: &str, operation: &Value, common: &BTreeSet<String>) {
        let _ = write!(self.text, "\n## {method} {path}\n\n{}\n", operation["summary"].as_str().unwrap());
        let described = operation["description"].as_str().filter(|text| operation["summary"] != **text);
        described.iter().for_each(|text| {
            let _ = write!(self.text, "\n{}\n", text.trim());
        });
        let mut rows = String::new();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let (name, place) = (parameter["name"].as_str().unwrap(), parameter["in"].as_str().unwrap());
            if name != "Idempotency-Key" {
                let star = if parameter["required"] == true { "\\*" } else { "" };
                let _ = writeln!(
                    rows,
                    "| `{name}`{star} | {place} | {} | {} |",
                    self.type_of(&parameter["schema"]),
                    meaning(parameter, &parameter["schema"])
                );
            }
        }
        if !rows.is_empty() {
            let _ = write!(self.text, "\n| parameter | in | type | means |\n|---|---|---|---|\n{rows}");
        }
        self.content("Body", &operation["requestBody"]);
        self.content("Answer", &operation["responses"]["200"]);
        let own: BTreeSet<String> = codes(operation).difference(common).cloned().collect();
        if !own.is_empty() {
            let _ = write!(self.text, "\nErrors: {}.\n", quoted(&own));
        }
    }

    /// What is sent one way or the other.
    fn content(&mut self, title: &str, body: &Value) {
        let Some((media_type, content)) = body["content"].as_object().and_then(|types| types.iter().next()) else { return };
        let schema = &content["schema"];
        if let Some(fields) = schema["properties"].as_object() {
            let about = schema["description"].as_str().map(|text| format!(": {}", lower(text))).unwrap_or_default();
            let _ = write!(self.text, "\n{title}{}\n", cell(about.trim_end_matches('.')));
            self.fields(fields, schema);
        } else if schema.is_object() {
            let named = self.type_of(schema);
            let _ = write!(self.text, "\n{title}: {named}\n");
        } else {
            let _ = write!(self.text, "\n{title}: `{media_type}`\n");
        }
    }

    fn fields(&mut self, fields: &Map<String, Value>, of: &Value) {
        let mut rows = String::new();
        self.rows(&mut rows, "", fields, of, 0);
        let _ = write!(self.text, "\n| field | type | means |\n|---|---|---|\n{rows}");
    }

    /// A row for each field, and below it those of the object that it is, or of which it is a list.
    fn rows(&mut self, rows: &mut String, above: &str, fields: &Map<String, Value>, of: &Value, depth: usize) {
        let required = of["required"].as_array().cloned().unwrap_or_default();
        for (name, schema) in fields {
            let star = if required.iter().any(|it| it == name) { "\\*" } else { "" };
            let _ = writeln!(rows, "| `{above}{name}`{star} | {} | {} |", self.type_of(schema), meaning(schema, schema));
            let (inner, within) = match &schema["items"] {
                Value::Null => (but_null(schema), "."),
                items => (items, "[]."),
            };
            if let Some(fields) = inner["properties"].as_object().filter(|_| depth < DEPTH) {
                self.rows(rows, &format!("{above}{name}{within}"), fields, inner, depth + 1);
            }
        }
    }

    /// The type of a value in a word or a few.
    fn type_of(&mut self, schema: &Value) -> String {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            if let Some((_, page)) = ELSEWHERE.iter().find(|(known, _)| *known == name) {
                return format!("[{name}]({page})");
            }
            self.named.insert(name.to_owned());
            return format!("[{name}](#{})", anchor(name));
        }
        if let Some(only) = schema.get("const") {
            return format!("`{only}`");
        }
        if let Some(one_of) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()).or(schema["allOf"].as_array()) {
            let mut types: Vec<String> = one_of.iter().map(|one| self.type_of(one)).collect();
            types.dedup();
            return types.join(" or ");
        }
        if let Some(words) = schema["enum"].as_array() {
            return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ");
        }
        match &schema["type"] {
            Value::String(name) if name == "array" => format!("list of {}", self.type_of(&schema["items"])),
            Value::String(name) if name == "object" && schema["properties"].is_null() => {
                match &schema["additionalProperties"] {
                    values @ Value::Object(_) => format!("object with values of {}", self.type_of(values)),
                    _ => "object".to_owned(),
                }
            }
            Value::String(name) => name.clone(),
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
            _ => "any".to_owned(),
        }
    }

    /// The types that are named, and those that these name.
    fn types(&mut self) {
        let mut written = BTreeSet::new();
        let head = std::mem::take(&mut self.text);
        let mut sections = Vec::new();
        while let Some(name) = self.named.difference(&written).next().cloned() {
            let schema = &self.contract["components"]["schemas"][&name];
            let _ = write!(self.text, "\n### {name}\n");
            if let Some(about) = schema["description"].as_str() {
                let _ = write!(self.text, "\n{}\n", about.trim());
            }
            match schema["properties"].as_object() {
                Some(fields) if !fields.is_empty() => self.fields(fields, schema),
                _ => self.variants(schema),
            }
            sections.push((name.clone(), std::mem::take(&mut self.text)));
            written.insert(name);
        }
        sections.sort();
        self.text = head + "\n## Types\n" + &sections.into_iter().map(|(_, text)| text).collect::<String>();
    }

    /// A type that is one of several.
    fn variants(&mut self, schema: &Value) {
        let Some(variants) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) else {
            let named = self.type_of(schema);
            let _ = write!(self.text, "\nJSON: {named}\n");
            return;
        };
        let mut rows = String::new();
        for variant in variants {
            match variant["properties"].as_object() {
                Some(fields) => self.rows(&mut rows, "", fields, variant, 1),
                None => {
                    let _ = writeln!(rows, "| | {} | {} |", self.type_of(variant), meaning(variant, variant));
                }
            }
        }
        let _ = write!(self.text, "\nOne of:\n\n| field | type | means |\n|---|---|---|\n{rows}");
    }
}

/// The schema of a value that may be null, without the null.
fn but_null(schema: &Value) -> &Value {
    let variants = schema["anyOf"].as_array().map(Vec::as_slice).unwrap_or_default();
    match variants {
        [one, other] if other["type"] == "null" => one,
        _ => schema,
    }
}

/// What a value means, and what it is if it is left out.
fn meaning(described: &Value, schema: &Value) -> String {
    let about = described["description"].as_str().or(but_null(schema)["description"].as_str()).unwrap_or_default();
    let default = schema.get("default").filter(|default| !matches!(default, Value::Null | Value::Object(_) | Value::Array(_)));
    let default = default.map(|default| format!(" Default: `{default}`.")).unwrap_or_default();
    cell(&format!("{about}{default}"))
}

fn scope(operation: &Value) -> String {
    operation["x-scope"].as_str().map(|scope| format!("`{scope}`")).unwrap_or_default()
}

fn codes(operation: &Value) -> BTreeSet<String> {
    let responses = operation["responses"].as_object().unwrap().values();
    responses.filter_map(|it| it["x-codes"].as_array()).flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The errors that all routes of the society have.
fn common_codes(contract: &Value) -> BTreeSet<String> {
    let paths = contract["paths"].as_object().unwrap().iter();
    let of_society =
        paths.filter(|(path, _)| path.starts_with("/api/") && !["/api/health", "/api/version"].contains(&path.as_str()));
    let all = of_society.flat_map(|(_, operations)| operations.as_object().unwrap().values()).map(codes);
    all.reduce(|common, codes| common.intersection(&codes).cloned().collect()).unwrap_or_default()
}

fn quoted(codes: &BTreeSet<String>) -> String {
    codes.iter().map(|code| format!("`{code}`")).collect::<Vec<_>>().join(", ")
}

fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// The anchor of a heading, as the site makes it.
fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}
