//! One question to a server, a call of a tool or another, and its answer as the model reads it.

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

use super::ear::Ear;
use super::in_words;
use super::oauth::{Wants, wants};
use super::render::{prompt, rendered, resource};
use super::under_way::UnderWay;

/// A server that reports progress may take this many times longer than one that is silent.
const PATIENCE: u32 = 10;

/// How often a server may ask for more before it answers.
const MAX_ROUNDS: usize = 5;

/// How long it may take to tell a server that nobody waits any more.
const FAREWELL: Duration = Duration::from_secs(5);

/// Longest reason of a broken connection that is told, in characters: it may hold what the server said.
const MAX_REASON_CHARS: usize = 500;

/// How a call failed.
pub(super) enum Failed {
    /// The server said so, and lives.
    Refused(String),
    /// It did not answer; whether it did anything is not known.
    Silent(String),
    /// The server wants a login, or a better one, and did nothing.
    Unwelcome(Wants),
}

/// What is asked of a server.
#[derive(Clone)]
pub(super) enum Question {
    /// A call of a tool.
    Tool(CallToolRequestParams),
    /// The contents of a resource.
    Resource(ReadResourceRequestParams),
    /// The messages of a prompt.
    Prompt(GetPromptRequestParams),
}

impl Question {
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
        let (responses, kept) = match self {
            Self::Tool(params) => (&mut params.input_responses, &mut params.request_state),
            Self::Resource(params) => (&mut params.input_responses, &mut params.request_state),
            Self::Prompt(params) => (&mut params.input_responses, &mut params.request_state),
        };
        (*responses, *kept) = (Some(answers), state);
    }
}

/// Asks a server. When the future is dropped, it is told that nobody waits any more.
pub(super) async fn ask(
    peer: &Peer<RoleClient>,
    ear: &Ear,
    mut question: Question,
    timeout: Duration,
    context: &CallContext,
) -> Result<CallResult, Failed> {
    let begun = ear.calls.begin(context);
    let store = &*context.artifacts.store;
    for _ in 0..MAX_ROUNDS {
        match once(peer, question.request(), timeout, &begun.call).await.map_err(|error| failed(error, timeout))? {
            ServerResult::CallToolResult(result) => return Ok(rendered(question.name(), &result, store).await),
            ServerResult::ReadResourceResult(result) => return Ok(resource(&result, store).await),
            ServerResult::GetPromptResult(result) => return Ok(prompt(&result, store).await),
            ServerResult::InputRequiredResult(wanted) => {
                let mut answers = InputResponses::new();
                for (key, request) in wanted.input_requests.unwrap_or_default() {
                    let answer = ear.answer(&begun.call, request).await;
                    answers.insert(key, answer.map_err(|error| Failed::Refused(error.message.into_owned()))?);
                }
                question.answer(answers, wanted.request_state);
            }
            _ => return Err(Failed::Refused("the server gave an answer to another question".to_owned())),
        }
    }
    Err(Failed::Refused(format!("the server asked for more {MAX_ROUNDS} times and gave no result")))
}

async fn once(
    peer: &Peer<RoleClient>,
    request: ClientRequest,
    timeout: Duration,
    call: &UnderWay,
) -> Result<ServerResult, ServiceError> {
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
    CancelledNotificationParam::new(id, Some("it is no longer needed".to_owned()))
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
        "currentResourceId": context.resource,
        "thread": context.thread,
        "path": context.path,
        "agent": context.agent,
    });
    let told = told.as_object().cloned().unwrap_or_default();
    told.into_iter().filter(|(_, value)| !value.is_null()).collect::<JsonObject>().into()
}

pub(super) fn failed(error: ServiceError, timeout: Duration) -> Failed {
    let unknown = "whether anything was done is not known";
    if let Some(wants) = wants(&error) {
        return Failed::Unwelcome(wants);
    }
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
        ServiceError::TransportClosed => Failed::Silent(format!("the connection to the server broke; {unknown}")),
        ServiceError::TransportSend(error) => {
            let why: String = in_words(&error).chars().filter(|c| !c.is_control()).take(MAX_REASON_CHARS).collect();
            Failed::Silent(format!("the connection to the server broke ({why}); {unknown}"))
        }
        ServiceError::Cancelled { .. } => Failed::Refused("the server gave up the call".to_owned()),
        error => Failed::Refused(in_words(&error)),
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
        let told = farewell(Some(id));
        // Nothing depends on it, and it ends by itself.
        runtime.spawn(async move { tokio::time::timeout(FAREWELL, peer.notify_cancelled(told)).await });
    }
}
