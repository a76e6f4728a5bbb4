//! Remote agents that speak A2A 1.0, as tools that only code calls: read the card, send a message, wait for the task.
//!
//! They are separate tools so that each has its own effect in the log. A message has the id of the call that sends it. Where
//! the card declares that repeated messages are recognised, sending may be repeated after a crash; elsewhere it is a write, and
//! in doubt. Waiting only reads, so it can start again at any point.

mod client;
mod tasks;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{CallResult, EffectClass, Flow};
use polis_http::HttpOptions;
use polis_ports::{CallContext, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::results::{arguments, failed, good};
use client::{A2aClient, A2aError};

/// The extension by which a card declares that a repeated message is processed only once.
const DEDUPLICATES_MESSAGES: &str = "urn:polis:a2a:repeated-messages-are-known:v1";

/// How long to wait between attempts, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// How often a task is polled where there is no stream of updates, at first and at most.
const FIRST_POLL: Duration = Duration::from_millis(250);
const LONGEST_POLL: Duration = Duration::from_secs(10);

/// A remote agent, as the operator configures it.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteAgent {
    /// What it is called here.
    pub name: String,
    /// Its address, or that of its card.
    pub url: String,
    /// The variable that holds its token.
    pub token_env: Option<String>,
    /// How long it may be unreachable before a call to it fails.
    pub patience: Duration,
}

/// Without what may be secret in its address.
impl fmt::Debug for RemoteAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteAgent").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The tools for some agents, reached with the proxies and certificates of `network`, or what is wrong with one of them.
pub fn tools(agents: &[RemoteAgent], network: &HttpOptions) -> Result<Vec<Box<dyn Tool>>, String> {
    let mut tools: Vec<Box<dyn Tool>> = Vec::new();
    for agent in agents {
        let client = A2aClient::new(agent, network).map_err(|what| format!("the agent `{}`: {what}", agent.name))?;
        let client = Arc::new(client);
        for operation in [Operation::Card, Operation::Send, Operation::SendOnce, Operation::Wait] {
            tools.push(Box::new(RemoteTool {
                name: agent.name.clone(),
                patience: agent.patience,
                client: client.clone(),
                operation,
            }));
        }
    }
    Ok(tools)
}

/// What one of the tools does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Card,
    Send,
    SendOnce,
    Wait,
}

struct RemoteTool {
    name: String,
    patience: Duration,
    client: Arc<A2aClient>,
    operation: Operation,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SendArguments {
    endpoint: String,
    text: String,
    context_id: Option<String>,
    task_id: Option<String>,
    /// What the message answers.
    approval_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WaitArguments {
    endpoint: String,
    task_id: String,
    streaming: bool,
}

#[async_trait]
impl Tool for RemoteTool {
    fn spec(&self) -> ToolSpec {
        let (name, class, volatile) = match self.operation {
            Operation::Card => ("card", EffectClass::Read, true),
            Operation::Send => ("send", EffectClass::Idempotent, false),
            Operation::SendOnce => ("send_once", EffectClass::Write, false),
            Operation::Wait => ("wait", EffectClass::Read, true),
        };
        let description = format!("Speaks A2A with {}. Only code calls it.", self.name);
        let name = format!("_a2a_{name}__{}", self.name).into();
        ToolSpec { name, description, parameters: json!({ "type": "object" }), class, volatile }
    }

    fn flow(&self, _: &str) -> Flow {
        // What is sent to a remote agent leaves this machine.
        let sends = matches!(self.operation, Operation::Send | Operation::SendOnce);
        Flow { outside: Some(format!("the agent {}", self.name).into()), sends, ..Flow::default() }
    }

    async fn call(&self, given: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        let result = match self.operation {
            Operation::Card => self.card().await,
            Operation::Send | Operation::SendOnce => self.send(arguments(given)?, context).await,
            Operation::Wait => self.wait(&arguments(given)?).await,
        };
        Ok(match result {
            Ok(value) => good(value.to_string()),
            Err(error) => failed(format_args!("{}: {error}", self.name)),
        })
    }
}

impl RemoteTool {
    /// Where messages go, and what may be relied on there.
    async fn card(&self) -> Result<Value, A2aError> {
        let card = self.ask_with_retries(A2aError::is_transient, None).await?;
        let capabilities = &card["capabilities"];
        let declared = capabilities["extensions"].as_array().into_iter().flatten();
        let knows = declared.into_iter().any(|extension| extension["uri"] == DEDUPLICATES_MESSAGES);
        let endpoint = self.client.endpoint(&card)?;
        Ok(json!({ "endpoint": endpoint, "streaming": capabilities["streaming"] == true, "knowsMessages": knows }))
    }

    async fn send(&self, message: SendArguments, context: &CallContext) -> Result<Value, A2aError> {
        let SendArguments { endpoint, text, context_id, task_id, approval_id } = message;
        let mut sent = json!({ "messageId": context.idempotency_key(), "role": "ROLE_USER", "parts": [{ "text": text }] });
        let named = [("contextId", context_id), ("taskId", task_id)];
        for (field, id) in named.into_iter().filter_map(|(field, id)| Some((field, id?))) {
            sent[field] = json!(id);
        }
        if let Some(id) = approval_id {
            sent["metadata"] = json!({ "approvalId": id });
        }
        let params = json!({ "message": sent, "configuration": { "returnImmediately": true } });
        // A message that may have arrived is sent again only where that does no harm.
        let may_repeat = match self.operation {
            Operation::SendOnce => A2aError::is_unsent,
            _ => A2aError::is_transient,
        };
        let result = self.ask_with_retries(may_repeat, Some((&endpoint, "SendMessage", &params))).await?;
        tasks::read_send_result(&result).ok_or_else(|| A2aError::unusable("its answer is neither a task nor a message"))
    }

    /// Waits until the task is over or it is our turn.
    async fn wait(&self, wait: &WaitArguments) -> Result<Value, A2aError> {
        let params = json!({ "id": wait.task_id });
        let mut pause = FIRST_POLL;
        let mut updates = None;
        loop {
            if wait.streaming && updates.is_none() {
                // Without it the task is polled.
                updates = self.client.subscribe(&wait.endpoint, &params).await.ok();
            }
            let task = self.ask_with_retries(A2aError::is_transient, Some((&wait.endpoint, "GetTask", &params))).await?;
            if let Some(outcome) = tasks::read_settled_task(&task) {
                return Ok(outcome);
            }
            let has_update = match &mut updates {
                Some(updates) => tokio::time::timeout(LONGEST_POLL, updates.next()).await,
                None => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 3 / 2).min(LONGEST_POLL);
                    Ok(true)
                }
            };
            if has_update == Ok(false) {
                updates = None;
                tokio::time::sleep(FIRST_POLL).await;
            }
        }
    }

    /// Requests the card, or calls a method at an endpoint, until it succeeds, fails for good, or patience runs out.
    async fn ask_with_retries(
        &self,
        may_repeat: fn(&A2aError) -> bool,
        asked: Option<(&str, &str, &Value)>,
    ) -> Result<Value, A2aError> {
        let ends = Instant::now() + self.patience;
        let mut pause = FIRST_PAUSE;
        loop {
            let result = match asked {
                Some((endpoint, method, params)) => self.client.ask(endpoint, method, params).await,
                None => self.client.card().await,
            };
            match result {
                Err(error) if may_repeat(&error) && Instant::now() + pause < ends => tokio::time::sleep(pause).await,
                result => return result,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// An object's entry as text, unless it is empty.
fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// The fields that are there.
fn fields(fields: [(&str, Option<String>); 5]) -> Value {
    let there = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Value::String(value?))));
    Value::Object(there.collect::<Map<_, _>>())
}
