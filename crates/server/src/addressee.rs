//! Finds the agent that a client of another protocol addresses, and builds the text of its message.

use polis_domain::{AgentId, RoleId, Spine};

use crate::problem::Problem;
use crate::state::SocietyState;

/// The name under which the society itself is addressed.
pub(crate) const SOCIETY: &str = "polis";

/// Somebody who can be addressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Addressee {
    /// What clients call it.
    pub(crate) name: String,
    pub(crate) agent: AgentId,
    /// What it is for.
    pub(crate) about: String,
    /// When it came to be, in milliseconds since 1970.
    pub(crate) since_ms: u64,
}

/// Everybody who can be addressed: the society, each agent, and each role that has one.
pub(crate) async fn addressees(state: &SocietyState) -> Result<Vec<Addressee>, Problem> {
    Ok(state.society.look(all).await?)
}

/// Finds an agent by a name that a client uses: `polis`, `agent/NAME`, `role/NAME`, or the bare name of an agent or a role.
pub(crate) async fn addressee(state: &SocietyState, name: &str) -> Result<Option<Addressee>, Problem> {
    let name = name.to_owned();
    Ok(state.society.look(move |spine| find(spine, &name)).await?)
}

fn all(spine: &Spine) -> Vec<Addressee> {
    let mut agents: Vec<_> = spine.agents.keys().collect();
    agents.sort();
    let roles = spine.roles.keys().filter_map(|role| find(spine, &format!("role/{role}")));
    let agents = agents.into_iter().filter_map(|agent| find(spine, &format!("agent/{agent}")));
    find(spine, SOCIETY).into_iter().chain(agents).chain(roles).collect()
}

fn find(spine: &Spine, name: &str) -> Option<Addressee> {
    let agent_of = |name: &str| {
        let agent = AgentId::from(name);
        spine.agents.get(&agent).filter(|known| known.termination.is_none()).map(|_| agent)
    };
    let with_role = |name: &str| {
        let role = RoleId::from(name);
        let mut agents: Vec<_> =
            spine.agents.iter().filter(|(_, agent)| agent.role == role && agent.termination.is_none()).collect();
        // The one that waits least, and of those the oldest.
        agents.sort_by_key(|(id, agent)| {
            let waiting = agent.inbox.as_ref().map_or(0, |inbox| inbox.entries.len()) + usize::from(agent.turn.is_some());
            (waiting, agent.created_at, (*id).clone())
        });
        agents.first().map(|(id, _)| (*id).clone())
    };
    let agent = match name.split_once('/') {
        None if name == SOCIETY => Some(AgentId::root()),
        Some(("agent", name)) => agent_of(name),
        Some(("role", name)) => with_role(name),
        _ => agent_of(name).or_else(|| with_role(name)),
    }?;
    let known = spine.agents.get(&agent)?;
    let role = spine.roles.get(&known.role).map_or_else(|| known.role.to_string(), |role| role.name.to_string());
    let about = if name == SOCIETY { "the society: a request to root".to_owned() } else { role };
    Some(Addressee { name: name.to_owned(), agent, about, since_ms: known.created_at.0 })
}

/// An earlier message of a conversation that took place elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EarlierMessage {
    /// Whether the assistant wrote it.
    pub(crate) by_assistant: bool,
    pub(crate) text: String,
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
            EarlierMessage { by_assistant: false, text: "a".to_owned() },
            EarlierMessage { by_assistant: true, text: "b".to_owned() },
        ];
        let text = envelope_text(&["be brief".to_owned()], &before, "hi");
        assert_eq!(
            text,
            "[Instructions that came with the request]\nbe brief\n\n[Earlier in this conversation, elsewhere]\nuser: a\nassistant: b\n\n\
             [The request]\nhi"
        );
    }
}
