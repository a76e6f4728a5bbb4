//! What lives in memory for a society: org, inboxes, open turns and waits, and the head of each thread.
//!
//! The texts of threads stay in the log. What waits in an inbox is held here, because that is what the next turn needs.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::id::names;
use crate::{
    Account, AgentId, Allowed, Budgets, Call, Catalogue, Digest, Effect, EffectClass, EffectId, Envelope, Failure, InquiryId,
    Known, Limits, Matching, MetaPath, OpenInquiry, Origin, Phase, ReadTool, ReplyTo, Reserved, Role, RoleId, Ruling, Scope,
    Seq, SubThreadPath, Task, TaskId, ThreadId, Timestamp, Trails, TurnId, Wanted,
};

/// The shape of a saved spine; raise it with every change here, so that old snapshots are folded anew.
pub const SPINE_VERSION: u32 = 10;

/// The folded state of a society.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Spine {
    /// The last event folded in.
    pub seq: Seq,
    /// Where the society's ids come from.
    pub seed: u64,
    /// Where they came from before each fork, oldest first; nothing for most.
    #[serde(default)]
    pub eras: Arc<Vec<Era>>,
    /// What holds in it.
    pub limits: Limits,
    /// What may be spent.
    pub budgets: Arc<Budgets>,
    /// What was spent, of everybody who spent anything; of requests, while they are not answered.
    pub ledger: FxHashMap<Scope, Account>,
    /// The tools that need not be asked about any more.
    pub allowed: Vec<Allowed>,
    /// The tools of servers that were used, as they were defined then.
    pub pins: BTreeMap<Arc<str>, Pin>,
    /// What the contexts of requests and agents hold.
    pub trails: Trails,
    /// The results that may answer identical calls.
    pub known: Known,
    /// The lists of tools that the log has named, newest last.
    pub tool_lists: VecDeque<Digest>,
    /// All roles.
    pub roles: BTreeMap<RoleId, Arc<Role>>,
    /// Who made each role, and when.
    pub founders: BTreeMap<RoleId, Founder>,
    /// All agents but the person's endpoint.
    pub agents: FxHashMap<AgentId, Agent>,
    /// The agents that are gone.
    pub terminated: BTreeMap<AgentId, Termination>,
    /// When agents made agents, in the last minute of it.
    pub spawned: VecDeque<Timestamp>,
    /// What is done for each request that is under way.
    pub efforts: FxHashMap<TaskId, Effort>,
    /// The head of each thread in which something happened.
    pub threads: FxHashMap<ThreadId, Head>,
    /// The turns that are not settled, oldest first.
    pub turns: BTreeMap<TurnId, Box<Turn>>,
    /// The artifacts that the log names.
    pub artifacts: Catalogue,
    /// What running calls have asked and nobody has answered.
    pub inquiries: BTreeMap<InquiryId, OpenInquiry>,
    /// What was set aside because it broke agents down, newest last.
    pub dead_letters: VecDeque<DeadLetter>,
    /// Where the newest plans stand in the log, one for each request and thread.
    pub plans: VecDeque<Planned>,
}

/// A tool of a server, as it was defined when it was first used or when a person agreed to its change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// Tells this definition from any other.
    pub identity: Arc<str>,
    /// The definition in words.
    pub definition: Arc<str>,
}

/// What a yes for always would cover.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The tool.
    pub tool: Arc<str>,
    /// Its definition, where it comes from a server.
    pub identity: Option<Arc<str>>,
    /// Calls like the one that is asked about.
    pub matching: Matching,
    /// The tools of its server that only read.
    pub reads: Vec<ReadTool>,
}

/// What an agent was asked and could not survive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// Whose it was.
    pub agent: AgentId,
    /// The request that it belongs to.
    pub task: TaskId,
    /// The turn that came to nothing; its first event has the text.
    pub turn: TurnId,
    /// How the turn broke down.
    pub failure: Failure,
    /// When it was set aside.
    pub at: Timestamp,
}

/// A plan, by its place in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// The request that it is for.
    pub task: TaskId,
    /// Whose it is.
    pub agent: AgentId,
    /// The thread that it stands in.
    pub thread: ThreadId,
    /// The event that set it last.
    pub seq: Seq,
}

/// What came before a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Era {
    /// Where ids came from.
    pub seed: u64,
    /// The fork.
    pub ended: Seq,
}

/// An agent: a role, a parent, an inbox. Kept small: a society may have very many that are idle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// Its role.
    pub role: RoleId,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// Since when it exists.
    pub created_at: Timestamp,
    /// The turn that is open in its main thread. An agent without one has an empty inbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// What waits for it, oldest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox: Option<Box<Inbox>>,
    /// Why it is about to go, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving: Option<Box<Leaving>>,
    /// How many of its last tasks in a row had to be set aside.
    #[serde(default, skip_serializing_if = "is_default")]
    pub set_aside: u8,
    /// Whether an agent made it, and so chose its name.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by_agent: bool,
    /// The roles of those above it that are gone; nothing for most. Their limits on tools still hold for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Box<[RoleId]>>,
}

/// What is done for a request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Effort {
    /// Turns since the person last wrote about it, those included that wait in inboxes.
    pub turns: u32,
    /// Of those, how many are not settled.
    pub open: u32,
    /// Model calls, by agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<AgentId, u32>,
    /// Messages from agent to agent since the person last wrote, by sender and receiver; no questions that are waited for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub messages: BTreeMap<AgentId, BTreeMap<AgentId, u32>>,
    /// Whether the person has been told, since they last wrote, that messages were stopped.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_reported: bool,
}

impl Effort {
    /// How many messages one agent has sent another.
    pub fn sent(&self, from: &AgentId, to: &AgentId) -> u32 {
        self.messages.get(from).and_then(|sent| sent.get(to)).copied().unwrap_or_default()
    }
}

/// Who made a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Founder {
    /// An agent, or the person.
    pub created_by: AgentId,
    /// When.
    pub created_at: Timestamp,
}

/// An agent that is about to go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaving {
    /// Who said so.
    pub caller: AgentId,
    /// Why.
    pub reason: String,
    /// Whether its children go to its parent.
    pub detach: bool,
    /// Who waits until it is gone.
    pub waiter: Option<EffectId>,
}

/// An agent that is gone (R208).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Termination {
    /// What it was.
    pub role: RoleId,
    /// Whose child it was.
    pub parent: Option<AgentId>,
    /// Since when it existed.
    pub created_at: Timestamp,
    /// Who said so.
    pub terminated_by: AgentId,
    /// When it went.
    pub terminated_at: Timestamp,
    /// Why.
    pub reason: String,
}

/// What waits for an agent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Inbox {
    /// Oldest first.
    pub entries: VecDeque<Due>,
    /// Bytes of text in them.
    pub bytes: usize,
}

/// One thing that an agent will turn to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Due {
    /// Somebody wrote.
    Envelope(Arc<Envelope>),
    /// Its own last response queued it.
    FollowUp {
        /// What to do.
        task: Task,
        /// Who still waits for an answer.
        reply_to: ReplyTo,
    },
}

/// Where a thread stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// Whose it is.
    pub agent: AgentId,
    /// Where it hangs; none for a main thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Box<Place>>,
    /// How many messages it has.
    pub messages: u32,
    /// Its phase.
    #[serde(default, skip_serializing_if = "is_default")]
    pub phase: Phase,
    /// The phase proposed for its next task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<Phase>,
    /// The turn that is open in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// What was compressed of it; nothing for most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Box<Context>>,
    /// The sub-threads in its messages.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<u32, Vec<(MetaPath, ThreadId)>>,
}

/// Whether it goes without saying: snapshots of large societies are mostly such fields.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What was compressed of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Context {
    /// The compressions that hold, each on top of the one before: its event, and the first message that is shown.
    pub cuts: Vec<(Seq, u32)>,
    /// How many attempts in a row came to nothing.
    pub failed: u32,
}

/// Where a sub-thread hangs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// In which thread.
    pub parent: ThreadId,
    /// In which message.
    pub index: u32,
    /// Where in its meta.
    pub slot: MetaPath,
}

/// One durable run of a handler, not yet settled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Who works.
    pub agent: AgentId,
    /// In which thread.
    pub thread: ThreadId,
    /// For which request.
    pub task: TaskId,
    /// How many messages from agent to agent led to it.
    pub hops: u32,
    /// The role as it was when the turn began, where it has changed since.
    pub role: Option<Arc<Role>>,
    /// Where the task came from.
    pub origin: Origin,
    /// Who waits.
    pub reply_to: ReplyTo,
    /// The number of its next effect.
    pub next: u32,
    /// Its effects without a result.
    pub open: Vec<OpenEffect>,
    /// Whether a unit or an agent has answered while others are open, and the turn has not said since that it only waits: it may
    /// go on with it before they end.
    pub has_unread_answers: bool,
    /// Why it stands still until a person acts.
    pub parked: Option<Box<Failure>>,
    /// Whether it makes a plan: it has set one that has no steps yet.
    pub planning: bool,
    /// How often its code has broken down.
    pub crashes: u8,
    /// How many processes have run it since it last came further.
    pub revived: u8,
    /// When it may be run again after a breakdown.
    pub rests_until: Option<Timestamp>,
    /// The messages of its thread that do not say yet what came of their sub-threads: their places, and how they begin to say
    /// that it was nothing.
    #[serde(default)]
    pub held: Vec<(u32, Arc<str>)>,
}

/// An effect without a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenEffect {
    /// Its number.
    pub n: u32,
    /// What it is.
    pub kind: OpenKind,
    /// How far it is.
    pub stage: Stage,
    /// When waiting ends by itself.
    pub deadline: Option<Timestamp>,
    /// For a call whose result may answer others: what tells it from them, and where it began.
    pub recallable: Option<Box<(Digest, Seq)>>,
    /// Whether it is a call that the turn itself does, by effects of its own.
    pub own: bool,
}

/// What an open effect is, as far as others must know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpenKind {
    /// A model is asked, and this is reserved for it.
    Model(Box<Reserved>),
    /// A person is asked for more, for these accounts.
    Grant(Box<[Scope]>),
    /// A tool runs.
    Tool(EffectClass),
    /// An agent is asked.
    Ask(AgentId),
    /// A person is asked, and their yes may be for always.
    Approval(Option<Box<Standing>>),
    /// A person is asked for more than a yes.
    Question(Box<Wanted>),
    /// A child is to go.
    Terminate(AgentId),
    /// Time passes.
    Sleep,
    /// A unit runs in a sub-thread.
    Unit(ThreadId),
    /// A content is kept.
    Keep,
}

/// How far an open effect is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// The turn itself is at it.
    Working,
    /// The answer will come through the log.
    Waiting,
    /// A write without a result: a person or policy must say.
    InDoubt,
    /// They said: again.
    Cleared,
}

impl Spine {
    /// Reads a saved spine; none if it is of another shape. Each name is kept once, as in one that was folded.
    pub fn read(saved: &[u8]) -> Option<Self> {
        let mut spine: Self = names::sharing(|| serde_json::from_slice(saved)).ok()?;
        spine.turns.values_mut().for_each(|turn| turn.open.shrink_to_fit());
        Some(spine)
    }

    /// Where ids came from when the event at a place was written.
    pub fn seed_at(&self, seq: Seq) -> u64 {
        self.eras.iter().find(|era| seq < era.ended).map_or(self.seed, |era| era.seed)
    }

    /// Whether the society has begun.
    pub fn is_founded(&self) -> bool {
        self.seq > Seq(0)
    }

    /// The thread at `path` below `main`, if there is one.
    pub fn resolve(&self, main: &ThreadId, path: &SubThreadPath) -> Option<ThreadId> {
        path.segments().iter().try_fold(main.clone(), |thread, segment| {
            let links = self.threads.get(&thread)?.links.get(&segment.message_index)?;
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

    /// Whether a call that runs waits for a word of the person.
    pub fn is_asking(&self, call: EffectId) -> bool {
        let own = InquiryId { call, seq: Seq(0) }..=InquiryId { call, seq: Seq(u64::MAX) };
        self.inquiries.range(own).any(|(_, open)| matches!(open, OpenInquiry::Person { .. }))
    }

    /// Whether a person has said that calls like this one need not be asked about.
    pub fn is_allowed(&self, call: &Call, agent: &AgentId, task: &TaskId) -> bool {
        self.allowed.iter().any(|allowed| {
            let is_same = allowed.tool == call.tool && (allowed.identity.is_none() || allowed.identity == call.identity);
            is_same && allowed.is_for(agent, task) && allowed.matching.as_ref().is_none_or(|it| it.covers(&call.arguments))
        })
    }

    /// Whether a person has said that a server may do this without being asked about it.
    pub fn is_lent(&self, what: &str, agent: &AgentId, task: &TaskId) -> bool {
        self.allowed.iter().any(|allowed| *allowed.tool == *what && allowed.is_for(agent, task))
    }

    /// How far below root an agent is.
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

    /// Whom a name means: an agent of that name, or the one agent of the role of that name (D30). Who is about to go is not meant.
    pub fn addressee(&self, name: &str) -> Option<&AgentId> {
        let wanted = name.trim().to_lowercase();
        let staying = || self.agents.iter().filter(|(_, agent)| agent.leaving.is_none());
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

    /// The roles that limit which tools an agent gets: its own, and those of everybody above it, so that nobody gets more by
    /// making somebody.
    pub fn fences(&self, agent: &AgentId) -> Vec<Arc<Role>> {
        let mut fences: Vec<Arc<Role>> = Vec::new();
        let above = std::iter::successors(self.agents.get(agent), |agent| self.agents.get(agent.parent.as_ref()?));
        for id in above.flat_map(|agent| std::iter::once(&agent.role).chain(agent.within.iter().flatten())) {
            let role = self.roles.get(id).filter(|role| role.tools.is_some());
            fences.extend(role.filter(|role| fences.iter().all(|known| known.id != role.id)).cloned());
        }
        fences
    }

    /// The role that a turn works by.
    pub fn role_of<'a>(&'a self, turn: &'a Turn) -> Option<&'a Arc<Role>> {
        turn.role.as_ref().or_else(|| self.roles.get(&self.agents.get(&turn.agent)?.role))
    }

    /// The accounts that an agent's calls for a request fall under.
    pub fn accounts(&self, agent: &AgentId, task: &TaskId) -> Vec<Scope> {
        let mut scopes = Vec::with_capacity(8);
        scopes.extend([Scope::Society, Scope::Task(task.clone())]);
        scopes.extend(self.agents.get(agent).map(|agent| Scope::Role(agent.role.clone())));
        let parent = |id: &AgentId| self.agents.get(id)?.parent.clone();
        scopes.extend(std::iter::successors(Some(agent.clone()), parent).map(Scope::Agent));
        scopes
    }

    /// How many entries wait in all inboxes (`bus.getPendingCount`).
    pub fn pending(&self) -> usize {
        self.agents.values().filter_map(|agent| agent.inbox.as_ref()).map(|inbox| inbox.entries.len()).sum()
    }
}

impl Turn {
    /// Whether it should be running now: not parked, and not only waiting.
    pub fn is_owed(&self) -> bool {
        let waits = |open: &OpenEffect| matches!(open.stage, Stage::Waiting | Stage::InDoubt);
        // A call that the turn does by effects of its own is as far as those are.
        let mut others = self.open.iter().filter(|open| !open.own).peekable();
        self.parked.is_none() && (self.has_unread_answers || others.peek().is_none() || !others.all(waits))
    }
}

impl Head {
    /// A thread in which nothing happened yet.
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
        }
    }
}

impl Inbox {
    /// Who waits, in the end, for what comes of an entry. All follow-ups are one chain, of which only the last one answers.
    pub fn waiter(&self, due: &Due) -> ReplyTo {
        match due {
            Due::Envelope(envelope) => envelope.reply_to,
            Due::FollowUp { .. } => self.chain(),
        }
    }

    /// Who waits for the follow-ups in it, which go on with what the agent's open turn is a part of.
    pub fn chain(&self) -> ReplyTo {
        let follow_ups = self.entries.iter().take_while(|due| matches!(due, Due::FollowUp { .. }));
        follow_ups.last().map_or(ReplyTo::Nobody, Due::reply_to)
    }
}

impl Due {
    /// The request that it belongs to.
    pub fn task(&self) -> &TaskId {
        match self {
            Self::Envelope(envelope) => &envelope.task_id,
            Self::FollowUp { task, .. } => &task.id,
        }
    }

    /// Who waits for what comes of it.
    pub fn reply_to(&self) -> ReplyTo {
        match self {
            Self::Envelope(envelope) => envelope.reply_to,
            Self::FollowUp { reply_to, .. } => *reply_to,
        }
    }

    /// Bytes of text in it.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Envelope(envelope) => envelope.payload.text.len(),
            Self::FollowUp { task, .. } => task.message.len(),
        }
    }
}

impl Standing {
    fn of(call: &Call) -> Self {
        let (tool, identity, reads) = (call.tool.clone(), call.identity.clone(), call.reads.clone());
        Self { tool, identity, matching: Matching::proposed(&call.arguments), reads }
    }
}

impl Allowed {
    fn is_for(&self, agent: &AgentId, task: &TaskId) -> bool {
        self.agent.as_ref().is_none_or(|it| it == agent) && self.task.as_ref().is_none_or(|it| it == task)
    }
}

impl OpenEffect {
    /// Whether it is a call that may change something that others read.
    pub(crate) fn may_write(&self) -> bool {
        matches!(&self.kind, OpenKind::Tool(class) if *class != EffectClass::Read) && !self.own
    }

    /// An effect that has just been stated.
    pub(crate) fn new(n: u32, effect: &Effect, scopes: Vec<Scope>, at: Seq) -> Self {
        let kind = match effect {
            Effect::Model { reserve, .. } => OpenKind::Model(Box::new(Reserved { amount: *reserve, scopes })),
            Effect::Grant { lacking, .. } => OpenKind::Grant(lacking.iter().map(|level| level.scope.clone()).collect()),
            Effect::Tool(call) => OpenKind::Tool(call.class),
            Effect::Ask { envelope, .. } => OpenKind::Ask(envelope.to.clone()),
            Effect::Approval { wanted, .. } if !wanted.is_agreement() => OpenKind::Question(Box::new(wanted.clone())),
            Effect::Approval { call, .. } => {
                let lasting = call.as_ref().filter(|call| !matches!(call.ruling, Ruling::AskEach(_)));
                OpenKind::Approval(lasting.map(|call| Box::new(Standing::of(call))))
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
