//! Chat completions, streamed and whole.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::answer_format::read_format;
use super::client_request::{ClientRequest, Item, StartedRun, is_retry, start_run};
use super::client_tools::{ClientTool, ClientToolCall, read_choice, read_tools};
use super::completion::{Chunk, Completion, Ending};
use super::content::{content_of, result_of, text_of};
use super::conversation::conversation_name;
use super::error::{ApiError, Body};
use super::model_settings::SettingFields;
use super::models::find_model;
use super::side_request;
use crate::agui::{KEEP_ALIVE, TokenUsage};
use crate::caller::RequestCaller;
use crate::extract::CallerState;
use crate::state::SocietyState;

/// What is asked. Fields that are not known are passed over.
#[derive(Deserialize)]
pub(crate) struct Request {
    model: String,
    messages: Vec<Message>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    tools: Option<Vec<ClientTool>>,
    #[serde(default)]
    tool_choice: Value,
    #[serde(default)]
    parallel_tool_calls: Option<bool>,
    #[serde(default)]
    response_format: Value,
    #[serde(default)]
    n: Option<u32>,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    metadata: Value,
    #[serde(default)]
    functions: Value,
    #[serde(flatten)]
    settings: SettingFields,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: Value,
    tool_call_id: Option<String>,
    #[serde(default)]
    tool_calls: Value,
}

pub(crate) async fn chat(
    CallerState(state): CallerState,
    RequestCaller(caller): RequestCaller,
    headers: HeaderMap,
    Body(request): Body<Request>,
) -> Result<Response, ApiError> {
    if request.n.is_some_and(|n| n != 1) {
        return Err(ApiError::invalid("unsupported_value", "n", "there is only one answer; remove n"));
    }
    if !request.functions.is_null() {
        return Err(ApiError::invalid("unsupported_parameter", "functions", "describe functions in `tools`"));
    }
    let items = items(&request.messages)?;
    let format = CompletionFormat {
        model: request.model.clone(),
        include_usage: request.stream_options.is_some_and(|options| options.include_usage),
        created: now(&state),
        id: String::new(),
    };
    let is_streamed = request.stream.unwrap_or(false);
    if let Some(Item::User(asked)) = items.iter().rev().find(|item| matches!(item, Item::User(_)))
        && let Some(answer) = side_request::answer(&asked.text)
    {
        let format = CompletionFormat { id: "chatcmpl-side".to_owned(), ..format };
        return Ok(if is_streamed {
            format.streamed_at_once(answer)
        } else {
            format.whole(answer, "", "stop", Vec::new(), &[]).into_response()
        });
    }
    let settings = request.settings.read()?;
    let to = find_model(&state, &request.model).await?;
    let client_tools = read_tools(request.tools.unwrap_or_default())?;
    let mut rules = read_choice(&client_tools, &request.tool_choice, request.parallel_tool_calls)?;
    rules.format = read_format(&request.response_format, "response_format")?.map(Arc::new);
    let client_request = ClientRequest {
        to,
        items,
        client_tools,
        rules: rules.clone(),
        settings,
        user: request.user.unwrap_or_default(),
        name: conversation_name(&headers, &request.metadata),
        task: None,
        previous: None,
        is_retry: is_retry(&headers),
    };
    let StartedRun { task, seq, run } = start_run(&state, &caller, client_request).await?;
    let format = CompletionFormat { id: format!("chatcmpl-{seq}-{task}"), ..format };
    let mut completion = Completion::new(&state, &task, run, rules);
    if is_streamed {
        return Ok(format.streamed(completion));
    }
    let (content, reasoning, ending) = completion.collect().await;
    let (finish, calls) = match ending {
        Ending::Stop => ("stop", Vec::new()),
        Ending::Cut(cut) => (cut.finish_reason(), Vec::new()),
        Ending::ToolCalls(calls) => ("tool_calls", calls),
        Ending::Failed(error) => return Err(error),
    };
    Ok(format.whole(content, &reasoning, finish, calls, &completion.usage).into_response())
}

/// The messages as conversation items; errors for content that is not supported.
fn items(messages: &[Message]) -> Result<Vec<Item>, ApiError> {
    let mut items = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        let param = format!("messages[{place}]");
        let place = format!("{param}.content");
        items.push(match &*message.role {
            "system" | "developer" => Item::Instruction(text_of(&message.content, &place)?),
            "assistant" => Item::Assistant(text_of(&message.content, &place)?),
            "user" => Item::User(content_of(&message.content, &place)?),
            "tool" => match &message.tool_call_id {
                Some(call) => Item::Result(result_of(call, &message.content, &place)?),
                None => return Err(ApiError::invalid("bad_message", param, "a tool's message needs its tool_call_id")),
            },
            role => return Err(ApiError::invalid("bad_message", param, format!("unknown role `{role}`"))),
        });
        for call in message.tool_calls.as_array().into_iter().flatten() {
            let function = &call["function"];
            items.extend(Item::call(&call["id"], &function["name"], &function["arguments"]));
        }
    }
    Ok(items)
}

/// The time in seconds since 1970.
pub(super) fn now(state: &SocietyState) -> u64 {
    state.society.now().0 / 1_000
}

/// The fixed fields of a completion.
struct CompletionFormat {
    id: String,
    model: String,
    created: u64,
    include_usage: bool,
}

impl CompletionFormat {
    fn whole(
        &self,
        content: String,
        reasoning: &str,
        finish: &str,
        calls: Vec<ClientToolCall>,
        usage: &[TokenUsage],
    ) -> axum::Json<Value> {
        let mut message = Map::from_iter([("role".to_owned(), json!("assistant")), ("refusal".to_owned(), Value::Null)]);
        let is_silent = content.is_empty() && !calls.is_empty();
        message.insert("content".to_owned(), if is_silent { Value::Null } else { content.into() });
        if !reasoning.is_empty() {
            message.insert("reasoning_content".to_owned(), reasoning.into());
        }
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), calls.iter().map(tool_call).collect());
        }
        axum::Json(json!({
            "id": self.id, "object": "chat.completion", "created": self.created, "model": self.model,
            "choices": [{ "index": 0, "message": message, "finish_reason": finish, "logprobs": null }],
            "usage": usage_json(usage),
        }))
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> String {
        json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model,
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish, "logprobs": null }],
        })
        .to_string()
    }

    /// The last chunks of a stream.
    fn end(&self, ending: Ending, usage: &[TokenUsage]) -> Vec<String> {
        let mut chunks = Vec::new();
        match ending {
            Ending::Stop => chunks.push(self.chunk(&json!({}), Some("stop"))),
            Ending::Cut(cut) => chunks.push(self.chunk(&json!({}), Some(cut.finish_reason()))),
            Ending::ToolCalls(calls) => {
                for (index, call) in calls.iter().enumerate() {
                    let mut call = tool_call(call);
                    if let Some(call) = call.as_object_mut() {
                        call.insert("index".to_owned(), index.into());
                    }
                    chunks.push(self.chunk(&json!({ "tool_calls": [call] }), None));
                }
                chunks.push(self.chunk(&json!({}), Some("tool_calls")));
            }
            Ending::Failed(error) => return vec![error.to_json().to_string()],
        }
        if self.include_usage {
            let last = json!({
                "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model,
                "choices": [], "usage": usage_json(usage),
            });
            chunks.push(last.to_string());
        }
        chunks.push("[DONE]".to_owned());
        chunks
    }

    fn streamed_at_once(self, answer: String) -> Response {
        let mut chunks = vec![self.chunk(&json!({ "role": "assistant", "content": answer }), None)];
        chunks.extend(self.end(Ending::Stop, &[]));
        let chunks = chunks.into_iter().map(|data| Ok::<_, Infallible>(sse::Event::default().data(data)));
        unbuffered(Sse::new(stream::iter(chunks)).into_response())
    }

    fn streamed(self, completion: Completion) -> Response {
        let first = self.chunk(&json!({ "role": "assistant", "content": "" }), None);
        let state = (self, completion, VecDeque::from([first]));
        let chunks = stream::unfold(state, |(format, mut completion, mut ready)| async move {
            loop {
                if let Some(data) = ready.pop_front() {
                    return Some((Ok::<_, Infallible>(sse::Event::default().data(data)), (format, completion, ready)));
                }
                match completion.next().await? {
                    Chunk::Content(text) => ready.push_back(format.chunk(&json!({ "content": text }), None)),
                    Chunk::Reasoning(text) => ready.push_back(format.chunk(&json!({ "reasoning_content": text }), None)),
                    Chunk::End(ending) => ready.extend(format.end(ending, &completion.usage)),
                }
            }
        });
        unbuffered(Sse::new(chunks).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
    }
}

/// Nobody in between is to wait for more before it passes something on.
pub(super) fn unbuffered(mut response: Response) -> Response {
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn tool_call(call: &ClientToolCall) -> Value {
    json!({ "id": call.id, "type": "function", "function": { "name": call.name, "arguments": call.arguments } })
}

fn usage_json(usage: &[TokenUsage]) -> Value {
    let sum = |count: fn(&TokenUsage) -> u64| usage.iter().map(count).sum::<u64>();
    json!({
        "prompt_tokens": sum(|usage| usage.input_tokens),
        "completion_tokens": sum(|usage| usage.output_tokens),
        "total_tokens": sum(|usage| usage.total_tokens),
        "prompt_tokens_details": { "cached_tokens": sum(|usage| usage.cached_input_tokens) },
        "completion_tokens_details": { "reasoning_tokens": sum(|usage| usage.reasoning_tokens) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(messages: Value) -> Result<Vec<Item>, (String, String)> {
        let messages: Vec<Message> = serde_json::from_value(messages).unwrap();
        items(&messages)
            .map_err(|error| (error.code().to_owned(), error.to_json()["error"]["param"].as_str().unwrap().to_owned()))
    }

    #[test]
    fn texts_are_taken_and_what_is_not_text_is_named() {
        let parts = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
        let format = read(json!([{ "role": "developer", "content": "be brief" }, { "role": "user", "content": parts }]));
        assert_eq!(format, Ok(vec![Item::Instruction("be brief".to_owned()), Item::User("a\nb".to_owned().into())]));
        let picture = json!([{ "type": "image_url", "image_url": { "url": "data:image/png;base64,QUJD" } }]);
        let wrong = read(json!([{ "role": "assistant", "content": picture }]));
        assert_eq!(wrong, Err(("unsupported_content".to_owned(), "messages[0].content".to_owned())));
        assert_eq!(read(json!([{ "role": "ghost", "content": "" }])).unwrap_err().0, "bad_message");
        assert_eq!(read(json!([{ "role": "tool", "content": "" }])).unwrap_err().0, "bad_message");
    }
}
