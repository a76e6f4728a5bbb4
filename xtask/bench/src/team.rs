//! A model server that answers at once as planner, executor and verifier: five todos, a call of a tool in each.

use std::sync::{Mutex, PoisonError};

use hyper::body::Bytes;
use serde_json::{Value, json};

/// Todos of the plan.
pub(crate) const TODOS: usize = 5;

/// The answer.
pub(crate) const ANSWER: &str = "The five numbers are 1, 2, 3, 4 and 5, and each was looked up by itself.";

/// Characters of a delta: about what models send at once.
const PIECE: usize = 24;

/// Model calls of a workflow: the plan, two for each todo, the judgement.
pub(crate) const CALLS: usize = 2 + 2 * TODOS;

/// What the first workflow asked, for whoever asks the same with nothing around it.
static ASKED: Mutex<Vec<Value>> = Mutex::new(Vec::new());

/// What a model of the role that the request is for says; to `null`, what was asked first.
pub(crate) fn reply(body: &[u8]) -> Bytes {
    let Ok(request) = serde_json::from_slice::<Value>(body) else { return Bytes::new() };
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    if request.is_null() {
        return Value::Array(asked.clone()).to_string().into();
    }
    if asked.len() < CALLS {
        asked.push(request.clone());
    }
    drop(asked);
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |at: usize| messages.get(at).and_then(|message| message["content"].as_str()).unwrap_or_default();
    let is_for = |role: &str| text(0).contains(&format!("\"{role}-response\""));
    if is_for("planner") {
        return said(&plan());
    }
    if is_for("verifier") {
        return said(&verdict());
    }
    let todo = text(1).split("## The current task\n\n").nth(1).and_then(|rest| rest.split(':').next()).unwrap_or_default();
    match messages.last().and_then(|message| message["role"].as_str()) {
        Some("tool") => said(&result(todo)),
        _ => call(todo),
    }
}

fn plan() -> Value {
    let todo = |n: usize| {
        json!({
            "id": format!("task-{n}"), "title": format!("Look number {n} up"), "priority": 1, "dependencies": [], "status": "pending",
            "description": format!("Look number {n} up with the tool. Done when: the number is known."),
        })
    };
    let todos: Vec<Value> = (1..=TODOS).map(todo).collect();
    json!({
        "type": "component", "component": "planner-response", "summary": "Each number is looked up by itself.",
        "needsMorePlanning": false, "todos": todos,
    })
}

fn result(todo: &str) -> Value {
    json!({
        "type": "component", "component": "executor-response", "summary": format!("The tool says ok, so the number of {todo} is known."),
        "taskCompleted": true, "shouldContinue": false, "nextAction": "complete", "todos": [{ "id": todo, "status": "completed" }],
    })
}

fn verdict() -> Value {
    // A call and what the executor said of it, for each todo, in the order in which they end.
    let task =
        |n: usize| json!({ "id": format!("task-{n}"), "completed": true, "feedback": "seen", "evidence": [format!("c{n}")] });
    let tasks: Vec<Value> = (1..=TODOS).map(task).collect();
    json!({
        "type": "component", "component": "verifier-response", "allCompleted": true, "userNeedsSatisfied": true,
        "overallFeedback": "Every number is there.", "summary": ANSWER, "improvements": [], "tasks": tasks,
    })
}

fn said(response: &Value) -> Bytes {
    let characters: Vec<char> = response.to_string().chars().collect();
    let chunks = characters.chunks(PIECE).map(|chunk| json!({ "content": chunk.iter().collect::<String>() }));
    stream(chunks, "stop")
}

fn call(todo: &str) -> Bytes {
    let function = json!({ "name": "look", "arguments": json!({ "at": todo }).to_string() });
    let call = json!({ "index": 0, "id": format!("call_{todo}"), "type": "function", "function": function });
    stream([json!({ "tool_calls": [call] })].into_iter(), "tool_calls")
}

fn stream(deltas: impl Iterator<Item = Value>, finish: &str) -> Bytes {
    let event = |delta: Value, finish: Value| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
    let events = deltas.map(|delta| event(delta, Value::Null)).chain([
        event(json!({}), finish.into()),
        json!({ "choices": [], "usage": { "prompt_tokens": 900, "completion_tokens": 90 } }),
    ]);
    let mut text = String::new();
    for event in events {
        text += &format!("data: {event}\n\n");
    }
    (text + "data: [DONE]\n\n").into()
}
