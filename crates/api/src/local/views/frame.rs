//! The part that all views have: sums, agents, open turns, and what waits for a person.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use polis_domain::{
    Account, AgentId, Allowed, BudgetScope, InboxEntry, Role, Spent, Spine, TaskId, Timestamp, TurnId, Visibility,
};
use polis_engine::Society;

use super::super::agents::listed_agents;
use super::super::approvals::open as open_approvals;
use super::collector::EventCollector;
use super::shorten::brief;
use crate::{AgentRecord, ApiError, Dismissal, EffectStage, InboxRecord, View};

/// The agents that every view has.
pub(super) const AGENTS: usize = 200;

/// The most agents, those of conversations included, that are looked through for a frame.
const SCANNED_AGENTS: usize = 5_000;

/// The entries of an inbox that a view lists.
const INBOX: usize = 20;

/// The open turns that a view has beside those that it is about.
const OPEN_TURNS: usize = 60;

/// The turns that wait for a person whose decisions a view has.
const ASKING_TURNS: usize = 100;

/// The events that are read for the open turns.
const MAX_EVENTS: usize = 10_000;

/// The newest artifacts that a view lists.
const ARTIFACTS: usize = 60;

/// The bytes of decisions that a view has; the first one always.
const WAITING_BYTES: usize = 192 * 1024;

/// The part of a view that comes from the spine, before the log is read.
pub(super) struct ViewFrame {
    pub(super) view: View,
    /// The roles of its agents. They are cut outside of the society's actor, because that takes time.
    roles: Vec<Arc<Role>>,
    /// Open turns that are described: whether each waits for a person.
    open: Vec<(TurnId, bool)>,
}

/// Which agents a frame has.
pub(super) enum Agents<'a> {
    /// Those of a small society; of a large one only those at work and this one.
    About(Option<&'a AgentId>),
    /// A page of all, terminated ones included, after a cursor.
    Page(Option<&'a str>, usize),
}

impl ViewFrame {
    /// The frame with these agents.
    pub(super) fn of(spine: &Spine, agents: &Agents<'_>, visibility: &Visibility) -> Self {
        let (listed, next) = listed(spine, agents, visibility);
        let roles: BTreeSet<_> = listed.iter().map(|agent| &agent.role).collect();
        let roles = roles.into_iter().filter_map(|role| spine.roles.get(role)).cloned().collect();
        let waiting = open_approvals(spine, visibility, false);
        let asking: BTreeSet<TurnId> = waiting.iter().map(|open| open.id.turn()).collect();
        let turns = || spine.turns.iter().filter(|(_, turn)| visibility.agent(spine, &turn.agent));
        let running = turns().rev().map(|(id, _)| id).filter(|id| !asking.contains(id)).take(OPEN_TURNS);
        let open = asking.iter().take(ASKING_TURNS).map(|id| (*id, true)).chain(running.map(|id| (*id, false))).collect();
        let mut tasks = HashMap::<TaskId, Vec<TurnId>>::new();
        for (id, turn) in turns() {
            tasks.entry(turn.task.clone()).or_default().push(*id);
        }
        let mut artifacts: Vec<_> =
            spine.artifacts.entries().iter().rev().filter(|it| visibility.artifact(it)).take(ARTIFACTS).cloned().collect();
        artifacts.reverse();
        let is_own = |allowed: &&Allowed| *visibility == Visibility::Everything || visibility.has(allowed.person.as_ref());
        let view = View {
            seq: spine.seq,
            spent: spent(spine, visibility),
            allowed: spine.allowed.iter().filter(is_own).cloned().collect(),
            agent_count: if *visibility == Visibility::Everything { spine.staff() } else { listed.len() },
            waiting_count: waiting.len(),
            agents: listed,
            artifacts,
            next,
            open: tasks,
            ..View::default()
        };
        Self { view, roles, open }
    }

    /// Whether an agent is listed. Root comes with the first request.
    pub(super) fn has_agent(&self, agent: &AgentId) -> bool {
        *agent == AgentId::root() || self.view.agents.iter().any(|listed| listed.id == *agent)
    }

    /// Reads the open turns and returns the view.
    pub(super) async fn finish(self, society: &Society) -> Result<View, ApiError> {
        let Self { mut view, roles, open } = self;
        view.roles = roles.iter().map(|role| brief(&**role)).collect();
        let mut collected = EventCollector::new(society, view.seq, MAX_EVENTS);
        for (turn, asks) in &open {
            if *asks {
                collected.turn(*turn).await?;
            } else {
                collected.open_turn(*turn).await?;
            }
        }
        let mut records = collected.fold();
        records.effects.retain(|_, effect| !matches!(effect.stage, EffectStage::Ended | EffectStage::Void));
        for turn in records.turns.values_mut() {
            let all = turn.effects.len();
            turn.effects.retain(|id| records.effects.contains_key(id));
            (turn.omitted, turn.brief) = (all - turn.effects.len(), true);
            turn.task = brief(&turn.task);
        }
        records.effects.values_mut().for_each(|effect| *effect = brief(effect));
        for thread in records.threads.values_mut() {
            thread.items.clear();
            thread.messages.clear();
            thread.meta = brief(&thread.meta);
        }
        let mut bytes = 0;
        for waiting in records.waiting.into_values() {
            bytes += serde_json::to_string(&waiting).map_or(0, |text| text.len());
            if bytes > WAITING_BYTES && !view.waiting.is_empty() {
                break;
            }
            view.waiting.push(waiting);
        }
        view.waiting.sort_by_key(|waiting| waiting.at);
        view.turns = records.turns.into_values().collect();
        view.effects = records.effects.into_values().collect();
        view.threads = records.threads.into_values().collect();
        Ok(view)
    }
}

/// The agents of a frame, in the order in which they were created, and the cursor of the next page.
fn listed(spine: &Spine, agents: &Agents<'_>, visibility: &Visibility) -> (Vec<AgentRecord>, Option<String>) {
    let mut ids: Vec<&AgentId> = match agents {
        Agents::About(_) if spine.staff() <= AGENTS && spine.agents.len() <= SCANNED_AGENTS => {
            listed_agents(spine).map(|(id, _)| id).collect()
        }
        Agents::About(_) => {
            let busy: HashSet<&AgentId> = spine.turns.values().rev().take(AGENTS).map(|turn| &turn.agent).collect();
            busy.into_iter().chain(spine.agents.get_key_value(&AgentId::root()).map(|(id, _)| id)).collect()
        }
        Agents::Page(..) => listed_agents(spine).map(|(id, _)| id).chain(spine.terminated.keys()).collect(),
    };
    if let Agents::About(Some(agent)) = agents
        && (spine.agents.contains_key(*agent) || spine.terminated.contains_key(*agent))
    {
        ids.push(agent);
    }
    ids.retain(|id| visibility.agent(spine, id));
    ids.sort_by_cached_key(|id| cursor(spine, id));
    ids.dedup();
    let (after, limit) = match agents {
        Agents::About(_) => (None, usize::MAX),
        Agents::Page(after, limit) => (*after, *limit),
    };
    let mut rest = ids.into_iter().filter(|id| after.is_none_or(|after| &*cursor(spine, id) > after));
    let page: Vec<&AgentId> = rest.by_ref().take(limit).collect();
    let next = rest.next().and_then(|_| page.last()).map(|id| cursor(spine, id));
    let own = own_spendings(spine, &page);
    (page.into_iter().filter_map(|id| record(spine, id, own.get(id).copied().unwrap_or_default())).collect(), next)
}

/// Sorts agents by when they were created; within a millisecond the one without a parent comes first.
fn cursor(spine: &Spine, id: &AgentId) -> String {
    let (at, parent) = match (spine.agents.get(id), spine.terminated.get(id)) {
        (Some(agent), _) => (agent.created_at, agent.parent.as_ref()),
        (None, Some(agent)) => (agent.created_at, agent.parent.as_ref()),
        (None, None) => (Timestamp(0), None),
    };
    format!("{:016}~{}~{id}", at.0, parent.map_or("", |parent| parent.as_str()))
}

fn record(spine: &Spine, id: &AgentId, spent: Spent) -> Option<AgentRecord> {
    if let Some(agent) = spine.terminated.get(id).filter(|_| !spine.agents.contains_key(id)) {
        return Some(AgentRecord {
            id: id.clone(),
            role: agent.role.clone(),
            parent: agent.parent.clone(),
            created_at: agent.created_at,
            inbox: Vec::new(),
            unlisted: 0,
            turn: None,
            dismissed: Some(Dismissal { caller: agent.terminated_by.clone(), reason: agent.reason.clone() }),
            terminated_at: Some(agent.terminated_at),
            spent,
        });
    }
    let agent = spine.agents.get(id)?;
    let entries = agent.inbox.as_ref().map(|inbox| &inbox.entries);
    let inbox = entries.into_iter().flatten().take(INBOX).map(|entry| InboxRecord {
        task: entry.task().clone(),
        envelope: match entry {
            InboxEntry::Envelope(envelope) => Some(envelope.clone()),
            InboxEntry::FollowUp { .. } => None,
        },
        at: None,
    });
    let dismissed = agent.termination.as_ref();
    Some(AgentRecord {
        id: id.clone(),
        role: agent.role.clone(),
        parent: agent.parent.clone(),
        created_at: agent.created_at,
        inbox: inbox.collect(),
        unlisted: entries.map_or(0, |entries| entries.len().saturating_sub(INBOX)),
        turn: agent.turn,
        dismissed: dismissed.map(|it| Dismissal { caller: it.caller.clone(), reason: it.reason.clone() }),
        terminated_at: None,
        spent,
    })
}

/// What was spent on models: in the whole society, or in the conversations of one person.
fn spent(spine: &Spine, visibility: &Visibility) -> Spent {
    let Visibility::Person(person) = visibility else {
        return spine.ledger.get(&BudgetScope::Society).map(|account| account.spent).unwrap_or_default();
    };
    let own = |(scope, account): (&BudgetScope, &Account)| match scope {
        BudgetScope::Agent(id) => (spine.top(id) == id && visibility.agent(spine, id)).then_some(account.spent),
        _ => None,
    };
    spine.ledger.iter().filter_map(own).fold(spine.unloaded_spent(person), Spent::plus)
}

/// What each of these agents spent itself. An account also has what the agents below spent.
fn own_spendings(spine: &Spine, agents: &[&AgentId]) -> HashMap<AgentId, Spent> {
    let listed_ids: HashSet<&AgentId> = agents.iter().copied().collect();
    let mut own: HashMap<AgentId, Spent> = HashMap::new();
    let mut below: HashMap<&AgentId, Spent> = HashMap::new();
    for (scope, account) in &spine.ledger {
        let BudgetScope::Agent(id) = scope else { continue };
        if listed_ids.contains(id) {
            own.insert(id.clone(), account.spent);
        }
        let parent = spine.agents.get(id).and_then(|agent| agent.parent.as_ref());
        let parent = parent.or_else(|| spine.terminated.get(id)?.parent.as_ref());
        if let Some(parent) = parent.filter(|parent| listed_ids.contains(parent)) {
            let sum = below.entry(parent).or_default();
            *sum = sum.plus(account.spent);
        }
    }
    for (id, spent) in own.iter_mut() {
        *spent = spent.minus(below.get(id).copied().unwrap_or_default());
    }
    own
}
