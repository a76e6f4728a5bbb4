//! The state that a society keeps in memory: organisation, inboxes, open turns and waits, and the head of each thread.
//!
//! The texts of threads stay in the log. Inbox entries are held here, because the next turn needs them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::id::names;
use crate::idle::MissedLinks;
use crate::table::Table;
use crate::{
    Account, AgentId, Allowed, Behaviour, BudgetScope, Budgets, Call, Catalogue, Cause, CodeVersion, CodeVersions,
    Conversation, Conversations, Digest, Effect, EffectClass, EffectId, Failure, FailureCode, Inbox, InquiryId,
    LastingApproval, Limits, Memories, MetaPath, OpenInquiry, Origin, PersonId, Phase, ReplyTo, Requests, Reserved,
    ReusableResults, Role, RoleId, Ruling, Seq, Spent, SubThreadPath, TaskActivity, TaskId, ThreadId, Timestamp, Trails,
    TurnId, Wanted,
};

/// The version of the serialised spine. Raise it with every change here, so that old snapshots are ignored.
pub const SPINE_VERSION: u32 = 18;

/// The folded state of a society.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Spine {
    /// The last event folded in.
    pub seq: Seq,
    /// The seed of the society's ids.
    pub seed: u64,
    /// The seeds before each fork, oldest first.
    #[serde(default)]
    pub eras: Arc<Vec<Era>>,
    /// The limits of the society.
    pub limits: Limits,
    /// The newest versions of behaviours, without those at version 1.
    pub versions: Arc<CodeVersions>,
    /// The budgets for model calls.
    pub budgets: Arc<Budgets>,
    /// The accounts of all who spent anything. Those of requests are removed with their answers.
    pub ledger: FxHashMap<BudgetScope, Account>,
    /// The lasting approvals of tools.
    pub allowed: Vec<Allowed>,
    /// The definitions of server tools at their first use, or since a person approved a change.
    pub pins: BTreeMap<Arc<str>, Pin>,
    /// Which outside content the contexts of requests and agents contain.
    pub trails: Trails,
    /// The results that may answer identical calls.
    pub reusable: ReusableResults,
    /// The digests of tool lists whose names the log already has, newest last.
    pub tool_lists: VecDeque<Digest>,
    /// All roles.
    pub roles: BTreeMap<RoleId, Arc<Role>>,
    /// Who created each role, and when.
    pub founders: BTreeMap<RoleId, Founder>,
    /// All agents except `user`.
    pub agents: Table<AgentId, Agent>,
    /// The conversations, by their last message. Not serialised: the agents have it.
    #[serde(skip)]
    pub conversations: Conversations,
    /// The terminated agents.
    pub terminated: Table<AgentId, Termination>,
    /// When agents spawned agents within the last minute.
    pub spawned: VecDeque<Timestamp>,
    /// The counters of each request in progress.
    pub activities: FxHashMap<TaskId, TaskActivity>,
    /// The head of each thread that has events.
    pub threads: Table<ThreadId, Head>,
    /// Whether idle entries of these tables may be in the store.
    #[serde(default)]
    pub(crate) has_idle: bool,
    /// What the conversations of each person have spent that are in the store.
    #[serde(default)]
    pub(crate) unloaded_spent: BTreeMap<PersonId, Spent>,
    #[serde(skip)]
    pub(crate) missed_links: MissedLinks,
    /// The turns that are not settled, oldest first.
    pub turns: BTreeMap<TurnId, Box<Turn>>,
    /// The requests with idempotency keys that were done.
    #[serde(default)]
    pub requests: Requests,
    /// The artifacts that the log names.
    pub artifacts: Catalogue,
    /// What agents remember across conversations.
    pub memories: Memories,
    /// The conversations that are being erased, with the events that say so.
    #[serde(default)]
    pub erasing: BTreeMap<AgentId, Seq>,
    /// The open questions of running calls.
    pub inquiries: BTreeMap<InquiryId, OpenInquiry>,
    /// The newest dead-lettered messages, newest last.
    pub dead_letters: VecDeque<DeadLetter>,
    /// The positions of the newest plans, one for each request and thread.
    pub plans: VecDeque<PlanRef>,
}

/// The definition of a server tool at its first use, or since a person approved a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The digest of the definition.
    pub identity: Arc<str>,
    /// The definition as text.
    pub definition: Arc<str>,
}

/// A message that was given up: its turn crashed again and again, or failed while nobody waited for its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// The receiver of the message.
    pub agent: AgentId,
    /// The request that it belongs to.
    pub task: TaskId,
    /// The turn that failed; its first event has the text.
    pub turn: TurnId,
    /// Why it failed, or the last crash.
    pub failure: Failure,
    /// When it was dead-lettered.
    pub at: Timestamp,
    /// Whether it needs no more attention: somebody waited for the result and got the failure, the agent has since ended a turn
    /// of the same request with a response, or the person has written about the request again.
    #[serde(default)]
    pub handled: bool,
}

/// The position of a plan in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRef {
    /// The request that it is for.
    pub task: TaskId,
    /// The agent that made it.
    pub agent: AgentId,
    /// The thread that it belongs to.
    pub thread: ThreadId,
    /// The event that set it last.
    pub seq: Seq,
}

/// The time before a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Era {
    /// The seed of ids in that time.
    pub seed: u64,
    /// The event of the fork.
    pub ended: Seq,
}

/// An agent: a role, a parent, an inbox. The struct is small because a society may have very many idle agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// The role of the agent.
    pub role: RoleId,
    /// The parent; none for root and for the agents of conversations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// When it was created.
    pub created_at: Timestamp,
    /// The turn that is open in its main thread. An agent without one has an empty inbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Its inbox; none when it is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox: Option<Box<Inbox>>,
    /// Set when it is to be terminated as soon as its inbox is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination: Option<Box<PendingTermination>>,
    /// Its conversation, if a person talks to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Box<Conversation>>,
    /// How many of its last tasks in a row crashed its code and were dead-lettered.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dead_letters: u8,
    /// Whether an agent spawned it, and so chose its name.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by_agent: bool,
    /// The roles of terminated agents above it. Their tool limits still apply to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Box<[RoleId]>>,
}

/// Who created a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Founder {
    /// An agent, or the person.
    pub created_by: AgentId,
    /// When it was created.
    pub created_at: Timestamp,
    /// The person that the agent worked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<PersonId>,
}

/// The pending termination of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingTermination {
    /// Who ordered it.
    pub caller: AgentId,
    /// The reason, for the record.
    pub reason: String,
    /// Whether its children move to its parent instead of being terminated.
    pub detach: bool,
    /// The effect that waits for the termination.
    pub waiter: Option<EffectId>,
}

/// The record of a terminated agent (R208).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Termination {
    /// The role that it had.
    pub role: RoleId,
    /// The parent that it had.
    pub parent: Option<AgentId>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Who ordered the termination.
    pub terminated_by: AgentId,
    /// When it was terminated.
    pub terminated_at: Timestamp,
    /// The reason, for the record.
    pub reason: String,
    /// The person whose conversation it was, if it was that of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<PersonId>,
    /// Whether the content of the conversation has been erased, or is about to be.
    #[serde(default, skip_serializing_if = "is_default")]
    pub erased: bool,
}

/// The state of a thread without its messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The agent that it belongs to.
    pub agent: AgentId,
    /// The message that it hangs in; none for a main thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Box<Place>>,
    /// How many messages it has.
    pub messages: u32,
    /// The current phase.
    #[serde(default, skip_serializing_if = "is_default")]
    pub phase: Phase,
    /// The phase suggested for its next task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<Phase>,
    /// The turn that is open in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Its compressions; none for most threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Box<Compressions>>,
    /// The sub-threads in its messages.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<u32, Vec<(MetaPath, ThreadId)>>,
    /// Sub-threads in messages before this index may be in the store.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unloaded_before: u32,
}

/// Skips default values: they would make up most of the snapshot of a large society.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The compressions of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Compressions {
    /// The active compressions, each on top of the one before: its event, and the first message that is shown.
    pub cuts: Vec<(Seq, u32)>,
    /// How many attempts in a row failed.
    pub failed: u32,
}

/// The place of a sub-thread in its parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// The parent thread.
    pub parent: ThreadId,
    /// The index of the message in the parent.
    pub index: u32,
    /// The path in the meta of that message.
    pub slot: MetaPath,
}

/// One durable run of a handler, not yet settled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The agent that runs it.
    pub agent: AgentId,
    /// The thread that it runs in.
    pub thread: ThreadId,
    /// The name of the code that runs it.
    pub behaviour: Behaviour,
    /// The version of that code.
    pub version: CodeVersion,
    /// The request that it belongs to.
    pub task: TaskId,
    /// How many messages from agent to agent led to it.
    pub hops: u32,
    /// The role as it was when the turn began, if it has changed since.
    pub role: Option<Arc<Role>>,
    /// Where the task came from.
    pub origin: Origin,
    /// Who waits for its result.
    pub reply_to: ReplyTo,
    /// The message of another agent that it goes back to, if nobody waits for its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Box<Cause>>,
    /// The number of its next effect.
    pub next: u32,
    /// Its effects without a result.
    pub open: Vec<OpenEffect>,
    /// Whether an answer has arrived while other waits are open, and the turn has not noted since that it only waits. Such a
    /// turn is owed a run although all its open effects are waits: it may act on the answer before the others arrive.
    pub has_unread_answers: bool,
    /// Whether it may run.
    pub state: TurnState,
    /// Whether it is making a plan: it has set one without steps.
    pub planning: bool,
    /// How often its code has panicked.
    pub crashes: u8,
    /// How many processes have run it since it last made progress.
    pub revived: u8,
    /// Placeholder messages whose sub-threads have no result yet: the index of each, and the prefix of the error text that it
    /// gets if the turn fails.
    #[serde(default)]
    pub held: Vec<(u32, Arc<str>)>,
}

/// Whether a turn may run. What it waits for is in [`Turn::open`]; the two are independent, because answers arrive for a parked
/// turn too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TurnState {
    /// It may run.
    Ready,
    /// It may run from this time on: its code crashed, or other suspects run before it.
    Delayed(Timestamp),
    /// It may not run until a person acts. It holds no reservations meanwhile.
    Parked(Box<Failure>),
}

/// An effect without a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenEffect {
    /// Its number within the turn.
    pub n: u32,
    /// The kind of effect, with what other rules need of it.
    pub kind: OpenKind,
    /// How far it has got.
    pub stage: Stage,
    /// When the wait times out.
    pub deadline: Option<Timestamp>,
    /// For a call whose result may be reused: its key, and the position at which it was declared.
    pub recallable: Option<Box<(Digest, Seq)>>,
    /// Whether it is a call of a tool that runs inside the turn.
    pub own: bool,
}

/// The kind of an open effect, with the data that the rules need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpenKind {
    /// A model call, and what is reserved for it.
    Model(Box<Reserved>),
    /// A request to a person for more budget, for these accounts.
    Grant(Box<[BudgetScope]>),
    /// A tool call.
    Tool(EffectClass),
    /// A question to an agent.
    Ask(AgentId),
    /// An approval by a person, and what `always` would cover; none if they are asked each time.
    Approval(Option<Box<LastingApproval>>),
    /// A question to a person that needs more than a yes or no.
    Question(Box<Wanted>),
    /// The termination of a child.
    Terminate(AgentId),
    /// A wait for a point in time.
    Sleep,
    /// A unit in a sub-thread.
    Unit(ThreadId),
    /// Storing an artifact.
    Keep,
}

impl OpenKind {
    /// The accounts that it refers to.
    pub(crate) fn scopes(&self) -> &[BudgetScope] {
        match self {
            Self::Model(reserved) => &reserved.scopes,
            Self::Grant(scopes) => scopes,
            _ => &[],
        }
    }
}

/// How far an open effect has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// The turn itself works on it.
    Working,
    /// The answer will arrive through the log.
    Waiting,
    /// A write with an intent but no result; a person must decide.
    InDoubt,
    /// They decided to make it again.
    Cleared,
}

impl Spine {
    /// Reads a serialised spine; none if it cannot be parsed. Equal names share one allocation, as in a spine that was folded.
    pub fn read(saved: &[u8]) -> Option<Self> {
        let mut spine: Self = names::sharing(|| serde_json::from_slice(saved)).ok()?;
        let listed = |(id, agent): (&AgentId, &Agent)| Some((agent.conversation.as_deref()?.place(), id.clone()));
        spine.conversations = Conversations::of(spine.agents.iter().filter_map(listed));
        spine.turns.values_mut().for_each(|turn| turn.open.shrink_to_fit());
        if spine.has_idle {
            spine.set_partial();
        }
        Some(spine)
    }

    /// The seed of ids at a position of the log.
    pub fn seed_at(&self, seq: Seq) -> u64 {
        self.eras.iter().find(|era| seq < era.ended).map_or(self.seed, |era| era.seed)
    }

    /// Whether the society is founded.
    pub fn is_founded(&self) -> bool {
        self.seq > Seq(0)
    }

    /// The thread at `path` below `main`, if there is one.
    pub fn resolve(&self, main: &ThreadId, path: &SubThreadPath) -> Option<ThreadId> {
        path.segments().iter().try_fold(main.clone(), |thread, segment| {
            let links = self.links(&thread, segment.message_index);
            links.iter().find(|(slot, _)| *slot == segment.meta_path).map(|(_, child)| child.clone())
        })
    }

    /// A thread's main thread, and its address from there.
    pub fn address(&self, thread: &ThreadId) -> (ThreadId, SubThreadPath) {
        let place = self.threads.get(thread).and_then(|head| head.place.as_deref());
        match place {
            None => (thread.clone(), SubThreadPath::main()),
            Some(Place { parent, index, slot }) => {
                let (main, above) = self.address(parent);
                (main, above.child_at(*index, slot.clone()))
            }
        }
    }

    /// The open effect with this id.
    pub fn open_effect(&self, id: EffectId) -> Option<&OpenEffect> {
        self.turns.get(&id.turn)?.open.iter().find(|open| open.n == id.n)
    }

    /// Whether a running call waits for an answer of the person.
    pub fn is_asking(&self, call: EffectId) -> bool {
        let own = InquiryId { call, seq: Seq(0) }..=InquiryId { call, seq: Seq(u64::MAX) };
        self.inquiries.range(own).any(|(_, open)| matches!(open, OpenInquiry::Person { .. }))
    }

    /// Whether a lasting approval covers this call.
    pub fn is_allowed(&self, call: &Call, agent: &AgentId, task: &TaskId) -> bool {
        self.allowed.iter().any(|allowed| {
            let is_same = allowed.tool == call.tool && (allowed.identity.is_none() || allowed.identity == call.identity);
            is_same
                && self.is_for(allowed, agent, task)
                && allowed.matching.as_ref().is_none_or(|it| it.covers(&call.arguments))
        })
    }

    /// Whether a lasting approval lets a server call a model (MCP sampling).
    pub fn may_sample(&self, what: &str, agent: &AgentId, task: &TaskId) -> bool {
        self.allowed.iter().any(|allowed| *allowed.tool == *what && self.is_for(allowed, agent, task))
    }

    fn is_for(&self, allowed: &Allowed, agent: &AgentId, task: &TaskId) -> bool {
        allowed.agent.as_ref().is_none_or(|it| it == agent)
            && allowed.task.as_ref().is_none_or(|it| it == task)
            && (allowed.person.is_none() || allowed.person.as_ref() == self.person(agent))
    }

    /// How far below the top of its tree an agent is.
    pub fn depth(&self, agent: &AgentId) -> usize {
        std::iter::successors(Some(agent), |id| self.agents.get(*id)?.parent.as_ref()).count() - 1
    }

    /// The children of an agent, in the order of their names.
    pub fn children(&self, agent: &AgentId) -> Vec<&AgentId> {
        let mut children: Vec<_> =
            self.agents.iter().filter(|(_, child)| child.parent.as_ref() == Some(agent)).map(|(id, _)| id).collect();
        children.sort();
        children
    }

    /// Resolves a name among the agents that somebody reaches: an agent of that name, or the only agent of the role of that name
    /// (D30). Agents that are being terminated are ignored; the agents of conversations are found only by their exact names.
    pub fn addressee(&self, name: &str, reaches: impl Fn(&AgentId) -> bool) -> Option<&AgentId> {
        let known = AgentId::from(name.trim());
        if let Some((id, agent)) = self.agents.get_key_value(&known)
            && agent.termination.is_none()
            && reaches(id)
        {
            return Some(id);
        }
        let wanted = name.trim().to_lowercase();
        let is_meant = |id: &AgentId, agent: &Agent| {
            agent.termination.is_none() && (agent.conversation.is_none() || id.as_str() == AgentId::ROOT) && reaches(id)
        };
        let staying = || self.agents.iter().filter(|(id, agent)| is_meant(id, agent));
        if let Some((id, _)) = staying().find(|(id, _)| id.as_str().to_lowercase() == wanted) {
            return Some(id);
        }
        let is_named = |id: &crate::RoleId| {
            let role = self.roles.get(id);
            id.as_str().to_lowercase() == wanted || role.is_some_and(|role| role.name.to_lowercase() == wanted)
        };
        let mut holders = staying().filter(|(_, agent)| is_named(&agent.role)).map(|(id, _)| id);
        holders.next().filter(|_| holders.next().is_none())
    }

    /// The roles that limit which tools an agent may use: its own and those of all agents above it, so that no agent gains a
    /// tool by spawning another.
    pub fn limiting_roles(&self, agent: &AgentId) -> Vec<Arc<Role>> {
        let mut limiting_roles: Vec<Arc<Role>> = Vec::new();
        let above = std::iter::successors(self.agents.get(agent), |agent| self.agents.get(agent.parent.as_ref()?));
        for id in above.flat_map(|agent| std::iter::once(&agent.role).chain(agent.within.iter().flatten())) {
            let role = self.roles.get(id).filter(|role| role.tools.is_some());
            limiting_roles.extend(role.filter(|role| limiting_roles.iter().all(|known| known.id != role.id)).cloned());
        }
        limiting_roles
    }

    /// The role that applies to a turn.
    pub fn role_of<'a>(&'a self, turn: &'a Turn) -> Option<&'a Arc<Role>> {
        turn.role.as_ref().or_else(|| self.roles.get(&self.agents.get(&turn.agent)?.role))
    }

    /// The accounts that an agent's calls for a request are charged to.
    pub fn accounts(&self, agent: &AgentId, task: &TaskId) -> Vec<BudgetScope> {
        let mut scopes = Vec::with_capacity(8);
        scopes.extend([BudgetScope::Society, BudgetScope::Task(task.clone())]);
        scopes.extend(self.agents.get(agent).map(|agent| BudgetScope::Role(agent.role.clone())));
        let parent = |id: &AgentId| self.agents.get(id)?.parent.clone();
        scopes.extend(std::iter::successors(Some(agent.clone()), parent).map(BudgetScope::Agent));
        scopes
    }

    /// How many entries wait in all inboxes (`bus.getPendingCount`).
    pub fn pending(&self) -> usize {
        self.agents.values().filter_map(|agent| agent.inbox.as_ref()).map(|inbox| inbox.entries.len()).sum()
    }
}

/// Conversations.
impl Spine {
    /// The conversation of an agent, if a person talks to it.
    pub fn conversation(&self, agent: &AgentId) -> Option<&Conversation> {
        self.agents.get(agent)?.conversation.as_deref()
    }

    /// The name of an agent for people: that of a conversation's agent is the name of whom they talk to.
    pub fn shown_name<'a>(&'a self, id: &'a AgentId) -> &'a str {
        let is_roots = |role: &RoleId| self.agents.get(&AgentId::root()).is_some_and(|root| root.role == *role);
        match self.agents.get(id).filter(|agent| agent.conversation.is_some()) {
            Some(agent) if is_roots(&agent.role) => AgentId::ROOT,
            Some(agent) => agent.role.as_str(),
            None => id.as_str(),
        }
    }

    /// How many agents there are without those of conversations; root, which is the first conversation, counts.
    pub fn staff(&self) -> usize {
        self.agents.len() + 1 - self.conversations.len()
    }
}

impl Turn {
    /// Whether it is parked because its code is not registered. It continues when it is.
    pub fn lacks_code(&self) -> bool {
        self.parked().is_some_and(|why| matches!(why.code, FailureCode::NoBehaviour | FailureCode::VersionMissing))
    }

    /// Why it is parked, if it is.
    pub fn parked(&self) -> Option<&Failure> {
        match &self.state {
            TurnState::Parked(reason) => Some(reason),
            TurnState::Ready | TurnState::Delayed(_) => None,
        }
    }

    /// Whether it may not run until a person acts.
    pub fn is_parked(&self) -> bool {
        self.parked().is_some()
    }

    /// Before which time it may not run.
    pub fn delayed_until(&self) -> Option<Timestamp> {
        match self.state {
            TurnState::Delayed(until) => Some(until),
            TurnState::Ready | TurnState::Parked(_) => None,
        }
    }

    /// Whether it should be running now: not parked, and not only waiting.
    ///
    /// This is the whole recovery rule: a turn without open effects runs its handler, one with an effect in stage `Working`
    /// or `Cleared` has something to do itself, and one with unread answers may act on them. Only a turn whose open effects
    /// all wait for the log may leave memory.
    pub fn is_owed(&self) -> bool {
        let waits = |open: &OpenEffect| matches!(open.stage, Stage::Waiting | Stage::InDoubt);
        // A tool that runs inside the turn works through other effects of the turn, so only those count.
        let mut others = self.open.iter().filter(|open| !open.own).peekable();
        !self.is_parked() && (self.has_unread_answers || others.peek().is_none() || !others.all(waits))
    }
}

impl Head {
    /// The head of a thread without events.
    pub fn new(agent: AgentId) -> Self {
        Self {
            agent,
            place: None,
            messages: 0,
            phase: Phase::default(),
            suggestion: None,
            turn: None,
            context: None,
            links: BTreeMap::new(),
            unloaded_before: 0,
        }
    }

    /// Adds a sub-thread. Those of one message are ordered by name, whenever they were loaded.
    pub(crate) fn link(&mut self, index: u32, slot: MetaPath, child: ThreadId) {
        let links = self.links.entry(index).or_default();
        let at = links.partition_point(|(_, other)| *other < child);
        links.insert(at, (slot, child));
    }
}

impl OpenEffect {
    /// Whether a person must say yes or no to it; a question that needs more is none.
    pub fn is_approval(&self) -> bool {
        matches!(self.kind, OpenKind::Approval(_) | OpenKind::Grant(_)) || self.stage == Stage::InDoubt
    }

    /// Whether it is a call that may change what other calls read.
    pub(crate) fn may_write(&self) -> bool {
        matches!(&self.kind, OpenKind::Tool(class) if *class != EffectClass::Read) && !self.own
    }

    /// An effect that has just been declared.
    pub(crate) fn new(n: u32, effect: &Effect, scopes: Vec<BudgetScope>, at: Seq) -> Self {
        let kind = match effect {
            Effect::Model { reserve, .. } => OpenKind::Model(Box::new(Reserved { amount: *reserve, scopes })),
            Effect::Grant { lacking, .. } => OpenKind::Grant(lacking.iter().map(|level| level.scope.clone()).collect()),
            Effect::Tool(call) => OpenKind::Tool(call.class),
            Effect::Ask { envelope, .. } => OpenKind::Ask(envelope.to.clone()),
            Effect::Approval { wanted, .. } if !wanted.is_agreement() => OpenKind::Question(Box::new(wanted.clone())),
            Effect::Approval { call, .. } => {
                let lasting = call.as_ref().filter(|call| !matches!(call.ruling, Ruling::AskEach(_)));
                OpenKind::Approval(lasting.map(|call| Box::new(LastingApproval::of(call))))
            }
            Effect::Terminate { agent, .. } => OpenKind::Terminate(agent.clone()),
            Effect::Sleep { .. } => OpenKind::Sleep,
            Effect::Keep(_) => OpenKind::Keep,
            Effect::Unit { thread, .. } => OpenKind::Unit(thread.clone()),
        };
        let stage = if effect.is_wait() { Stage::Waiting } else { Stage::Working };
        let (recallable, own) = match effect {
            Effect::Tool(call) => (call.key.filter(|_| call.from.is_none()).map(|key| Box::new((key, at))), call.own),
            _ => (None, false),
        };
        Self { n, kind, stage, deadline: effect.deadline(), recallable, own }
    }
}
