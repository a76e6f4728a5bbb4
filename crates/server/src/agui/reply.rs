//! One reply of a model while it grows: what was told of it so far, and what is still missing when it is whole.

use std::sync::Arc;

use polis_domain::{EffectId, Reply};

use super::event::{Body, Role};

/// What is to be told.
pub(super) enum Told {
    Body(Body),
    /// A call that was told and is not made.
    Dropped(Arc<str>),
}

/// A reply that is being written.
pub(super) struct Replying {
    effect: EffectId,
    /// How often it began.
    attempt: u32,
    /// Nothing is told before it is whole.
    is_mute: bool,
    /// What looks like data is not told as text.
    hides_data: bool,
    text: Growing,
    reasoning: Growing,
    calls: Vec<GrowingCall>,
    /// Under which names its calls were told in the end.
    named: Vec<Arc<str>>,
    whole_text: String,
}

#[derive(Default)]
struct Growing {
    told: String,
    is_open: bool,
    /// Chunks that may be data and are held back.
    held: String,
}

struct GrowingCall {
    index: u32,
    id: Arc<str>,
    name: Option<Arc<str>>,
    told: String,
    held: String,
    is_open: bool,
}

impl Replying {
    pub(super) fn new(effect: EffectId, hides_data: bool, is_mute: bool) -> Self {
        Self {
            effect,
            attempt: 0,
            is_mute,
            hides_data,
            text: Growing::default(),
            reasoning: Growing::default(),
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
    pub(super) fn text(&mut self, more: &str) -> Vec<Told> {
        let mut told = Vec::new();
        if self.is_mute || more.is_empty() {
            return told;
        }
        if self.hides_data && !self.text.is_open {
            self.text.held.push_str(more);
            let start = self.text.held.trim_start();
            if start.is_empty() || start.starts_with(['{', '`', '[']) {
                return told;
            }
            let held = std::mem::take(&mut self.text.held);
            self.tell_text(&held, &mut told);
            return told;
        }
        self.tell_text(more, &mut told);
        told
    }

    fn tell_text(&mut self, more: &str, told: &mut Vec<Told>) {
        self.end_reasoning(told);
        let message_id = self.name("msg");
        if !self.text.is_open {
            self.text.is_open = true;
            told.push(Told::Body(Body::TextMessageStart { message_id: message_id.clone(), role: Role::Assistant, name: None }));
        }
        self.text.told.push_str(more);
        told.push(Told::Body(Body::TextMessageContent { message_id, delta: more.to_owned() }));
    }

    /// More reasoning.
    pub(super) fn reasoning(&mut self, more: &str) -> Vec<Told> {
        let mut told = Vec::new();
        if !self.is_mute && !more.is_empty() {
            self.tell_reasoning(more, &mut told);
        }
        told
    }

    fn tell_reasoning(&mut self, more: &str, told: &mut Vec<Told>) {
        let message_id = self.name("think");
        if !self.reasoning.is_open {
            self.reasoning.is_open = true;
            told.push(Told::Body(Body::ReasoningStart { message_id: message_id.clone() }));
            told.push(Told::Body(Body::ReasoningMessageStart { message_id: message_id.clone(), role: Role::Reasoning }));
        }
        self.reasoning.told.push_str(more);
        told.push(Told::Body(Body::ReasoningMessageContent { message_id, delta: more.to_owned() }));
    }

    /// More of a call.
    pub(super) fn call(&mut self, index: u32, name: Option<&Arc<str>>, arguments: &str) -> Vec<Told> {
        let mut told = Vec::new();
        if self.is_mute {
            return told;
        }
        let place = match self.calls.iter().position(|call| call.index == index) {
            Some(place) => place,
            None => {
                let id = format!("{}_{index}", self.name("call")).into();
                let call = GrowingCall { index, id, name: None, told: String::new(), held: String::new(), is_open: false };
                self.calls.push(call);
                self.calls.len() - 1
            }
        };
        self.end_reasoning(&mut told);
        let parent = self.name("msg");
        let call = &mut self.calls[place];
        if call.name.is_none() {
            call.name = name.cloned();
        }
        call.held.push_str(arguments);
        call.tell(&parent, &mut told);
        told
    }

    /// The reply is whole: what was not told yet is told now, and everything is closed.
    pub(super) fn whole(&mut self, reply: &Reply) -> Vec<Told> {
        let mut told = Vec::new();
        let diverged = !reply.text.starts_with(&self.text.told)
            || !reply.reasoning.starts_with(&self.reasoning.told)
            || self.calls.iter().any(|call| call.differs(reply));
        if diverged {
            // Chunks were lost on the way: what stands there is not what was said.
            told = self.again();
        }
        if let Some(rest) = reply.reasoning.get(self.reasoning.told.len()..).filter(|rest| !rest.is_empty()) {
            self.tell_reasoning(rest, &mut told);
        }
        self.end_reasoning(&mut told);
        let is_hidden = self.hides_data && !self.text.is_open && is_data(&reply.text);
        if let Some(rest) = reply.text.get(self.text.told.len()..).filter(|rest| !rest.is_empty() && !is_hidden) {
            self.tell_text(rest, &mut told);
        }
        let parent = self.name("msg");
        for (index, wanted) in (0..).zip(&reply.tool_calls) {
            let id: Arc<str> = match self.calls.iter_mut().find(|call| call.index == index) {
                Some(call) => {
                    call.held = wanted.arguments.get(call.told.len()..).unwrap_or_default().to_owned();
                    call.name.get_or_insert_with(|| wanted.name.clone());
                    call.tell(&parent, &mut told);
                    call.end(&mut told);
                    call.id.clone()
                }
                None => {
                    let id: Arc<str> = format!("{}_{index}", self.name("call")).into();
                    let mut call = GrowingCall {
                        index,
                        id: id.clone(),
                        name: Some(wanted.name.clone()),
                        told: String::new(),
                        held: wanted.arguments.to_string(),
                        is_open: false,
                    };
                    call.tell(&parent, &mut told);
                    call.end(&mut told);
                    id
                }
            };
            self.named.push(id);
        }
        // One that the model was stopped at was told and is not made.
        for call in self.calls.iter_mut().filter(|call| call.is_open) {
            call.end(&mut told);
            told.push(Told::Dropped(call.id.clone()));
        }
        self.end_text(&mut told);
        self.whole_text.clone_from(&reply.text);
        told
    }

    /// What was told so far does not count: everything is closed, and the reply begins again.
    pub(super) fn again(&mut self) -> Vec<Told> {
        let mut told = Vec::new();
        self.end_reasoning(&mut told);
        for call in self.calls.iter_mut().filter(|call| call.is_open) {
            call.end(&mut told);
            told.push(Told::Dropped(call.id.clone()));
        }
        self.end_text(&mut told);
        let was_told = !self.text.told.is_empty() || !self.reasoning.told.is_empty() || !self.calls.is_empty();
        self.attempt += u32::from(was_told);
        (self.text, self.reasoning) = Default::default();
        self.calls.clear();
        told
    }

    /// The whole text, and the names of the calls in it.
    pub(super) fn ended(self) -> (String, Vec<Arc<str>>) {
        (self.whole_text, self.named)
    }

    fn end_text(&mut self, told: &mut Vec<Told>) {
        if std::mem::take(&mut self.text.is_open) {
            told.push(Told::Body(Body::TextMessageEnd { message_id: self.name("msg") }));
        }
    }

    fn end_reasoning(&mut self, told: &mut Vec<Told>) {
        if std::mem::take(&mut self.reasoning.is_open) {
            let message_id = self.name("think");
            told.push(Told::Body(Body::ReasoningMessageEnd { message_id: message_id.clone() }));
            told.push(Told::Body(Body::ReasoningEnd { message_id }));
        }
    }
}

impl GrowingCall {
    fn tell(&mut self, parent: &Arc<str>, told: &mut Vec<Told>) {
        let Some(name) = self.name.clone() else { return };
        if !self.is_open {
            self.is_open = true;
            told.push(Told::Body(Body::ToolCallStart {
                tool_call_id: self.id.clone(),
                tool_call_name: name,
                parent_message_id: Some(parent.clone()),
            }));
        }
        let delta = std::mem::take(&mut self.held);
        if !delta.is_empty() {
            self.told.push_str(&delta);
            told.push(Told::Body(Body::ToolCallArgs { tool_call_id: self.id.clone(), delta }));
        }
    }

    fn end(&mut self, told: &mut Vec<Told>) {
        if std::mem::take(&mut self.is_open) {
            told.push(Told::Body(Body::ToolCallEnd { tool_call_id: self.id.clone() }));
        }
    }

    /// Whether what was told of it is not what the reply says.
    fn differs(&self, reply: &Reply) -> bool {
        reply.tool_calls.get(self.index as usize).is_some_and(|wanted| {
            !wanted.arguments.starts_with(&self.told) || self.name.as_ref().is_some_and(|name| *name != wanted.name)
        })
    }
}

/// Whether a text is an object or a list, be it fenced: what programs write for each other.
fn is_data(text: &str) -> bool {
    let text = text.trim().trim_start_matches("```json").trim_matches('`').trim();
    text.starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
