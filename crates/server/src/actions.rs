//! What a person does with a component on the page: a word to the agent that showed it, or the answer to what waits (D25).

use axum::http::StatusCode;
use polis_domain::{AgentId, TaskId, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::body::Json;
use crate::caller::{self, Scope};
use crate::once::Keyed;
use crate::problem::Problem;
use polis_api::local::settle;
use polis_api::{Accepted, Decision};

/// Longest data of an action.
const MAX_DATA_BYTES: usize = 64 << 10;

/// An action of a component.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ComponentAction {
    /// The component, such as `todo-list`.
    component: String,
    /// What was done with it, such as `select`.
    action: String,
    /// What goes with it.
    #[serde(default)]
    data: Value,
    /// Whose component it is; root's if not given.
    #[serde(default = "AgentId::root")]
    agent_id: AgentId,
    /// The request that it belongs to; a new one if not given.
    task_id: Option<TaskId>,
    /// The question that it answers, as `/api/approvals` lists it; then `data` is the answer, and nothing a plain yes. Needs the scope `approve` too.
    approval_id: Option<String>,
}

/// What became of it: a message, or the answer to what waited.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Acted {
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Accepted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<String>,
}

pub(crate) async fn act(
    Keyed(state): Keyed,
    caller::From(caller): caller::From,
    Json(request): Json<ComponentAction>,
) -> Result<axum::Json<Acted>, Problem> {
    check(&request)?;
    if let Some(id) = request.approval_id {
        caller.needs(Scope::Approve)?;
        let verdict = Verdict { answer: Some(request.data).filter(|data| !data.is_null()), ..Verdict::yes() };
        settle(&state.society, &id, Decision::Verdict(verdict)).await?;
        return Ok(axum::Json(Acted { message: None, approval_id: Some(id) }));
    }
    let text = format!("[{} {}] {}", request.component, request.action, request.data);
    let action = json!({ "component": request.component, "action": request.action, "data": request.data });
    let meta = Map::from_iter([("_component_action".to_owned(), action)]);
    let sent = state.society.send_with_meta(request.agent_id, &text, request.task_id, meta).await?;
    Ok(axum::Json(Acted { message: Some(sent.into()), approval_id: None }))
}

/// Names are names, so that nobody takes them for anything else; the page's own data is not without end.
fn check(request: &ComponentAction) -> Result<(), Problem> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_name = |name: &str| !name.is_empty() && name.len() <= 64 && name.bytes().all(plain);
    if !is_name(&request.component) || !is_name(&request.action) {
        let detail = "`component` and `action` are names of 1 to 64 letters, digits, - and _";
        return Err(Problem::bad_request("bad_action", detail));
    }
    if request.data.to_string().len() > MAX_DATA_BYTES {
        let detail = format!("`data` is longer than {MAX_DATA_BYTES} bytes; store it as an artifact and refer to that");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail));
    }
    Ok(())
}
