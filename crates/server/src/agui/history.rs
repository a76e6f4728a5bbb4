//! The messages of a thread so far, as a run would have told them: with the same ids, and with reasoning, calls and results. What
//! sub-agents said is left out.

use std::sync::Arc;

use polis_domain::{AgentId, Envelope, Event as LogEvent, MessageKind, Recorded, Seq, TaskId};
use polis_engine::WatchEvent;
use polis_ports::ThreadRange;

use super::event::{Body, Event, Function, Message, Role, ToolCall};
use super::input::MESSAGE;
use super::run::{RunContext, shown_name};
use super::translator::EventTranslator;
use crate::problem::Problem;
use crate::state::SocietyState;

/// Most events that are read of an agent for it. Of a longer thread the oldest calls and reasoning are missing.
const MAX_EVENTS: usize = 50_000;

/// The messages between the person and the society, up to an event.
pub(super) async fn messages_until(
    state: &SocietyState,
    task: &TaskId,
    envelopes: &[(Recorded, Arc<Envelope>)],
    last: Seq,
) -> Result<Vec<Message>, Problem> {
    let mut agents: Vec<&AgentId> = Vec::new();
    for (_, envelope) in envelopes.iter().filter(|(_, envelope)| envelope.from.is_user()) {
        if !agents.contains(&&envelope.to) {
            agents.push(&envelope.to);
        }
    }
    let mut translator = EventTranslator::new(task.clone(), &RunContext::default()).joined(last);
    let society = &state.society;
    let mut events: Vec<Recorded> =
        envelopes.iter().filter(|(recorded, _)| recorded.seq <= last).map(|(recorded, _)| recorded.clone()).collect();
    let first = events.first().map_or(last, |first| first.seq);
    for agent in agents {
        translator.name(agent.clone(), shown_name(society, agent).await);
        let range = ThreadRange { after: first, newest: MAX_EVENTS, ..ThreadRange::through(last) };
        events.extend(society.log().read_thread(society.id(), &agent.main_thread(), range).await?);
    }
    events.sort_by_key(|recorded| recorded.seq);
    let mut messages = Messages::default();
    for recorded in events {
        if let LogEvent::MessageSent { envelope, .. } = &recorded.event {
            match &envelope.kind {
                _ if envelope.from.is_user() => {
                    messages.push(Role::User, user_id(envelope), envelope.payload.own_words());
                }
                // A run tells it as its error; here it keeps its place.
                MessageKind::Failure(failure) => {
                    messages.push(Role::Assistant, envelope.id.as_str().into(), &failure.to_string());
                }
                MessageKind::Message | MessageKind::Answer => {}
            }
        }
        translator.on_watch_event(&WatchEvent::Event(Arc::new(recorded)));
        translator.take().into_iter().for_each(|event| messages.apply(event));
        if translator.is_over() {
            translator.reopen();
        }
    }
    Ok(messages.0)
}

/// The id that the client gave a message, or ours where it gave none.
fn user_id(envelope: &Envelope) -> Arc<str> {
    let own = envelope.payload.meta.get(MESSAGE).and_then(|id| id.as_str());
    own.unwrap_or(envelope.id.as_str()).into()
}

/// Messages as they come out of the events of a run.
#[derive(Default)]
struct Messages(Vec<Message>);

impl Messages {
    fn push(&mut self, role: Role, id: Arc<str>, content: &str) -> &mut Message {
        let message = Message { id, role, content: content.to_owned(), tool_calls: Vec::new(), tool_call_id: None };
        self.0.push(message);
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    /// The message of this id, which is new unless it is there.
    fn get(&mut self, role: Role, id: &Arc<str>) -> &mut Message {
        match self.0.iter().rposition(|message| message.id == *id) {
            Some(place) => &mut self.0[place],
            None => self.push(role, id.clone(), ""),
        }
    }

    fn apply(&mut self, event: Event) {
        if event.subagent_run_id.is_some() {
            return;
        }
        match event.body {
            Body::TextMessageStart { message_id, role, .. } => drop(self.get(role, &message_id)),
            Body::TextMessageContent { message_id, delta } => self.get(Role::Assistant, &message_id).content.push_str(&delta),
            Body::ReasoningMessageContent { message_id, delta } => {
                self.get(Role::Reasoning, &message_id).content.push_str(&delta);
            }
            Body::ToolCallStart { tool_call_id, tool_call_name, parent_message_id } => {
                let function = Function { name: tool_call_name, arguments: String::new() };
                let call = ToolCall { id: tool_call_id.clone(), kind: "function".to_owned(), function };
                self.get(Role::Assistant, &parent_message_id.unwrap_or(tool_call_id)).tool_calls.push(call);
            }
            Body::ToolCallArgs { tool_call_id, delta } => {
                let mut calls = self.0.iter_mut().rev().flat_map(|message| &mut message.tool_calls);
                if let Some(call) = calls.find(|call| call.id == tool_call_id) {
                    call.function.arguments.push_str(&delta);
                }
            }
            Body::ToolCallResult { message_id, tool_call_id, content, .. } => {
                self.push(Role::Tool, message_id, &content).tool_call_id = Some(tool_call_id);
            }
            _ => {}
        }
    }
}
