//! The events of one command, and the state as it is after them.

use std::cell::OnceCell;
use std::sync::Arc;

use super::overlay::{AgentNow, Dismissal, Overlay, TaskNow, ThreadNow};
use crate::inbox::InboxEntry;
use crate::spine::{Agent, OpenEffect, Pin, Spine, Turn};
use crate::{
    AgentId, Behaviour, CodeVersion, ContextState, EffectId, Event, Failure, MessageId, MetaPath, Origin, Outcome, PersonId,
    Recorded, Refusal, ReplyTo, RoleId, Seq, Spent, Task, TaskId, ThreadId, Timestamp, TurnId, unique_id,
};

/// This many dead letters in a row park an agent.
const MAX_DEAD_LETTERS: u8 = 3;

/// The events of one command so far.
///
/// `spine` is the state before the command. What an earlier event of the same command may have changed is asked of the draft
/// itself: its methods answer for the state after the last event.
pub(super) struct Draft<'a> {
    pub(super) spine: &'a Spine,
    pub(super) at: Timestamp,
    /// Who gives the command, if a person does.
    pub(super) person: Option<PersonId>,
    events: Vec<Arc<Recorded>>,
    /// What the events change. It is made at the first question after an event, because most commands ask none.
    overlay: OnceCell<Overlay>,
}

/// A turn about to begin.
pub(super) struct Start {
    pub(super) agent: AgentId,
    pub(super) thread: ThreadId,
    pub(super) behaviour: Behaviour,
    pub(super) version: CodeVersion,
    pub(super) task: Task,
    pub(super) origin: Origin,
    pub(super) reply_to: ReplyTo,
    pub(super) message: Option<MessageId>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(spine: &'a Spine, at: Timestamp) -> Self {
        Self { spine, at, person: None, events: Vec::with_capacity(4), overlay: OnceCell::new() }
    }

    pub(super) fn push(&mut self, thread: Option<&ThreadId>, event: Event) {
        let seq = Seq(self.next_draw() + 1);
        let recorded = Recorded { seq, at: self.at, thread: thread.cloned(), event };
        if let Some(overlay) = self.overlay.get_mut() {
            overlay.note(self.spine, &recorded);
        }
        self.events.push(Arc::new(recorded));
    }

    /// Records an event of an effect under the thread of its turn.
    pub(super) fn push_of(&mut self, id: EffectId, event: Event) {
        let spine = self.spine;
        self.push(spine.turns.get(&id.turn).map(|turn| &turn.thread), event);
    }

    /// What the events so far have changed, if there are any.
    fn now(&self) -> Option<&Overlay> {
        if self.events.is_empty() {
            return None;
        }
        Some(self.overlay.get_or_init(|| {
            let mut overlay = Overlay::default();
            self.events.iter().for_each(|recorded| overlay.note(self.spine, recorded));
            overlay
        }))
    }

    fn agent_now(&self, id: &AgentId) -> Option<&AgentNow> {
        self.now()?.agent(id)
    }

    fn thread_now(&self, id: &ThreadId) -> Option<&ThreadNow> {
        self.now()?.thread(id)
    }

    fn task_now(&self, id: &TaskId) -> Option<&TaskNow> {
        self.now()?.task(id)
    }

    pub(super) fn into_events(self) -> Vec<Arc<Recorded>> {
        #[cfg(debug_assertions)]
        self.compare();
        self.events
    }

    /// How many events there are.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// A number that no other id of this society was drawn with.
    pub(super) fn next_draw(&self) -> u64 {
        self.spine.seq.0 + self.events.len() as u64
    }

    /// The thread of the last event of an effect, if it has one.
    pub(super) fn last_thread_of(&self, id: EffectId) -> Option<&ThreadId> {
        self.events.iter().rfind(|recorded| recorded.event.effect() == Some(id))?.thread.as_ref()
    }

    /// Compares the overlay with `evolve`. Copies of large spines would make debug builds slow.
    #[cfg(debug_assertions)]
    fn compare(&self) {
        if self.spine.threads.len() < 64 && self.spine.turns.len() < 64 {
            let difference = self.now().and_then(|now| now.differs_from_evolve(self.spine, &self.events));
            assert_eq!(difference, None, "a draft differs from what its events mean: {:#?}", self.events);
        }
    }
}

/// Turns and effects.
impl<'a> Draft<'a> {
    /// A turn that may act, as it was before the command.
    pub(super) fn turn(&self, id: TurnId) -> Result<&'a Turn, Refusal> {
        self.spine.turns.get(&id).filter(|turn| !turn.is_parked()).map(|turn| &**turn).ok_or(Refusal::TurnNotOpen(id))
    }

    /// An open effect, as it was before the command.
    pub(super) fn effect(&self, id: EffectId) -> Result<&'a OpenEffect, Refusal> {
        self.spine.open_effect(id).ok_or(Refusal::NotOpen(id))
    }

    /// Answers a wait of a turn. A wait that has ended already, for example by a timeout, is left alone (D29).
    pub(super) fn answer(&mut self, id: EffectId, outcome: Outcome) {
        let is_open = self.now().and_then(|now| now.effect(id)).unwrap_or_else(|| self.spine.open_effect(id).is_some());
        let is_settled = self.now().is_some_and(|now| now.settled.contains(&id.turn));
        if is_open && !is_settled {
            self.conclude(id, outcome);
        }
    }

    pub(super) fn conclude(&mut self, id: EffectId, outcome: Outcome) {
        self.push_of(id, Event::EffectEnded { id, outcome, spent: None });
    }

    /// What the model calls of this draft reserve.
    pub(super) fn reserved(&self) -> Spent {
        self.now().map_or_else(Spent::default, |now| now.reserved)
    }

    /// Whether this draft states a call that may write.
    pub(super) fn has_write(&self) -> bool {
        self.now().is_some_and(|now| now.has_write)
    }

    /// The definition that a tool is pinned to.
    pub(super) fn pin(&self, tool: &str) -> Option<&Pin> {
        let drafted = self.now().and_then(|now| now.pins.iter().rfind(|(pinned, _)| **pinned == *tool)).map(|(_, pin)| pin);
        drafted.or_else(|| self.spine.pins.get(tool))
    }
}

/// Agents, roles and requests.
impl<'a> Draft<'a> {
    /// An agent that exists and is not being terminated.
    pub(super) fn agent(&self, id: &AgentId) -> Result<&'a Agent, Refusal> {
        let agent = self.spine.agents.get(id);
        if self.termination(id).is_some() || agent.is_none() && self.spine.terminated.contains_key(id) {
            return Err(Refusal::Terminating(id.clone()));
        }
        agent.ok_or_else(|| Refusal::UnknownAgent(id.clone()))
    }

    /// Whether this draft spawns the agent.
    pub(super) fn spawns(&self, id: &AgentId) -> bool {
        self.agent_now(id).is_some_and(|agent| agent.spawned_as.is_some())
    }

    /// How many agents this draft spawns.
    pub(super) fn spawned(&self) -> usize {
        self.now().map_or(0, |now| now.spawned)
    }

    /// How many children this draft gives to an agent.
    pub(super) fn spawned_below(&self, parent: &AgentId) -> usize {
        self.agent_now(parent).map_or(0, |agent| agent.spawned)
    }

    /// Whether an agent has no turn in its main thread.
    pub(super) fn is_idle(&self, id: &AgentId) -> bool {
        let turn = match self.agent_now(id) {
            Some(agent) => agent.turn,
            None => self.spine.agents.get(id).and_then(|agent| agent.turn),
        };
        turn.is_none()
    }

    /// The pending termination of an agent.
    pub(super) fn termination(&self, id: &AgentId) -> Option<Dismissal> {
        match self.agent_now(id) {
            Some(agent) => agent.termination,
            None => self.spine.agents.get(id)?.termination.as_deref().map(Dismissal::from),
        }
    }

    /// Whether this draft terminates the agent.
    pub(super) fn terminates(&self, id: &AgentId) -> bool {
        self.agent_now(id).is_some_and(|agent| agent.is_terminated)
    }

    /// The entries and bytes in an agent's inbox; at least as many as there are.
    pub(super) fn inbox(&self, id: &AgentId) -> (usize, usize) {
        let (entries, bytes) = self.agent_now(id).map_or((0, 0), |agent| agent.received);
        let inbox = self.spine.agents.get(id).and_then(|agent| agent.inbox.as_ref());
        inbox.map_or((entries, bytes), |inbox| (entries + inbox.entries.len(), bytes + inbox.bytes))
    }

    /// Whether a turn has taken this message in this draft.
    pub(super) fn is_taken(&self, message: &MessageId) -> bool {
        self.now().is_some_and(|now| now.taken.contains(message))
    }

    /// Whether the last tasks of an agent all became dead letters.
    pub(super) fn is_crashing(&self, id: &AgentId) -> bool {
        let dead_letters = match self.agent_now(id) {
            Some(agent) => agent.dead_letters,
            None => self.spine.agents.get(id).map_or(0, |agent| agent.dead_letters),
        };
        dead_letters >= MAX_DEAD_LETTERS
    }

    pub(super) fn has_role(&self, id: &RoleId) -> bool {
        self.spine.roles.contains_key(id) || self.now().is_some_and(|now| now.roles.contains(id))
    }

    /// Whether an agent or thread has this name. Agents and threads share one namespace, because a main thread has the name
    /// of its agent.
    pub(super) fn is_named(&self, name: &str) -> bool {
        let (agent, thread) = (AgentId::from(name), ThreadId::from(name));
        self.spine.agents.contains_key(&agent)
            || self.spine.terminated.contains_key(&agent)
            || self.spine.threads.contains_key(&thread)
            || self.spawns(&agent)
            || self.opens(&thread)
    }

    /// How many turns a request has had since the person last wrote, including those that wait in inboxes.
    pub(super) fn turns_of(&self, task: &TaskId) -> usize {
        let before = self.spine.activities.get(task).map_or(0, |activity| activity.turns as usize);
        before + self.task_now(task).map_or(0, |task| task.turns)
    }

    /// How many messages one agent has sent another about a request, not counting asks that are waited for.
    pub(super) fn sent(&self, task: &TaskId, from: &AgentId, to: &AgentId) -> u32 {
        let drafted = self.task_now(task).into_iter().flat_map(|task| &task.sent);
        let drafted = drafted.filter(|(sender, receiver)| sender == from && receiver == to).count();
        self.spine.activities.get(task).map_or(0, |activity| activity.sent(from, to)).saturating_add(drafted as u32)
    }

    /// Whether this draft notifies the person that messages about a request were blocked.
    pub(super) fn reports(&self, task: &TaskId) -> bool {
        self.task_now(task).is_some_and(|task| task.is_reported)
    }
}

/// Threads.
impl Draft<'_> {
    /// How many messages a thread has. The next one gets this index.
    pub(super) fn length(&self, id: &ThreadId) -> u32 {
        match self.thread_now(id) {
            Some(thread) => thread.messages,
            None => self.spine.threads.get(id).map_or(0, |head| head.messages),
        }
    }

    /// Whether this draft opens the sub-thread.
    pub(super) fn opens(&self, id: &ThreadId) -> bool {
        self.thread_now(id).is_some_and(|thread| thread.is_opened)
    }

    /// Whether a turn is open in a thread.
    pub(super) fn is_busy(&self, id: &ThreadId) -> bool {
        let turn = match self.thread_now(id) {
            Some(thread) => thread.turn,
            None => self.spine.threads.get(id).and_then(|head| head.turn),
        };
        turn.is_some()
    }

    /// Whether this draft changes the compression of the thread.
    pub(super) fn has_new_context(&self, id: &ThreadId) -> bool {
        self.thread_now(id).is_some_and(|thread| thread.has_new_context)
    }

    /// Whether a place in the meta of a message has a sub-thread, or overlaps with one that has.
    pub(super) fn is_linked(&self, parent: &ThreadId, index: u32, slot: &MetaPath) -> bool {
        let links = self.spine.links(parent, index);
        let drafted = self.thread_now(parent).map_or(&[][..], |thread| &thread.links);
        links.iter().any(|(taken, _)| taken.overlaps(slot))
            || drafted.iter().any(|(at, taken)| *at == index && taken.overlaps(slot))
    }
}

/// Starting turns.
impl Draft<'_> {
    /// Starts a turn for an inbox entry if the agent is idle; a busy agent gets to it later.
    pub(super) fn wake(&mut self, agent: &AgentId, due: &InboxEntry) {
        if self.is_idle(agent) {
            self.start_next(agent, due);
        }
    }

    /// Starts a turn for the entry at the front of an agent's inbox.
    pub(super) fn start_next(&mut self, agent: &AgentId, due: &InboxEntry) {
        let state = self.spine.agents.get(agent);
        let spawned_as = || self.agent_now(agent).and_then(|agent| agent.spawned_as.as_ref());
        let Some(role) = state.map(|state| &state.role).or_else(spawned_as) else { return };
        let Some(role) = self.spine.roles.get(role) else { return };
        let (task, message) = match due {
            InboxEntry::Envelope(envelope) => {
                let task = Task::message(envelope.task_id.clone(), envelope.payload.text.clone());
                (Task { meta: envelope.payload.meta.clone(), hops: envelope.hops, ..task }, Some(envelope.id.clone()))
            }
            InboxEntry::FollowUp { task, .. } if task.skip_user_message => (task.clone(), None),
            InboxEntry::FollowUp { task, .. } => {
                (task.clone(), Some(unique_id("user", self.spine.seed, self.at, self.next_draw())))
            }
        };
        let thread = agent.main_thread();
        let turn = self.start(Start {
            agent: agent.clone(),
            thread: thread.clone(),
            behaviour: role.behaviour.clone(),
            version: self.spine.versions.newest(&role.behaviour),
            task,
            origin: Origin::Inbox,
            reply_to: due.reply_to(),
            message,
        });
        // Whom people talk to is never parked: without it the society could not be reached.
        if state.is_some_and(|state| state.parent.is_some()) && self.is_crashing(agent) {
            let message =
                format!("the last {MAX_DEAD_LETTERS} tasks of `{agent}` broke its code down; correct it and resume, or cancel");
            self.push(Some(&thread), Event::TurnParked { turn, reason: Failure::new("agent_crashing", message) });
        }
    }

    /// Starts a turn: first the suggested phase is applied, or dropped when the task is a retry (R038-R044).
    pub(super) fn start(&mut self, start: Start) -> TurnId {
        let Start { agent, thread, behaviour, version, task, origin, reply_to, message } = start;
        // No command both suggests a phase and starts a turn in the same thread, so the spine is up to date here.
        let head = self.spine.threads.get(&thread);
        let (mut phase, suggestion) = head.map_or_else(Default::default, |head| (head.phase.clone(), head.suggestion.clone()));
        if let Some(suggested) = suggestion {
            if task.is_retry() {
                self.push(Some(&thread), Event::SuggestionDropped);
            } else {
                phase = suggested.clone();
                self.push(Some(&thread), Event::PhaseApplied { phase: suggested });
            }
        }
        let index = self.length(&thread);
        let context = head.and_then(|head| head.context.as_deref());
        let shown = context
            .map(|context| ContextState { compression: context.cuts.last().map(|(seq, _)| *seq), failed: context.failed });
        let shown = shown.unwrap_or_default();
        let event = Event::TurnStarted { agent, behaviour, version, phase, task, origin, reply_to, message, index, shown };
        self.push(Some(&thread), event);
        TurnId(Seq(self.next_draw()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    #[test]
    fn a_draft_answers_for_its_last_event_whenever_it_is_first_asked() {
        let (spine, root, child) = (Spine::default(), AgentId::root(), AgentId::from("child"));
        let (role, by) = (Arc::new(Role::new("worker", "b")), EffectId { turn: TurnId(Seq(1)), n: 0 });
        let dismissed = Event::AgentDismissed {
            agent: child.clone(),
            caller: root.clone(),
            reason: String::new(),
            detach: true,
            waiter: None,
        };
        let events = [
            Event::RoleCreated { role, by: None },
            Event::AgentSpawned { agent: child.clone(), role: "worker".into(), parent: Some(root.clone()), by: None },
            dismissed,
            Event::EffectEnded { id: by, outcome: Outcome::Slept, spent: None },
            Event::AgentTerminated { agent: child.clone() },
        ];
        let answers = |draft: &Draft<'_>| {
            let is_detached = draft.termination(&child).is_some_and(|termination| termination.detach);
            let names = (draft.has_role(&"worker".into()), draft.is_named("child"), draft.is_named("other"));
            (names, draft.spawned_below(&root), is_detached, draft.terminates(&child), draft.next_draw())
        };
        let (mut early, mut late) = (Draft::new(&spine, Timestamp(0)), Draft::new(&spine, Timestamp(0)));
        assert_eq!(answers(&early), ((false, false, false), 0, false, false, 0));
        for event in events {
            early.push(None, event.clone());
            late.push(None, event);
            answers(&early);
        }
        assert_eq!(answers(&early), ((true, true, false), 1, true, true, 5));
        assert_eq!(answers(&early), answers(&late));
    }
}
