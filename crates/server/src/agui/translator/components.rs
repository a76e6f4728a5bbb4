//! Components and messages of threads as activities, and the verifier's summary as text of the main agent.

use std::collections::HashSet;
use std::sync::Arc;

use polis_domain::{Message, MessageId, Sender, ThreadId, TurnId};
use polis_ports::{ComponentChunk, StreamedStep};
use serde_json::{Value, json};

use super::super::event::{Body, Patch, Role};
use super::EventTranslator;

/// A component that is shown.
pub(super) struct Activity {
    id: Arc<str>,
    kind: Arc<str>,
    content: Value,
    owner: Option<Arc<str>>,
}

/// The verifier's summary, streamed to the main thread while the model writes it.
#[derive(Default)]
pub(super) struct Draft {
    /// Fields that must be true before it counts as the answer.
    agrees: HashSet<String>,
    message: Option<Arc<str>>,
    text: String,
    attempt: u32,
}

impl EventTranslator {
    /// What a message of a thread shows beside the replies of models.
    pub(super) fn show_message(&mut self, turn: TurnId, thread: &ThreadId, index: u32, message: &Message) {
        let place = (thread.clone(), index);
        match message.meta.get("component") {
            Some(component) => self.show_component(turn, place, Some(&message.id), component),
            None if message.sender == Sender::Bot && self.owner(turn).is_none() => {
                let activity = Activity {
                    id: message.id.as_str().into(),
                    kind: "message".into(),
                    content: json!({ "text": message.text }),
                    owner: None,
                };
                self.activities.insert(place.clone(), activity);
                self.emit_activity(&place);
            }
            None => {}
        }
    }

    pub(super) fn show_component(
        &mut self,
        turn: TurnId,
        place: (ThreadId, u32),
        message: Option<&MessageId>,
        component: &Value,
    ) {
        let Some(kind) = component.get("component").and_then(Value::as_str).map(Arc::<str>::from) else { return };
        let mut content = component.as_object().cloned().unwrap_or_default();
        content.retain(|key, _| key != "type" && key != "component");
        let props = content.remove("props");
        let content = props.filter(Value::is_object).unwrap_or(Value::Object(content));
        if &*kind == "todo-list"
            && let Some(todos) = content.get("todos").or_else(|| content.get("items"))
        {
            self.set_state("todos", todos.clone());
        }
        let grown = self.growing.remove(&(place.0.clone(), kind.clone()));
        let known = self.activities.get(&place).filter(|known| known.kind == kind).map(|known| known.id.clone());
        let id = grown.map(|grown| grown.id).or(known).or_else(|| message.map(|id| id.as_str().into()));
        let id = id.unwrap_or_else(|| format!("activity_{}_{}", place.0, place.1).into());
        let owner = self.owner(turn);
        self.activities.insert(place.clone(), Activity { id, kind, content, owner });
        self.emit_activity(&place);
    }

    fn emit_activity(&mut self, place: &(ThreadId, u32)) {
        let Some(activity) = self.activities.get(place) else { return };
        let body = Body::ActivitySnapshot {
            message_id: activity.id.clone(),
            activity_type: activity.kind.clone(),
            content: activity.content.clone(),
            replace: Some(true),
        };
        let owner = activity.owner.clone();
        self.emit(owner, body);
    }

    pub(super) fn on_step(&mut self, chunk: &StreamedStep) {
        let Some((turn, owner)) =
            self.turns.iter().find(|(_, turn)| turn.thread == chunk.thread).map(|(id, turn)| (*id, turn.owner.clone()))
        else {
            return;
        };
        let (Some(component), Some(grows)) = (&chunk.component, &chunk.chunk) else { return };
        if &*chunk.agent_type == "verifier" {
            self.draft(&chunk.thread, grows);
        }
        let key = (chunk.thread.clone(), component.clone());
        if !self.growing.contains_key(&key) {
            if matches!(grows, ComponentChunk::Again | ComponentChunk::Text { .. }) {
                return;
            }
            self.grown += 1;
            let id: Arc<str> = format!("activity_{turn}_{}", self.grown).into();
            let activity = Activity { id, kind: component.clone(), content: json!({}), owner: owner.clone() };
            let (message_id, activity_type) = (activity.id.clone(), activity.kind.clone());
            self.growing.insert(key.clone(), activity);
            self.emit(owner.clone(), Body::ActivitySnapshot { message_id, activity_type, content: json!({}), replace: None });
        }
        let Some(activity) = self.growing.get_mut(&key) else { return };
        let patch = activity.apply_chunk(grows);
        let (message_id, activity_type) = (activity.id.clone(), activity.kind.clone());
        if !patch.is_empty() {
            self.emit(owner, Body::ActivityDelta { message_id, activity_type, patch });
        }
    }

    /// The verifier's summary is the answer once the verifier states that everything is done.
    fn draft(&mut self, thread: &ThreadId, grows: &ComponentChunk) {
        let draft = self.drafts.entry(thread.clone()).or_default();
        match grows {
            ComponentChunk::Field { field, value } if *value == Value::Bool(true) => {
                draft.agrees.insert(field.clone());
            }
            ComponentChunk::Again => {
                self.end_draft(thread);
                if let Some(draft) = self.drafts.get_mut(thread) {
                    *draft = Draft { attempt: draft.attempt + 1, ..Draft::default() };
                }
            }
            ComponentChunk::Text { field, text } if field == "summary" => {
                if !(draft.agrees.contains("allCompleted") && draft.agrees.contains("userNeedsSatisfied")) {
                    return;
                }
                draft.text.push_str(text);
                let (attempt, known) = (draft.attempt, draft.message.clone());
                let message_id = known.clone().unwrap_or_else(|| format!("answer_{thread}_{attempt}").into());
                draft.message = Some(message_id.clone());
                if known.is_none() {
                    self.emit(
                        None,
                        Body::TextMessageStart { message_id: message_id.clone(), role: Role::Assistant, name: None },
                    );
                }
                self.emit(None, Body::TextMessageContent { message_id, delta: text.clone() });
            }
            _ => {}
        }
    }

    pub(super) fn end_draft(&mut self, thread: &ThreadId) {
        let Some(draft) = self.drafts.get_mut(thread) else { return };
        if let Some(message_id) = draft.message.take() {
            self.last_text = std::mem::take(&mut draft.text);
            self.emit(None, Body::TextMessageEnd { message_id });
        }
    }

    /// A message that is shown has another text now.
    pub(super) fn update_text(&mut self, place: &(ThreadId, u32), text: &str) {
        if let Some(activity) = self.activities.get_mut(place).filter(|activity| &*activity.kind == "message") {
            activity.content = json!({ "text": text });
            self.emit_activity(place);
        }
    }
}

impl Activity {
    /// Takes in a chunk; returns the patches for clients that hold a copy.
    fn apply_chunk(&mut self, grows: &ComponentChunk) -> Vec<Patch> {
        let Value::Object(content) = &mut self.content else { return Vec::new() };
        let escaped = |field: &str| field.replace('~', "~0").replace('/', "~1");
        match grows {
            ComponentChunk::Again => {
                content.clear();
                vec![Patch::Replace { path: String::new(), value: json!({}) }]
            }
            // Long texts are sent as messages; patches would repeat them again and again.
            ComponentChunk::Text { .. } => Vec::new(),
            ComponentChunk::Field { field, value } => {
                content.insert(field.clone(), value.clone());
                vec![Patch::Add { path: format!("/{}", escaped(field)), value: value.clone() }]
            }
            ComponentChunk::Item { field, value, .. } => {
                let mut patch = Vec::new();
                let list = content.entry(field.clone()).or_insert_with(|| {
                    patch.push(Patch::Add { path: format!("/{}", escaped(field)), value: json!([]) });
                    json!([])
                });
                if let Value::Array(list) = list {
                    list.push(value.clone());
                    patch.push(Patch::Add { path: format!("/{}/-", escaped(field)), value: value.clone() });
                }
                patch
            }
        }
    }
}
