//! Whose an agent, an event or an artifact is, and who may see it: everything in a conversation belongs to its person.

use crate::{AgentId, Envelope, Event, ListedArtifact, PersonId, Recorded, RoleId, Spine, TaskId, ThreadId, TurnId};

/// What a person may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Visibility {
    /// Everything.
    Everything,
    /// What belongs to this person, and what belongs to the society as a whole.
    Person(PersonId),
}

impl Visibility {
    /// What an agent may see: what its person may.
    pub fn of_agent(spine: &Spine, agent: &AgentId) -> Self {
        spine.person(agent).cloned().map_or(Self::Everything, Self::Person)
    }

    /// Whether all that belongs to this person can be seen.
    pub fn has(&self, owner: Option<&PersonId>) -> bool {
        match self {
            Self::Everything => true,
            Self::Person(person) => owner == Some(person),
        }
    }

    /// Whether an agent can be seen, with its threads and turns.
    pub fn agent(&self, spine: &Spine, agent: &AgentId) -> bool {
        *self == Self::Everything || self.has(spine.person(agent))
    }

    /// Whether an open turn can be seen.
    pub fn turn(&self, spine: &Spine, turn: TurnId) -> bool {
        spine.turns.get(&turn).is_none_or(|turn| self.agent(spine, &turn.agent))
    }

    /// Whether a thread of an agent can be seen.
    pub fn thread(&self, spine: &Spine, thread: &ThreadId) -> bool {
        *self == Self::Everything || self.agent(spine, &spine.agent_of(thread))
    }

    /// Whether a role can be seen. Those that persons created belong to the society, those that agents created to their persons.
    pub fn role(&self, spine: &Spine, role: &RoleId) -> bool {
        let founder = spine.founders.get(role).filter(|founder| !founder.created_by.is_user());
        founder.is_none_or(|founder| self.has(founder.person.as_ref()))
    }

    /// Whether an event can be seen.
    pub fn event(&self, spine: &Spine, recorded: &Recorded) -> bool {
        let is_shared = match &recorded.event {
            Event::SocietyFounded { .. } | Event::SocietyForked { .. } | Event::BudgetsSet { .. } => true,
            Event::RoleCreated { role, .. } | Event::RoleChanged { role } => self.role(spine, &role.id),
            _ => false,
        };
        *self == Self::Everything || is_shared || self.has(spine.person_of(recorded))
    }

    /// Whether a listed artifact can be seen.
    pub fn artifact(&self, listed: &ListedArtifact) -> bool {
        self.has(listed.person.as_ref())
    }
}

impl Spine {
    /// The person that an agent works for: whose conversation is at the top of its tree. That of an agent which has been
    /// terminated stays the same.
    pub fn person(&self, agent: &AgentId) -> Option<&PersonId> {
        let top = self.top(agent);
        let now = self.conversation(top).map(|conversation| &conversation.person);
        now.or_else(|| self.terminated.get(top)?.person.as_ref())
    }

    /// The person that an event belongs to; none if it concerns the society as a whole.
    pub fn person_of<'a>(&'a self, recorded: &'a Recorded) -> Option<&'a PersonId> {
        let about = |envelope: &Envelope| {
            let agent = if envelope.to.is_user() { &envelope.from } else { &envelope.to };
            self.person(agent)
        };
        match &recorded.event {
            Event::ConversationStarted { person, .. } => Some(person),
            Event::AgentSpawned { agent, .. }
            | Event::ConversationChanged { agent, .. }
            | Event::ConversationErased { agent, .. }
            | Event::ErasureDone { agent, .. }
            | Event::AgentDismissed { agent, .. }
            | Event::AgentTerminated { agent }
            | Event::InboxCleared { agent, .. }
            | Event::TurnStarted { agent, .. }
            | Event::MessagesTaken { agent, .. }
            | Event::MessageDeadLettered { agent, .. }
            | Event::ThreadOpened { agent, .. } => self.person(agent),
            Event::MemoryChanged { change, .. } => change.person(self),
            Event::ToolAllowed { allowed } => allowed.person.as_ref(),
            event => match (event.envelope(), &recorded.thread) {
                (Some(envelope), _) => about(envelope),
                (None, Some(thread)) => self.person(&self.agent_of(thread)),
                (None, None) => None,
            },
        }
    }

    /// The agent at the top of the tree that an agent belongs to: `root`, or the agent of a conversation. An agent that has been
    /// terminated belongs where it belonged.
    pub fn top<'a>(&'a self, agent: &'a AgentId) -> &'a AgentId {
        self.with_ancestors(agent).last().unwrap_or(agent)
    }

    /// An agent and all above it, nearest first. Terminated agents stay where they were.
    pub fn with_ancestors<'a>(&'a self, agent: &'a AgentId) -> impl Iterator<Item = &'a AgentId> {
        std::iter::successors(Some(agent), |id| match self.agents.get(*id) {
            Some(agent) => agent.parent.as_ref(),
            None => self.terminated.get(*id)?.parent.as_ref(),
        })
    }

    /// Whether an agent may write to another one for a request: within its own tree, to the agents below root if they belong to
    /// the same person, and to the conversation that the request came from. Other conversations are out of its reach.
    pub fn can_reach(&self, from: &AgentId, to: &AgentId, task: Option<&TaskId>) -> bool {
        let top = self.top(to);
        let is_shared = top.as_str() == AgentId::ROOT && to != top && self.person(from) == self.person(to);
        let asked = || task.and_then(|task| self.activities.get(task)?.conversation.as_ref());
        is_shared || top == self.top(from) || asked() == Some(top)
    }

    /// The agent that a thread belongs to.
    fn agent_of(&self, thread: &ThreadId) -> AgentId {
        // A main thread has the name of its agent, and no head before its first event.
        self.threads.get(thread).map_or_else(|| AgentId::from(thread.as_str()), |head| head.agent.clone())
    }
}
