//! Responses: a request by its id, streamed or whole; `previous_response_id` goes on with it.
//!
//! A response's id names its message in the log, so that it can be gone on with and fetched after a restart. Everything is kept,
//! because the log keeps everything; `store: false` only says that the client will not ask for it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use polis_api::TaskStatus;
use polis_domain::{AgentId, Envelope, MessageKind, Recorded, Refusal, Seq, Target, TaskId};
use polis_engine::CommandError;
use serde::Deserialize;
use serde_json::{Value, json};

use super::chat::{format_instruction, now, text_of, unbuffered};
use super::client_request::{ClientRequest, ContinuedTask, Item, PREVIOUS, StartedRun, is_retry, start_run};
use super::client_tools::{ClientTool, ClientToolCall, read_tools};
use super::completion::{Chunk, Completion, Ending};
use super::conversation::conversation_name;
use super::error::{ApiError, Body};
use super::models::find_model;
use super::response_output::ResponseOutput;
use crate::addressee::Receiver;
use crate::agui::{KEEP_ALIVE, Run, RunIds, TokenUsage};
use crate::caller::RequestCaller;
use crate::extract::{CallerState, PathParam};
use crate::state::SocietyState;

#[derive(Deserialize)]
pub(crate) struct Request {
    model: String,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default)]
    previous_response_id: Option<String>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    store: Option<bool>,
    #[serde(default)]
    background: Option<bool>,
    #[serde(default)]
    tools: Option<Vec<ClientTool>>,
    #[serde(default)]
    tool_choice: Value,
    #[serde(default)]
    text: Value,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    metadata: Value,
    #[serde(default)]
    conversation: Value,
}

pub(crate) async fn create(
    CallerState(state): CallerState,
    RequestCaller(caller): RequestCaller,
    headers: HeaderMap,
    Body(request): Body<Request>,
) -> Result<Response, ApiError> {
    let conversation = find_conversation(&state, &request.conversation).await?;
    let task = match (&request.previous_response_id, &conversation) {
        (Some(_), Some(_)) => {
            let message = "continue a conversation or a response, not both";
            return Err(ApiError::invalid("unsupported_value", "conversation", message));
        }
        (Some(id), None) => Some(find_response(&state, id).await?),
        (None, Some(_)) => Some(ContinuedTask { task: state.society.new_task(), is_past: false, before: Vec::new() }),
        (None, None) => None,
    };
    let mut items = items(&request.input)?;
    let instructions = request.instructions.clone().filter(|text| !text.trim().is_empty());
    if task.is_none() {
        items.splice(0..0, instructions.clone().map(Item::Instruction));
    }
    let mut to = find_model(&state, &request.model).await?;
    if let Some(conversation) = conversation {
        to.receiver = Receiver::Agent(conversation);
    }
    let client_request = ClientRequest {
        to,
        items,
        instructions: format_instruction(request.text.get("format").unwrap_or(&Value::Null))?,
        client_tools: read_tools(request.tools.unwrap_or_default(), &request.tool_choice)?,
        user: request.user.unwrap_or_default(),
        name: conversation_name(&headers, &request.metadata),
        task,
        previous: request.previous_response_id.clone(),
        is_retry: is_retry(&headers),
    };
    let StartedRun { task, seq, run } = start_run(&state, &caller, client_request).await?;
    let format = ResponseFormat {
        conversation: conversation_of(&state, &task).await?,
        id: id_of(seq, &task),
        model: request.model,
        created: now(&state),
        previous: request.previous_response_id,
        instructions,
        store: request.store.unwrap_or(true),
        metadata: if request.metadata.is_object() { request.metadata } else { json!({}) },
    };
    let completion = Completion::new(&state, &task, run);
    let output = ResponseOutput::new(&seq.to_string());
    if request.background.unwrap_or(false) {
        return Ok(axum::Json(format.object("in_progress", Vec::new(), None, None)).into_response());
    }
    if request.stream.unwrap_or(false) {
        return Ok(format.streamed(completion, output));
    }
    format.whole(completion, output).await.map(IntoResponse::into_response)
}

/// A response in its current state.
pub(crate) async fn retrieve(CallerState(state): CallerState, PathParam(id): PathParam) -> Result<axum::Json<Value>, ApiError> {
    let (seq, task) = read_id(&id).ok_or_else(|| not_found(&id))?;
    let envelopes = state.society.messages(&task).await?;
    let (recorded, envelope) = envelopes.iter().find(|(recorded, _)| recorded.seq == seq).ok_or_else(|| not_found(&id))?;
    let ended = envelopes.iter().filter(|(recorded, _)| recorded.seq > seq).find(|(_, envelope)| ends(envelope));
    let format = ResponseFormat {
        conversation: conversation_of(&state, &task).await?,
        id: id.clone(),
        model: "polis".to_owned(),
        created: recorded.at.0 / 1_000,
        previous: previous(envelope),
        instructions: None,
        store: true,
        metadata: json!({}),
    };
    let usage = match ended {
        Some((end, _)) => Some(usage_between(&state, &task, seq, end.seq).await?),
        None => None,
    };
    let mut output = ResponseOutput::new(&seq.to_string());
    let (status, failure) = match ended.map(|(_, envelope)| (&envelope.kind, &envelope.payload.text)) {
        Some((MessageKind::Failure(failure), _)) if TaskStatus::after(failure) == TaskStatus::Cancelled => ("cancelled", None),
        Some((MessageKind::Failure(failure), _)) => {
            ("failed", Some(json!({ "code": failure.code, "message": failure.message })))
        }
        Some((_, text)) => {
            output.content(text);
            output.close();
            ("completed", None)
        }
        None => {
            // It is still running, or the client must run its own tools.
            let names = RunIds { thread: task.as_str().into(), run: task.as_str().into() };
            let mut run = Run::listen(&state, &task, &names).await?;
            run.catch_up().await?;
            let calls = run.client_tool_calls();
            calls.into_iter().map(ClientToolCall::new).for_each(|call| drop(output.call(&call)));
            (if output.items().is_empty() { "in_progress" } else { "completed" }, None)
        }
    };
    Ok(axum::Json(format.object(status, output.items(), usage.as_deref(), failure)))
}

/// The previous response, from the meta of the message.
fn previous(envelope: &Envelope) -> Option<String> {
    envelope.payload.meta.get(PREVIOUS).and_then(Value::as_str).map(str::to_owned)
}

/// What was used for a request between two places of the log.
async fn usage_between(state: &SocietyState, task: &TaskId, from: Seq, to: Seq) -> Result<Vec<TokenUsage>, ApiError> {
    let names = RunIds { thread: task.as_str().into(), run: task.as_str().into() };
    let run = Run::replay(state, task, &names, from, Vec::new()).await?;
    Ok(run.usage_until(to).await?)
}

/// Cancels the request of a response.
pub(crate) async fn cancel(CallerState(state): CallerState, PathParam(id): PathParam) -> Result<axum::Json<Value>, ApiError> {
    let (_, task) = read_id(&id).ok_or_else(|| not_found(&id))?;
    match state.society.cancel(Target::Task(task), "cancelled by the client").await {
        // It is over already, which is as good.
        Ok(()) | Err(CommandError::Refused(Refusal::UnknownTask(_))) => {}
        Err(rejected) => return Err(rejected.into()),
    }
    retrieve(CallerState(state), PathParam(id)).await
}

/// The conversation that a client names by its id.
async fn find_conversation(state: &SocietyState, named: &Value) -> Result<Option<AgentId>, ApiError> {
    let id = match named {
        Value::Null => return Ok(None),
        Value::String(id) => id.as_str(),
        named => named.get("id").and_then(Value::as_str).unwrap_or_default(),
    };
    let (asked, visibility) = (AgentId::from(id), state.society.visibility().clone());
    let found = state.society.look(move |spine| {
        let own = spine.conversation(&asked).filter(|_| visibility.agent(spine, &asked));
        own.map(|_| asked.clone())
    });
    let unknown = || {
        let message = format!("there is no conversation `{id}`; GET /api/conversations lists them");
        ApiError::new(StatusCode::NOT_FOUND, "unknown_conversation", message)
    };
    found.await?.map(Some).ok_or_else(unknown)
}

/// The conversation that a request belongs to, if it is one's.
async fn conversation_of(state: &SocietyState, task: &TaskId) -> Result<Option<AgentId>, ApiError> {
    let Some(to) = state.society.messages(task).await?.first().map(|(_, envelope)| envelope.to.clone()) else {
        return Ok(None);
    };
    Ok(state.society.look(move |spine| spine.conversation(&to).map(|_| to.clone())).await?)
}

fn ends(envelope: &Envelope) -> bool {
    envelope.to.is_user() && envelope.kind != MessageKind::Message
}

fn not_found(id: &str) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "response_not_found", format!("there is no response `{id}`"))
}

fn id_of(seq: Seq, task: &TaskId) -> String {
    format!("resp_{seq}_{task}")
}

fn read_id(id: &str) -> Option<(Seq, TaskId)> {
    let (seq, task) = id.strip_prefix("resp_")?.split_once('_')?;
    Some((Seq(seq.parse().ok()?), task.into()))
}

/// The request of a response, and its messages up to there.
async fn find_response(state: &SocietyState, id: &str) -> Result<ContinuedTask, ApiError> {
    let missing = || {
        let message = format!("there is no response `{id}` to continue");
        ApiError::invalid("previous_response_not_found", "previous_response_id", message)
    };
    let (seq, task) = read_id(id).ok_or_else(missing)?;
    let envelopes = state.society.messages(&task).await?;
    if envelopes.is_empty() {
        return Err(missing());
    }
    let is_said = |(recorded, envelope): &&(Recorded, Arc<Envelope>)| recorded.seq > seq && envelope.from.is_user();
    let is_past = envelopes.iter().any(|format| is_said(&format));
    let answer = envelopes.iter().position(|(recorded, envelope)| recorded.seq > seq && ends(envelope));
    let until = answer.map_or(envelopes.len(), |place| place + 1);
    let before = envelopes[..until].iter().map(|(_, envelope)| match envelope.from.is_user() {
        true => Item::User(envelope.payload.text.to_string()),
        false => Item::Assistant(envelope.payload.text.to_string()),
    });
    Ok(ContinuedTask { task, is_past, before: before.collect() })
}

/// The input as conversation items; errors for content that is not supported.
fn items(input: &Value) -> Result<Vec<Item>, ApiError> {
    let list = match input {
        Value::String(text) => return Ok(vec![Item::User(text.clone())]),
        Value::Array(list) => list,
        _ => return Err(ApiError::invalid("no_message", "input", "the input is a text or a list of items")),
    };
    let mut items = Vec::new();
    for (place, item) in list.iter().enumerate() {
        let param = format!("input[{place}]");
        let field = |name: &str| item.get(name).and_then(Value::as_str);
        match (field("type"), field("role")) {
            (None | Some("message"), Some(role)) => {
                let text = text_of(item.get("content").unwrap_or(&Value::Null), &format!("{param}.content"))?;
                items.push(match role {
                    "system" | "developer" => Item::Instruction(text),
                    "assistant" => Item::Assistant(text),
                    "user" => Item::User(text),
                    role => return Err(ApiError::invalid("bad_message", param, format!("unknown role `{role}`"))),
                });
            }
            (Some("function_call_output"), _) => {
                let call = field("call_id").unwrap_or_default().to_owned();
                let output = match item.get("output") {
                    Some(output @ (Value::String(_) | Value::Array(_))) => text_of(output, &format!("{param}.output"))?,
                    other => other.map(Value::to_string).unwrap_or_default(),
                };
                items.push(Item::Result { call, output });
            }
            // The client repeats its calls; only their results count.
            (Some("function_call" | "reasoning"), _) => {}
            (kind, _) => {
                let message = format!("items of the kind `{}` are not supported", kind.unwrap_or("unknown"));
                return Err(ApiError::invalid("unsupported_content", param, message));
            }
        }
    }
    Ok(items)
}

/// The fixed fields of a response.
struct ResponseFormat {
    id: String,
    model: String,
    created: u64,
    previous: Option<String>,
    /// The conversation that it belongs to.
    conversation: Option<AgentId>,
    instructions: Option<String>,
    store: bool,
    metadata: Value,
}

impl ResponseFormat {
    fn object(&self, status: &str, output: Vec<Value>, usage: Option<&[TokenUsage]>, error: Option<Value>) -> Value {
        json!({
            "id": self.id, "object": "response", "created_at": self.created, "status": status, "model": self.model,
            "output": output, "error": error, "incomplete_details": null, "instructions": self.instructions,
            "previous_response_id": self.previous,
            "conversation": self.conversation.as_ref().map(|id| json!({ "id": id })), "store": self.store, "metadata": self.metadata,
            "parallel_tool_calls": true, "tool_choice": "auto", "tools": [], "temperature": null, "top_p": null,
            "usage": usage.map(usage_json),
        })
    }

    async fn whole(&self, mut completion: Completion, mut output: ResponseOutput) -> Result<axum::Json<Value>, ApiError> {
        let (content, reasoning, ending) = completion.collect().await;
        if !reasoning.is_empty() {
            output.reasoning(&reasoning);
        }
        if !content.is_empty() {
            output.content(&content);
        }
        output.close();
        match ending {
            Ending::Stop => {}
            Ending::ToolCalls(calls) => calls.iter().for_each(|call| drop(output.call(call))),
            Ending::Failed(error) => return Err(error),
        }
        Ok(axum::Json(self.object("completed", output.items(), Some(&completion.usage), None)))
    }

    fn streamed(self, completion: Completion, output: ResponseOutput) -> Response {
        let started = ["response.created", "response.in_progress"]
            .map(|kind| json!({ "type": kind, "response": self.object("in_progress", Vec::new(), None, None) }));
        let state = (self, completion, output, VecDeque::from(started), 0_u64);
        let events = stream::unfold(state, |(format, mut completion, mut output, mut ready, mut number)| async move {
            loop {
                if let Some(mut event) = ready.pop_front() {
                    let kind = event.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
                    if let Some(event) = event.as_object_mut() {
                        event.insert("sequence_number".to_owned(), number.into());
                    }
                    number += 1;
                    let frame = sse::Event::default().event(kind).data(event.to_string());
                    return Some((Ok::<_, Infallible>(frame), (format, completion, output, ready, number)));
                }
                match completion.next().await? {
                    Chunk::Content(text) => ready.extend(output.content(&text)),
                    Chunk::Reasoning(text) => ready.extend(output.reasoning(&text)),
                    Chunk::End(ending) => {
                        ready.extend(output.close());
                        let (kind, status, error) = match ending {
                            Ending::Stop => ("response.completed", "completed", None),
                            Ending::ToolCalls(calls) => {
                                calls.iter().for_each(|call| ready.extend(output.call(call)));
                                ("response.completed", "completed", None)
                            }
                            Ending::Failed(error) => {
                                let error = json!({ "code": error.code(), "message": error.message() });
                                ("response.failed", "failed", Some(error))
                            }
                        };
                        let response = format.object(status, output.items(), Some(&completion.usage), error);
                        ready.push_back(json!({ "type": kind, "response": response }));
                    }
                }
            }
        });
        unbuffered(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
    }
}

fn usage_json(usage: &[TokenUsage]) -> Value {
    let sum = |count: fn(&TokenUsage) -> u64| usage.iter().map(count).sum::<u64>();
    json!({
        "input_tokens": sum(|usage| usage.input_tokens),
        "input_tokens_details": { "cached_tokens": sum(|usage| usage.cached_input_tokens) },
        "output_tokens": sum(|usage| usage.output_tokens),
        "output_tokens_details": { "reasoning_tokens": sum(|usage| usage.reasoning_tokens) },
        "total_tokens": sum(|usage| usage.total_tokens),
    })
}
