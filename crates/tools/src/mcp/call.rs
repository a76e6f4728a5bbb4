//! One request to a server (a tool call, a resource or a prompt) and its answer as the model reads it.

use std::time::Duration;

use polis_domain::CallResult;
use polis_ports::CallContext;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, GetPromptRequest,
    GetPromptRequestParams, InputResponses, JsonObject, ReadResourceRequest, ReadResourceRequestParams, RequestId,
    RequestMetaObject, ServerResult,
};
use rmcp::service::PeerRequestOptions;
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use super::active_calls::ActiveCall;
use super::client_handler::McpClientHandler;
use super::oauth::{Wants, wants};
use super::render::{prompt, rendered, resource};
use super::without_type_names;

/// A server that reports progress may take this many times longer than one that is silent.
const PATIENCE: u32 = 10;

/// How often a server may ask for more before it answers.
const MAX_ROUNDS: usize = 5;

/// How long sending a cancellation to a server may take.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest reason of a broken connection that is told, in characters: it may hold what the server said.
const MAX_REASON_CHARS: usize = 500;

/// How a call failed.
pub(super) enum CallFailure {
    /// The server said so, and lives.
    Refused(String),
    /// It did not answer; whether it did anything is not known.
    NoAnswer(String),
    /// The server wants a login, or a better one, and did nothing.
    LoginRequired(Wants),
}

/// What is asked of a server.
#[derive(Clone)]
pub(super) enum McpRequest {
    /// A call of a tool.
    Tool(CallToolRequestParams),
    /// The contents of a resource.
    Resource(ReadResourceRequestParams),
    /// The messages of a prompt.
    Prompt(GetPromptRequestParams),
}

impl McpRequest {
    fn request(&self) -> ClientRequest {
        match self.clone() {
            Self::Tool(params) => ClientRequest::CallToolRequest(CallToolRequest::new(params)),
            Self::Resource(params) => ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params)),
            Self::Prompt(params) => ClientRequest::GetPromptRequest(GetPromptRequest::new(params)),
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Tool(params) => &params.name,
            Self::Resource(params) => &params.uri,
            Self::Prompt(params) => &params.name,
        }
    }

    fn answer(&mut self, answers: InputResponses, state: Option<String>) {
        let (responses, request_state) = match self {
            Self::Tool(params) => (&mut params.input_responses, &mut params.request_state),
            Self::Resource(params) => (&mut params.input_responses, &mut params.request_state),
            Self::Prompt(params) => (&mut params.input_responses, &mut params.request_state),
        };
        (*responses, *request_state) = (Some(answers), state);
    }
}

/// Sends a request to a server. When the future is dropped, the server is sent a cancellation.
pub(super) async fn ask(
    peer: &Peer<RoleClient>,
    client: &McpClientHandler,
    mut request: McpRequest,
    timeout: Duration,
    context: &CallContext,
) -> Result<CallResult, CallFailure> {
    let active = client.calls.begin(context);
    let store = &*context.artifacts.store;
    for _ in 0..MAX_ROUNDS {
        match once(peer, request.request(), timeout, &active.call).await.map_err(|error| failed(error, timeout))? {
            ServerResult::CallToolResult(result) => return Ok(rendered(request.name(), &result, store).await),
            ServerResult::ReadResourceResult(result) => return Ok(resource(&result, store).await),
            ServerResult::GetPromptResult(result) => return Ok(prompt(&result, store).await),
            ServerResult::InputRequiredResult(needed) => {
                let mut answers = InputResponses::new();
                for (key, request) in needed.input_requests.unwrap_or_default() {
                    let answer = client.answer(&active.call, request).await;
                    answers.insert(key, answer.map_err(|error| CallFailure::Refused(error.message.into_owned()))?);
                }
                request.answer(answers, needed.request_state);
            }
            _ => return Err(CallFailure::Refused("the server gave an answer to another question".to_owned())),
        }
    }
    Err(CallFailure::Refused(format!("the server asked for more {MAX_ROUNDS} times and gave no result")))
}

async fn once(
    peer: &Peer<RoleClient>,
    request: ClientRequest,
    timeout: Duration,
    call: &ActiveCall,
) -> Result<ServerResult, ServiceError> {
    let options = PeerRequestOptions::no_options().with_meta(meta(&call.context));
    let handle = peer.send_request_with_option(request, options).await?;
    let mut unanswered = CancelOnDrop { peer, id: Some(handle.id.clone()) };
    call.set_progress_token(handle.progress_token.clone());
    let answer = in_time(call, timeout, handle.await_response()).await;
    let id = unanswered.id.take();
    match answer {
        Ok(answer) => answer,
        Err(late) => {
            let _ = tokio::time::timeout(CANCEL_TIMEOUT, peer.notify_cancelled(cancelled_notification(id))).await;
            Err(late)
        }
    }
}

fn cancelled_notification(id: Option<RequestId>) -> CancelledNotificationParam {
    CancelledNotificationParam::new(id, Some("it is no longer needed".to_owned()))
}

/// Waits while the server shows signs of life, but not for ever. The time that it waits for us does not count.
async fn in_time<T>(call: &ActiveCall, timeout: Duration, answer: impl Future<Output = T>) -> Result<T, ServiceError> {
    let mut answer = std::pin::pin!(answer);
    let (mut silent, mut latest) = (Instant::now() + timeout, Instant::now() + timeout * PATIENCE);
    loop {
        tokio::select! {
            biased;
            answer = &mut answer => return Ok(answer),
            () = call.alive.notified() => silent = Instant::now() + timeout,
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
        "currentResourceId": context.resource,
        "thread": context.thread,
        "path": context.path,
        "agent": context.agent,
    });
    let told = told.as_object().cloned().unwrap_or_default();
    // What is ours counts before what an application calls the same, and names with a `/` are the protocol's.
    context
        .application
        .clone()
        .into_iter()
        .filter(|(name, _)| !name.contains('/'))
        .chain(told)
        .filter(|(_, value)| !value.is_null())
        .collect::<JsonObject>()
        .into()
}

pub(super) fn failed(error: ServiceError, timeout: Duration) -> CallFailure {
    let unknown = "whether anything was done is not known";
    if let Some(wants) = wants(&error) {
        return CallFailure::LoginRequired(wants);
    }
    match error {
        ServiceError::McpError(error) => {
            let message: String = error.message.chars().take(2_000).collect();
            CallFailure::Refused(format!("{message} ({})", error.code.0))
        }
        ServiceError::Timeout { timeout: waited } if waited > timeout => CallFailure::NoAnswer(format!(
            "the tool was not done after {} s, in spite of its progress; {unknown}",
            waited.as_secs()
        )),
        ServiceError::Timeout { timeout } => {
            CallFailure::NoAnswer(format!("the tool gave no sign of life for {} s; {unknown}", timeout.as_secs_f32()))
        }
        ServiceError::TransportClosed => CallFailure::NoAnswer(format!("the connection to the server broke; {unknown}")),
        ServiceError::TransportSend(error) => {
            let why: String = without_type_names(&error).chars().filter(|c| !c.is_control()).take(MAX_REASON_CHARS).collect();
            CallFailure::NoAnswer(format!("the connection to the server broke ({why}); {unknown}"))
        }
        ServiceError::Cancelled { .. } => CallFailure::Refused("the server gave up the call".to_owned()),
        error => CallFailure::Refused(without_type_names(&error)),
    }
}

/// Cancels a request whose future is dropped before its answer arrives.
struct CancelOnDrop<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let peer = self.peer.clone();
        let told = cancelled_notification(Some(id));
        // Nothing depends on it, and it ends by itself.
        runtime.spawn(async move { tokio::time::timeout(CANCEL_TIMEOUT, peer.notify_cancelled(told)).await });
    }
}
