//! Agents of others that speak A2A 1.0, as tools that only code calls: look at the card, send a message, wait for the task.
//!
//! They are apart so that each stands in the log by itself. A message has the id of the call that sends it. Where the card says
//! that repeated messages are known, sending may be repeated after a crash; elsewhere it is a write, and in doubt. Waiting only
//! reads: it begins again wherever it was cut.

mod told;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{CallResult, EffectClass, Flow};
use polis_ports::{CallContext, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::results::{arguments, failed, good};
use wire::{Trouble, Wire};

/// What the card of an agent declares that does a message once, however often it is sent.
const KNOWS_MESSAGES: &str = "urn:polis:a2a:repeated-messages-are-known:v1";

/// How long to wait between attempts, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// How often a task is looked at where nobody tells of changes, at first and at most.
const FIRST_LOOK: Duration = Duration::from_millis(250);
const RAREST_LOOK: Duration = Duration::from_secs(10);

/// An agent of others, as the operator sets it up.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteAgent {
    /// What it is called here.
    pub name: String,
    /// Its address, or that of its card.
    pub url: String,
    /// The variable that holds its token.
    pub token_env: Option<String>,
    /// How long it may be out of reach before a call of it fails.
    pub patience: Duration,
}

/// Without what may be secret in its address.
impl fmt::Debug for RemoteAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteAgent").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The tools for some agents, or what is wrong with one of them.
pub fn tools(agents: &[RemoteAgent]) -> Result<Vec<Box<dyn Tool>>, String> {
    let mut tools: Vec<Box<dyn Tool>> = Vec::new();
    for agent in agents {
        let wire = Wire::new(agent).map_err(|what| format!("the agent `{}`: {what}", agent.name))?;
        let wire = Arc::new(wire);
        for does in [Does::Card, Does::Send, Does::SendOnce, Does::Wait] {
            tools.push(Box::new(RemoteTool { name: agent.name.clone(), patience: agent.patience, wire: wire.clone(), does }));
        }
    }
    Ok(tools)
}

/// What one of the tools does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Card,
    Send,
    SendOnce,
    Wait,
}

struct RemoteTool {
    name: String,
    patience: Duration,
    wire: Arc<Wire>,
    does: Does,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Message {
    endpoint: String,
    text: String,
    context_id: Option<String>,
    task_id: Option<String>,
    /// What the message answers.
    approval_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Awaited {
    endpoint: String,
    task_id: String,
    streaming: bool,
}

#[async_trait]
impl Tool for RemoteTool {
    fn spec(&self) -> ToolSpec {
        let (name, class, volatile) = match self.does {
            Does::Card => ("card", EffectClass::Read, true),
            Does::Send => ("send", EffectClass::Idempotent, false),
            Does::SendOnce => ("send_once", EffectClass::Write, false),
            Does::Wait => ("wait", EffectClass::Read, true),
        };
        let description = format!("Speaks A2A with {}. Only code calls it.", self.name);
        let name = format!("_a2a_{name}__{}", self.name).into();
        ToolSpec { name, description, parameters: json!({ "type": "object" }), class, volatile }
    }

    fn flow(&self, _: &str) -> Flow {
        // A member of the society, but one that is elsewhere: what it is told leaves this machine.
        let sends = matches!(self.does, Does::Send | Does::SendOnce);
        Flow { outside: Some(format!("the agent {}", self.name).into()), sends, ..Flow::default() }
    }

    async fn call(&self, given: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        let told = match self.does {
            Does::Card => self.card().await,
            Does::Send | Does::SendOnce => self.send(arguments(given)?, context).await,
            Does::Wait => self.wait(&arguments(given)?).await,
        };
        Ok(match told {
            Ok(told) => good(told.to_string()),
            Err(trouble) => failed(format_args!("{}: {trouble}", self.name)),
        })
    }
}

impl RemoteTool {
    /// Where messages go, and what may be relied on there.
    async fn card(&self) -> Result<Value, Trouble> {
        let card = self.patiently(Trouble::is_passing, None).await?;
        let capabilities = &card["capabilities"];
        let declared = capabilities["extensions"].as_array().into_iter().flatten();
        let knows = declared.into_iter().any(|extension| extension["uri"] == KNOWS_MESSAGES);
        let endpoint = self.wire.endpoint(&card)?;
        Ok(json!({ "endpoint": endpoint, "streaming": capabilities["streaming"] == true, "knowsMessages": knows }))
    }

    async fn send(&self, message: Message, context: &CallContext) -> Result<Value, Trouble> {
        let Message { endpoint, text, context_id, task_id, approval_id } = message;
        let mut sent = json!({ "messageId": context.idempotency_key(), "role": "ROLE_USER", "parts": [{ "text": text }] });
        let named = [("contextId", context_id), ("taskId", task_id)];
        for (field, id) in named.into_iter().filter_map(|(field, id)| Some((field, id?))) {
            sent[field] = json!(id);
        }
        if let Some(id) = approval_id {
            sent["metadata"] = json!({ "approvalId": id });
        }
        let params = json!({ "message": sent, "configuration": { "returnImmediately": true } });
        // What may have arrived is sent again only where that does no harm.
        let may_repeat = match self.does {
            Does::SendOnce => Trouble::is_unsent,
            _ => Trouble::is_passing,
        };
        let result = self.patiently(may_repeat, Some((&endpoint, "SendMessage", &params))).await?;
        told::sent(&result).ok_or_else(|| Trouble::strange("its answer is neither a task nor a message"))
    }

    /// Waits until the task is over or it is our turn.
    async fn wait(&self, awaited: &Awaited) -> Result<Value, Trouble> {
        let params = json!({ "id": awaited.task_id });
        let mut pause = FIRST_LOOK;
        let mut changes = None;
        loop {
            if awaited.streaming && changes.is_none() {
                // Without it the task is looked at from time to time.
                changes = self.wire.subscribe(&awaited.endpoint, &params).await.ok();
            }
            let task = self.patiently(Trouble::is_passing, Some((&awaited.endpoint, "GetTask", &params))).await?;
            if let Some(told) = told::rests(&task) {
                return Ok(told);
            }
            let is_heard = match &mut changes {
                Some(changes) => tokio::time::timeout(RAREST_LOOK, changes.next()).await,
                None => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 3 / 2).min(RAREST_LOOK);
                    Ok(true)
                }
            };
            if is_heard == Ok(false) {
                changes = None;
                tokio::time::sleep(FIRST_LOOK).await;
            }
        }
    }

    /// Asks for the card, or a method with its parameters somewhere, until it goes well, fails for good, or patience ends.
    async fn patiently(&self, may_repeat: fn(&Trouble) -> bool, asked: Option<(&str, &str, &Value)>) -> Result<Value, Trouble> {
        let ends = Instant::now() + self.patience;
        let mut pause = FIRST_PAUSE;
        loop {
            let result = match asked {
                Some((endpoint, method, params)) => self.wire.ask(endpoint, method, params).await,
                None => self.wire.card().await,
            };
            match result {
                Err(trouble) if may_repeat(&trouble) && Instant::now() + pause < ends => tokio::time::sleep(pause).await,
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
