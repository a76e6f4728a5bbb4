//! What happens to a task, as it happens: first the task, then what changes. It ends when the task is over; and for whoever has
//! sent a message also when a person must act, because then it is the client's turn.

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
use super::error::{Reason, fault, told};
use super::task::{self, ANSWER, artifacts, state, status};
use crate::problem::Problem;
use crate::rpc::{self, Fault};
use crate::work::{Follow, Heard, Standing};

impl Call {
    pub(super) async fn send_streaming(&self, id: &Value) -> Result<Response, Fault> {
        let permit = self.permit()?;
        let (task, after) = self.accept().await?;
        let of_own = self.of_own();
        let call = if self.is_new() { &of_own } else { self };
        call.stream(id, (task, after), true, permit).await
    }

    pub(super) async fn subscribe(&self, id: &Value) -> Result<Response, Fault> {
        let permit = self.permit()?;
        let task = self.task_id()?;
        task::envelopes(self, &task).await?;
        let society = &self.peer.state.society;
        let head = society.log().readable_head(society.id()).await.map_err(|error| fault(&error.into()))?;
        if self.peer.standing(&task).await.map_err(|problem| fault(&problem))?.is_over() {
            let what = "the task has ended; GetTask returns its result";
            return Err(told(Reason::UnsupportedOperation, what, &[("taskId", task.as_str())]));
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
        let follow = Follow::new(&self.peer, &task, after).await.map_err(|problem| fault(&problem))?;
        let first = task::told(self, &task, None).await?;
        let standing = self.peer.standing(&task).await.map_err(|problem| fault(&problem))?;
        let call =
            Self { peer: self.peer.clone(), base: super::card::Base(self.base.0.clone()), params: serde_json::Map::new() };
        let mut telling = Telling {
            call,
            id: id.clone(),
            task,
            follow,
            context: first["contextId"].as_str().unwrap_or_default().to_owned(),
            last: first["status"].clone(),
            ready: VecDeque::from([json!({ "task": first })]),
            answer: Growing::default(),
            is_turn_based,
            ended: false,
            _permit: permit,
        };
        // What has changed between the two looks is told as a change.
        telling.change(standing).await.map_err(|problem| fault(&problem))?;
        let events = stream::unfold(telling, |mut telling| async move {
            let message = telling.next().await?;
            Some((Ok::<_, Infallible>(Event::default().data(message.to_string())), telling))
        });
        let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(crate::events::KEEP_ALIVE)).into_response();
        response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
        Ok(response)
    }
}

/// A reply while it grows. The newest chunk is held back, so that the last one can be told as the last.
#[derive(Default)]
struct Growing {
    effect: Option<EffectId>,
    told: String,
    held: String,
    has_begun: bool,
}

/// A chunk to tell.
#[derive(Debug, PartialEq)]
struct Piece {
    text: String,
    append: bool,
}

impl Growing {
    /// More of a reply; gives what can be told by now.
    fn hear(&mut self, effect: EffectId, text: String) -> Option<Piece> {
        if self.effect != Some(effect) {
            *self = Self { effect: Some(effect), held: text, ..Self::default() };
            return None;
        }
        let piece = self.flush();
        self.held = text;
        piece
    }

    /// A reply broke off.
    fn drop(&mut self, effect: EffectId) {
        if self.effect == Some(effect) {
            *self = Self::default();
        }
    }

    /// What is held back.
    fn flush(&mut self) -> Option<Piece> {
        let text = std::mem::take(&mut self.held);
        if text.is_empty() {
            return None;
        }
        self.told.push_str(&text);
        Some(Piece { text, append: std::mem::replace(&mut self.has_begun, true) })
    }

    /// The last chunk, if what was told and it are the answer.
    fn end(&mut self, answer: &str) -> Option<Piece> {
        let is_it = answer.strip_prefix(&*self.told) == Some(&*self.held);
        if is_it { self.flush() } else { None }
    }
}

/// One client's stream.
struct Telling {
    call: Call,
    id: Value,
    task: TaskId,
    context: String,
    follow: Follow,
    /// The status that was told last.
    last: Value,
    ready: VecDeque<Value>,
    /// What may become the answer, as far as it was told.
    answer: Growing,
    is_turn_based: bool,
    ended: bool,
    _permit: OwnedSemaphorePermit,
}

impl Telling {
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(result) = self.ready.pop_front() {
                return Some(rpc::done(&self.id, &result));
            }
            if self.ended {
                return None;
            }
            let heard = match self.follow.next().await {
                Ok(Heard::Step(words)) => {
                    self.step(&words);
                    Ok(())
                }
                Ok(heard @ (Heard::Text { .. } | Heard::Dropped(_))) => {
                    self.hear(heard);
                    Ok(())
                }
                Ok(Heard::Changed) => match self.follow.standing().await {
                    Ok(standing) => self.change(standing).await,
                    Err(problem) => Err(problem),
                },
                Ok(Heard::Ended) => {
                    self.ended = true;
                    Ok(())
                }
                Err(problem) => Err(problem),
            };
            if let Err(problem) = heard {
                self.ended = true;
                return Some(fault(&problem).answer(Some(&self.id)));
            }
        }
    }

    fn update(&self, status: &Value) -> Value {
        json!({ "statusUpdate": { "taskId": self.task.as_str(), "contextId": self.context, "status": status } })
    }

    /// More of what may become the answer.
    fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Text { effect, text } => {
                if let Some(piece) = self.answer.hear(effect, text) {
                    self.tell_piece(&piece, false);
                }
            }
            Heard::Dropped(effect) => self.answer.drop(effect),
            Heard::Step(_) | Heard::Changed | Heard::Ended => {}
        }
    }

    fn tell_artifact(&mut self, artifact: &Value, append: bool, is_last: bool) {
        let update = json!({
            "taskId": self.task.as_str(), "contextId": self.context, "artifact": artifact, "append": append, "lastChunk": is_last,
        });
        self.ready.push_back(json!({ "artifactUpdate": update }));
    }

    /// A chunk of the answer: the first one takes the place of what was told before.
    fn tell_piece(&mut self, piece: &Piece, is_last: bool) {
        let artifact = json!({ "artifactId": ANSWER, "name": ANSWER, "parts": [{ "text": piece.text }] });
        self.tell_artifact(&artifact, piece.append, is_last);
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
    async fn change(&mut self, standing: Standing) -> Result<(), Problem> {
        let envelopes = self.call.peer.state.society.messages(&self.task).await?;
        let now = state(&standing, &envelopes);
        let asked = |status: &Value| {
            let metadata = &status["message"]["metadata"];
            (metadata["approvalId"].clone(), metadata["code"].clone())
        };
        let status = status(&standing, &envelopes, &self.task);
        let is_same = self.last["state"] == now && asked(&self.last) == asked(&status);
        if !is_same {
            if standing.is_over() {
                for heard in self.follow.rest().await? {
                    self.hear(heard);
                }
                let mut made = artifacts(&self.call, &standing, &envelopes);
                if let Some(last) = standing.answer.as_ref().and_then(|answer| self.answer.end(answer)) {
                    self.tell_piece(&last, true);
                    made.retain(|artifact| artifact["artifactId"] != ANSWER);
                }
                made.iter().for_each(|artifact| self.tell_artifact(artifact, false, true));
            } else if standing.needs_person()
                && let Some(piece) = self.answer.flush()
            {
                self.tell_piece(&piece, false);
            }
            self.ready.push_back(self.update(&status));
            self.last = status;
        }
        self.ended = standing.is_over() || (standing.needs_person() && self.is_turn_based);
        Ok(())
    }
}
