//! An agent that stands for a remote A2A agent: it forwards each message and answers with the result of the task.
//!
//! It is code alone. Each step is a call of a tool that only code calls (`_a2a_card`, `_a2a_send`, `_a2a_wait`, each with the
//! name of the agent's role), so that after a crash a message is not sent as another one and a task is found again.

use polis_domain::{CallResult, Failure, Response, SubThreadPath, ToolCall};
use polis_engine::{Agent, Turn};
use serde_json::{Value, json};

/// Where a thread keeps which conversation it is over there.
const CONTEXT: &str = "a2aContextId";

/// Most questions that are answered within one message.
const MOST_QUESTIONS: usize = 32;

/// Forwards messages to the remote agent whose name its role has.
#[derive(Debug, Clone, Copy, Default)]
pub struct A2aAgent;

impl Agent for A2aAgent {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let name = turn.role().map(|role| role.id.to_string()).unwrap_or_default();
        let main = SubThreadPath::main();
        let before = turn.thread_settings(&main).await?.rest.get(CONTEXT).and_then(Value::as_str).map(str::to_owned);
        let card = call(turn, &name, "card", &json!({})).await?;
        let send = if card["knowsMessages"] == true { "send" } else { "send_once" };
        let endpoint = card["endpoint"].clone();
        let mut message = json!({ "endpoint": endpoint, "text": &*turn.task().message });
        if let Some(context) = before {
            message["contextId"] = json!(context);
        }
        for _ in 0..MOST_QUESTIONS {
            let sent = call(turn, &name, send, &message).await?;
            remember(turn, &main, &sent).await?;
            if let Some(answer) = sent["answer"].as_str() {
                return Ok(Response::new(answer));
            }
            let wait = json!({ "endpoint": endpoint, "taskId": sent["taskId"], "streaming": card["streaming"] });
            let task = call(turn, &name, "wait", &wait).await?;
            let text = task["text"].as_str().unwrap_or_default();
            match task["state"].as_str().unwrap_or_default() {
                "completed" if text.trim().is_empty() => return Ok(Response::new("It is done; nothing was said about it.")),
                "completed" => return Ok(Response::new(text)),
                "input_required" => {
                    let answer = turn.ask_person(&format!("{name} asks: {text}"), &[], None).await?;
                    message = json!({ "endpoint": endpoint, "text": &*answer, "taskId": sent["taskId"] });
                    if task["approvalId"].is_string() {
                        message["approvalId"] = task["approvalId"].clone();
                    }
                }
                state => return Err(Failure::new("remote_failed", format!("{name} ended the task as {state}: {text}"))),
            }
        }
        Err(Failure::new("remote_failed", format!("{name} asked more than {MOST_QUESTIONS} questions")))
    }
}

/// Keeps which conversation it is, for the next message.
async fn remember(turn: &mut Turn, main: &SubThreadPath, sent: &Value) -> Result<(), Failure> {
    let Some(context) = sent["contextId"].as_str() else { return Ok(()) };
    let mut settings = turn.thread_settings(main).await?;
    if settings.rest.get(CONTEXT).and_then(Value::as_str) == Some(context) {
        return Ok(());
    }
    settings.rest.insert(CONTEXT.to_owned(), json!(context));
    turn.update_thread_settings(main, settings).await
}

/// Calls one of the agent's tools.
async fn call(turn: &mut Turn, name: &str, does: &str, arguments: &Value) -> Result<Value, Failure> {
    let tool = format!("_a2a_{does}__{name}").into();
    let call = ToolCall { id: does.into(), name: tool, arguments: arguments.to_string().into() };
    let CallResult { content, is_error, .. } = turn.call_tool(call).await;
    if is_error {
        return Err(Failure::new("remote_unreachable", &*content));
    }
    serde_json::from_str(&content).map_err(|error| Failure::new("remote_failed", format!("{name}: {error}")))
}
