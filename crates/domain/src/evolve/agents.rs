//! Agents and conversations that come and go.

use crate::spine::{Agent, Head, PendingTermination, Spine, Termination};
use crate::{
    AgentId, Conversation, ConversationChange, ConversationPlace, EffectId, Envelope, Event, PersonId, Recorded, RoleId,
    Timestamp,
};

impl Spine {
    pub(super) fn spawn(
        &mut self,
        agent: &AgentId,
        role: &RoleId,
        parent: Option<&AgentId>,
        by: Option<EffectId>,
        recorded: &Recorded,
    ) {
        let mut made = self.agent(role, recorded.at);
        made.parent = parent.map(|id| self.agents.get_key_value(id).map_or(id, |(id, _)| id).clone());
        made.by_agent = by.is_some();
        let maker = by.and_then(|by| self.turns.get(&by.turn)).map(|turn| (&turn.agent, &turn.task));
        self.trails.spawn(maker, &made.role, agent);
        if parent.is_none() {
            // Root is the first conversation.
            let title = agent.as_str().into();
            let conversation = Conversation::new(PersonId::owner(), title, recorded.seq, recorded.at);
            self.conversations.insert(conversation.place(), agent.clone());
            made.conversation = Some(Box::new(conversation));
        }
        self.agents.insert(agent.clone(), made);
        if by.is_some() {
            self.note_spawn(recorded.at);
        }
    }

    /// Makes the agent of a conversation, with what was said before as the first messages of its thread.
    pub(super) fn start_conversation(&mut self, recorded: &Recorded) {
        let Event::ConversationStarted { agent, role, person, title, settings, messages } = &recorded.event else { return };
        let mut made = self.agent(role, recorded.at);
        let settings = (!settings.is_default()).then(|| Box::new(settings.clone()));
        let conversation =
            Conversation { settings, ..Conversation::new(self.shared(person), title.clone(), recorded.seq, recorded.at) };
        self.conversations.insert(conversation.place(), agent.clone());
        made.conversation = Some(Box::new(conversation));
        self.trails.spawn(None, &made.role, agent);
        self.agents.insert(agent.clone(), made);
        if !messages.is_empty() {
            let head = Head { messages: messages.len() as u32, ..Head::new(agent.clone()) };
            self.threads.insert(agent.main_thread(), head);
        }
    }

    pub(super) fn change_conversation(&mut self, agent: &AgentId, change: &ConversationChange) {
        self.relist(agent, |conversation| conversation.change(change));
    }

    /// Changes a conversation, and moves it to its place in the list.
    fn relist(&mut self, agent: &AgentId, change: impl FnOnce(&mut Conversation)) {
        let Some(conversation) = self.agents.get_mut(agent).and_then(|agent| agent.conversation.as_deref_mut()) else { return };
        let before = conversation.place();
        change(conversation);
        let now = conversation.place();
        if before != now
            && let Some((id, _)) = self.agents.get_key_value(agent)
        {
            self.conversations.remove(before);
            self.conversations.insert(now, id.clone());
        }
    }

    /// Notes a message between a person and the agent of a conversation. A person who writes in an archived one takes it up again.
    pub(super) fn touch_conversation(&mut self, envelope: &Envelope, recorded: &Recorded) {
        let agent = if envelope.from.is_user() { &envelope.to } else { &envelope.from };
        let is_personal = envelope.from.is_user() || envelope.to.is_user();
        if is_personal {
            self.relist(agent, |conversation| {
                (conversation.active, conversation.active_at) = (recorded.seq, recorded.at);
                conversation.archived &= !envelope.from.is_user();
            });
        }
    }

    pub(super) fn terminate(&mut self, agent: &AgentId, at: Timestamp) {
        let Some(Agent { role, parent, created_at, termination, within, conversation, .. }) = self.agents.remove(agent) else {
            return;
        };
        let PendingTermination { caller, reason, detach, .. } =
            termination.map_or_else(PendingTermination::nobody, |termination| *termination);
        if detach {
            for child in self.agents.values_mut().filter(|child| child.parent.as_ref() == Some(agent)) {
                child.parent.clone_from(&parent);
                let above = within.iter().flatten().chain(std::iter::once(&role));
                let mut roles: Vec<_> = child.within.take().map(Vec::from).unwrap_or_default();
                roles.extend(above.cloned());
                roles.dedup();
                child.within = Some(roles.into_boxed_slice());
            }
        }
        self.allowed.retain(|allowed| allowed.agent.as_ref() != Some(agent));
        self.trails.end_agent(agent);
        conversation.iter().for_each(|conversation| self.conversations.remove(conversation.place()));
        let person = conversation.map(|conversation| conversation.person);
        let gone =
            Termination { role, parent, created_at, terminated_by: caller, terminated_at: at, reason, person, erased: false };
        self.terminated.insert(agent.clone(), gone);
    }

    /// An erasure begins. The texts are still in the state, which is made anew when they have left the log.
    pub(super) fn begin_erasure(&mut self, agent: &AgentId, recorded: &Recorded) {
        if let Some(gone) = self.terminated.get_mut(agent) {
            gone.erased = true;
        }
        self.erasing.insert(agent.clone(), recorded.seq);
    }

    /// An agent of a role. It shares the allocation of the role's name instead of keeping a copy.
    fn agent(&self, role: &RoleId, at: Timestamp) -> Agent {
        Agent {
            role: self.roles.get_key_value(role).map_or(role, |(id, _)| id).clone(),
            parent: None,
            created_at: at,
            turn: None,
            inbox: None,
            termination: None,
            within: None,
            dead_letters: 0,
            by_agent: false,
            conversation: None,
        }
    }

    /// The name of a person, with the allocation of the conversation that was active last if it is the same person's.
    fn shared(&self, person: &PersonId) -> PersonId {
        let last = self.conversations.after(ConversationPlace::START).next().and_then(|(_, agent)| self.conversation(agent));
        last.map(|last| &last.person).filter(|last| *last == person).unwrap_or(person).clone()
    }
}
