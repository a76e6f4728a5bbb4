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
use tokio::time::{Instant, sleep_until};

use super::ear::Ear;
use super::render::rendered;
use super::under_way::UnderWay;

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
    let begun = ear.calls.begin(context);
    let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    for _ in 0..MAX_ROUNDS {
        match once(peer, params.clone(), timeout, &begun.call).await.map_err(|error| failed(error, timeout))? {
            ServerResult::CallToolResult(result) => return Ok(rendered(tool, &result, &*context.artifacts.store).await),
            ServerResult::InputRequiredResult(wanted) => {
                let mut answers = InputResponses::new();
                for (key, request) in wanted.input_requests.unwrap_or_default() {
                    let answer = ear.answer(&begun.call, request).await;
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
    call: &UnderWay,
) -> Result<ServerResult, ServiceError> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let options = PeerRequestOptions::no_options().with_meta(meta(&call.context));
    let handle = peer.send_request_with_option(request, options).await?;
    let mut unanswered = Unanswered { peer, id: Some(handle.id.clone()) };
    call.known_as(handle.progress_token.clone());
    let answer = in_time(call, timeout, handle.await_response()).await;
    let id = unanswered.id.take();
    match answer {
        Ok(answer) => answer,
        Err(late) => {
            let _ = tokio::time::timeout(FAREWELL, peer.notify_cancelled(farewell(id))).await;
            Err(late)
        }
    }
}

fn farewell(id: Option<RequestId>) -> CancelledNotificationParam {
    CancelledNotificationParam::new(id, Some("nobody waits for it any more".to_owned()))
}

/// Waits while the server shows signs of life, but not for ever. The time that it waits for us does not count.
async fn in_time<T>(call: &UnderWay, timeout: Duration, answer: impl Future<Output = T>) -> Result<T, ServiceError> {
    let mut answer = std::pin::pin!(answer);
    let (mut silent, mut latest) = (Instant::now() + timeout, Instant::now() + timeout * PATIENCE);
    loop {
        tokio::select! {
            biased;
            answer = &mut answer => return Ok(answer),
            () = call.sign.notified() => silent = Instant::now() + timeout,
            () = sleep_until(silent.min(latest)) => match (call.is_asking(), latest <= silent) {
                (true, _) => (silent, latest) = (silent + timeout, latest + timeout),
                (false, true) => return Err(ServiceError::Timeout { timeout: timeout * PATIENCE }),
                (false, false) => return Err(ServiceError::Timeout { timeout }),
            },
        }
    }
}

/// On whose behalf the call is made, for servers that want to know, and the key by which they can tell a repetition.
fn meta(context: &CallContext) -> RequestMetaObject {
    let told = json!({
        "idempotencyKey": context.idempotency_key(),
        "currentTaskId": context.task,
        "thread": context.thread,
        "agent": context.agent,
    });
    told.as_object().cloned().unwrap_or_default().into()
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
        // Nothing depends on it, and it ends by itself.
        runtime.spawn(async move { tokio::time::timeout(FAREWELL, peer.notify_cancelled(farewell(Some(id)))).await });
    }
}
