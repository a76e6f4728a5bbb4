//! What the events of a draft change: the entries of the spine that they touch, as they are after them.
//!
//! A rule that must see the earlier events of its own command reads this through [`Draft`](super::Draft). Most commands touch two
//! or three entries, so short lists are searched faster than maps. `evolve` stays the only definition of what an event means:
//! debug builds compare each draft with it.

use std::sync::Arc;

use crate::spine::{Pin, Spine};
use crate::{
    AgentId, Effect, EffectId, Envelope, Event, MessageId, MetaPath, Origin, Recorded, ReplyTo, RoleId, Settlement, Spent,
    TaskId, ThreadId, TurnId,
};

/// The touched entries of a draft.
#[derive(Default)]
pub(super) struct Overlay {
    agents: Vec<(AgentId, AgentNow)>,
    threads: Vec<(ThreadId, ThreadNow)>,
    tasks: Vec<(TaskId, TaskNow)>,
    /// Effects that the draft states or ends, and whether they are open.
    effects: Vec<(EffectId, bool)>,
    pub(super) settled: Vec<TurnId>,
    pub(super) roles: Vec<RoleId>,
    pub(super) pins: Vec<(Arc<str>, Pin)>,
    /// Messages that a turn took from its inbox.
    pub(super) taken: Vec<MessageId>,
    /// How many agents the draft spawns.
    pub(super) spawned: usize,
    /// The reservations of the model calls that the draft states.
    pub(super) reserved: Spent,
    /// Whether the draft states a call that may write.
    pub(super) has_write: bool,
}

/// A touched agent.
#[derive(Default)]
pub(super) struct AgentNow {
    /// The role that it gets, if the draft spawns it.
    pub(super) spawned_as: Option<RoleId>,
    pub(super) is_terminated: bool,
    pub(super) turn: Option<TurnId>,
    pub(super) termination: Option<Dismissal>,
    pub(super) dead_letters: u8,
    /// The entries and bytes that the draft puts into its inbox. What the draft takes out is not subtracted, so a limit may be
    /// reached one command early.
    pub(super) received: (usize, usize),
    /// How many children the draft gives it.
    pub(super) spawned: usize,
}

/// The part of a pending termination that other rules read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dismissal {
    pub(super) detach: bool,
    pub(super) waiter: Option<EffectId>,
}

/// A touched thread.
#[derive(Default)]
pub(super) struct ThreadNow {
    pub(super) is_opened: bool,
    pub(super) messages: u32,
    pub(super) turn: Option<TurnId>,
    pub(super) has_new_context: bool,
    pub(super) links: Vec<(u32, MetaPath)>,
}

/// What the draft adds to a request.
#[derive(Default)]
pub(super) struct TaskNow {
    /// Turns, including those that wait in inboxes.
    pub(super) turns: usize,
    /// Messages from agent to agent that nobody waits for.
    pub(super) sent: Vec<(AgentId, AgentId)>,
    pub(super) is_reported: bool,
}

fn find<'a, K: PartialEq, V>(entries: &'a [(K, V)], key: &K) -> Option<&'a V> {
    entries.iter().find(|(other, _)| other == key).map(|(_, entry)| entry)
}

/// The entry of a key, made by `before` when it is touched first.
fn touch<'a, K: PartialEq + Clone, V>(entries: &'a mut Vec<(K, V)>, key: &K, before: impl FnOnce() -> V) -> &'a mut V {
    let at = entries.iter().position(|(other, _)| other == key).unwrap_or(entries.len());
    if at == entries.len() {
        entries.push((key.clone(), before()));
    }
    &mut entries[at].1
}

impl Overlay {
    pub(super) fn agent(&self, id: &AgentId) -> Option<&AgentNow> {
        find(&self.agents, id)
    }

    pub(super) fn thread(&self, id: &ThreadId) -> Option<&ThreadNow> {
        find(&self.threads, id)
    }

    pub(super) fn task(&self, id: &TaskId) -> Option<&TaskNow> {
        find(&self.tasks, id)
    }

    /// Whether an effect is open, if the draft states or ends it.
    pub(super) fn effect(&self, id: EffectId) -> Option<bool> {
        find(&self.effects, &id).copied()
    }

    /// Takes in one event of the draft. `spine` is the state before the draft.
    pub(super) fn note(&mut self, spine: &Spine, recorded: &Recorded) {
        match &recorded.event {
            Event::RoleCreated { role, .. } => self.roles.push(role.id.clone()),
            Event::AgentSpawned { agent, role, parent, .. } => {
                self.spawned += 1;
                self.touch_agent(spine, agent).spawned_as = Some(role.clone());
                parent.iter().for_each(|parent| self.touch_agent(spine, parent).spawned += 1);
            }
            Event::ConversationStarted { agent, role, messages, .. } => {
                self.touch_agent(spine, agent).spawned_as = Some(role.clone());
                self.change_thread(spine, recorded, |thread| thread.messages = messages.len() as u32);
            }
            Event::AgentDismissed { agent, detach, waiter, .. } => {
                self.touch_agent(spine, agent).termination = Some(Dismissal { detach: *detach, waiter: *waiter });
            }
            Event::AgentTerminated { agent } => self.touch_agent(spine, agent).is_terminated = true,
            Event::MessageDeadLettered { agent, crashed, .. } => {
                let agent = self.touch_agent(spine, agent);
                agent.dead_letters = agent.dead_letters.saturating_add(u8::from(*crashed));
            }
            Event::MessageSent { envelope, by } => {
                if by.is_none() && envelope.reports_loop() {
                    self.touch_task(&envelope.task_id).is_reported = true;
                }
                self.receive(spine, envelope);
            }
            Event::MessagesTaken { envelopes, .. } => self.taken.extend(envelopes.iter().map(|envelope| envelope.id.clone())),
            Event::ToolPinned { tool, identity, definition } => {
                self.pins.push((tool.clone(), Pin { identity: identity.clone(), definition: definition.clone() }));
            }
            Event::EffectStarted { id, effect, .. } => {
                *touch(&mut self.effects, id, || true) = true;
                match effect {
                    Effect::Model { reserve, .. } => self.reserved = self.reserved.plus(*reserve),
                    Effect::Tool(call) => self.has_write |= call.may_write(),
                    Effect::Ask { envelope, .. } => self.receive(spine, envelope),
                    _ => {}
                }
            }
            Event::EffectEnded { id, .. } => *touch(&mut self.effects, id, || false) = false,
            Event::TurnStarted { agent, task, origin, message, .. } => {
                let id = TurnId(recorded.seq);
                match origin {
                    Origin::Inbox => self.touch_agent(spine, agent).turn = Some(id),
                    Origin::Unit(_) => self.touch_task(&task.id).turns += 1,
                }
                self.change_thread(spine, recorded, |thread| {
                    thread.turn = Some(id);
                    thread.messages += u32::from(message.is_some());
                });
            }
            Event::TurnSettled { turn, settlement, message, .. } => {
                self.settled.push(*turn);
                self.change_thread(spine, recorded, |thread| {
                    thread.turn = None;
                    thread.messages += u32::from(message.is_some());
                });
                if let Some(settled) = spine.turns.get(turn) {
                    let agent = self.touch_agent(spine, &settled.agent);
                    agent.turn = agent.turn.filter(|open| open != turn);
                    if *settlement == Settlement::Done {
                        agent.dead_letters = 0;
                    }
                }
            }
            Event::MessageAdded { .. } => self.change_thread(spine, recorded, |thread| thread.messages += 1),
            Event::ThreadOpened { .. } => self.change_thread(spine, recorded, |thread| thread.is_opened = true),
            Event::ThreadLinked { index, slot, .. } => {
                self.change_thread(spine, recorded, |thread| thread.links.push((*index, slot.clone())));
            }
            Event::ContextCompressed { .. } | Event::ContextRestored { .. } => {
                self.change_thread(spine, recorded, |thread| thread.has_new_context = true);
            }
            // No rule of the same command reads what these change.
            Event::SocietyFounded { .. }
            | Event::SocietyForked { .. }
            | Event::RequestDone { .. }
            | Event::RoleChanged { .. }
            | Event::ConversationChanged { .. }
            | Event::ConversationErased { .. }
            | Event::ErasureDone { .. }
            | Event::InboxCleared { .. }
            | Event::ToolAllowed { .. }
            | Event::VersionsSet { .. }
            | Event::BudgetsSet { .. }
            | Event::BudgetGranted { .. }
            | Event::EffectRetried { .. }
            | Event::EffectRefused { .. }
            | Event::EffectDoubted { .. }
            | Event::EffectCleared { .. }
            | Event::EffectRestarted { .. }
            | Event::CallInquired { .. }
            | Event::CallAnswered { .. }
            | Event::TurnParked { .. }
            | Event::TurnResumed { .. }
            | Event::TurnCrashed { .. }
            | Event::TurnRevived { .. }
            | Event::TurnRested { .. }
            | Event::PlanSet { .. }
            | Event::Acted { .. }
            | Event::MessageUpdated { .. }
            | Event::SettingsUpdated { .. }
            | Event::PhaseSuggested { .. }
            | Event::PhaseApplied { .. }
            | Event::SuggestionDropped
            | Event::MemoryChanged { .. }
            | Event::ContextKept { .. } => {}
        }
    }

    fn touch_agent(&mut self, spine: &Spine, id: &AgentId) -> &mut AgentNow {
        touch(&mut self.agents, id, || match spine.agents.get(id) {
            Some(agent) => AgentNow {
                turn: agent.turn,
                termination: agent.termination.as_deref().map(Dismissal::from),
                dead_letters: agent.dead_letters,
                ..AgentNow::default()
            },
            None => AgentNow::default(),
        })
    }

    fn touch_task(&mut self, id: &TaskId) -> &mut TaskNow {
        touch(&mut self.tasks, id, TaskNow::default)
    }

    /// Changes the thread that an event is recorded under.
    fn change_thread(&mut self, spine: &Spine, recorded: &Recorded, change: impl FnOnce(&mut ThreadNow)) {
        let Some(id) = &recorded.thread else { return };
        change(touch(&mut self.threads, id, || match spine.threads.get(id) {
            Some(head) => ThreadNow { messages: head.messages, turn: head.turn, ..ThreadNow::default() },
            None => ThreadNow::default(),
        }));
    }

    fn receive(&mut self, spine: &Spine, envelope: &Envelope) {
        if envelope.to.is_user() {
            return;
        }
        let received = &mut self.touch_agent(spine, &envelope.to).received;
        *received = (received.0 + 1, received.1 + envelope.payload.text.len());
        let task = self.touch_task(&envelope.task_id);
        task.turns += 1;
        if envelope.reply_to == ReplyTo::Nobody {
            task.sent.push((envelope.from.clone(), envelope.to.clone()));
        }
    }

    /// The first entry that differs from what `evolve` makes of the events.
    #[cfg(debug_assertions)]
    pub(super) fn differs_from_evolve(&self, spine: &Spine, events: &[Arc<Recorded>]) -> Option<String> {
        let mut after = spine.clone();
        events.iter().for_each(|recorded| after.evolve(recorded));
        let agents = self.agents.iter().filter(|(id, now)| match after.agents.get(id) {
            Some(agent) => {
                let termination = agent.termination.as_deref().map(Dismissal::from);
                (agent.turn, termination, agent.dead_letters) != (now.turn, now.termination, now.dead_letters)
                    || now.is_terminated
            }
            None => !now.is_terminated,
        });
        let threads = self.threads.iter().filter(|(id, now)| {
            let head = after.threads.get(id);
            head.is_some_and(|head| (head.messages, head.turn) != (now.messages, now.turn))
        });
        let is_open = |id: &EffectId| after.open_effect(*id).is_some();
        let effects = self.effects.iter().filter(|(id, open)| is_open(id) != (*open && !self.settled.contains(&id.turn)));
        let settled = self.settled.iter().filter(|id| after.turns.contains_key(id));
        let roles = self.roles.iter().filter(|id| !after.roles.contains_key(*id));
        let pins = self.pins.iter().rev().take(1).filter(|(tool, pin)| after.pins.get(tool) != Some(pin));
        let mut differing = agents
            .map(|(id, _)| format!("agent {id}"))
            .chain(threads.map(|(id, _)| format!("thread {id}")))
            .chain(effects.map(|(id, _)| format!("effect {id}")))
            .chain(settled.map(|id| format!("turn {id}")))
            .chain(roles.map(|id| format!("role {id}")))
            .chain(pins.map(|(tool, _)| format!("pin of {tool}")));
        differing.next()
    }
}

impl From<&crate::PendingTermination> for Dismissal {
    fn from(termination: &crate::PendingTermination) -> Self {
        Self { detach: termination.detach, waiter: termination.waiter }
    }
}
