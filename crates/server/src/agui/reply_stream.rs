//! One model reply while it streams: what was sent to the client so far, and what is missing when the reply is complete.

use std::sync::Arc;

use polis_domain::{EffectId, Reply};

use super::event::{Body, Role};

/// An event that a reply produces.
pub(super) enum ReplyEvent {
    Body(Body),
    /// A tool call that was announced but will not run.
    Dropped(Arc<str>),
}

/// A reply that is being written.
pub(super) struct ReplyStream {
    effect: EffectId,
    /// How often it began.
    attempt: u32,
    /// Sends nothing before the reply is complete.
    is_mute: bool,
    /// Does not send as text what looks like data.
    hides_data: bool,
    text: StreamedText,
    reasoning: StreamedText,
    calls: Vec<StreamedCall>,
    /// The ids under which its calls were sent.
    named: Vec<Arc<str>>,
    whole_text: String,
}

#[derive(Default)]
struct StreamedText {
    sent: String,
    is_open: bool,
    /// Chunks that may be data and are held back.
    held: String,
}

struct StreamedCall {
    index: u32,
    id: Arc<str>,
    name: Option<Arc<str>>,
    sent: String,
    held: String,
    is_open: bool,
}

impl ReplyStream {
    pub(super) fn new(effect: EffectId, hides_data: bool, is_mute: bool) -> Self {
        Self {
            effect,
            attempt: 0,
            is_mute,
            hides_data,
            text: StreamedText::default(),
            reasoning: StreamedText::default(),
            calls: Vec::new(),
            named: Vec::new(),
            whole_text: String::new(),
        }
    }

    fn name(&self, kind: &str) -> Arc<str> {
        let EffectId { turn, n } = self.effect;
        match self.attempt {
            0 => format!("{kind}_{turn}_{n}").into(),
            attempt => format!("{kind}_{turn}_{n}_again{attempt}").into(),
        }
    }

    /// More text.
    pub(super) fn text(&mut self, more: &str) -> Vec<ReplyEvent> {
        let mut events = Vec::new();
        if self.is_mute || more.is_empty() {
            return events;
        }
        if self.hides_data && !self.text.is_open {
            self.text.held.push_str(more);
            let start = self.text.held.trim_start();
            if start.is_empty() || start.starts_with(['{', '`', '[']) {
                return events;
            }
            let held = std::mem::take(&mut self.text.held);
            self.emit_text(&held, &mut events);
            return events;
        }
        self.emit_text(more, &mut events);
        events
    }

    fn emit_text(&mut self, more: &str, events: &mut Vec<ReplyEvent>) {
        self.end_reasoning(events);
        let message_id = self.name("msg");
        if !self.text.is_open {
            self.text.is_open = true;
            events.push(ReplyEvent::Body(Body::TextMessageStart {
                message_id: message_id.clone(),
                role: Role::Assistant,
                name: None,
            }));
        }
        self.text.sent.push_str(more);
        events.push(ReplyEvent::Body(Body::TextMessageContent { message_id, delta: more.to_owned() }));
    }

    /// More reasoning.
    pub(super) fn reasoning(&mut self, more: &str) -> Vec<ReplyEvent> {
        let mut events = Vec::new();
        if !self.is_mute && !more.is_empty() {
            self.emit_reasoning(more, &mut events);
        }
        events
    }

    fn emit_reasoning(&mut self, more: &str, events: &mut Vec<ReplyEvent>) {
        let message_id = self.name("think");
        if !self.reasoning.is_open {
            self.reasoning.is_open = true;
            events.push(ReplyEvent::Body(Body::ReasoningStart { message_id: message_id.clone() }));
            events
                .push(ReplyEvent::Body(Body::ReasoningMessageStart { message_id: message_id.clone(), role: Role::Reasoning }));
        }
        self.reasoning.sent.push_str(more);
        events.push(ReplyEvent::Body(Body::ReasoningMessageContent { message_id, delta: more.to_owned() }));
    }

    /// More of a call.
    pub(super) fn call(&mut self, index: u32, name: Option<&Arc<str>>, arguments: &str) -> Vec<ReplyEvent> {
        let mut events = Vec::new();
        if self.is_mute {
            return events;
        }
        let place = match self.calls.iter().position(|call| call.index == index) {
            Some(place) => place,
            None => {
                let id = format!("{}_{index}", self.name("call")).into();
                let call = StreamedCall { index, id, name: None, sent: String::new(), held: String::new(), is_open: false };
                self.calls.push(call);
                self.calls.len() - 1
            }
        };
        self.end_reasoning(&mut events);
        let parent = self.name("msg");
        let call = &mut self.calls[place];
        if call.name.is_none() {
            call.name = name.cloned();
        }
        call.held.push_str(arguments);
        call.emit(&parent, &mut events);
        events
    }

    /// The reply is complete: sends what is missing, and closes everything.
    pub(super) fn complete(&mut self, reply: &Reply) -> Vec<ReplyEvent> {
        let mut events = Vec::new();
        let diverged = !reply.text.starts_with(&self.text.sent)
            || !reply.reasoning.starts_with(&self.reasoning.sent)
            || self.calls.iter().any(|call| call.differs(reply));
        if diverged {
            // Chunks were lost: what the client has differs from the reply.
            events = self.restart();
        }
        if let Some(rest) = reply.reasoning.get(self.reasoning.sent.len()..).filter(|rest| !rest.is_empty()) {
            self.emit_reasoning(rest, &mut events);
        }
        self.end_reasoning(&mut events);
        let is_hidden = self.hides_data && !self.text.is_open && is_data(&reply.text);
        if let Some(rest) = reply.text.get(self.text.sent.len()..).filter(|rest| !rest.is_empty() && !is_hidden) {
            self.emit_text(rest, &mut events);
        }
        let parent = self.name("msg");
        for (index, wanted) in (0..).zip(&reply.tool_calls) {
            let id: Arc<str> = match self.calls.iter_mut().find(|call| call.index == index) {
                Some(call) => {
                    call.held = wanted.arguments.get(call.sent.len()..).unwrap_or_default().to_owned();
                    call.name.get_or_insert_with(|| wanted.name.clone());
                    call.emit(&parent, &mut events);
                    call.end(&mut events);
                    call.id.clone()
                }
                None => {
                    let id: Arc<str> = format!("{}_{index}", self.name("call")).into();
                    let mut call = StreamedCall {
                        index,
                        id: id.clone(),
                        name: Some(wanted.name.clone()),
                        sent: String::new(),
                        held: wanted.arguments.to_string(),
                        is_open: false,
                    };
                    call.emit(&parent, &mut events);
                    call.end(&mut events);
                    id
                }
            };
            self.named.push(id);
        }
        // The reply was cut off at a call that was announced and will not run.
        for call in self.calls.iter_mut().filter(|call| call.is_open) {
            call.end(&mut events);
            events.push(ReplyEvent::Dropped(call.id.clone()));
        }
        self.end_text(&mut events);
        self.whole_text.clone_from(&reply.text);
        events
    }

    /// Discards what was sent so far: closes everything, and the reply starts again.
    pub(super) fn restart(&mut self) -> Vec<ReplyEvent> {
        let mut events = Vec::new();
        self.end_reasoning(&mut events);
        for call in self.calls.iter_mut().filter(|call| call.is_open) {
            call.end(&mut events);
            events.push(ReplyEvent::Dropped(call.id.clone()));
        }
        self.end_text(&mut events);
        let was_told = !self.text.sent.is_empty() || !self.reasoning.sent.is_empty() || !self.calls.is_empty();
        self.attempt += u32::from(was_told);
        (self.text, self.reasoning) = Default::default();
        self.calls.clear();
        events
    }

    /// The whole text, and the names of the calls in it.
    pub(super) fn into_parts(self) -> (String, Vec<Arc<str>>) {
        (self.whole_text, self.named)
    }

    fn end_text(&mut self, events: &mut Vec<ReplyEvent>) {
        if std::mem::take(&mut self.text.is_open) {
            events.push(ReplyEvent::Body(Body::TextMessageEnd { message_id: self.name("msg") }));
        }
    }

    fn end_reasoning(&mut self, events: &mut Vec<ReplyEvent>) {
        if std::mem::take(&mut self.reasoning.is_open) {
            let message_id = self.name("think");
            events.push(ReplyEvent::Body(Body::ReasoningMessageEnd { message_id: message_id.clone() }));
            events.push(ReplyEvent::Body(Body::ReasoningEnd { message_id }));
        }
    }
}

impl StreamedCall {
    fn emit(&mut self, parent: &Arc<str>, events: &mut Vec<ReplyEvent>) {
        let Some(name) = self.name.clone() else { return };
        if !self.is_open {
            self.is_open = true;
            events.push(ReplyEvent::Body(Body::ToolCallStart {
                tool_call_id: self.id.clone(),
                tool_call_name: name,
                parent_message_id: Some(parent.clone()),
            }));
        }
        let delta = std::mem::take(&mut self.held);
        if !delta.is_empty() {
            self.sent.push_str(&delta);
            events.push(ReplyEvent::Body(Body::ToolCallArgs { tool_call_id: self.id.clone(), delta }));
        }
    }

    fn end(&mut self, events: &mut Vec<ReplyEvent>) {
        if std::mem::take(&mut self.is_open) {
            events.push(ReplyEvent::Body(Body::ToolCallEnd { tool_call_id: self.id.clone() }));
        }
    }

    /// Whether what was sent differs from the reply.
    fn differs(&self, reply: &Reply) -> bool {
        reply.tool_calls.get(self.index as usize).is_some_and(|wanted| {
            !wanted.arguments.starts_with(&self.sent) || self.name.as_ref().is_some_and(|name| *name != wanted.name)
        })
    }
}

/// Whether a text is an object or a list, be it fenced: what programs write for each other.
fn is_data(text: &str) -> bool {
    let text = text.trim().trim_start_matches("```json").trim_matches('`').trim();
    text.starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
