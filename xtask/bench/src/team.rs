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
    let texts: Vec<&str> = messages.iter().filter_map(|message| message["content"].as_str()).collect();
    let is_for = |role: &str| texts.first().is_some_and(|system| system.contains(&format!("\"{role}-response\"")));
    if is_for("planner") {
        return said(&plan());
    }
    if is_for("verifier") {
        return said(&verdict(&texts.concat()));
    }
    let task = texts.iter().find_map(|text| text.split("## The current task\n\n").nth(1));
    let todo = task.and_then(|rest| rest.split(':').next()).unwrap_or_default();
    match messages.iter().any(|message| message["role"] == "tool") {
        true => said(&result(todo)),
        false => call(todo, &request),
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

/// Cites the call of each todo by the name that the list of evidence gives it, such as `[c3] (task-1) list_files`.
fn verdict(asked: &str) -> Value {
    let call_of = |id: &str| {
        let lines = asked.lines().filter_map(|line| line.strip_prefix('[')?.split_once("] "));
        lines.filter(|(_, what)| what.starts_with(&format!("({id}) "))).map(|(name, _)| name).find(|name| name.starts_with('c'))
    };
    let task = |id: String| json!({ "id": id, "completed": true, "feedback": "seen", "evidence": [call_of(&id)] });
    let tasks: Vec<Value> = (1..=TODOS).map(|n| task(format!("task-{n}"))).collect();
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

/// A read: with the tool of the bench, or with the one that the program has.
fn call(todo: &str, request: &Value) -> Bytes {
    let mut tools = request["tools"].as_array().into_iter().flatten();
    let function = match tools.any(|tool| tool["function"]["name"] == "look") {
        true => json!({ "name": "look", "arguments": json!({ "at": todo }).to_string() }),
        false => json!({ "name": "list_files", "arguments": json!({ "pattern": format!("{todo}*") }).to_string() }),
    };
    let call = json!({ "index": 0, "id": format!("call_{todo}"), "type": "function", "function": function });
    stream([json!({ "tool_calls": [call] })].into_iter(), "tool_calls")
}

pub(crate) fn stream(deltas: impl Iterator<Item = Value>, finish: &str) -> Bytes {
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
