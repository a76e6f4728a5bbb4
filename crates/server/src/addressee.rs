//! Whom a client of another protocol addresses, and how its messages get there: to an agent itself, or into a conversation of
//! its own with a role.

use std::sync::Arc;

use polis_domain::{AgentId, Digest, Message, Meta, Payload, Refusal, RoleId, Sender, Spine, TaskId, Visibility};
use polis_engine::{CommandError, ConversationStart, Sent, Society};
use polis_ports::MAX_REQUEST_MEDIA;
use serde_json::{Map, Value};

use crate::client_files::{ClientFile, attach_files};
use crate::problem::Problem;
use crate::state::SocietyState;

/// The name under which the society itself is addressed.
pub(crate) const SOCIETY: &str = "polis";

/// An agent or a role that a client can address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Addressee {
    /// What clients call it.
    pub(crate) name: String,
    pub(crate) receiver: Receiver,
    /// What it is for.
    pub(crate) about: String,
    /// When it came to be, in milliseconds since 1970.
    pub(crate) since_ms: u64,
}

/// Who gets a client's messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Receiver {
    /// This agent, whatever else it does.
    Agent(AgentId),
    /// A conversation with an agent of this role, which is made for it.
    Role(RoleId),
}

impl Receiver {
    /// The name of the agent or role.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Agent(agent) => agent.as_str(),
            Self::Role(role) => role.as_str(),
        }
    }

    /// The receiver of the next message about a request: the agent that had the first one, unless the client names another.
    pub(crate) fn or_first(&self, first: Option<&AgentId>) -> Self {
        match (self, first) {
            (Self::Role(_), Some(first)) => Self::Agent(first.clone()),
            _ => self.clone(),
        }
    }
}

/// A message of a client.
#[derive(Debug, Default)]
pub(crate) struct ClientMessage {
    /// The words of the person.
    pub(crate) words: String,
    /// Instructions of the client that go with it.
    pub(crate) instructions: Vec<String>,
    /// What was said before, elsewhere.
    pub(crate) earlier: Vec<EarlierMessage>,
    /// Files that go with it.
    pub(crate) files: Vec<ClientFile>,
    pub(crate) meta: Map<String, Value>,
}

/// Sends a message to an agent, or into the conversation of this id, which starts with it unless it is there. Its files become
/// artifacts.
pub(crate) async fn deliver(
    society: &Society,
    to: &Receiver,
    conversation: AgentId,
    task: &TaskId,
    message: ClientMessage,
) -> Result<Sent, Problem> {
    let ClientMessage { words, instructions, earlier, mut files, mut meta } = message;
    let (agent, start) = match to {
        Receiver::Agent(agent) => (agent.clone(), None),
        Receiver::Role(role) => {
            let (asked, person) = (conversation.clone(), society.person().clone());
            let is_own = move |spine: &Spine| spine.conversation(&asked).is_some_and(|known| known.person == person);
            let is_there = society.look(is_own).await?;
            let start = match is_there {
                true => None,
                false => Some(ConversationStart {
                    id: Some(conversation.clone()),
                    role: Some(role.clone()),
                    messages: first_messages(society, &earlier).await?,
                    ..ConversationStart::default()
                }),
            };
            (conversation, start)
        }
    };
    let text = envelope_text(&instructions, if start.is_some() { &[] } else { &earlier }, &words);
    if start.is_none() {
        // The earlier messages are part of this one, and so are their files. The newest ones matter most.
        files.splice(0..0, earlier.into_iter().flat_map(|message| message.files));
        files.drain(..files.len().saturating_sub(MAX_REQUEST_MEDIA));
    }
    attach_files(society, &files, &mut meta).await?;
    if text != words {
        meta.insert(Payload::OWN_WORDS.to_owned(), words.into());
    }
    if let Some(start) = start {
        match society.converse(start, &text, Some(task.clone()), meta.clone()).await {
            // Another request of the same person has started it since; nobody else can have this name.
            Err(CommandError::Refused(Refusal::NameTaken(_))) => {}
            sent => return Ok(sent?),
        }
    }
    Ok(society.send_with_meta(agent, &text, Some(task.clone()), meta).await?)
}

/// Earlier messages as the first ones of a conversation.
async fn first_messages(society: &Society, earlier: &[EarlierMessage]) -> Result<Vec<Arc<Message>>, Problem> {
    let mut messages = Vec::new();
    for (place, message) in earlier.iter().enumerate() {
        let mut meta = Map::new();
        attach_files(society, &message.files, &mut meta).await?;
        messages.push(Arc::new(Message {
            id: format!("earlier-{place}").into(),
            sender: if message.by_assistant { Sender::Bot } else { Sender::User },
            text: message.text.clone(),
            timestamp: society.now(),
            meta: Meta::of(&Value::Object(meta)),
        }));
    }
    Ok(messages)
}

/// The conversation that a client of a protocol calls by a name of its own: the person's conversation of that id if there is one,
/// else one whose id is made of the name.
pub(crate) async fn conversation_of(
    society: &Society,
    protocol: &str,
    to: &Receiver,
    name: &str,
) -> Result<AgentId, CommandError> {
    let (named, person) = (AgentId::from(name), society.person().clone());
    let digest = serde_json::to_value(Digest::of([person.as_str(), to.name(), name])).unwrap_or_default();
    let made = format!("{protocol}-{}", digest.as_str().unwrap_or_default()).into();
    let is_own = move |spine: &Spine| {
        let own = spine.conversation(&named).filter(|conversation| conversation.person == person);
        own.map(|_| named.clone())
    };
    Ok(society.look(is_own).await?.unwrap_or(made))
}

/// Everybody who can be addressed: the society, each agent, and each role. The agents of conversations are found by their names.
pub(crate) async fn addressees(state: &SocietyState) -> Result<Vec<Addressee>, Problem> {
    let visibility = state.society.visibility().clone();
    Ok(state.society.look(move |spine| all(spine, &visibility)).await?)
}

/// Finds an agent by a name that a client uses: `polis`, `agent/NAME`, `role/NAME`, or the bare name of an agent or a role.
pub(crate) async fn addressee(state: &SocietyState, name: &str) -> Result<Option<Addressee>, Problem> {
    let (name, visibility) = (name.to_owned(), state.society.visibility().clone());
    Ok(state.society.look(move |spine| find(spine, &name, &visibility)).await?)
}

fn all(spine: &Spine, visibility: &Visibility) -> Vec<Addressee> {
    let is_listed =
        |(id, agent): &(&AgentId, &polis_domain::Agent)| agent.conversation.is_none() || id.as_str() == AgentId::ROOT;
    let mut agents: Vec<_> = spine.agents.iter().filter(is_listed).map(|(id, _)| id).collect();
    agents.sort();
    let roles = spine.roles.keys().filter_map(|role| find(spine, &format!("role/{role}"), visibility));
    let agents = agents.into_iter().filter_map(|agent| find(spine, &format!("agent/{agent}"), visibility));
    find(spine, SOCIETY, visibility).into_iter().chain(agents).chain(roles).collect()
}

fn find(spine: &Spine, name: &str, visibility: &Visibility) -> Option<Addressee> {
    let agent_of = |name: &str| {
        let (id, agent) = spine.agents.get_key_value(&AgentId::from(name)).filter(|(_, known)| known.termination.is_none())?;
        // Root is who people talk to: each of them in a conversation of their own.
        let is_root = id.as_str() == AgentId::ROOT;
        if !is_root && !visibility.agent(spine, id) {
            return None;
        }
        let receiver = if is_root { Receiver::Role(agent.role.clone()) } else { Receiver::Agent(id.clone()) };
        Some((receiver, &agent.role, agent.created_at))
    };
    let with_role = |name: &str| {
        let role = spine.roles.get(&RoleId::from(name)).filter(|role| visibility.role(spine, &role.id))?;
        let since = spine.founders.get(&role.id).map_or_else(Default::default, |founder| founder.created_at);
        Some((Receiver::Role(role.id.clone()), &role.id, since))
    };
    let (receiver, role, since) = match name.split_once('/') {
        None if name == SOCIETY => agent_of(AgentId::ROOT),
        Some(("agent", name)) => agent_of(name),
        Some(("role", name)) => with_role(name),
        _ => agent_of(name).or_else(|| with_role(name)),
    }?;
    let role = spine.roles.get(role).map_or_else(|| role.to_string(), |role| role.name.to_string());
    let about = if name == SOCIETY { "the society: a conversation with root".to_owned() } else { role };
    Some(Addressee { name: name.to_owned(), receiver, about, since_ms: since.0 })
}

/// An earlier message of a conversation that took place elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EarlierMessage {
    /// Whether the assistant wrote it.
    pub(crate) by_assistant: bool,
    pub(crate) text: String,
    pub(crate) files: Vec<ClientFile>,
}

/// The text of a message: preceded by instructions and by earlier messages, where there are any.
pub(crate) fn envelope_text(instructions: &[String], before: &[EarlierMessage], now: &str) -> String {
    let mut parts = Vec::new();
    if !instructions.is_empty() {
        parts.push(format!("[Instructions that came with the request]\n{}", instructions.join("\n\n")));
    }
    if !before.is_empty() {
        let line =
            |before: &EarlierMessage| format!("{}: {}", if before.by_assistant { "assistant" } else { "user" }, before.text);
        let lines: Vec<_> = before.iter().map(line).collect();
        parts.push(format!("[Earlier in this conversation, elsewhere]\n{}", lines.join("\n")));
    }
    if parts.is_empty() {
        return now.to_owned();
    }
    parts.push(format!("[The request]\n{now}"));
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_request_alone_unless_something_goes_along() {
        assert_eq!(envelope_text(&[], &[], "hi"), "hi");
        let before = [
            EarlierMessage { by_assistant: false, text: "a".to_owned(), files: Vec::new() },
            EarlierMessage { by_assistant: true, text: "b".to_owned(), files: Vec::new() },
        ];
        let text = envelope_text(&["be brief".to_owned()], &before, "hi");
        assert_eq!(
            text,
            "[Instructions that came with the request]\nbe brief\n\n[Earlier in this conversation, elsewhere]\nuser: a\nassistant: b\n\n\
             [The request]\nhi"
        );
    }
}
