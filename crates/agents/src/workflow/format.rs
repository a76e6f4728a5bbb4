//! The shapes of the three answers as JSON schemas, for vendors that hold a model to one. Every field is required and every
//! object closed, as the strictest of them want it; what is not needed may be empty.

use std::sync::{Arc, LazyLock};

use polis_ports::Format;
use serde_json::{Value, json};

use super::{Component, ExecutorResponse, MOST_TODOS, NextAction, PlannerResponse, TodoStatus, VerifierResponse};

static PLANNER: LazyLock<Arc<Format>> = LazyLock::new(|| {
    let todo = object(json!({
        "id": text("unique within the plan, such as task-1"),
        "title": text("a few words"),
        "description": text("what to do, when it is done, what one must know for it"),
        "priority": { "type": "integer", "minimum": 1, "description": "1 is done first" },
        "dependencies": texts("ids of todos that must be done before"),
        "writes": flag("whether it changes anything: writes, deletes, sends, orders"),
        "status": choice(&[TodoStatus::Pending.name()]),
    }));
    format(
        PlannerResponse::NAME,
        json!({
            "summary": text("how you go about it, or what you need to know"),
            "needsMorePlanning": flag("true only if the plan is not whole yet"),
            "todos": { "type": "array", "items": todo },
        }),
    )
});

static EXECUTOR: LazyLock<Arc<Format>> = LazyLock::new(|| {
    let todo = object(json!({ "id": text("the task's id"), "status": choice(&TodoStatus::NAMES) }));
    format(
        ExecutorResponse::NAME,
        json!({
            "summary": text("the result itself with its data, or what stands in the way"),
            "taskCompleted": flag("whether the current task is done"),
            "shouldContinue": flag("false with taskCompleted false gives the task up"),
            "nextAction": choice(&NextAction::NAMES),
            "todos": { "type": "array", "items": todo },
        }),
    )
});

static VERIFIER: LazyLock<Arc<Format>> = LazyLock::new(|| {
    let task = object(json!({
        "id": text("the task's id"),
        "completed": flag("whether it is done exactly, completely and rightly"),
        "feedback": text("why, in a sentence"),
        "evidence": texts("names of the calls and messages that show it, such as c1"),
    }));
    format(
        VerifierResponse::NAME,
        json!({
            "allCompleted": flag("every task is done"),
            "userNeedsSatisfied": flag("what the user asked is answered"),
            "overallFeedback": text("the judgement in a sentence"),
            "summary": text("if both are true, the whole answer for the user; else empty"),
            "improvements": texts("unless both are true, what the next plan must do, one text each; else empty"),
            "tasks": { "type": "array", "items": task },
        }),
    )
});

/// The shape of a planner's answer.
pub fn planner_format() -> Arc<Format> {
    PLANNER.clone()
}

/// The shape of an executor's answer.
pub fn executor_format() -> Arc<Format> {
    EXECUTOR.clone()
}

/// The shape of a verifier's answer.
pub fn verifier_format() -> Arc<Format> {
    VERIFIER.clone()
}

/// The shape of a plan that a person puts in place of another. What is done with a todo is not theirs to write; it stands there
/// all the same when they change what they were shown.
pub(super) fn changed_plan_format() -> Value {
    let words = json!({ "type": "string", "minLength": 1 });
    let fields = json!({
        "id": words, "title": { "type": "string" }, "description": words, "priority": { "type": "integer", "minimum": 1 },
        "dependencies": { "type": "array", "items": words }, "writes": {}, "status": { "enum": TodoStatus::NAMES },
        "isCurrent": {}, "lastResult": {}, "result": {},
    });
    let required = ["id", "description", "priority"];
    let todo = json!({ "type": "object", "required": required, "additionalProperties": false, "properties": fields });
    let todos = json!({ "type": "array", "minItems": 1, "maxItems": MOST_TODOS, "items": todo });
    json!({ "type": "object", "required": ["todos"], "additionalProperties": false, "properties": { "todos": todos } })
}

fn format(component: &str, mut fields: Value) -> Arc<Format> {
    fields["type"] = choice(&["component"]);
    fields["component"] = choice(&[component]);
    Arc::new(Format { name: component.replace('-', "_"), schema: object(fields) })
}

fn object(fields: Value) -> Value {
    let names: Vec<&String> = fields.as_object().into_iter().flat_map(|fields| fields.keys()).collect();
    json!({ "type": "object", "required": names, "additionalProperties": false, "properties": fields })
}

fn text(what: &str) -> Value {
    json!({ "type": "string", "description": what })
}

fn flag(what: &str) -> Value {
    json!({ "type": "boolean", "description": what })
}

fn texts(what: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": what })
}

fn choice(names: &[&str]) -> Value {
    json!({ "type": "string", "enum": names })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every object closed, every property required: what strict modes ask for.
    fn check_strict(schema: &Value) {
        if let Some(properties) = schema["properties"].as_object() {
            assert_eq!(schema["additionalProperties"], false);
            let required: Vec<&str> = schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            assert_eq!(required, properties.keys().map(String::as_str).collect::<Vec<_>>());
        }
        match schema {
            Value::Object(fields) => fields.values().for_each(check_strict),
            Value::Array(parts) => parts.iter().for_each(check_strict),
            _ => {}
        }
    }

    #[test]
    fn the_shapes_are_strict_and_have_the_documents_fields() {
        for (format, name, fields) in [
            (planner_format(), "planner_response", "component needsMorePlanning summary todos type"),
            (executor_format(), "executor_response", "component nextAction shouldContinue summary taskCompleted todos type"),
            (
                verifier_format(),
                "verifier_response",
                "allCompleted component improvements overallFeedback summary tasks type userNeedsSatisfied",
            ),
        ] {
            check_strict(&format.schema);
            assert_eq!(format.name, name);
            let names: Vec<&str> = format.schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(names.join(" "), fields);
            assert_eq!(format.schema["properties"]["component"]["enum"][0], name.replace('_', "-"));
        }
    }
}
