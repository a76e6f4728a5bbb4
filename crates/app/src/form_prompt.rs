//! Asks for input on the terminal: a line, one of several options, or a form field by field.

use polis_domain::Wanted;
use serde_json::{Map, Value, json};

use crate::approval_prompt::PersonDecision;
use crate::out;
use crate::stdin_lines::{Line, StdinLines};

/// The fields of a form on one line: `{name: string, colour: red | blue, age?: integer}`.
pub(crate) fn describe(schema: &Value) -> String {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let one = |(name, field): (&String, &Value)| {
        let mark = if is_required(schema, name) { "" } else { "?" };
        format!("{name}{mark}: {}", kind(field))
    };
    format!("{{{}}}", fields.map(one).collect::<Vec<_>>().join(", "))
}

/// Asks until the input could fit; none when nobody is there.
pub(crate) async fn ask(wanted: &Wanted, lines: &mut StdinLines) -> Option<PersonDecision> {
    match wanted {
        Wanted::Text { options } => {
            for (i, option) in options.iter().enumerate() {
                out::note(&format!("  {}) {option}", i + 1));
            }
            let text = match line("answer [or /no reason]: ", lines).await? {
                FormInput::Decision(decision) => return Some(decision),
                FormInput::Text(text) => text,
            };
            let chosen = text.trim().parse::<usize>().ok().and_then(|n| options.get(n.checked_sub(1)?));
            Some(PersonDecision::Answer(chosen.cloned().unwrap_or(text)))
        }
        Wanted::Form { schema } => {
            out::note("an empty line skips a field; /no declines, /cancel dismisses the question");
            let mut filled = Map::new();
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                let title = field["title"].as_str().unwrap_or(name);
                let about = field["description"].as_str().map(|text| format!(", {text}")).unwrap_or_default();
                let default = field.get("default").map(|value| format!(" [{value}]")).unwrap_or_default();
                match line(&format!("{title} ({}{about}){default}: ", kind(field)), lines).await? {
                    FormInput::Decision(decision) => return Some(decision),
                    FormInput::Text(text) if text.trim().is_empty() => {
                        filled.extend(field.get("default").map(|value| (name.clone(), value.clone())));
                    }
                    FormInput::Text(text) => drop(filled.insert(name.clone(), read(field, text.trim()))),
                }
            }
            Some(PersonDecision::Answer(Value::Object(filled).to_string()))
        }
        Wanted::Agreement | Wanted::Visit { .. } => None,
    }
}

enum FormInput {
    Decision(PersonDecision),
    Text(String),
}

async fn line(prompt: &str, lines: &mut StdinLines) -> Option<FormInput> {
    loop {
        let text = match lines.prompt(prompt).await? {
            Line::Text(text) => text,
            Line::Garbled => continue,
        };
        let (first, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        return Some(match first {
            "/no" => FormInput::Decision(PersonDecision::No(rest.trim().to_owned())),
            "/cancel" => FormInput::Decision(PersonDecision::Cancel),
            _ => FormInput::Text(text),
        });
    }
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().into_iter().flatten().any(|required| required == name)
}

/// The type of a field, or its choices.
fn kind(field: &Value) -> String {
    let named = |field: &Value| {
        let values = field["enum"].as_array().cloned();
        let titled = field.get("oneOf").or_else(|| field.get("anyOf")).and_then(Value::as_array);
        let values = values.or_else(|| Some(titled?.iter().map(|one| one["const"].clone()).collect()))?;
        Some(values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | "))
    };
    let several = field.get("items").and_then(named).map(|choices| format!("some of {choices}"));
    let plain = || field["format"].as_str().or_else(|| field["type"].as_str()).unwrap_or("text").to_owned();
    several.or_else(|| named(field)).unwrap_or_else(plain)
}

/// The input as the field's type; text that does not fit stays text, and is refused with a reason.
fn read(field: &Value, text: &str) -> Value {
    let parsed = || serde_json::from_str(text).ok();
    match field["type"].as_str() {
        Some("integer" | "number") => parsed().filter(Value::is_number).unwrap_or_else(|| json!(text)),
        Some("boolean") => match text.to_lowercase().as_str() {
            "y" | "yes" | "true" | "是" => json!(true),
            "n" | "no" | "false" | "否" => json!(false),
            _ => json!(text),
        },
        Some("array") => text.split(',').map(str::trim).filter(|one| !one.is_empty()).collect(),
        _ => json!(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_told_in_a_line_and_read_by_its_types() {
        let schema = json!({
            "properties": {
                "age": { "type": "integer" },
                "colour": { "type": "string", "oneOf": [{ "const": "red" }, { "const": "blue" }] },
                "mail": { "type": "string", "format": "email" },
                "pets": { "type": "array", "items": { "enum": ["cat", "dog"] } },
                "sure": { "type": "boolean" },
            },
            "required": ["age"],
        });
        let description = "{age: integer, colour?: red | blue, mail?: email, pets?: some of cat | dog, sure?: boolean}";
        assert_eq!(describe(&schema), description);
        let typed = |name: &str, text: &str| read(&schema["properties"][name], text);
        assert_eq!([typed("age", "36"), typed("age", "old"), typed("mail", "7")], [json!(36), json!("old"), json!("7")]);
        assert_eq!([typed("pets", "cat, dog"), typed("sure", "是")], [json!(["cat", "dog"]), json!(true)]);
    }
}
