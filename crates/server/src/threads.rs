//! Conversations: which there are, and one by its address, in the documents' shape.

use axum::extract::State;
use polis_domain::{AgentId, Phase, Spine, SubThreadPath, Thread, ThreadId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::state::SocietyState;
use crate::wanted::{Name, Wanted};
use polis_api::Paging;

/// Which part of a conversation is wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ThreadPart")]
pub(crate) struct Which {
    /// Where the sub-thread lies, from the thread named in the address.
    #[serde(default)]
    path: String,
    /// Whether everything below it is wanted too.
    #[serde(default)]
    tree: bool,
}

pub(crate) async fn thread(
    State(state): State<SocietyState>,
    Name(id): Name,
    Wanted(which): Wanted<Which>,
) -> Result<axum::Json<Thread>, Problem> {
    let path: SubThreadPath =
        which.path.parse().map_err(|bad: polis_domain::BadPath| Problem::bad_request("bad_path", bad.to_string()))?;
    let main = ThreadId::from(id);
    let thread = if which.tree { state.society.tree(&main, &path).await? } else { state.society.thread(&main, &path).await? };
    Ok(axum::Json(thread))
}

/// How many are listed where nobody says.
const USUAL: usize = 200;

/// Conversations by name, and how many there are.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Threads {
    threads: Vec<Listed>,
    count: usize,
    /// The `after` of the next page; none when there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// One conversation.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ListedThread")]
struct Listed {
    id: ThreadId,
    agent_id: AgentId,
    /// Where it lies below its agent's main thread; empty for that one.
    path: String,
    messages: u32,
    phase: Phase,
    /// Whether somebody works in it.
    is_open: bool,
}

pub(crate) async fn threads(
    State(state): State<SocietyState>,
    Wanted(paging): Wanted<Paging>,
) -> Result<axum::Json<Threads>, Problem> {
    Ok(axum::Json(state.society.look(move |spine| list(spine, &paging)).await?))
}

fn list(spine: &Spine, paging: &Paging) -> Threads {
    let mut ids: Vec<_> = spine.threads.keys().collect();
    ids.sort();
    let count = ids.len();
    let (ids, next) = paging.cut_at(ids, USUAL, |id| id.to_string());
    let listed = |id: &ThreadId| {
        let head = spine.threads.get(id)?;
        let (_, path) = spine.address(id);
        let (messages, phase) = (head.messages, head.phase.clone());
        Some(Listed {
            id: id.clone(),
            agent_id: head.agent.clone(),
            path: if path.is_main() { String::new() } else { path.to_string() },
            messages,
            phase,
            is_open: head.turn.is_some(),
        })
    };
    Threads { threads: ids.into_iter().filter_map(listed).collect(), count, next }
}
