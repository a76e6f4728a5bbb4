//! Structured output: a value that fits a simple JSON schema, filled from the reply.

use serde_json::{Map, Value, json};

/// How deep a schema is followed.
const MAX_DEPTH: usize = 16;

/// What a value can be filled with.
pub(super) struct ReplyContent<'a> {
    pub(super) asked: &'a str,
    pub(super) answer: &'a str,
    pub(super) plan: &'a [String],
}

/// A value for the schema: lists get the steps of the plan, texts the answer, the rest what the schema allows at least.
pub(super) fn fill_schema(schema: &Value, content: &ReplyContent<'_>) -> Value {
    let one_step = [content.asked.to_owned()];
    let steps = if content.plan.is_empty() { &one_step[..] } else { content.plan };
    SchemaFiller { root: schema, content, steps }.fill(schema, "", content.answer, 0)
}

struct SchemaFiller<'a> {
    root: &'a Value,
    content: &'a ReplyContent<'a>,
    steps: &'a [String],
}

impl SchemaFiller<'_> {
    /// `name` is the field's, `text` what a text here would say.
    fn fill(&self, schema: &Value, name: &str, text: &str, depth: usize) -> Value {
        if depth > MAX_DEPTH {
            return Value::Null;
        }
        if let Some(target) = schema["$ref"].as_str() {
            let found = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            return found.map_or(Value::Null, |schema| self.fill(schema, name, text, depth + 1));
        }
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        if let Some(first) = schema["enum"].as_array().and_then(|allowed| allowed.first()) {
            return first.clone();
        }
        for choice in ["anyOf", "oneOf", "allOf"] {
            if let Some(first) = schema[choice].as_array().and_then(|choices| choices.first()) {
                return self.fill(first, name, text, depth + 1);
            }
        }
        let kind = schema["type"].as_str().or_else(|| schema["type"].as_array()?.first()?.as_str());
        match kind {
            Some("string") => self.text(schema, name, text).into(),
            Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(0)),
            Some("boolean") => true.into(),
            Some("null") => Value::Null,
            Some("array") => self.list(schema, depth),
            Some(_) | None => {
                let fields = schema["properties"].as_object().into_iter().flatten();
                let fill_schema = fields.map(|(name, schema)| (name.clone(), self.fill(schema, name, text, depth + 1)));
                Value::Object(fill_schema.collect::<Map<_, _>>())
            }
        }
    }

    fn text(&self, schema: &Value, name: &str, text: &str) -> String {
        let name = name.to_lowercase();
        let text = if name.ends_with("id") {
            let nth = self.steps.iter().position(|step| step == text).unwrap_or_default();
            format!("{}", nth + 1)
        } else if ["request", "question", "task", "goal", "query"].contains(&name.as_str()) && text == self.content.answer {
            self.content.asked.to_owned()
        } else {
            text.to_owned()
        };
        let longest = schema["maxLength"].as_u64().and_then(|longest| usize::try_from(longest).ok()).unwrap_or(usize::MAX);
        text.chars().take(longest).collect()
    }

    fn list(&self, schema: &Value, depth: usize) -> Value {
        let count = |name: &str| schema[name].as_u64().and_then(|count| usize::try_from(count).ok());
        let most = count("maxItems").unwrap_or(usize::MAX);
        let least = count("minItems").unwrap_or_default().min(100);
        let count = self.steps.len().max(least).min(most);
        let steps = self.steps.iter().cycle().take(count);
        steps.map(|step| self.fill(&schema["items"], "", step, depth + 1)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simple_schema_gets_a_value_that_fits_it() {
        let plan = ["list the folder".to_owned(), "count".to_owned()];
        let content = ReplyContent { asked: "how many?", answer: "seven", plan: &plan };
        let todo = json!({
            "type": "object",
            "properties": { "id": { "type": "string" }, "title": { "type": "string", "maxLength": 4 },
                            "status": { "enum": ["pending", "done"] } },
        });
        for (schema, want) in [
            (json!({ "type": "string" }), json!("seven")),
            (
                json!({ "type": "object", "properties": { "question": { "type": "string" }, "ok": { "type": "boolean" } } }),
                json!({ "question": "how many?", "ok": true }),
            ),
            (
                json!({ "type": "object", "properties": { "todos": { "type": "array", "items": { "$ref": "#/$defs/todo" } } },
                     "$defs": { "todo": todo } }),
                json!({ "todos": [{ "id": "1", "title": "list", "status": "pending" },
                               { "id": "2", "title": "coun", "status": "pending" }] }),
            ),
            (json!({ "type": "array", "maxItems": 1, "items": { "type": "integer", "minimum": 3 } }), json!([3])),
            (json!({ "anyOf": [{ "type": ["string", "null"] }] }), json!("seven")),
            (json!({}), json!({})),
        ] {
            assert_eq!(fill_schema(&schema, &content), want, "{schema}");
        }
        let endless = json!({ "type": "object", "properties": { "next": { "$ref": "#" } } });
        assert!(fill_schema(&endless, &content).is_object(), "a schema in a circle ends");
        assert_eq!(
            fill_schema(&json!({ "type": "array", "items": { "type": "string" } }), &ReplyContent { plan: &[], ..content }),
            json!(["how many?"])
        );
    }
}
