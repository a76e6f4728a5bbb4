//! AG-UI 1.0: each agent as a run over server-sent events, with its sub-agents, calls, components and interrupts.
//!
//! A thread of the protocol is a request of ours. A run is a view of it: it ends with the answer, or when a person must act;
//! answering is a new run on the same thread. `connect` tells again what is there and goes on from there.

mod capabilities;
mod event;
mod input;
mod interrupt;
mod narrator;
mod reply;
mod run;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod verifier;

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use polis_domain::{MessageKind, Payload, Recorded, Resolution, Seq, Target, TaskId, Verdict};
use polis_engine::Society;

use crate::body::Json;
use crate::caller::{self, Scope};
use crate::problem::Problem;
use crate::spoken::{Addressee, addressee};
use crate::state::SocietyState;
use crate::wanted::Name;
pub(crate) use capabilities::capabilities;
pub(crate) use event::{Body, Event, Outcome, Role, TokenUsage};
use input::{Input, Saying};
use interrupt::{Decision, Resume, decision};
use polis_api::local::{settle, settled};
pub(crate) use run::{Names, Run, waiting};

/// Sent when nothing happens, so that whoever listens knows that the line is not dead.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Where a message says which run it came with.
const RUN: &str = "aguiRun";

/// A run: says what is new on the thread, or answers what waits, and tells what comes of it.
pub(crate) async fn run(
    State(state): State<SocietyState>,
    caller::From(caller): caller::From,
    Name(agent): Name,
    Json(input): Json<Input>,
) -> Result<Response, Problem> {
    let addressee = known(&state, &agent).await?;
    let task = input.task();
    let envelopes = state.society.messages(&task).await?;
    if let Some((recorded, envelope)) = envelopes.iter().find(|(_, envelope)| came_with(envelope, &input.run_id)) {
        // The same run once more: its client did not hear how it went.
        let (from, id) = (recorded.seq, envelope.id.clone());
        let run = Run::replay(&state, &task, &input.names(), from, Vec::new()).await?;
        return Ok(streamed(run.answering(id)));
    }
    let mut run = Run::listen(&state, &task, &input.names()).await?;
    run.catch_up().await?;
    let outcome = if input.resume.is_empty() {
        match input.saying(!envelopes.is_empty()) {
            Ok(saying) => act(&state, &addressee, &task, run, saying, &input).await,
            Err((code, message)) => refused(run, code, &message),
        }
    } else {
        caller.needs(Scope::Approve)?;
        resume(&state, &task, run, &input).await
    };
    Ok(streamed(outcome?))
}

/// Tells what is there on the thread, and goes on with what comes.
pub(crate) async fn connect(
    State(state): State<SocietyState>,
    Name(agent): Name,
    Json(input): Json<Input>,
) -> Result<Response, Problem> {
    known(&state, &agent).await?;
    let task = input.task();
    let envelopes = state.society.messages(&task).await?;
    let last = envelopes.iter().rev().find(|(_, envelope)| envelope.from.is_user()).map(|(recorded, _)| recorded.seq);
    let messages = Body::MessagesSnapshot { messages: said_until(&envelopes, last.unwrap_or(Seq(0))) };
    let head = state.society.log().readable_head(state.society.id()).await?;
    let from = last.unwrap_or(head.next());
    Ok(streamed(Run::replay(&state, &task, &input.names(), from, vec![messages]).await?))
}

async fn known(state: &SocietyState, name: &str) -> Result<Addressee, Problem> {
    addressee(state, name).await?.ok_or_else(|| {
        let detail =
            format!("there is no agent or role `{name}`; /api/agents lists the agents, and `polis` is the society itself");
        Problem::new(StatusCode::NOT_FOUND, "unknown_agent", detail)
    })
}

fn came_with(envelope: &polis_domain::Envelope, run: &str) -> bool {
    envelope.from.is_user() && envelope.payload.meta.get(RUN).is_some_and(|known| known == run)
}

/// What the person and the society have said to each other, up to an event.
fn said_until(envelopes: &[(Recorded, std::sync::Arc<polis_domain::Envelope>)], last: Seq) -> Vec<event::Message> {
    let said = envelopes.iter().filter(|(recorded, _)| recorded.seq <= last);
    let message = |envelope: &polis_domain::Envelope| event::Message {
        id: envelope.id.as_str().into(),
        role: if envelope.from.is_user() { Role::User } else { Role::Assistant },
        content: match &envelope.kind {
            MessageKind::Failure(failure) => failure.to_string().into(),
            MessageKind::Message | MessageKind::Answer => envelope.payload.text.clone(),
        },
    };
    said.map(|(_, envelope)| message(envelope)).collect()
}

fn refused(mut run: Run, code: &str, message: &str) -> Result<Run, Problem> {
    run.fail(code, message);
    Ok(run)
}

/// Says what is new, or hands in what came of the client's own tools.
async fn act(
    state: &SocietyState,
    addressee: &Addressee,
    task: &TaskId,
    run: Run,
    saying: Saying,
    input: &Input,
) -> Result<Run, Problem> {
    let waiting = waiting(state, task).await?;
    let lent = run.lent_calls();
    match saying {
        Saying::Results(results) => {
            let answered = |name: &str| results.iter().find(|(id, _)| id == name).map(|(_, content)| content.clone());
            let mut was_heard = false;
            for (effect, name, _) in &lent {
                if let Some(content) = answered(name) {
                    was_heard = true;
                    hand_in(&state.society, *effect, content).await?;
                }
            }
            if !was_heard && waiting.is_empty() {
                return refused(run, "unknown_tool_call", "no tool call of these waits on this thread any more");
            }
            Ok(run.or_idle())
        }
        Saying::Words { text, own } => {
            if !waiting.is_empty() {
                let open: Vec<_> = waiting.iter().map(|approval| approval.id.as_str()).collect();
                let message = format!("the thread waits for an answer to {}; resume it with one for each", open.join(", "));
                return refused(run, "interrupts_pending", &message);
            }
            let mut meta = input.meta();
            meta.insert(RUN.to_owned(), input.run_id.as_str().into());
            if text != own {
                meta.insert(Payload::OWN_WORDS.to_owned(), own.into());
            }
            match state.society.send_with_meta(addressee.agent.clone(), &text, Some(task.clone()), meta).await {
                Ok(sent) => Ok(run.answering(sent.message_id)),
                Err(rejected) => refused(run, rejected.code(), &rejected.to_string()),
            }
        }
    }
}

/// Hands in what came of a call of a tool of whoever asks.
pub(crate) async fn hand_in(society: &Society, effect: polis_domain::EffectId, content: String) -> Result<(), Problem> {
    let content = if content.trim().is_empty() { "(nothing)".to_owned() } else { content };
    let outcome = polis_domain::Outcome::Verdict(Verdict::words(content));
    Ok(society.resolve(effect, Resolution::Outcome(outcome)).await?)
}

/// Answers what waits. All of it must be answered at once; what was answered before is not answered again: who says the same
/// once more hears again what came of it.
async fn resume(state: &SocietyState, task: &TaskId, run: Run, input: &Input) -> Result<Run, Problem> {
    let waiting = waiting(state, task).await?;
    let is_open = |resume: &Resume| waiting.iter().any(|open| open.id == resume.interrupt_id);
    let mut past = Vec::new();
    for resume in input.resume.iter().filter(|resume| !is_open(resume)) {
        let Some(settled) = settled(&state.society, &resume.interrupt_id, task).await? else { continue };
        let is_same = match decision(&settled.approval, resume) {
            Ok(Decision::Say(word)) => settled.is_like(&word),
            Ok(Decision::CallOff(_)) => settled.is_void(),
            Err(message) => return refused(run, "bad_answer", &message),
        };
        if !is_same {
            let message = format!("{} was settled otherwise before, and that stands", resume.interrupt_id);
            return refused(run, "already_answered", &message);
        }
        past.push((settled.at, settled.turn));
    }
    if past.len() == input.resume.len()
        && let Some((at, turn)) = past.iter().min().copied()
    {
        return Run::again(state, task, &input.names(), turn, at).await;
    }
    let covered = |id: &str| input.resume.iter().any(|resume| resume.interrupt_id == id);
    let missing: Vec<_> = waiting.iter().filter(|open| !covered(&open.id)).map(|open| open.id.clone()).collect();
    if !missing.is_empty() {
        let message =
            format!("{} must be answered as well: all interrupts of a thread are answered together", missing.join(", "));
        return refused(run, "interrupts_pending", &message);
    }
    let mut decided = Vec::new();
    for resume in &input.resume {
        match waiting.iter().find(|open| open.id == resume.interrupt_id) {
            Some(open) => match decision(open, resume) {
                Ok(decision) => decided.push((open.id.clone(), decision)),
                Err(message) => return refused(run, "bad_answer", &message),
            },
            None if settled(&state.society, &resume.interrupt_id, task).await?.is_some() => {}
            None => {
                let message = format!("nothing on this thread waits under the name {}", resume.interrupt_id);
                return refused(run, "unknown_interrupt", &message);
            }
        }
    }
    for (id, decision) in decided {
        let settled = match decision {
            Decision::Say(word) => settle(&state.society, &id, word).await,
            Decision::CallOff(task) => {
                Ok(state.society.cancel(Target::Task(task), "cancelled instead of settling a write in doubt").await?)
            }
        };
        if let Err(problem) = settled {
            return refused(run, problem.code(), problem.detail());
        }
    }
    Ok(run.or_idle())
}

fn streamed(run: Run) -> Response {
    let events = stream::unfold(run, |mut run| async move {
        let event = run.next().await?;
        let data = serde_json::to_string(&event).unwrap_or_default();
        Some((Ok::<_, Infallible>(sse::Event::default().data(data)), run))
    });
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
