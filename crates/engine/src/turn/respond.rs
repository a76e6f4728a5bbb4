//! What becomes of a response: the one place where it is carried out (R130).
//!
//! In this order: the sub-thread that it asks for, the message that it changes or adds, the phase that it suggests, the tasks
//! that follow. What is plain text costs nothing here; it becomes a message when the turn is settled.

use std::sync::Arc;

use polis_domain::{
    Act, Failure, Message, MessageId, MessagePatch, Meta, Origin, ReplyTo, Response, ResponseParts, Sender, SubThreadRequest,
    TurnResult, Usage,
};
use serde::Serialize;

use super::Turn;
use crate::text::{WAIT, WAIT_NESTED};

impl Turn {
    /// What the response of the turn comes to.
    pub(super) async fn result_of(&mut self, response: Response) -> TurnResult {
        let mut parts = response.into_parts();
        if !parts.next_tasks.is_empty() && self.origin != Origin::Inbox {
            return TurnResult::Failed(next_tasks_in_unit());
        }
        let is_said = parts.silent || parts.message_update.is_none();
        if !is_said || parts.sub_thread.is_some() || parts.next_phase.is_some() {
            // Boxed, as whatever few turns need.
            if let Err(failure) = Box::pin(self.carry_out(&mut parts)).await {
                return TurnResult::Failed(failure);
            }
        }
        let ResponseParts { text, silent, mut meta, next_tasks: next, message_update, .. } = parts;
        if !silent {
            self.note_usage(&mut meta);
            let mut message = self.new_message(&self.path(), Sender::Bot, text);
            let answer = message.text.as_str().into();
            message.meta = meta;
            return TurnResult::Done { message: Some(message), answer, next };
        }
        if message_update.is_some() || self.reply_to == ReplyTo::Nobody {
            let answer = if text.is_empty() { Arc::default() } else { text.into() };
            return TurnResult::Done { message: None, answer, next };
        }
        // The handler has written into the thread itself: whoever waits is told what stands there last (D05).
        match Box::pin(self.last_bot_message()).await {
            Ok(last) => {
                let answer = last.map_or_else(Arc::default, |last| last.text.as_str().into());
                TurnResult::Done { message: None, answer, next }
            }
            Err(failure) => TurnResult::Failed(failure),
        }
    }

    /// Carries out the response of a unit's handler, and gives the bot message that stands in the sub-thread then (R125).
    pub(super) async fn carry_out_in_unit(&mut self, response: Response) -> Result<Arc<Message>, Failure> {
        let mut parts = response.into_parts();
        if !parts.next_tasks.is_empty() {
            return Err(next_tasks_in_unit());
        }
        self.carry_out(&mut parts).await?;
        if !parts.silent {
            return self.add_bot_message(parts.text, parts.meta).await;
        }
        let said = match &parts.message_update {
            Some(id) => self.own_thread().await?.messages.into_iter().find(|message| message.id == *id),
            None => self.last_bot_message().await?,
        };
        said.ok_or_else(|| Failure::new("no_bot_message", "the unit's handler said nothing; give back a response with a text"))
    }

    /// Does what a response asks for beyond its text. What is left says what stands in the thread by now.
    async fn carry_out(&mut self, parts: &mut ResponseParts) -> Result<(), Failure> {
        if let Some(request) = parts.sub_thread.take() {
            let holder = match parts.message_update.take() {
                Some(holder) => holder,
                None if parts.silent => self.hold(&request, None).await?,
                None => self.hold(&request, Some((std::mem::take(&mut parts.text), std::mem::take(&mut parts.meta)))).await?,
            };
            let result = self.run_sub_thread(request.in_message(holder)).await?;
            parts.text = result.text;
            parts.silent = true;
            parts.message_update = Some(result.message);
        }
        if let (Some(message), false) = (&parts.message_update, parts.silent) {
            let patch = MessagePatch { text: Some(parts.text.clone()), meta: std::mem::take(&mut parts.meta) };
            self.update_message(&self.path(), &message.clone(), patch).await?;
            parts.silent = true;
        }
        match parts.next_phase.take() {
            Some(phase) if self.suggested.as_ref() != Some(&phase) => self.suggest_phase(phase).await,
            _ => Ok(()),
        }
    }

    /// The message that a sub-thread will hang in (R131): the one that is named, or a new one that says what is waited for.
    pub(super) async fn hold(
        &mut self,
        request: &SubThreadRequest,
        said: Option<(String, Meta)>,
    ) -> Result<MessageId, Failure> {
        if let Some(holder) = &request.holder {
            return Ok(holder.clone());
        }
        let (text, meta) = said.unwrap_or_else(|| (self.waiting(request), Meta::new()));
        Ok(self.add_bot_message(text, meta).await?.id.clone())
    }

    /// A new message for a sub-thread to hang in, which says what is waited for.
    pub(super) fn placeholder(&mut self, request: &SubThreadRequest) -> Message {
        let mut meta = Meta::new();
        self.note_usage(&mut meta);
        let text = self.waiting(request);
        Message { meta, ..self.new_message(&self.path(), Sender::Bot, text) }
    }

    fn waiting(&self, request: &SubThreadRequest) -> String {
        let usual = if self.path().is_main() { &WAIT } else { &WAIT_NESTED };
        request.placeholder.clone().unwrap_or_else(|| usual.in_language_of(&self.task.message).to_owned())
    }

    async fn add_bot_message(&mut self, text: String, mut meta: Meta) -> Result<Arc<Message>, Failure> {
        self.note_usage(&mut meta);
        let message = Arc::new(Message { meta, ..self.new_message(&self.path(), Sender::Bot, text) });
        let thread = self.start.thread.clone();
        self.act(vec![Act::AddMessage { thread, message: message.clone() }]).await?;
        Ok(message)
    }

    async fn last_bot_message(&mut self) -> Result<Option<Arc<Message>>, Failure> {
        let recent = self.recent(8).await?;
        Ok(recent.into_iter().rev().map(|(_, message)| message).find(|message| message.sender == Sender::Bot))
    }

    /// A message says what its turn's model calls have cost.
    fn note_usage(&self, meta: &mut Meta) {
        if self.used == Usage::default() || meta.contains_key("usage") {
            return;
        }
        let usage_meta = Meta::of(&UsageMeta { usage: self.used });
        if meta.is_empty() { *meta = usage_meta } else { meta.extend(usage_meta) }
    }
}

/// What a message says of its turn.
#[derive(Serialize)]
struct UsageMeta {
    usage: Usage,
}

fn next_tasks_in_unit() -> Failure {
    Failure::new("next_tasks_in_unit", "a unit cannot queue tasks; its sub-thread's agent chooses what is next")
}
