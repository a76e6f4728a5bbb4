//! Carrying out a handler's response; nothing else does (R130).
//!
//! The order is: the sub-thread that it requests, the message that it updates or adds, the phase that it suggests, the tasks
//! that follow. A plain text costs no effect here; it becomes a message when the turn is settled.

use std::sync::Arc;

use polis_domain::{
    Act, Artifact, Failure, Message, MessageId, MessagePatch, Meta, Origin, ReplyTo, Response, ResponseParts, Sender,
    SubThreadRequest, TurnResult, Usage,
};
use serde::Serialize;

use super::Turn;
use crate::text::{WAIT, WAIT_NESTED};

/// The media type of a long answer.
const PLAIN: &str = "text/plain; charset=utf-8";

/// Of a text that is too long, a message keeps this part of what it may hold: all models that read the message see it again.
const KEPT_PART: usize = 4;

impl Turn {
    /// Turns the response of a handler into the result that settles the turn.
    ///
    /// Everything beyond plain text is an effect of its own, committed before the turn settles: if the process dies in
    /// between, a second run finds those effects in its journal and does not repeat them. The text itself is not such an
    /// effect. It travels inside `Settle`, so that the answer and the end of the turn are one commit; a turn can neither end
    /// without its answer nor show the answer twice.
    ///
    /// A *silent* response adds no message, because the handler (or `carry_out`) has already written into the thread. If
    /// another turn waits for this one, it still needs an answer, so the last bot message of the thread is read back (D05).
    pub(super) async fn result_of(&mut self, response: Response) -> TurnResult {
        let mut parts = response.into_parts();
        if !parts.next_tasks.is_empty() && self.origin != Origin::Inbox {
            return TurnResult::Failed(next_tasks_in_unit());
        }
        if !parts.silent && parts.text.len() > self.start.limits.text_bytes {
            Box::pin(self.shorten(&mut parts)).await;
        }
        let has_nothing_to_update = parts.silent || parts.message_update.is_none();
        if !has_nothing_to_update || parts.sub_thread.is_some() || parts.next_phase.is_some() {
            // Boxed, like everything that few turns need, to keep the future of a turn small.
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
        // The handler has written into the thread itself: the answer is the last bot message (D05).
        match Box::pin(self.last_bot_message()).await {
            Ok(last) => {
                let answer = last.map_or_else(Arc::default, |last| last.text.as_str().into());
                TurnResult::Done { message: None, answer, next }
            }
            Err(failure) => TurnResult::Failed(failure),
        }
    }

    /// Stores a text that is too long for a message as an artifact; the message keeps its beginning and says how to read the
    /// rest. Without a store the text stays as it is, and the message is refused as too long.
    async fn shorten(&mut self, parts: &mut ResponseParts) {
        let text = std::mem::take(&mut parts.text);
        let Ok(artifact) = self.put_artifact("answer.txt", PLAIN, text.as_bytes()).await else {
            parts.text = text;
            return;
        };
        let beginning = &text[..text.floor_char_boundary(self.start.limits.text_bytes / KEPT_PART)];
        let id = artifact.id;
        parts.text = format!(
            "{beginning}\n\n[The text goes on: all of it is {artifact}, which get_artifact reads, and `polis artifacts get {id}`.]"
        );
        let attached: Vec<_> = Artifact::attached(&parts.meta).into_iter().chain([artifact]).collect();
        Artifact::attach(&mut parts.meta, &attached);
    }

    /// Carries out the response of a unit's handler and returns the bot message that the sub-thread then has (R125).
    pub(super) async fn carry_out_in_unit(&mut self, response: Response) -> Result<Arc<Message>, Failure> {
        let mut parts = response.into_parts();
        if !parts.silent && parts.text.len() > self.start.limits.text_bytes {
            self.shorten(&mut parts).await;
        }
        if !parts.next_tasks.is_empty() {
            return Err(next_tasks_in_unit());
        }
        self.carry_out(&mut parts).await?;
        if !parts.silent {
            return self.add_bot_message(parts.text, parts.meta).await;
        }
        let message = match &parts.message_update {
            Some(id) => self.own_thread().await?.messages.into_iter().find(|message| message.id == *id),
            None => self.last_bot_message().await?,
        };
        message
            .ok_or_else(|| Failure::new("no_bot_message", "the unit's handler said nothing; give back a response with a text"))
    }

    /// Carries out what a response requests beyond its text, and changes `parts` to what is left to do.
    ///
    /// The sub-thread comes first, because its result replaces the text. It needs a message to hang in: the one that the
    /// response updates, one that the request names, or a new one that holds the text (or a placeholder) until the result is
    /// there. The phase comes last; one that the handler has suggested itself (D04) needs no second event.
    async fn carry_out(&mut self, parts: &mut ResponseParts) -> Result<(), Failure> {
        if let Some(request) = parts.sub_thread.take() {
            let holder = match parts.message_update.take() {
                Some(holder) => holder,
                None if parts.silent => self.holder_for(&request, None).await?,
                None => {
                    self.holder_for(&request, Some((std::mem::take(&mut parts.text), std::mem::take(&mut parts.meta)))).await?
                }
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

    /// The message that a sub-thread hangs in (R131): the one that the request names, or a new one with the given text or a
    /// placeholder.
    pub(super) async fn holder_for(
        &mut self,
        request: &SubThreadRequest,
        text_and_meta: Option<(String, Meta)>,
    ) -> Result<MessageId, Failure> {
        if let Some(holder) = &request.holder {
            return Ok(holder.clone());
        }
        let (text, meta) = text_and_meta.unwrap_or_else(|| (self.placeholder_text(request), Meta::new()));
        Ok(self.add_bot_message(text, meta).await?.id.clone())
    }

    /// A new placeholder message for a sub-thread to hang in.
    pub(super) fn placeholder(&mut self, request: &SubThreadRequest) -> Message {
        let mut meta = Meta::new();
        self.note_usage(&mut meta);
        let text = self.placeholder_text(request);
        Message { meta, ..self.new_message(&self.path(), Sender::Bot, text) }
    }

    fn placeholder_text(&self, request: &SubThreadRequest) -> String {
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

    /// Adds the usage of the turn's model calls to the meta of a message.
    fn note_usage(&self, meta: &mut Meta) {
        if self.used == Usage::default() || meta.contains_key("usage") {
            return;
        }
        let usage_meta = Meta::of(&UsageMeta { usage: self.used });
        if meta.is_empty() { *meta = usage_meta } else { meta.extend(usage_meta) }
    }
}

/// The meta that a message gets from its turn.
#[derive(Serialize)]
struct UsageMeta {
    usage: Usage,
}

fn next_tasks_in_unit() -> Failure {
    Failure::new("next_tasks_in_unit", "a unit cannot queue tasks; its sub-thread's agent chooses what is next")
}
