//! Threads as their events tell them.

use std::sync::Arc;

use serde_json::{Map, json};

use crate::{
    Artifact, Event, Message, PLAN, PhaseUpdateSuggestion, Recorded, ReplyTo, Sender, Settings, Task, Thread, ThreadId, place,
};

impl Thread {
    /// Folds all of a thread's events.
    pub fn fold<'a>(id: ThreadId, events: impl IntoIterator<Item = &'a Recorded>) -> Self {
        let mut thread = Self::empty(id);
        let mut messages = Messages::default();
        for recorded in events {
            messages.apply(recorded);
            thread.apply(&recorded.event);
        }
        thread.messages = messages.into_inner();
        thread
    }

    fn apply(&mut self, event: &Event) {
        if let Event::ThreadOpened { meta, .. } = event {
            self.meta = meta.clone();
        }
        self.settings.apply(event);
    }
}

impl Settings {
    /// Folds all of a thread's events.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Recorded>) -> Self {
        let mut settings = Self::default();
        events.into_iter().for_each(|recorded| settings.apply(&recorded.event));
        settings
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::ThreadOpened { settings: first, .. } => *self = first.clone(),
            Event::SettingsUpdated { settings: new, .. } => *self = new.clone(),
            Event::PlanSet { plan, .. } => {
                self.rest.insert(PLAN.to_owned(), json!(plan));
            }
            Event::PhaseSuggested { phase, .. } => {
                self.phase_update_suggestion = Some(PhaseUpdateSuggestion { phase: phase.clone() });
            }
            Event::PhaseApplied { phase } => {
                self.brief_status.phase = phase.clone();
                self.phase_update_suggestion = None;
            }
            Event::SuggestionDropped => self.phase_update_suggestion = None,
            _ => {}
        }
    }
}

/// The messages of a thread, folded from its first event or from any later one.
///
/// Folding from a later event gives the newest messages only, each with its true index.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Messages {
    first: Option<u32>,
    messages: Vec<Arc<Message>>,
}

impl Messages {
    /// Applies an event of the thread; events without a message, or about an older one, change nothing.
    pub fn apply(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::TurnStarted { message: Some(id), index, task, reply_to, .. } => {
                let mut meta = Map::new();
                Artifact::attach(&mut meta, &Artifact::attached(&task.meta));
                if let Some(pictures) = task.meta.get(Task::PICTURES) {
                    meta.insert(Task::PICTURES.to_owned(), pictures.clone());
                }
                if let Some(from) = task.meta.get(Task::FROM) {
                    meta.insert(Task::FROM.to_owned(), from.clone());
                    if *reply_to == ReplyTo::Nobody {
                        meta.insert(Task::UNAWAITED.to_owned(), true.into());
                    }
                }
                let message = Message {
                    id: id.clone(),
                    sender: Sender::User,
                    text: task.message.to_string(),
                    timestamp: recorded.at,
                    meta: meta.into(),
                };
                self.push(*index, Arc::new(message));
            }
            Event::ConversationStarted { messages, .. } => {
                (0..).zip(messages).for_each(|(index, message)| self.push(index, message.clone()));
            }
            Event::MessageAdded { index, message, .. } => self.push(*index, message.clone()),
            Event::TurnSettled { message: Some(message), index, .. } => self.push(*index, message.clone()),
            Event::MessageUpdated { index, patch, .. } => {
                if let Some(message) = self.get_mut(*index) {
                    message.change(patch);
                }
            }
            Event::ThreadLinked { index, slot, child, .. } => {
                if let Some(message) = self.get_mut(*index) {
                    place(&mut message.meta, slot, json!({ "id": child }));
                }
            }
            _ => {}
        }
    }

    /// The messages with the index of the first of them.
    pub fn indexed(&self) -> impl DoubleEndedIterator<Item = (u32, &Arc<Message>)> {
        let first = self.first.unwrap_or_default();
        self.messages.iter().enumerate().map(move |(i, message)| (first + i as u32, message))
    }

    /// The index of the next message; none before the first one is known.
    pub fn next_index(&self) -> Option<u32> {
        self.first.map(|first| first + self.messages.len() as u32)
    }

    /// The messages, oldest first.
    pub fn into_inner(self) -> Vec<Arc<Message>> {
        self.messages
    }

    fn push(&mut self, index: u32, message: Arc<Message>) {
        self.first.get_or_insert(index);
        self.messages.push(message);
    }

    fn get_mut(&mut self, index: u32) -> Option<&mut Message> {
        let place = index.checked_sub(self.first?)?;
        self.messages.get_mut(place as usize).map(Arc::make_mut)
    }
}
