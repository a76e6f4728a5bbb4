//! A client's request, from either of OpenAI's endpoints: a message to an agent, results of the client's own tools, or a
//! decision on a pending approval.

use axum::http::{HeaderMap, StatusCode};
use polis_domain::{AgentId, AnswerRules, Digest, IdempotencyKey, ModelSettings, Request, Seq, Task, TaskId};
use serde_json::{Map, Value};

use super::approval_text::read_decisions;
use super::client_tools::turn_of;
use super::content::UserMessage;
use super::conversation::{ConversationKey, ConversationMatch, FINGERPRINT, find_conversation};
use super::error::ApiError;
use super::model_settings;
use crate::addressee::{Addressee, ClientMessage, EarlierMessage, deliver};
use crate::agui::{Run, RunContext, first_new, submit_tool_result, unanswered, waiting};
use crate::caller::{Caller, Scope};
use crate::client_files::{ClientFile, ClientResult, check_count};
use crate::state::SocietyState;

/// The meta key with the response that a message continues.
pub(super) const PREVIOUS: &str = "previousResponse";

/// One item of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    Instruction(String),
    User(UserMessage),
    Assistant(String),
    /// A call of one of the client's tools.
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    /// The result of a client tool call.
    Result(ClientResult),
}

impl Item {
    /// A call as a client repeats it; none if it has no id.
    pub(super) fn call(id: &Value, name: &Value, arguments: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Some(Self::Call { id: id.as_str()?.to_owned(), name: text(name), arguments: text(arguments) })
    }
}

/// A request of a client.
pub(super) struct ClientRequest {
    pub(super) to: Addressee,
    pub(super) items: Vec<Item>,
    /// The client's own tools.
    pub(super) client_tools: Vec<Value>,
    /// What it prescribes for the answer.
    pub(super) rules: AnswerRules,
    /// How models are called for it.
    pub(super) settings: ModelSettings,
    pub(super) user: String,
    /// The client's own name for the conversation.
    pub(super) name: Option<String>,
    /// The request that is continued, if the client names one.
    pub(super) task: Option<ContinuedTask>,
    /// The response that is continued, if the client names one.
    pub(super) previous: Option<String>,
    /// Whether the client marks this as a retry.
    pub(super) is_retry: bool,
}

/// A request that a client names.
pub(super) struct ContinuedTask {
    pub(super) task: TaskId,
    /// Whether there are messages after the response that the client names; then this is a branch.
    pub(super) is_past: bool,
    /// The messages up to that response.
    pub(super) before: Vec<Item>,
}

/// A run that was started for a client.
pub(super) struct StartedRun {
    pub(super) task: TaskId,
    /// The place of the message; the end of the log where nothing was sent.
    pub(super) seq: Seq,
    pub(super) run: Run,
}

/// Whether the client marks this as a retry.
pub(super) fn is_retry(headers: &HeaderMap) -> bool {
    let count = headers.get("x-stainless-retry-count").and_then(|value| value.to_str().ok());
    count.and_then(|count| count.parse::<u32>().ok()).is_some_and(|count| count > 0)
}

/// Sends the message, decision or tool results of a client, and follows the run.
pub(super) async fn start_run(
    state: &SocietyState,
    caller: &Caller,
    mut request: ClientRequest,
) -> Result<StartedRun, ApiError> {
    let last_reply = request.items.iter().rposition(|item| matches!(item, Item::Assistant(_)));
    let new = &request.items[last_reply.map_or(0, |place| place + 1)..];
    let results: Vec<ClientResult> = new
        .iter()
        .filter_map(|item| match item {
            Item::Result(result) => Some(result.clone()),
            _ => None,
        })
        .collect();
    let said: Vec<UserMessage> = new
        .iter()
        .filter_map(|item| match item {
            Item::User(said) => Some(said.clone()),
            _ => None,
        })
        .collect();
    let texts: Vec<String> = said.iter().map(|said| said.text.clone()).collect();
    let mut words = texts.join("\n\n");
    if !results.is_empty() && words.trim().is_empty() {
        let unknown = || {
            let message = "none of these calls is pending; each call is answered once";
            ApiError::new(StatusCode::CONFLICT, "unknown_tool_call", message)
        };
        return submit_results(state, &results, request.rules).await?.ok_or_else(unknown);
    }
    if words.trim().is_empty() {
        return Err(ApiError::invalid("no_message", "messages", "the last message must be the user's and must not be empty"));
    }
    // The results close what was asked before; the message is what the client wants an answer to.
    let rules = AnswerRules { no_answer: true, ..AnswerRules::default() };
    if !results.is_empty()
        && let Some(StartedRun { task, mut run, .. }) = submit_results(state, &results, rules).await?
    {
        while run.next().await.is_some() {}
        request.task = Some(ContinuedTask { task, is_past: false, before: Vec::new() });
    }
    let _conversing = state.conversing.clone().lock_owned().await;
    let is_named = request.task.is_some();
    let place = match request.task.take() {
        Some(ContinuedTask { task, is_past: false, .. }) => {
            ConversationMatch { task, fingerprint: String::new(), is_known: true, repeated: None }
        }
        Some(ContinuedTask { before, .. }) => {
            request.items.splice(0..0, before);
            ConversationMatch { task: state.society.new_task(), fingerprint: String::new(), is_known: false, repeated: None }
        }
        None => find(state, &request).await?,
    };
    if let Some((recorded, envelope)) = place.repeated.filter(|_| request.is_retry) {
        let names = RunContext::of(&envelope.task_id);
        let run = Run::replay(state, &envelope.task_id, &names, recorded.seq, Vec::new()).await?;
        return Ok(StartedRun { task: envelope.task_id.clone(), seq: recorded.seq, run: run.answering(envelope.id.clone()) });
    }
    let task = place.task;
    let mut first = 0;
    if place.is_known {
        first = first_new(&texts, &unanswered(&state.society.messages(&task).await?));
        words = texts[first..].join("\n\n");
    }
    let files: Vec<ClientFile> = said[first..].iter().flat_map(|said| &said.files).cloned().collect();
    check_count(&files).map_err(|(code, message)| ApiError::invalid(code, "messages", message))?;
    let (run, seq) = open_run(state, &task).await?;
    if place.is_known {
        let mut waiting = waiting(state, &task).await?;
        // Results of client tools come as items of their own, not as text.
        let client_calls: Vec<String> = run.client_tool_calls().into_iter().map(|(effect, ..)| effect.to_string()).collect();
        waiting.retain(|approval| !client_calls.contains(&approval.id));
        // The same message sent again must not decide what waits by now.
        let length = request.items.len().to_string();
        let parts = ["openai", task.as_str(), request.previous.as_deref().unwrap_or_default(), &length, &words];
        let idempotent = Request { key: IdempotencyKey::of(parts), fingerprint: Digest::of(parts) };
        let society = state.society.once(idempotent);
        if society.done_before().await?.is_some() {
            return Ok(StartedRun { task, seq, run: run.or_idle() });
        }
        let mut decisions = read_decisions(&words, &waiting).into_iter();
        if let Some((id, word)) = decisions.next() {
            caller.needs(Scope::Approve)?;
            polis_api::local::settle(&society, &id, word).await?;
            for (id, word) in decisions {
                polis_api::local::settle(&state.society, &id, word).await?;
            }
            return Ok(StartedRun { task, seq, run: run.or_idle() });
        }
    }
    let first = state.society.messages(&task).await?.first().map(|(_, envelope)| envelope.to.clone());
    let to = request.to.receiver.or_first(first.as_ref());
    let (instructions, earlier) = unknown_to_request(&request, place.is_known, is_named);
    let mut meta = Map::new();
    if !place.fingerprint.is_empty() {
        meta.insert(FINGERPRINT.to_owned(), place.fingerprint.into());
    }
    if let Some(previous) = request.previous.take() {
        meta.insert(PREVIOUS.to_owned(), previous.into());
    }
    if !request.client_tools.is_empty() {
        meta.insert(Task::CLIENT_TOOLS.to_owned(), Value::Array(request.client_tools));
    }
    if request.rules != AnswerRules::default() {
        meta.insert(Task::ANSWER_RULES.to_owned(), serde_json::to_value(&request.rules).unwrap_or_default());
    }
    model_settings::attach(&request.settings, &mut meta);
    let message = ClientMessage { words, instructions, earlier, files, meta };
    let sent = deliver(&state.society, &to, AgentId::from(task.as_str()), &task, message).await?;
    Ok(StartedRun { task, seq: sent.seq, run: run.answering(sent.message_id) })
}

async fn open_run(state: &SocietyState, task: &TaskId) -> Result<(Run, Seq), ApiError> {
    let mut run = Run::listen(state, task, &RunContext::of(task)).await?;
    run.catch_up().await?;
    let head = state.society.log().readable_head(state.society.id()).await.map_err(crate::problem::Problem::from)?;
    Ok((run, head))
}

/// Finds the request by the user's messages.
async fn find(state: &SocietyState, request: &ClientRequest) -> Result<ConversationMatch, ApiError> {
    let mut user_texts: Vec<Vec<String>> = vec![Vec::new()];
    for item in &request.items {
        match item {
            Item::User(said) => {
                if let Some(last) = user_texts.last_mut() {
                    last.push(said.identity());
                }
            }
            Item::Assistant(_) => user_texts.push(Vec::new()),
            Item::Instruction(_) | Item::Call { .. } | Item::Result(_) => {}
        }
    }
    // A greeting of the assistant before the first user message starts nothing.
    user_texts.retain(|part| !part.is_empty());
    let key = ConversationKey {
        receiver: request.to.receiver.name(),
        person: state.society.person(),
        user: &request.user,
        name: request.name.clone(),
        user_texts: &user_texts,
    };
    find_conversation(&state.society, &key).await
}

/// What the request does not know yet: instructions, and what was said before.
fn unknown_to_request(request: &ClientRequest, is_known: bool, is_named: bool) -> (Vec<String>, Vec<EarlierMessage>) {
    let mut instructions = Vec::new();
    let mut before = Vec::new();
    if is_known && is_named {
        // Whoever continues by an id sends only what is new, and instructions count for one request.
        let texts = request.items.iter().filter_map(|item| match item {
            Item::Instruction(text) if !text.trim().is_empty() => Some(text.clone()),
            _ => None,
        });
        instructions.extend(texts);
    }
    if !is_known {
        let last_reply = request.items.iter().rposition(|item| matches!(item, Item::Assistant(_)));
        for (place, item) in request.items.iter().enumerate() {
            let is_old = last_reply.is_some_and(|last_reply| place <= last_reply);
            match item {
                Item::Instruction(text) if !text.trim().is_empty() => instructions.push(text.clone()),
                Item::User(said) if is_old => {
                    let (text, files) = (said.text.clone(), said.files.clone());
                    before.push(EarlierMessage { by_assistant: false, text, files });
                }
                Item::Assistant(text) if !text.trim().is_empty() => {
                    before.push(EarlierMessage { by_assistant: true, text: text.clone(), files: Vec::new() });
                }
                Item::Result(result) => before.push(earlier_call(&request.items, result)),
                _ => {}
            }
        }
    }
    (instructions, before)
}

/// A call that the client made elsewhere, and its result. It is a message of the user: an assistant that saw calls written in its own
/// words would write the next one so.
fn earlier_call(items: &[Item], result: &ClientResult) -> EarlierMessage {
    let made = items.iter().find_map(|item| match item {
        Item::Call { id, name, arguments } if *id == result.call => Some(format!("`{name}` with {arguments}")),
        _ => None,
    });
    let made = made.unwrap_or_else(|| "a tool".to_owned());
    let text = format!("[A call that you made: {made}. Its result:]\n{}", result.text);
    EarlierMessage { by_assistant: false, text, files: result.files.clone() }
}

/// Submits the results of client tools; the ids of the calls tell which request waits for them. None if none does.
async fn submit_results(
    state: &SocietyState,
    results: &[ClientResult],
    rules: AnswerRules,
) -> Result<Option<StartedRun>, ApiError> {
    let turns: Vec<_> = results.iter().filter_map(|result| turn_of(&result.call)).collect();
    let visibility = state.society.visibility().clone();
    let task = state.society.look(move |spine| {
        let turn = turns.iter().find_map(|turn| spine.turns.get(turn))?;
        visibility.agent(spine, &turn.agent).then(|| turn.task.clone())
    });
    let Some(task) = task.await? else { return Ok(None) };
    let (run, seq) = open_run(state, &task).await?;
    let mut is_pending = false;
    for (effect, name, _) in run.client_tool_calls() {
        if let Some(result) = results.iter().find(|result| *result.call == *name) {
            is_pending = true;
            submit_tool_result(&state.society, effect, result, Some(rules.clone())).await?;
        }
    }
    Ok(is_pending.then(|| StartedRun { task, seq, run: run.or_idle() }))
}
