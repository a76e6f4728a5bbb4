//! Giving the society something to do: a new request to root, or a word to any agent.

use polis_domain::{AgentId, Artifact, MessageId, Seq, TaskId};
use polis_engine::Sent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::artifacts::{Attached, attached};
use crate::body::Json;
use crate::once::Keyed;
use crate::problem::Problem;
use crate::state::SocietyState;

/// A new request.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Submit {
    /// What is wanted.
    text: String,
    /// How to go about it; root's own choice when not given.
    strategy: Option<Strategy>,
    /// When to ask about its plans before they are carried out; at least as often as the server was told to.
    plan_approval: Option<AskAboutPlans>,
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

/// When to ask about a plan.
#[derive(Deserialize, Serialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum AskAboutPlans {
    Never,
    Ask,
    Always,
}

/// A word to an agent.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Send {
    agent_id: AgentId,
    text: String,
    /// The request that it belongs to; a new one if not given.
    task_id: Option<TaskId>,
    /// When to ask about the plans of a new request before they are carried out; at least as often as the server was told to.
    plan_approval: Option<AskAboutPlans>,
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

pub(crate) async fn submit(Keyed(state): Keyed, Json(request): Json<Submit>) -> Result<axum::Json<Accepted>, Problem> {
    let meta = told([("strategy", json!(request.strategy)), (PLAN_APPROVAL, json!(request.plan_approval))]);
    said(&state, (AgentId::root(), &request.text, None), request.artifacts, meta).await
}

pub(crate) async fn send(Keyed(state): Keyed, Json(request): Json<Send>) -> Result<axum::Json<Accepted>, Problem> {
    let agent = state.society.addressee(request.agent_id).await?;
    said(
        &state,
        (agent, &request.text, request.task_id),
        request.artifacts,
        told([(PLAN_APPROVAL, json!(request.plan_approval))]),
    )
    .await
}

/// The key of a request's meta that says when to ask about its plans.
const PLAN_APPROVAL: &str = "planApproval";

/// What goes with the words, as far as something was said.
fn told<const N: usize>(said: [(&str, Value); N]) -> Map<String, Value> {
    said.into_iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.to_owned(), value)).collect()
}

async fn said(
    state: &SocietyState,
    (agent, text, task): (AgentId, &str, Option<TaskId>),
    artifacts: Vec<Attached>,
    mut meta: Map<String, Value>,
) -> Result<axum::Json<Accepted>, Problem> {
    Artifact::attach(&mut meta, &attached(&state.society, artifacts).await?);
    let sent = state.society.send_with_meta(agent, text, task, meta).await?;
    Ok(axum::Json(sent.into()))
}

impl From<Sent> for Accepted {
    fn from(Sent { message_id, task_id, seq }: Sent) -> Self {
        Self { task_id, message_id, seq }
    }
}
