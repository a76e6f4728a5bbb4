//! Giving the society something to do: a new request to root, or a word to any agent.

use axum::extract::State;
use polis_domain::{AgentId, Artifact, MessageId, Seq, TaskId};
use polis_engine::Sent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::artifacts::{Attached, attached};
use crate::body::Json;
use crate::desk::Desk;
use crate::once::Once;
use crate::problem::Problem;

/// A new request.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Submit {
    /// What is wanted.
    text: String,
    /// How to go about it; root's own choice when not given.
    strategy: Option<Strategy>,
    /// Contents that were kept before.
    #[serde(default)]
    artifacts: Vec<Attached>,
}

/// How to go about a request.
#[derive(Deserialize, Serialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Strategy {
    Auto,
    Simple,
    Template,
    Workflow,
}

/// A word to an agent.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Send {
    agent_id: AgentId,
    text: String,
    /// The request that it belongs to; a new one if not given.
    task_id: Option<TaskId>,
    /// Contents that were kept before.
    #[serde(default)]
    artifacts: Vec<Attached>,
}

/// What is in the log now; events after `seq` tell what comes of it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Accepted {
    task_id: TaskId,
    message_id: MessageId,
    seq: Seq,
}

pub(crate) async fn submit(
    State(desk): State<Desk>,
    once: Once,
    Json(wish): Json<Submit>,
) -> Result<axum::Json<Accepted>, Problem> {
    let strategy = wish.strategy.and_then(|strategy| serde_json::to_value(strategy).ok());
    let meta = strategy.map(|strategy| ("strategy".to_owned(), strategy)).into_iter().collect();
    said(&desk, &once, (AgentId::root(), &wish.text, None), wish.artifacts, meta).await
}

pub(crate) async fn send(
    State(desk): State<Desk>,
    once: Once,
    Json(wish): Json<Send>,
) -> Result<axum::Json<Accepted>, Problem> {
    let agent = desk.society.addressee(wish.agent_id).await?;
    said(&desk, &once, (agent, &wish.text, wish.task_id), wish.artifacts, Map::new()).await
}

async fn said(
    desk: &Desk,
    once: &Once,
    (agent, text, task): (AgentId, &str, Option<TaskId>),
    artifacts: Vec<Attached>,
    mut meta: Map<String, Value>,
) -> Result<axum::Json<Accepted>, Problem> {
    Artifact::attach(&mut meta, &attached(&desk.society, artifacts).await?);
    let sent = once.send(&desk.society, agent, text, task, meta).await?;
    Ok(axum::Json(sent.into()))
}

impl From<Sent> for Accepted {
    fn from(Sent { message_id, task_id, seq }: Sent) -> Self {
        Self { task_id, message_id, seq }
    }
}
