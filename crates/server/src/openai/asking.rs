//! What a client asks for, whichever of OpenAI's doors it came through: a message to an agent, what came of its own tools, or a
//! word on what waits.

use axum::http::{HeaderMap, StatusCode};
use polis_domain::{Digest, IdempotencyKey, Payload, Request, Seq, Task, TaskId};
use serde_json::{Map, Value};

use super::conversation::{Marks, PRINT, Place, place};
use super::error::ApiError;
use super::tools::turn_of;
use super::words::decided;
use crate::agui::{Names, Run, hand_in, waiting};
use crate::caller::{Caller, Scope};
use crate::spoken::{Addressee, Before, envelope_text};
use crate::state::SocietyState;

/// Where a message says which response it goes on with.
pub(super) const PREVIOUS: &str = "previousResponse";

/// One thing that was said in the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    Instruction(String),
    User(String),
    Assistant(String),
    /// What came of a call of the client's own tools.
    Result {
        call: String,
        output: String,
    },
}

/// A request of a client.
pub(super) struct Asking {
    pub(super) to: Addressee,
    pub(super) items: Vec<Item>,
    /// Said with this request only.
    pub(super) instructions: Vec<String>,
    /// The client's own tools.
    pub(super) lent: Vec<Value>,
    pub(super) user: String,
    /// The client's own name for the conversation.
    pub(super) name: Option<String>,
    /// The request that is gone on with, where the client says which.
    pub(super) task: Option<Known>,
    /// The response that is gone on with, where the client says which.
    pub(super) previous: Option<String>,
    /// Whether the client says that it sends this once more.
    pub(super) is_retry: bool,
}

/// A request that a client names.
pub(super) struct Known {
    pub(super) task: TaskId,
    /// Whether something was said there after the place that the client means; then this is a branch.
    pub(super) is_past: bool,
    /// What was said up to that place.
    pub(super) before: Vec<Item>,
}

/// What is under way now.
pub(super) struct Begun {
    pub(super) task: TaskId,
    /// The place of the message; the end of the log where nothing was sent.
    pub(super) seq: Seq,
    pub(super) run: Run,
}

/// Whether the client says that it has sent this before.
pub(super) fn is_retry(headers: &HeaderMap) -> bool {
    let count = headers.get("x-stainless-retry-count").and_then(|value| value.to_str().ok());
    count.and_then(|count| count.parse::<u32>().ok()).is_some_and(|count| count > 0)
}

/// Does what the client asks for, and follows what comes of it.
pub(super) async fn begin(state: &SocietyState, caller: &Caller, mut asking: Asking) -> Result<Begun, ApiError> {
    let spoken = asking.items.iter().rposition(|item| matches!(item, Item::Assistant(_)));
    let new = &asking.items[spoken.map_or(0, |place| place + 1)..];
    let results: Vec<(String, String)> = new
        .iter()
        .filter_map(|item| match item {
            Item::Result { call, output } => Some((call.clone(), output.clone())),
            _ => None,
        })
        .collect();
    let words: Vec<&str> = new
        .iter()
        .filter_map(|item| match item {
            Item::User(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let words = words.join("\n\n");
    if !results.is_empty() {
        return hand_back(state, &asking, &results, &words).await;
    }
    if words.trim().is_empty() {
        return Err(ApiError::invalid("no_message", "messages", "the last message must be the user's and must not be empty"));
    }
    let _conversing = state.conversing.clone().lock_owned().await;
    let place = match asking.task.take() {
        Some(Known { task, is_past: false, .. }) => Place { task, print: String::new(), is_known: true, repeated: None },
        Some(Known { before, .. }) => {
            asking.items.splice(0..0, before);
            Place { task: state.society.new_task(), print: String::new(), is_known: false, repeated: None }
        }
        None => find(state, &asking).await?,
    };
    if let Some((recorded, envelope)) = place.repeated.filter(|_| asking.is_retry) {
        let names = names(&envelope.task_id);
        let run = Run::replay(state, &envelope.task_id, &names, recorded.seq, Vec::new()).await?;
        return Ok(Begun { task: envelope.task_id.clone(), seq: recorded.seq, run: run.answering(envelope.id.clone()) });
    }
    let task = place.task;
    let (run, seq) = listening(state, &task).await?;
    if place.is_known {
        let mut waiting = waiting(state, &task).await?;
        // What came of the client's own tools comes in messages of its own kind, not in words.
        let lent: Vec<String> = run.lent_calls().into_iter().map(|(effect, ..)| effect.to_string()).collect();
        waiting.retain(|approval| !lent.contains(&approval.id));
        // The same message sent again must not decide what waits by now.
        let length = asking.items.len().to_string();
        let parts = ["openai", task.as_str(), asking.previous.as_deref().unwrap_or_default(), &length, &words];
        let request = Request { key: IdempotencyKey::of(parts), fingerprint: Digest::of(parts) };
        let society = state.society.once(request);
        if society.done_before().await?.is_some() {
            return Ok(Begun { task, seq, run: run.or_idle() });
        }
        let mut decided = decided(&words, &waiting).into_iter();
        if let Some((id, word)) = decided.next() {
            caller.needs(Scope::Approve)?;
            polis_api::local::settle(&society, &id, word).await?;
            for (id, word) in decided {
                polis_api::local::settle(&state.society, &id, word).await?;
            }
            return Ok(Begun { task, seq, run: run.or_idle() });
        }
    }
    let text = text(&asking, place.is_known, &words);
    let mut meta = Map::new();
    if text != words {
        meta.insert(Payload::OWN_WORDS.to_owned(), words.into());
    }
    if !place.print.is_empty() {
        meta.insert(PRINT.to_owned(), place.print.into());
    }
    if let Some(previous) = asking.previous.take() {
        meta.insert(PREVIOUS.to_owned(), previous.into());
    }
    if !asking.lent.is_empty() {
        meta.insert(Task::CLIENT_TOOLS.to_owned(), Value::Array(asking.lent));
    }
    let sent = state.society.send_with_meta(asking.to.agent, &text, Some(task.clone()), meta).await?;
    Ok(Begun { task, seq: sent.seq, run: run.answering(sent.message_id) })
}

async fn listening(state: &SocietyState, task: &TaskId) -> Result<(Run, Seq), ApiError> {
    let mut run = Run::listen(state, task, &names(task)).await?;
    run.catch_up().await?;
    let head = state.society.log().readable_head(state.society.id()).await.map_err(crate::problem::Problem::from)?;
    Ok((run, head))
}

/// Which request this is, by what the user has said.
async fn find(state: &SocietyState, asking: &Asking) -> Result<Place, ApiError> {
    let mut said: Vec<Vec<String>> = vec![Vec::new()];
    for item in &asking.items {
        match item {
            Item::User(text) => {
                if let Some(last) = said.last_mut() {
                    last.push(text.clone());
                }
            }
            Item::Assistant(_) => said.push(Vec::new()),
            Item::Instruction(_) | Item::Result { .. } => {}
        }
    }
    // What an assistant says before anybody has spoken begins nothing.
    said.retain(|part| !part.is_empty());
    let marks = Marks { agent: &asking.to.agent, user: &asking.user, name: asking.name.clone(), said: &said };
    place(&state.society, &marks).await
}

/// The text of the message: what the request does not know yet goes along.
fn text(asking: &Asking, is_known: bool, words: &str) -> String {
    let mut instructions = Vec::new();
    let mut before = Vec::new();
    if !is_known {
        let spoken = asking.items.iter().rposition(|item| matches!(item, Item::Assistant(_)));
        for (place, item) in asking.items.iter().enumerate() {
            let is_old = spoken.is_some_and(|spoken| place <= spoken);
            match item {
                Item::Instruction(text) if !text.trim().is_empty() => instructions.push(text.clone()),
                Item::User(text) if is_old => before.push(Before { by_assistant: false, text: text.clone() }),
                Item::Assistant(text) if !text.trim().is_empty() => {
                    before.push(Before { by_assistant: true, text: text.clone() });
                }
                _ => {}
            }
        }
    }
    instructions.extend(asking.instructions.iter().cloned());
    envelope_text(&instructions, &before, words)
}

/// Hands in what came of the client's own tools; the request that waits for it is found by the names of the calls.
async fn hand_back(
    state: &SocietyState,
    asking: &Asking,
    results: &[(String, String)],
    words: &str,
) -> Result<Begun, ApiError> {
    let turns: Vec<_> = results.iter().filter_map(|(call, _)| turn_of(call)).collect();
    let task =
        state.society.look(move |spine| turns.iter().find_map(|turn| spine.turns.get(turn).map(|turn| turn.task.clone())));
    let unknown = || {
        let message = "none of these calls is pending; each call is answered once";
        ApiError::new(StatusCode::CONFLICT, "unknown_tool_call", message)
    };
    let task = task.await?.ok_or_else(unknown)?;
    let (run, seq) = listening(state, &task).await?;
    let mut was_heard = false;
    for (effect, name, _) in run.lent_calls() {
        if let Some((_, output)) = results.iter().find(|(call, _)| *call == *name) {
            was_heard = true;
            hand_in(&state.society, effect, output.clone()).await?;
        }
    }
    if !was_heard {
        return Err(unknown());
    }
    if !words.trim().is_empty() {
        state.society.send(asking.to.agent.clone(), words, Some(task.clone())).await?;
    }
    Ok(Begun { task, seq, run: run.or_idle() })
}

fn names(task: &TaskId) -> Names {
    Names { thread: task.as_str().into(), run: task.as_str().into() }
}
