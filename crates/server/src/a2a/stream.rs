//! Streams the updates of a task: first the task, then its changes. The stream ends when the task is over; a stream that a
//! message opened also ends when a person must act, because then it is the client's turn.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::http::HeaderValue;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use polis_domain::{EffectId, Seq, TaskId};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::Call;
use super::error::{Reason, fault, protocol_error};
use super::task::{self, ANSWER, artifacts, state, status};
use crate::problem::Problem;
use crate::rpc::{self, Fault};
use crate::task_follower::{TaskFollower, TaskSummary, TaskUpdate};

impl Call {
    pub(super) async fn send_streaming(&self, id: &Value) -> Result<Response, Fault> {
        let permit = self.permit()?;
        let (task, after) = self.accept().await?;
        let with_read_scope = self.with_read_scope();
        let call = if self.is_new() { &with_read_scope } else { self };
        call.stream(id, (task, after), true, permit).await
    }

    pub(super) async fn subscribe(&self, id: &Value) -> Result<Response, Fault> {
        let permit = self.permit()?;
        let task = self.task_id()?;
        task::envelopes(self, &task).await?;
        let society = &self.peer.state.society;
        let head = society.log().readable_head(society.id()).await.map_err(|error| fault(&error.into()))?;
        if self.peer.summary(&task).await.map_err(|problem| fault(&problem))?.is_over() {
            let what = "the task has ended; GetTask returns its result";
            return Err(protocol_error(Reason::UnsupportedOperation, what, &[("taskId", task.as_str())]));
        }
        self.stream(id, (task, head), false, permit).await
    }

    fn permit(&self) -> Result<OwnedSemaphorePermit, Fault> {
        let permit = self.peer.state.streams.clone().try_acquire_owned();
        permit.map_err(|_| Fault::new(rpc::INTERNAL_ERROR, "too many streams are open; close one or try again later"))
    }

    async fn stream(
        &self,
        id: &Value,
        (task, after): (TaskId, Seq),
        is_turn_based: bool,
        permit: OwnedSemaphorePermit,
    ) -> Result<Response, Fault> {
        let follow = TaskFollower::new(&self.peer, &task, after).await.map_err(|problem| fault(&problem))?;
        let first = task::task_json(self, &task, None).await?;
        let summary = self.peer.summary(&task).await.map_err(|problem| fault(&problem))?;
        let call =
            Self { peer: self.peer.clone(), base: super::card::Base(self.base.0.clone()), params: serde_json::Map::new() };
        let mut telling = TaskStream {
            call,
            id: id.clone(),
            task,
            follow,
            context: first["contextId"].as_str().unwrap_or_default().to_owned(),
            last: first["status"].clone(),
            ready: VecDeque::from([json!({ "task": first })]),
            answer: AnswerStream::default(),
            is_turn_based,
            ended: false,
            _permit: permit,
        };
        // A change between the two reads is sent as an update.
        telling.change(summary).await.map_err(|problem| fault(&problem))?;
        let events = stream::unfold(telling, |mut telling| async move {
            let message = telling.next().await?;
            Some((Ok::<_, Infallible>(Event::default().data(message.to_string())), telling))
        });
        let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(crate::events::KEEP_ALIVE)).into_response();
        response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
        Ok(response)
    }
}

/// An answer while it streams. The newest chunk is held back, so that the last one can be marked as the last.
#[derive(Default)]
struct AnswerStream {
    effect: Option<EffectId>,
    sent: String,
    held: String,
    has_started: bool,
}

/// A chunk to send.
#[derive(Debug, PartialEq)]
struct AnswerChunk {
    text: String,
    append: bool,
}

impl AnswerStream {
    /// More of a reply; returns what can be sent by now.
    fn push(&mut self, effect: EffectId, text: String) -> Option<AnswerChunk> {
        if self.effect != Some(effect) {
            *self = Self { effect: Some(effect), held: text, ..Self::default() };
            return None;
        }
        let chunk = self.flush();
        self.held = text;
        chunk
    }

    /// A reply broke off.
    fn drop(&mut self, effect: EffectId) {
        if self.effect == Some(effect) {
            *self = Self::default();
        }
    }

    /// What is held back.
    fn flush(&mut self) -> Option<AnswerChunk> {
        let text = std::mem::take(&mut self.held);
        if text.is_empty() {
            return None;
        }
        self.sent.push_str(&text);
        Some(AnswerChunk { text, append: std::mem::replace(&mut self.has_started, true) })
    }

    /// The last chunk, if it completes the answer.
    fn end(&mut self, answer: &str) -> Option<AnswerChunk> {
        let is_it = answer.strip_prefix(&*self.sent) == Some(&*self.held);
        if is_it { self.flush() } else { None }
    }
}

/// One client's stream.
struct TaskStream {
    call: Call,
    id: Value,
    task: TaskId,
    context: String,
    follow: TaskFollower,
    /// The status that was sent last.
    last: Value,
    ready: VecDeque<Value>,
    /// What may become the answer, as far as it was sent.
    answer: AnswerStream,
    is_turn_based: bool,
    ended: bool,
    _permit: OwnedSemaphorePermit,
}

impl TaskStream {
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(result) = self.ready.pop_front() {
                return Some(rpc::done(&self.id, &result));
            }
            if self.ended {
                return None;
            }
            let update = match self.follow.next().await {
                Ok(TaskUpdate::Step(words)) => {
                    self.step(&words);
                    Ok(())
                }
                Ok(update @ (TaskUpdate::Text { .. } | TaskUpdate::Dropped(_))) => {
                    self.on_update(update);
                    Ok(())
                }
                Ok(TaskUpdate::Changed) => match self.follow.summary().await {
                    Ok(summary) => self.change(summary).await,
                    Err(problem) => Err(problem),
                },
                Ok(TaskUpdate::Ended) => {
                    self.ended = true;
                    Ok(())
                }
                Err(problem) => Err(problem),
            };
            if let Err(problem) = update {
                self.ended = true;
                return Some(fault(&problem).answer(Some(&self.id)));
            }
        }
    }

    fn update(&self, status: &Value) -> Value {
        json!({ "statusUpdate": { "taskId": self.task.as_str(), "contextId": self.context, "status": status } })
    }

    /// More of what may become the answer.
    fn on_update(&mut self, update: TaskUpdate) {
        match update {
            TaskUpdate::Text { effect, text } => {
                if let Some(chunk) = self.answer.push(effect, text) {
                    self.push_chunk(&chunk, false);
                }
            }
            TaskUpdate::Dropped(effect) => self.answer.drop(effect),
            TaskUpdate::Step(_) | TaskUpdate::Changed | TaskUpdate::Ended => {}
        }
    }

    fn push_artifact(&mut self, artifact: &Value, append: bool, is_last: bool) {
        let update = json!({
            "taskId": self.task.as_str(), "contextId": self.context, "artifact": artifact, "append": append, "lastChunk": is_last,
        });
        self.ready.push_back(json!({ "artifactUpdate": update }));
    }

    /// A chunk of the answer: the first one replaces what was sent before.
    fn push_chunk(&mut self, chunk: &AnswerChunk, is_last: bool) {
        let artifact = json!({ "artifactId": ANSWER, "name": ANSWER, "parts": [{ "text": chunk.text }] });
        self.push_artifact(&artifact, chunk.append, is_last);
    }

    /// Something is done for it.
    fn step(&mut self, words: &str) {
        let message = json!({
            "messageId": format!("{}-step", self.task), "contextId": self.context, "taskId": self.task.as_str(),
            "role": "ROLE_AGENT", "parts": [{ "text": words }],
        });
        let at = polis_domain::iso::write(polis_ports::Clock::now(&polis_engine::SystemClock));
        let status = json!({ "state": "TASK_STATE_WORKING", "message": message, "timestamp": at });
        self.ready.push_back(self.update(&status));
        self.last = status;
    }

    /// It may stand elsewhere now.
    async fn change(&mut self, summary: TaskSummary) -> Result<(), Problem> {
        let envelopes = self.call.peer.state.society.messages(&self.task).await?;
        let now = state(&summary, &envelopes);
        let asked = |status: &Value| {
            let metadata = &status["message"]["metadata"];
            (metadata["approvalId"].clone(), metadata["code"].clone())
        };
        let status = status(&summary, &envelopes, &self.task);
        let is_same = self.last["state"] == now && asked(&self.last) == asked(&status);
        if !is_same {
            if summary.is_over() {
                for update in self.follow.drain().await? {
                    self.on_update(update);
                }
                let mut made = artifacts(&self.call, &self.task, &summary, &envelopes).await?;
                if let Some(last) = summary.answer.as_ref().and_then(|answer| self.answer.end(answer)) {
                    self.push_chunk(&last, true);
                    made.retain(|artifact| artifact["artifactId"] != ANSWER);
                }
                made.iter().for_each(|artifact| self.push_artifact(artifact, false, true));
            } else if summary.needs_person()
                && let Some(chunk) = self.answer.flush()
            {
                self.push_chunk(&chunk, false);
            }
            self.ready.push_back(self.update(&status));
            self.last = status;
        }
        self.ended = summary.is_over() || (summary.needs_person() && self.is_turn_based);
        Ok(())
    }
}
