//! Everything that can happen in a society. Events are facts: they are appended, never changed.
//!
//! An event that belongs to a thread is recorded under it, so that one thread's history can be read alone. The last
//! event of every effect of a turn stands under the turn's own thread: that thread's events are the turn's journal.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    AgentId, Allowed, Answer, Behaviour, Budgets, Effect, EffectId, Envelope, Failure, Inbox, InboxEntry, Inquiry, InquiryId,
    Level, Message, MessageId, MessagePatch, Meta, MetaPath, Outcome, Phase, Plan, ReplyTo, Role, RoleId, Scope, Seq, Settings,
    SocietyId, Spent, Task, TaskId, ThreadId, Timestamp, TurnId,
};

/// An event with its place, its time and its thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recorded {
    /// Its place in the society's log.
    pub seq: Seq,
    /// When it was decided.
    pub at: Timestamp,
    /// The thread that it belongs to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// What happened.
    pub event: Event,
}

/// What can happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Event {
    /// The society began. Every id that its turns draw comes from the seed.
    SocietyFounded {
        /// Makes this society's ids unlike any other's.
        #[serde(with = "crate::id::hex")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        seed: u64,
        /// What holds in it.
        limits: Limits,
    },
    /// A fork of another society goes its own way from here on. What came before it shares with that one (P19).
    SocietyForked {
        /// The society that it shares its past with, as it was called then.
        from: SocietyId,
        /// Makes the ids that are drawn from now on unlike those of the other one.
        #[serde(with = "crate::id::hex")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        seed: u64,
    },
    /// A person has said that a tool need not be asked about any more.
    ToolAllowed {
        /// Which, for whom.
        allowed: Allowed,
    },
    /// A tool of a server counts as known in this definition: it was used for the first time, or a person agreed to its change.
    ToolPinned {
        /// The tool, as it is listed.
        tool: Arc<str>,
        /// Tells this definition from any other.
        identity: Arc<str>,
        /// The definition in words.
        definition: Arc<str>,
    },
    /// The budgets are now these.
    BudgetsSet {
        /// All of them.
        budgets: Arc<Budgets>,
    },
    /// A person has granted more than the budget.
    BudgetGranted {
        /// To which account.
        scope: Scope,
        /// How much more.
        more: Spent,
    },
    /// A role exists.
    RoleCreated {
        /// The role.
        role: Arc<Role>,
        /// The effect that made it; none when a person did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<EffectId>,
    },
    /// A person has changed a role. Turns that are under way go on with what it was.
    RoleChanged {
        /// The role as it is from now on.
        role: Arc<Role>,
    },
    /// An agent exists.
    AgentSpawned {
        /// Its name.
        agent: AgentId,
        /// Its role.
        role: RoleId,
        /// Who made it; none for root.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<AgentId>,
        /// The effect that made it; none when a person did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<EffectId>,
    },
    /// An agent takes on nothing new: it does what waits for it, and then it is gone.
    AgentDismissed {
        /// Who.
        agent: AgentId,
        /// Who said so; the person, or its parent.
        caller: AgentId,
        /// Why.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        /// Whether its children go to its parent instead of going first.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        detach: bool,
        /// Who waits until it is gone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waiter: Option<EffectId>,
    },
    /// An agent is gone. Its threads stay in the log; its name is not used again.
    AgentTerminated {
        /// Who.
        agent: AgentId,
    },
    /// A message lies in its receiver's inbox.
    MessageSent {
        /// The message.
        envelope: Arc<Envelope>,
        /// The effect that sent it; none when a person did or when it answers for a settled turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<EffectId>,
    },
    /// A turn has taken in what the person said meanwhile about its request. What comes of the request answers them.
    MessagesTaken {
        /// The effect that did.
        by: EffectId,
        /// Whose inbox they lay in.
        agent: AgentId,
        /// The messages, oldest first.
        envelopes: Vec<Arc<Envelope>>,
    },
    /// Entries of an inbox were taken out unread, because what they were for was called off.
    InboxCleared {
        /// Whose inbox.
        agent: AgentId,
        /// Which entries.
        of: Cleared,
    },
    /// A turn began; its id is this event's place. A suggestion that was pending was applied or dropped just before.
    TurnStarted {
        /// Who works.
        agent: AgentId,
        /// The code that runs.
        behaviour: Behaviour,
        /// Where the thread stands, and so which handler runs.
        phase: Phase,
        /// What is asked.
        task: Task,
        /// Where the task came from.
        origin: Origin,
        /// Who waits for what comes of it.
        #[serde(default)]
        reply_to: ReplyTo,
        /// The user message that the task's text becomes, if it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<MessageId>,
        /// That message's place, or where the next one would go.
        index: u32,
        /// What of the thread is compressed; nothing for most.
        #[serde(default, skip_serializing_if = "ContextState::is_default")]
        shown: ContextState,
    },
    /// A turn wants something; nothing has happened yet.
    EffectStarted {
        /// The effect.
        id: EffectId,
        /// What is wanted.
        effect: Effect,
        /// What a model call is told of the budgets that it falls under; none where there are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permit: Option<Permit>,
    },
    /// An attempt at a model call came to nothing, and another one follows (D09).
    EffectRetried {
        /// The effect.
        id: EffectId,
        /// What was tried, and what is next.
        attempt: Attempt,
        /// What it cost all the same.
        #[serde(default)]
        spent: Spent,
    },
    /// What was wanted has come, for good or ill.
    EffectEnded {
        /// The effect.
        id: EffectId,
        /// What came.
        outcome: Outcome,
        /// What it cost, if it is a model's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spent: Option<Spent>,
    },
    /// A write was started and its result is not known. Nobody may repeat it unasked.
    EffectDoubted {
        /// The effect.
        id: EffectId,
    },
    /// A person or policy says that a doubtful write may be done again.
    EffectCleared {
        /// The effect.
        id: EffectId,
    },
    /// A cleared write is about to be done again.
    EffectRestarted {
        /// The effect.
        id: EffectId,
    },
    /// A running call asks for a word of the person or of a model; the inquiry's id is the call's with this event's place.
    CallInquired {
        /// Which call.
        id: EffectId,
        /// Who asks: the server that the call went to.
        by: Arc<str>,
        /// What is asked.
        inquiry: Inquiry,
        /// What a model call is told of the budgets that it falls under; none where there are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permit: Option<Permit>,
    },
    /// What a running call asked is answered, or nobody waits for it any more.
    CallAnswered {
        /// Which inquiry.
        id: InquiryId,
        /// What came of it.
        answer: Answer,
        /// What it cost, if it is a model's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spent: Option<Spent>,
    },
    /// What was wanted is not allowed; nothing happened.
    EffectRefused {
        /// The effect.
        id: EffectId,
        /// Why.
        failure: Failure,
    },
    /// Marks, in the turn's own thread, an effect whose events stand elsewhere.
    Acted {
        /// The effect.
        id: EffectId,
    },
    /// A message stands in the thread.
    MessageAdded {
        /// The effect that added it.
        by: EffectId,
        /// Its place.
        index: u32,
        /// The message.
        message: Arc<Message>,
    },
    /// Fields of a message changed.
    MessageUpdated {
        /// The effect that changed it.
        by: EffectId,
        /// Its place.
        index: u32,
        /// What changed.
        patch: MessagePatch,
    },
    /// The thread's settings are now these.
    SettingsUpdated {
        /// The effect that changed them.
        by: EffectId,
        /// All of them.
        settings: Settings,
    },
    /// The thread's plan is now this.
    PlanSet {
        /// The effect that set it.
        by: EffectId,
        /// All of it.
        plan: Plan,
    },
    /// A handler or unit proposes the phase for the next task.
    PhaseSuggested {
        /// The effect that proposes.
        by: EffectId,
        /// What it proposes.
        phase: Phase,
    },
    /// The proposed phase holds now.
    PhaseApplied {
        /// The phase.
        phase: Phase,
    },
    /// The proposal is gone and the phase unchanged: the task is a retry (R043).
    SuggestionDropped,
    /// From now on the model is shown summaries in place of the messages before one of them. The messages stay (D10).
    ContextCompressed {
        /// The effect that did it.
        by: EffectId,
        /// The first message that is shown.
        from: u32,
        /// What stands for those before it, oldest first.
        summaries: Vec<String>,
    },
    /// The last compression is undone.
    ContextRestored {
        /// The effect that did it; none when a person did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<EffectId>,
        /// The compression that holds again; none when everything is shown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<Seq>,
    },
    /// A compression came to nothing.
    ContextKept {
        /// The effect that tried.
        by: EffectId,
        /// Why.
        failure: Failure,
    },
    /// A sub-thread begins; recorded under itself.
    ThreadOpened {
        /// The effect that opened it.
        by: EffectId,
        /// Whose it is.
        agent: AgentId,
        /// The thread that holds it.
        parent: ThreadId,
        /// Its first settings (D02: its own, not its parent's).
        settings: Settings,
        /// Free data.
        #[serde(default, skip_serializing_if = "Meta::is_empty")]
        meta: Meta,
    },
    /// A sub-thread hangs in a message; recorded under the thread that holds it.
    ThreadLinked {
        /// The effect that opened it.
        by: EffectId,
        /// The message's place.
        index: u32,
        /// The place in its meta.
        slot: MetaPath,
        /// The sub-thread.
        child: ThreadId,
        /// How the message begins to say why, should the turn end before it says what came of the sub-thread.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held: Option<Arc<str>>,
    },
    /// A turn's code has broken down; it is run again.
    TurnCrashed {
        /// The turn.
        turn: TurnId,
        /// How.
        failure: Failure,
        /// When it is run again.
        until: Timestamp,
    },
    /// A turn is about to be run again by another process than the one before, which may have ended on its account.
    TurnRevived {
        /// The turn.
        turn: TurnId,
        /// When it is run, where it has to wait until others have shown that they are not to blame.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// A turn has taken in what it was told of some of its waits, and only waits for the others now.
    TurnRested {
        /// The turn.
        turn: TurnId,
    },
    /// What an agent was asked has broken its code down again and again. It is set aside, and the agent turns to what is next.
    MessageDeadLettered {
        /// Whose message it was.
        agent: AgentId,
        /// The request that it belongs to.
        task: TaskId,
        /// The turn that came to nothing.
        turn: TurnId,
        /// How it broke down last.
        failure: Failure,
    },
    /// A turn stands still until a person acts.
    TurnParked {
        /// The turn.
        turn: TurnId,
        /// Why.
        reason: Failure,
    },
    /// A parked turn may go on.
    TurnResumed {
        /// The turn.
        turn: TurnId,
    },
    /// A turn is over.
    TurnSettled {
        /// The turn.
        turn: TurnId,
        /// How it ended.
        settlement: Settlement,
        /// The bot message that its response became, if it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Arc<Message>>,
        /// That message's place, or where the next one would go.
        index: u32,
        /// Tasks that the same agent does next.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        next: Vec<Task>,
    },
}

/// An attempt at a model call that came to nothing (R193).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// The model that was asked.
    pub model: Arc<str>,
    /// Which attempt at this model it was, from 1.
    pub attempt: u32,
    /// How many may follow the first one at this model.
    pub max_retries: u32,
    /// What went wrong.
    pub failure: Failure,
    /// How long to wait before the next one.
    pub delay_ms: u64,
    /// The model that is asked next.
    pub next: Arc<str>,
}

/// The code of an attempt that an earlier process or run began and whose end nobody saw.
pub const INTERRUPTED: &str = "model_interrupted";

/// The terms on which a call may be made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Permit {
    /// The accounts that are nearly used up: the agent is told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<Level>,
    /// The longest that the call may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// Whether so much is left that the reply needs no limit of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ample: bool,
}

/// Which part of a thread the model sees when a turn starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Shown"))]
#[serde(rename_all = "camelCase", default)]
pub struct ContextState {
    /// The compression that holds; none when everything is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<Seq>,
    /// How many attempts to compress came to nothing since.
    pub failed: u32,
}

impl ContextState {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Where a turn's task came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// The front of the agent's inbox.
    Inbox,
    /// A unit of another turn.
    Unit(EffectId),
}

/// Which entries left an inbox unread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Cleared {
    /// All that belong to a request.
    Task(TaskId),
    /// All whose answer one of these turns waited for, and the follow-ups that lead to such an answer.
    AskedBy(Vec<TurnId>),
    /// All.
    Everything,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Settlement {
    /// With a response.
    Done,
    /// With an error.
    Failed(Failure),
    /// Somebody called it off.
    Cancelled(Failure),
}

/// What holds in a society. Reaching a limit is refused with a code; nothing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    /// Longest text of a message or message.
    pub text_bytes: usize,
    /// Most entries that wait in one inbox.
    pub inbox_entries: usize,
    /// Most bytes of text that wait in one inbox.
    pub inbox_bytes: usize,
    /// Most effects that one turn may have open at once.
    pub open_effects: usize,
    /// How far below root agents may make agents (P21).
    pub depth: usize,
    /// Most children that an agent may make for itself.
    pub children: usize,
    /// Most agents in the society before agents may make no more.
    pub agents: usize,
    /// Most agents that agents may make within a minute, all together.
    pub spawns_a_minute: usize,
    /// How old the result of a call may be that answers an identical one; 0 has every call made.
    pub reuse_ms: u64,
    /// Calls alike with results alike after which the agent is told so, within a turn.
    pub nudge_repeats: u32,
    /// Calls alike with results alike after which one more is not made, and a little later the turn ends.
    pub stop_repeats: u32,
    /// Messages in a chain from agent to agent, each sent on account of the one before; the first is the person's.
    pub hops: u32,
    /// Messages between two agents for one request since the person last wrote about it. A question whose answer the sender
    /// waits for does not count: a cycle of those is refused as a deadlock.
    pub messages_per_pair: u32,
    /// Turns for a request since the person last wrote about it, after which agents write no more messages for it.
    pub turns_per_task: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            text_bytes: 256 * 1024,
            inbox_entries: 1_000,
            inbox_bytes: 4 * 1024 * 1024,
            open_effects: 64,
            depth: 5,
            children: 32,
            agents: 1_000,
            spawns_a_minute: 60,
            reuse_ms: 10 * 60 * 1_000,
            nudge_repeats: 3,
            stop_repeats: 6,
            hops: 16,
            messages_per_pair: 10,
            turns_per_task: 1_000,
        }
    }
}

impl Event {
    /// The effect that this event is part of.
    pub fn effect(&self) -> Option<EffectId> {
        match self {
            Self::EffectStarted { id, .. }
            | Self::EffectRetried { id, .. }
            | Self::EffectEnded { id, .. }
            | Self::EffectDoubted { id }
            | Self::EffectCleared { id }
            | Self::EffectRestarted { id }
            | Self::EffectRefused { id, .. }
            | Self::CallInquired { id, .. }
            | Self::Acted { id } => Some(*id),
            Self::CallAnswered { id, .. } => Some(id.call),
            Self::MessageAdded { by, .. }
            | Self::MessageUpdated { by, .. }
            | Self::SettingsUpdated { by, .. }
            | Self::PlanSet { by, .. }
            | Self::MessagesTaken { by, .. }
            | Self::PhaseSuggested { by, .. }
            | Self::ContextCompressed { by, .. }
            | Self::ContextKept { by, .. }
            | Self::ThreadOpened { by, .. }
            | Self::ThreadLinked { by, .. } => Some(*by),
            Self::RoleCreated { by, .. }
            | Self::AgentSpawned { by, .. }
            | Self::MessageSent { by, .. }
            | Self::ContextRestored { by, .. } => *by,
            Self::SocietyFounded { .. }
            | Self::SocietyForked { .. }
            | Self::ToolAllowed { .. }
            | Self::ToolPinned { .. }
            | Self::BudgetsSet { .. }
            | Self::BudgetGranted { .. }
            | Self::RoleChanged { .. }
            | Self::AgentDismissed { .. }
            | Self::AgentTerminated { .. }
            | Self::InboxCleared { .. }
            | Self::TurnStarted { .. }
            | Self::PhaseApplied { .. }
            | Self::SuggestionDropped
            | Self::TurnCrashed { .. }
            | Self::TurnRevived { .. }
            | Self::TurnRested { .. }
            | Self::MessageDeadLettered { .. }
            | Self::TurnParked { .. }
            | Self::TurnResumed { .. }
            | Self::TurnSettled { .. } => None,
        }
    }

    /// The message that this event puts into an inbox.
    pub fn envelope(&self) -> Option<&Arc<Envelope>> {
        match self {
            Self::MessageSent { envelope, .. } => Some(envelope),
            Self::EffectStarted { effect: Effect::Ask { envelope, .. }, .. } => Some(envelope),
            _ => None,
        }
    }
}

impl Cleared {
    /// Whether this entry of the inbox leaves.
    pub fn takes(&self, due: &InboxEntry, inbox: &Inbox) -> bool {
        match self {
            Self::Task(task) => due.task() == task,
            Self::Everything => true,
            Self::AskedBy(turns) => matches!(inbox.waiter(due), ReplyTo::Effect(id) if turns.contains(&id.turn)),
        }
    }
}

impl Recorded {
    /// The turn whose standing this event changes.
    pub fn turn(&self) -> Option<TurnId> {
        match &self.event {
            Event::TurnStarted { .. } => Some(TurnId(self.seq)),
            Event::TurnParked { turn, .. }
            | Event::TurnCrashed { turn, .. }
            | Event::TurnRevived { turn, .. }
            | Event::TurnRested { turn }
            | Event::TurnResumed { turn }
            | Event::TurnSettled { turn, .. } => Some(*turn),
            event => event.effect().map(|id| id.turn),
        }
    }
}
