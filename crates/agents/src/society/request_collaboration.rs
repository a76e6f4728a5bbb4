//! `request_collaboration`: asks other agents, and waits for their answers.

use std::time::Duration;

use polis_domain::{CallResult, EffectClass, Failure, FailureCode};
use polis_engine::{Turn, TurnTool};
use polis_ports::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{arguments, spec, to_call_result, with_names};

/// Most requests at once.
const MOST: usize = 16;

/// How long to wait, in seconds: where nothing is said, and at most.
const USUAL: u64 = 600;
const LONGEST: u64 = 86_400;

/// Asks agents.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestCollaboration;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    requests: Vec<Request>,
    timeout_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    to: String,
    text: String,
}

impl TurnTool for RequestCollaboration {
    fn spec(&self) -> ToolSpec {
        let description = "Asks other agents and waits until each has answered or the time is over. Requests that do not need each \
                           other's answers belong into one call: they are worked on beside each other. The result has one entry per \
                           request: its answer, an error, or the reason why it was rejected.";
        let properties = json!({
            "requests": {
                "type": "array",
                "minItems": 1,
                "maxItems": MOST,
                "items": {
                    "type": "object",
                    "properties": {
                        "to": { "type": "string", "description": "An agent's name, or the role that only one agent has" },
                        "text": {
                            "type": "string",
                            "description": "What is wanted, with all facts that are needed and the form of the answer; the \
                                            receiver has not seen your conversation",
                        },
                    },
                    "required": ["to", "text"],
                },
            },
            "timeoutSeconds": {
                "type": "integer",
                "minimum": 1,
                "maximum": LONGEST,
                "description": format!("How long to wait; {USUAL} when left out"),
            },
        });
        spec("request_collaboration", description, properties, &["requests"], EffectClass::Idempotent)
    }

    fn is_deferred(&self) -> bool {
        true
    }

    async fn call(&self, turn: &mut Turn, given: &str) -> CallResult {
        match ask(turn, given).await {
            Ok(answers) if answers.iter().all(|answer| answer.get("error").is_some()) => nobody(&answers),
            answers => to_call_result(answers.map(|answers| json!({ "answers": answers }))),
        }
    }
}

/// What is told when no request came to anything: the same shape, and why the first did not.
fn nobody(answers: &[Value]) -> CallResult {
    let first = answers.first().cloned().unwrap_or_default();
    let error = json!({ "ok": false, "error": first["error"], "code": first["code"], "answers": answers });
    CallResult::failed(error.to_string())
}

async fn ask(turn: &mut Turn, given: &str) -> Result<Vec<Value>, Failure> {
    let Arguments { requests, timeout_seconds } = arguments(given)?;
    if requests.is_empty() || requests.len() > MOST {
        return Err(Failure::new("bad_arguments", format!("give 1 to {MOST} requests at once")));
    }
    if timeout_seconds == Some(0) {
        return Err(Failure::new("bad_arguments", "timeoutSeconds is at least 1"));
    }
    let patience = Duration::from_secs(timeout_seconds.unwrap_or(USUAL).clamp(1, LONGEST));
    let requests: Vec<(String, String)> = requests.into_iter().map(|Request { to, text }| (to, text)).collect();
    let answered = turn.ask_each(&requests, patience).await;
    let mut answers = Vec::with_capacity(answered.len());
    for (from, answer) in answered {
        let from = from.as_str();
        answers.push(match answer {
            Ok(text) => json!({ "from": from, "status": "completed", "answer": &*text }),
            Err(failure) => {
                let status = if failure.code == FailureCode::RequestRejected { "rejected" } else { "error" };
                let failure = with_names(turn, failure).await;
                json!({ "from": from, "status": status, "error": failure.message, "code": &*failure.code })
            }
        });
    }
    Ok(answers)
}
