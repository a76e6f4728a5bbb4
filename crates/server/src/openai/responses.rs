//! Responses: a request by its id, streamed or whole; `previous_response_id` goes on with it.
//!
//! A response's id names its message in the log, so that it can be gone on with and fetched after a restart. Everything is kept,
//! because the log keeps everything; `store: false` only says that the client will not ask for it.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use polis_api::TaskStatus;
use polis_domain::{
    AgentId, AnswerRules, Artifact, Envelope, Finish, MessageKind, ModelSettings, Recorded, Refusal, Seq, Target, Task, TaskId,
};
use polis_engine::CommandError;
use polis_ports::{Media, MediaKind};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer_format::{checked_text, read_format};
use super::chat::now;
use super::client_request::{ClientRequest, ContinuedTask, Item, PREVIOUS, StartedRun, is_retry, start_run};
use super::client_tools::{ClientTool, ClientToolCall, read_choice, read_tools};
use super::completion::{Completion, Cut};
use super::content::{UserMessage, content_of, result_of, text_of};
use super::conversation::conversation_name;
use super::conversations::find_conversation;
use super::error::{ApiError, Body};
use super::model_settings::SettingFields;
use super::models::find_model;
use super::response_object::{ResponseEcho, ResponseFormat};
use super::response_output::ResponseOutput;
use super::response_stream::{events, sse_response};
use crate::addressee::Receiver;
use crate::agui::{Run, RunContext, TokenUsage};
use crate::caller::RequestCaller;
use crate::client_files::ClientFile;
use crate::extract::{CallerState, PathParam, QueryParams};
use crate::problem::Problem;
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
    parallel_tool_calls: Option<bool>,
    #[serde(default)]
    text: Value,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    metadata: Value,
    #[serde(default)]
    conversation: Value,
    #[serde(flatten)]
    settings: SettingFields,
}

pub(crate) async fn create(
    CallerState(state): CallerState,
    RequestCaller(caller): RequestCaller,
    headers: HeaderMap,
    Body(request): Body<Request>,
) -> Result<Response, ApiError> {
    let settings = request.settings.read()?;
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
    items.splice(0..0, instructions.clone().map(Item::Instruction));
    let mut to = find_model(&state, &request.model).await?;
    if let Some(conversation) = conversation {
        to.receiver = Receiver::Agent(conversation);
    }
    let client_tools = read_tools(request.tools.unwrap_or_default())?;
    let mut rules = read_choice(&client_tools, &request.tool_choice, request.parallel_tool_calls)?;
    rules.format = read_format(request.text.get("format").unwrap_or(&Value::Null), "text.format")?.map(Arc::new);
    let is_background = request.background.unwrap_or(false);
    let echo = echo(&client_tools, is_background, request.tool_choice, request.parallel_tool_calls, request.text);
    let client_request = ClientRequest {
        to,
        items,
        client_tools,
        rules: rules.clone(),
        settings: settings.clone(),
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
        echo,
        settings,
    };
    let completion = Completion::new(&state, &task, run, rules);
    let output = ResponseOutput::new(&seq.to_string());
    match (request.stream.unwrap_or(false), is_background) {
        (true, true) => {
            let id = format.id.clone();
            state.response_streams.keep(&id, events(format, completion, output));
            let kept = state.response_streams.events(&id, 0).ok_or_else(|| not_found(&id))?;
            Ok(sse_response(kept))
        }
        (true, false) => Ok(sse_response(events(format, completion, output))),
        (false, true) => Ok(axum::Json(format.object("in_progress", Vec::new(), None, None)).into_response()),
        (false, false) => format.whole(completion, output).await.map(IntoResponse::into_response),
    }
}

/// The fields of a request that its response says back.
fn echo(tools: &[Value], background: bool, tool_choice: Value, parallel: Option<bool>, text: Value) -> ResponseEcho {
    let usual = ResponseEcho::default();
    let tool = |tool: &Value| {
        let mut tool = tool.clone();
        (tool["type"], tool["strict"]) = ("function".into(), false.into());
        tool
    };
    ResponseEcho {
        background,
        tools: tools.iter().map(tool).collect(),
        tool_choice: if tool_choice.is_null() { usual.tool_choice } else { tool_choice },
        parallel_tool_calls: parallel.unwrap_or(true),
        text: if text.get("format").is_some() { text } else { usual.text },
    }
}

/// How a response is read.
#[derive(Deserialize)]
pub(crate) struct Reading {
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    starting_after: Option<usize>,
}

/// A response in its current state, or as a stream: the one that was kept, or all of it from the log.
pub(crate) async fn retrieve(
    CallerState(state): CallerState,
    PathParam(id): PathParam,
    QueryParams(reading): QueryParams<Reading>,
) -> Result<Response, ApiError> {
    let asked = AskedResponse::find(&state, &id).await?;
    if !reading.stream.unwrap_or(false) {
        return Ok(axum::Json(asked.object(&state).await?).into_response());
    }
    let from = reading.starting_after.map_or(0, |last| last.saturating_add(1));
    if let Some(kept) = state.response_streams.events(&id, from) {
        return Ok(sse_response(kept));
    }
    if reading.starting_after.is_some() {
        let message = "only the newest responses that were created with background and stream can be continued, and not after a \
                       restart; read it without starting_after";
        return Err(ApiError::invalid("stream_not_kept", "starting_after", message));
    }
    let AskedResponse { task, said, envelope, .. } = &asked;
    let run = Run::replay(&state, task, &RunContext::of(task), *said, Vec::new()).await?.answering(envelope.id.clone());
    let completion = Completion::new(&state, task, run, rules_of(envelope));
    Ok(sse_response(events(asked.format(&state).await?, completion, ResponseOutput::new(&asked.seq.to_string()))))
}

/// What the client said with the request of a response.
pub(crate) async fn input_items(
    CallerState(state): CallerState,
    PathParam(id): PathParam,
) -> Result<axum::Json<Value>, ApiError> {
    let AskedResponse { envelope, .. } = AskedResponse::find(&state, &id).await?;
    let text = json!({ "type": "input_text", "text": envelope.payload.own_words() });
    let files = Artifact::attached(&envelope.payload.meta);
    let files = files.iter().map(|file| match MediaKind::of(&file.media_type) {
        Some(MediaKind::Image) => json!({ "type": "input_image", "file_id": file.id, "detail": "auto" }),
        _ => json!({ "type": "input_file", "file_id": file.id, "filename": file.name }),
    });
    let item = json!({
        "type": "message", "id": envelope.id, "role": "user", "status": "completed",
        "content": std::iter::once(text).chain(files).collect::<Vec<_>>(),
    });
    let list = json!({ "object": "list", "data": [item], "first_id": envelope.id, "last_id": envelope.id, "has_more": false });
    Ok(axum::Json(list))
}

/// Deletes the conversation of a response, if it has no other response.
pub(crate) async fn delete(
    CallerState(state): CallerState,
    RequestCaller(caller): RequestCaller,
    PathParam(id): PathParam,
) -> Result<axum::Json<Value>, ApiError> {
    let AskedResponse { task, envelope, is_only, .. } = AskedResponse::find(&state, &id).await?;
    let own = find_conversation(&state, &json!(envelope.to)).await?;
    // A conversation that was made for its first request has that request's id.
    match own.filter(|own| is_only && own.as_str() == task.as_str()) {
        Some(conversation) => {
            state.api(caller).delete_conversation(&conversation).await?;
            Ok(axum::Json(json!({ "id": id, "object": "response", "deleted": true })))
        }
        None => {
            let message = format!("the response is part of the conversation `{}`; delete that one", envelope.to);
            Err(ApiError::new(StatusCode::CONFLICT, "response_in_conversation", message))
        }
    }
}

/// A response that a client asks for by its id.
struct AskedResponse {
    id: String,
    seq: Seq,
    task: TaskId,
    /// The place of the message that it answers, and the message.
    said: Seq,
    said_at: u64,
    envelope: Arc<Envelope>,
    /// What ended it.
    end: Option<(Seq, Arc<Envelope>)>,
    /// Whether the person said nothing else in the request.
    is_only: bool,
}

impl AskedResponse {
    async fn find(state: &SocietyState, id: &str) -> Result<Self, ApiError> {
        let missing = || not_found(id);
        let (seq, task) = read_id(id).ok_or_else(missing)?;
        let envelopes = state.society.messages(&task).await?;
        let by_person = |(_, envelope): &&(Recorded, Arc<Envelope>)| envelope.from.is_user();
        // A response to results of tools has no message of its own: it answers the last one.
        let said = envelopes.iter().filter(by_person).rfind(|(recorded, _)| recorded.seq <= seq);
        let (recorded, envelope) = said.ok_or_else(missing)?;
        let to = envelope.to.clone();
        if !state.society.look(move |spine| spine.agents.contains_key(&to)).await? {
            // Its conversation was deleted.
            return Err(missing());
        }
        let end = envelopes.iter().find(|(recorded, envelope)| recorded.seq > seq && ends(envelope));
        Ok(Self {
            id: id.to_owned(),
            seq,
            said: recorded.seq,
            said_at: recorded.at.0 / 1_000,
            envelope: envelope.clone(),
            end: end.map(|(recorded, envelope)| (recorded.seq, envelope.clone())),
            is_only: envelopes.iter().filter(by_person).count() == 1,
            task,
        })
    }

    async fn format(&self, state: &SocietyState) -> Result<ResponseFormat, ApiError> {
        Ok(ResponseFormat {
            conversation: conversation_of(state, &self.task).await?,
            id: self.id.clone(),
            model: "polis".to_owned(),
            created: self.said_at,
            previous: previous(&self.envelope),
            instructions: None,
            store: true,
            metadata: json!({}),
            echo: ResponseEcho::default(),
            settings: settings_of(&self.envelope),
        })
    }

    /// The response in its current state.
    async fn object(&self, state: &SocietyState) -> Result<Value, ApiError> {
        let (usage, finish) = match &self.end {
            Some((end, _)) => {
                let (usage, finish) = usage_between(state, &self.task, self.said, *end).await?;
                (Some(usage), finish)
            }
            None => (None, None),
        };
        let mut output = ResponseOutput::new(&self.seq.to_string());
        let failed = |code: &str, message: &str| ("failed", Some(json!({ "code": code, "message": message })));
        let (status, failure) = match self.end.as_ref().map(|(_, envelope)| (&envelope.kind, &envelope.payload.text)) {
            Some((MessageKind::Failure(failure), _)) if TaskStatus::after(failure) == TaskStatus::Cancelled => {
                ("cancelled", None)
            }
            Some((MessageKind::Failure(failure), _)) => failed(&failure.code, &failure.message),
            Some((_, text)) => match checked_text(&rules_of(&self.envelope), text) {
                Ok(text) => {
                    output.content(&text);
                    output.close();
                    ("completed", None)
                }
                Err(error) => failed(error.code(), error.message()),
            },
            None => {
                // It is still running, or the client must run its own tools.
                let mut run = Run::listen(state, &self.task, &RunContext::of(&self.task)).await?;
                run.catch_up().await?;
                let calls = run.client_tool_calls();
                calls.into_iter().map(ClientToolCall::new).for_each(|call| drop(output.call(&call)));
                (if output.items().is_empty() { "in_progress" } else { "completed" }, None)
            }
        };
        let format = self.format(state).await?;
        Ok(match Cut::of(finish.as_ref()).filter(|_| status == "completed") {
            Some(cut) => format.incomplete(cut, output.items(), usage.as_deref().unwrap_or_default()),
            None => format.object(status, output.items(), usage.as_deref(), failure),
        })
    }
}

/// What the client prescribed for the answer to a message. A call may have been the answer, so that a text after it is none.
fn rules_of(envelope: &Envelope) -> AnswerRules {
    let rules = envelope.payload.meta.get(Task::ANSWER_RULES).and_then(|rules| AnswerRules::deserialize(rules).ok());
    AnswerRules { must_call: false, ..rules.unwrap_or_default() }
}

/// How models were called for a message.
fn settings_of(envelope: &Envelope) -> ModelSettings {
    let settings = envelope.payload.meta.get(Task::MODEL_SETTINGS);
    settings.and_then(|settings| ModelSettings::deserialize(settings).ok()).unwrap_or_default()
}

/// The previous response, from the meta of the message.
fn previous(envelope: &Envelope) -> Option<String> {
    envelope.payload.meta.get(PREVIOUS).and_then(Value::as_str).map(str::to_owned)
}

/// What was used for a request between two places of the log, and why its model stopped early.
async fn usage_between(
    state: &SocietyState,
    task: &TaskId,
    from: Seq,
    to: Seq,
) -> Result<(Vec<TokenUsage>, Option<Finish>), ApiError> {
    let run = Run::replay(state, task, &RunContext::of(task), from, Vec::new()).await?;
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
    Ok(axum::Json(AskedResponse::find(&state, &id).await?.object(&state).await?))
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
    let mut before = Vec::new();
    for (_, envelope) in &envelopes[..if is_past { until } else { 0 }] {
        let text = envelope.payload.text.to_string();
        before.push(match envelope.from.is_user() {
            true => Item::User(UserMessage { text, files: files_of(state, envelope).await? }),
            false => Item::Assistant(text),
        });
    }
    Ok(ContinuedTask { task, is_past, before })
}

/// The files of a message, as a client would send them again.
async fn files_of(state: &SocietyState, envelope: &Envelope) -> Result<Vec<ClientFile>, ApiError> {
    let mut files = Vec::new();
    for artifact in Artifact::attached(&envelope.payload.meta) {
        let read = state.society.artifacts().read(&artifact.id, 0, artifact.bytes as usize).await.map_err(Problem::from)?;
        files.extend(ClientFile::new(&artifact.name, &artifact.media_type, read.bytes).ok());
    }
    let elsewhere = Media::addressed(&envelope.payload.meta);
    files.extend(
        elsewhere.iter().filter_map(|media| if let Media::Url(url) = media { ClientFile::picture_at(url) } else { None }),
    );
    Ok(files)
}

/// The input as conversation items; errors for content that is not supported.
pub(super) fn items(input: &Value) -> Result<Vec<Item>, ApiError> {
    let list = match input {
        Value::String(text) => return Ok(vec![Item::User(text.clone().into())]),
        Value::Array(list) => list,
        _ => return Err(ApiError::invalid("no_message", "input", "the input is a text or a list of items")),
    };
    let mut items = Vec::new();
    for (place, item) in list.iter().enumerate() {
        let param = format!("input[{place}]");
        let field = |name: &str| item.get(name).and_then(Value::as_str);
        match (field("type"), field("role")) {
            (None | Some("message"), Some(role)) => {
                let (content, place) = (item.get("content").unwrap_or(&Value::Null), format!("{param}.content"));
                items.push(match role {
                    "system" | "developer" => Item::Instruction(text_of(content, &place)?),
                    "assistant" => Item::Assistant(text_of(content, &place)?),
                    "user" => Item::User(content_of(content, &place)?),
                    role => return Err(ApiError::invalid("bad_message", param, format!("unknown role `{role}`"))),
                });
            }
            (Some("function_call_output"), _) => {
                let call = field("call_id").unwrap_or_default();
                let output = match item.get("output") {
                    Some(output @ (Value::String(_) | Value::Array(_) | Value::Null)) => output.clone(),
                    Some(other) => other.to_string().into(),
                    None => Value::Null,
                };
                items.push(Item::Result(result_of(call, &output, &format!("{param}.output"))?));
            }
            (Some("function_call"), _) => items.extend(Item::call(&item["call_id"], &item["name"], &item["arguments"])),
            (Some("reasoning"), _) => {}
            (kind, _) => {
                let message = format!("items of the kind `{}` are not supported", kind.unwrap_or("unknown"));
                return Err(ApiError::invalid("unsupported_content", param, message));
            }
        }
    }
    Ok(items)
}
