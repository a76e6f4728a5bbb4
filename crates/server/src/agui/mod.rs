//! AG-UI 1.0: each agent as a run over server-sent events, with its sub-agents, calls, components and interrupts.
//!
//! A thread of the protocol is a request of ours, in a conversation of its own. A run is a view of it: it ends with the answer, or when a person must act;
//! answering is a new run on the same thread. `connect` replays the thread and continues with live events.

mod capabilities;
mod event;
mod history;
mod input;
mod interrupts;
mod reply_stream;
mod run;
#[cfg(test)]
mod tests;
mod translator;
#[cfg(test)]
mod verifier;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use polis_domain::{AnswerRules, MessageKind, Payload, Recorded, Resolution, Seq, Target, TaskId, Verdict};
use polis_engine::Society;
use serde_json::{Map, Value};

use crate::addressee::{Addressee, Receiver, addressee, conversation_of, deliver};
use crate::body::Json;
use crate::caller::{RequestCaller, Scope};
use crate::client_files::{ClientResult, store_files};
use crate::extract::{CallerState, PathParam};
use crate::problem::Problem;
use crate::state::SocietyState;
pub(crate) use capabilities::capabilities;
pub(crate) use event::{Body, Event, Outcome, TokenUsage};
use history::messages_until;
pub(crate) use input::first_new;
use input::{Known, NewContent, RunAgentInput};
use interrupts::{Resume, ResumeAction, decision};
use polis_api::local::{settle, settled};
pub(crate) use run::{Run, RunContext, waiting};

/// Sent when nothing happens, so that clients know that the connection is alive.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The meta key with the run that a message came with.
const RUN: &str = "aguiRun";

/// A run: sends the new content of the thread, or answers interrupts, and streams the result.
pub(crate) async fn run(
    CallerState(state): CallerState,
    RequestCaller(caller): RequestCaller,
    PathParam(agent): PathParam,
    Json(input): Json<RunAgentInput>,
) -> Result<Response, Problem> {
    let addressee = find_addressee(&state, &agent).await?;
    let task = task_of(&state, &input, Purpose::Run).await?;
    let envelopes = state.society.messages(&task).await?;
    if let Some((recorded, envelope)) = envelopes.iter().find(|(_, envelope)| has_run_id(envelope, &input.run_id)) {
        // The same run again: its client has missed the result.
        let (from, id) = (recorded.seq, envelope.id.clone());
        let run = Run::replay(&state, &task, &input.context(None), from, Vec::new()).await?;
        return Ok(sse_response(run.answering(id), &input));
    }
    let known = (!envelopes.is_empty()).then(|| Known { state: known_state(&envelopes), unanswered: unanswered(&envelopes) });
    let context = input.context(known.as_ref().and_then(|known| known.state.as_ref()));
    let mut run = Run::listen(&state, &task, &context).await?;
    run.catch_up().await?;
    let outcome = if input.resume.is_empty() {
        match input.new_content(known.as_ref()) {
            Ok(new_content) => {
                let to = addressee.receiver.or_first(envelopes.first().map(|(_, envelope)| &envelope.to));
                send_content(&state, &to, &task, run, new_content, &input).await
            }
            Err((code, message)) => failed_run(run, code, &message),
        }
    } else {
        caller.needs(Scope::Approve)?;
        resume(&state, &task, run, &input).await
    };
    Ok(sse_response(outcome?, &input))
}

/// Tells what is there on the thread, and goes on with what comes.
pub(crate) async fn connect(
    CallerState(state): CallerState,
    PathParam(agent): PathParam,
    Json(input): Json<RunAgentInput>,
) -> Result<Response, Problem> {
    find_addressee(&state, &agent).await?;
    let task = task_of(&state, &input, Purpose::Connect).await?;
    let envelopes = state.society.messages(&task).await?;
    let last = envelopes.iter().rev().find(|(_, envelope)| envelope.from.is_user()).map(|(recorded, _)| recorded.seq);
    let messages = messages_until(&state, &task, &envelopes, last.unwrap_or(Seq(0))).await?;
    let messages = Body::MessagesSnapshot { messages };
    let head = state.society.log().readable_head(state.society.id()).await?;
    let from = last.unwrap_or(head.next());
    let context = input.context(known_state(&envelopes).as_ref());
    Ok(sse_response(Run::replay(&state, &task, &context, from, vec![messages]).await?, &input))
}

/// What a client wants of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Run,
    Connect,
}

/// The request that a thread is: the caller's request of that name, else one that is made of the name and the person. A run never
/// joins a request of another person, also for a caller who sees everything.
async fn task_of(state: &SocietyState, input: &RunAgentInput, purpose: Purpose) -> Result<TaskId, Problem> {
    let (society, own) = (&state.society, input.task(state.society.person()));
    let Some(named) = input.plain_task() else { return Ok(own) };
    let Some(to) = society.messages(&named).await?.first().map(|(_, envelope)| envelope.to.clone()) else {
        return Ok(own);
    };
    let person = society.person().clone();
    let is_own = society.look(move |spine| spine.person(&to) == Some(&person)).await?;
    let is_meant = is_own || purpose == Purpose::Connect;
    Ok(if is_meant { named } else { input.made_task(society.person()) })
}

async fn find_addressee(state: &SocietyState, name: &str) -> Result<Addressee, Problem> {
    addressee(state, name).await?.ok_or_else(|| {
        let detail =
            format!("there is no agent or role `{name}`; /api/agents lists the agents, and `polis` is the society itself");
        Problem::new(StatusCode::NOT_FOUND, "unknown_agent", detail)
    })
}

/// What the person has said since the last answer.
pub(crate) fn unanswered(envelopes: &[(Recorded, std::sync::Arc<polis_domain::Envelope>)]) -> Vec<String> {
    let is_end = |envelope: &polis_domain::Envelope| !envelope.from.is_user() && envelope.kind != MessageKind::Message;
    let since = envelopes.iter().rposition(|(_, envelope)| is_end(envelope)).map_or(0, |place| place + 1);
    let own = |envelope: &polis_domain::Envelope| {
        let words = envelope.payload.meta.get(Payload::OWN_WORDS).and_then(|words| words.as_str().map(str::to_owned));
        words.unwrap_or_else(|| envelope.payload.text.to_string())
    };
    envelopes[since..].iter().filter(|(_, envelope)| envelope.from.is_user()).map(|(_, envelope)| own(envelope)).collect()
}

fn has_run_id(envelope: &polis_domain::Envelope, run: &str) -> bool {
    envelope.from.is_user() && envelope.payload.meta.get(RUN).is_some_and(|known| known == run)
}

/// The client's part of the state, as it last came with a message.
fn known_state(envelopes: &[(Recorded, Arc<polis_domain::Envelope>)]) -> Option<Map<String, Value>> {
    let said = envelopes.iter().rev().filter(|(_, envelope)| envelope.from.is_user());
    said.map(|(_, envelope)| envelope.payload.meta.get(input::STATE)).next()??.as_object().cloned()
}

fn failed_run(mut run: Run, code: &str, message: &str) -> Result<Run, Problem> {
    run.fail(code, message);
    Ok(run)
}

/// Sends a new message, or submits the results of the client's own tools.
async fn send_content(
    state: &SocietyState,
    to: &Receiver,
    task: &TaskId,
    run: Run,
    new_content: NewContent,
    input: &RunAgentInput,
) -> Result<Run, Problem> {
    let waiting = waiting(state, task).await?;
    let client_calls = run.client_tool_calls();
    match new_content {
        NewContent::ToolResults(results) => {
            let mut is_pending = false;
            for (effect, name, _) in &client_calls {
                if let Some(result) = results.iter().find(|result| result.call == **name) {
                    is_pending = true;
                    submit_tool_result(&state.society, *effect, result, None).await?;
                }
            }
            if !is_pending && waiting.is_empty() {
                return failed_run(run, "unknown_tool_call", "no tool call of these waits on this thread any more");
            }
            Ok(run.or_idle())
        }
        NewContent::Text(mut message) => {
            if !waiting.is_empty() {
                let open: Vec<_> = waiting.iter().map(|approval| approval.id.as_str()).collect();
                let message = format!("the thread waits for an answer to {}; resume it with one for each", open.join(", "));
                return failed_run(run, "interrupts_pending", &message);
            }
            message.meta.insert(RUN.to_owned(), input.run_id.as_str().into());
            let conversation = conversation_of(&state.society, "agui", to, &input.thread_id).await?;
            // A thread that the client names as one of the person's conversations is that one.
            let to = if conversation.as_str() == input.thread_id { &Receiver::Agent(conversation.clone()) } else { to };
            match deliver(&state.society, to, conversation, task, message).await {
                Ok(sent) => Ok(run.answering(sent.message_id)),
                Err(rejected) => failed_run(run, rejected.code(), rejected.detail()),
            }
        }
    }
}

/// Submits the result of a client tool call, with what the client prescribes for what follows.
pub(crate) async fn submit_tool_result(
    society: &Society,
    effect: polis_domain::EffectId,
    result: &ClientResult,
    rules: Option<AnswerRules>,
) -> Result<(), Problem> {
    let artifacts = store_files(society, &result.files).await?;
    let text = if result.text.trim().is_empty() { "(nothing)".to_owned() } else { result.text.clone() };
    let text = artifacts.iter().fold(text, |text, artifact| format!("{text}\n[sent along: {artifact}]"));
    let verdict = Verdict { rules: rules.map(Arc::new), artifacts, ..Verdict::words(text) };
    let outcome = polis_domain::Outcome::Verdict(verdict);
    Ok(society.resolve(effect, Resolution::Outcome(outcome)).await?)
}

/// Answers interrupts. All of them must be answered together. An interrupt that was answered before is not answered again:
/// a client that repeats its answer gets the same result again.
async fn resume(state: &SocietyState, task: &TaskId, run: Run, input: &RunAgentInput) -> Result<Run, Problem> {
    let waiting = waiting(state, task).await?;
    let is_open = |resume: &Resume| waiting.iter().any(|open| open.id == resume.interrupt_id);
    let mut past = Vec::new();
    for resume in input.resume.iter().filter(|resume| !is_open(resume)) {
        let Some(settled) = settled(&state.society, &resume.interrupt_id, task).await? else { continue };
        let is_same = match decision(&settled.approval, resume) {
            Ok(ResumeAction::Decide(word)) => settled.is_like(&word),
            Ok(ResumeAction::Cancel(_)) => settled.is_void(),
            Err(message) => return failed_run(run, "bad_answer", &message),
        };
        if !is_same {
            let message = format!("{} was settled otherwise before, and that stands", resume.interrupt_id);
            return failed_run(run, "already_answered", &message);
        }
        past.push((settled.at, settled.turn));
    }
    if past.len() == input.resume.len()
        && let Some((at, turn)) = past.iter().min().copied()
    {
        return Run::replay_decision(state, task, &input.context(None), turn, at).await;
    }
    let covered = |id: &str| input.resume.iter().any(|resume| resume.interrupt_id == id);
    let missing: Vec<_> = waiting.iter().filter(|open| !covered(&open.id)).map(|open| open.id.clone()).collect();
    if !missing.is_empty() {
        let message =
            format!("{} must be answered as well: all interrupts of a thread are answered together", missing.join(", "));
        return failed_run(run, "interrupts_pending", &message);
    }
    let mut decided = Vec::new();
    for resume in &input.resume {
        match waiting.iter().find(|open| open.id == resume.interrupt_id) {
            Some(open) => match decision(open, resume) {
                Ok(decision) => decided.push((open.id.clone(), decision)),
                Err(message) => return failed_run(run, "bad_answer", &message),
            },
            None if settled(&state.society, &resume.interrupt_id, task).await?.is_some() => {}
            None => {
                let message = format!("nothing on this thread waits under the name {}", resume.interrupt_id);
                return failed_run(run, "unknown_interrupt", &message);
            }
        }
    }
    for (id, decision) in decided {
        let settled = match decision {
            ResumeAction::Decide(word) => settle(&state.society, &id, word).await,
            ResumeAction::Cancel(task) => {
                Ok(state.society.cancel(Target::Task(task), "cancelled instead of settling a write in doubt").await?)
            }
        };
        if let Err(problem) = settled {
            return failed_run(run, problem.code(), problem.detail());
        }
    }
    Ok(run.or_idle())
}

fn sse_response(run: Run, input: &RunAgentInput) -> Response {
    let is_before_version_1 = input.is_before_version_1();
    let events = stream::unfold(run, move |mut run| async move {
        let event = run.next().await?;
        let event = if is_before_version_1 { event.before_version_1() } else { event };
        let data = serde_json::to_string(&event).unwrap_or_default();
        Some((Ok::<_, Infallible>(sse::Event::default().data(data)), run))
    });
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
