//! One call of a server's tool, from the arguments as the model wrote them to the result as it reads it.

use std::time::Duration;

use polis_domain::CallResult;
use polis_ports::CallContext;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, InputResponses, JsonObject, RequestId,
    RequestMetaObject, ServerResult,
};
use rmcp::service::PeerRequestOptions;
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::json;

use super::ear::Ear;
use super::render::rendered;

/// A server that reports progress may take this many times longer than one that is silent.
const PATIENCE: u32 = 10;

/// How often a server may ask for more before it answers.
const MAX_ROUNDS: usize = 5;

/// How long it may take to tell a server that nobody waits any more.
const FAREWELL: Duration = Duration::from_secs(5);

/// How a call failed.
pub(super) enum Failed {
    /// The server said so, and lives.
    Refused(String),
    /// It did not answer; whether it did anything is not known.
    Silent(String),
}

/// Calls a tool. When the future is dropped, the server is told that nobody waits any more.
pub(super) async fn call(
    peer: &Peer<RoleClient>,
    ear: &Ear,
    tool: &str,
    arguments: JsonObject,
    timeout: Duration,
    context: &CallContext,
) -> Result<CallResult, Failed> {
    let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    for _ in 0..MAX_ROUNDS {
        match once(peer, params.clone(), timeout, context).await.map_err(|error| failed(error, timeout))? {
            ServerResult::CallToolResult(result) => return Ok(rendered(&result)),
            ServerResult::InputRequiredResult(wanted) => {
                let mut answers = InputResponses::new();
                for (key, request) in wanted.input_requests.unwrap_or_default() {
                    let answer = ear.answer(request).await;
                    answers.insert(key, answer.map_err(|error| Failed::Refused(error.message.into_owned()))?);
                }
                params = params.with_input_responses(answers);
                params.request_state = wanted.request_state;
            }
            _ => return Err(Failed::Refused("the server gave an answer that is no result of a tool".to_owned())),
        }
    }
    Err(Failed::Refused(format!("the server asked for more {MAX_ROUNDS} times and gave no result")))
}

async fn once(
    peer: &Peer<RoleClient>,
    params: CallToolRequestParams,
    timeout: Duration,
    context: &CallContext,
) -> Result<ServerResult, ServiceError> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let options = PeerRequestOptions::with_timeout(timeout)
        .reset_timeout_on_progress()
        .with_max_total_timeout(timeout * PATIENCE)
        .with_meta(meta(context));
    let handle = peer.send_request_with_option(request, options).await?;
    let mut unanswered = Unanswered { peer, id: Some(handle.id.clone()) };
    let answer = handle.await_response().await;
    unanswered.id = None;
    answer
}

/// On whose behalf the call is made, for servers that want to know, and the key by which they can tell a repetition.
fn meta(context: &CallContext) -> RequestMetaObject {
    let told = json!({
        "idempotencyKey": context.idempotency_key(),
        "currentTaskId": context.task,
        "currentResourceId": context.resource,
        "thread": context.thread,
        "path": context.path,
        "agent": context.agent,
    });
    let told = told.as_object().cloned().unwrap_or_default();
    told.into_iter().filter(|(_, value)| !value.is_null()).collect::<JsonObject>().into()
}

fn failed(error: ServiceError, timeout: Duration) -> Failed {
    let unknown = "whether anything was done is not known";
    match error {
        ServiceError::McpError(error) => {
            let message: String = error.message.chars().take(2_000).collect();
            Failed::Refused(format!("{message} ({})", error.code.0))
        }
        ServiceError::Timeout { timeout: waited } if waited > timeout => {
            Failed::Silent(format!("the tool was not done after {} s, in spite of its progress; {unknown}", waited.as_secs()))
        }
        ServiceError::Timeout { timeout } => {
            Failed::Silent(format!("the tool gave no sign of life for {} s; {unknown}", timeout.as_secs_f32()))
        }
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
            Failed::Silent(format!("the connection to the server broke; {unknown}"))
        }
        ServiceError::Cancelled { .. } => Failed::Refused("the server gave up the call".to_owned()),
        error => Failed::Refused(error.to_string()),
    }
}

/// A request that somebody waits for.
struct Unanswered<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let peer = self.peer.clone();
        let told = CancelledNotificationParam::new(Some(id), Some("nobody waits for it any more".to_owned()));
        // Nothing depends on it, and it ends by itself.
        runtime.spawn(async move { tokio::time::timeout(FAREWELL, peer.notify_cancelled(told)).await });
    }
}
