//! Everything that can happen in a society. Events are facts: they are appended, never changed.
//!
//! An event that belongs to a thread is recorded under it, so that the history of one thread can be read alone. The last
//! event of every effect of a turn is recorded under the turn's own thread, so the events of that thread are the turn's
//! journal.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    AgentId, Allowed, Answer, ArtifactId, Behaviour, BudgetScope, Budgets, CodeVersion, CodeVersions, ConversationChange,
    ConversationSettings, Effect, EffectId, Envelope, Failure, Inquiry, InquiryId, Level, Limits, MemoryChange, Message,
    MessageId, MessagePatch, Meta, MetaPath, Outcome, PersonId, Phase, Plan, ReplyTo, Request, Role, RoleId, Seq, Settings,
    SocietyId, Spent, Task, TaskId, ThreadId, Timestamp, TurnId,
};

/// An event with its position, time and thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recorded {
    /// Its position in the society's log.
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
    /// The society was founded. All ids that its turns make are derived from the seed.
    SocietyFounded {
        /// Makes this society's ids differ from those of any other.
        #[serde(with = "crate::id::hex")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        seed: u64,
        /// The limits of the society.
        limits: Limits,
    },
    /// This log is a fork: the events before this one are shared with another society (P19).
    SocietyForked {
        /// The name that the other society had then.
        from: SocietyId,
        /// Makes new ids differ from those of the other society.
        #[serde(with = "crate::id::hex")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        seed: u64,
        /// The request that asked for the fork, if it has a key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<Request>,
    },
    /// A request with an idempotency key was done. Its effect is in the same append, right before this event.
    RequestDone {
        /// Recognises a repeat.
        request: Request,
        /// How many events it caused.
        events: u32,
    },
    /// A person gave a lasting approval of a tool.
    ToolAllowed {
        /// The tool, and whose calls are covered.
        allowed: Allowed,
    },
    /// The definition of a server tool was pinned: at its first use, or because a person approved a change.
    ToolPinned {
        /// The tool, as it is listed.
        tool: Arc<str>,
        /// The digest of the definition.
        identity: Arc<str>,
        /// The definition as text.
        definition: Arc<str>,
    },
    /// The newest versions of behaviours were replaced: new turns begin with them.
    VersionsSet {
        /// Those that are not version 1.
        versions: Arc<CodeVersions>,
    },
    /// The budgets were replaced.
    BudgetsSet {
        /// The complete new budgets.
        budgets: Arc<Budgets>,
    },
    /// A person granted an account more than its budget.
    BudgetGranted {
        /// The account.
        scope: BudgetScope,
        /// The additional amount.
        more: Spent,
    },
    /// A role was created.
    RoleCreated {
        /// The new role.
        role: Arc<Role>,
        /// The effect that created it; none when a person did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<EffectId>,
    },
    /// A person changed a role. Turns in progress keep the old one.
    RoleChanged {
        /// The role as it is from now on.
        role: Arc<Role>,
    },
    /// An agent was created.
    AgentSpawned {
        /// The id of the agent.
        agent: AgentId,
        /// The role of the agent.
        role: RoleId,
        /// The parent of the agent; none for root.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<AgentId>,
        /// The effect that created it; none when a person did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<EffectId>,
    },
    /// A conversation started: an agent without a parent was created for it. Recorded under its main thread.
    ConversationStarted {
        /// The id of the agent.
        agent: AgentId,
        /// The role of the agent.
        role: RoleId,
        /// Whose conversation it is.
        person: PersonId,
        /// What lists show for it, one line.
        title: Arc<str>,
        /// Its model and strategy, if they are not those of its role.
        #[serde(default, skip_serializing_if = "ConversationSettings::is_default")]
        settings: ConversationSettings,
        /// What was said before, elsewhere: the first messages of its thread.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        messages: Vec<Arc<Message>>,
    },
    /// Title, list place or settings of a conversation changed.
    ConversationChanged {
        /// The agent of the conversation.
        agent: AgentId,
        /// What changed.
        change: ConversationChange,
    },
    /// The content of a conversation is erased: its texts are taken out of all events up to this one next. Its agent has been
    /// terminated. Recorded under its main thread.
    ConversationErased {
        /// The agent of the conversation.
        agent: AgentId,
        /// The person who erased it.
        by: PersonId,
        /// The artifacts that its events named. Those that nothing else names are removed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        artifacts: Vec<ArtifactId>,
    },
    /// Nothing is left of what an erasure was to take away.
    ErasureDone {
        /// The agent of the conversation.
        agent: AgentId,
        /// The artifacts that were removed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        artifacts: Vec<ArtifactId>,
    },
    /// Memories changed.
    MemoryChanged {
        /// What changed.
        change: MemoryChange,
        /// The effect that changed it; none when a person did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<EffectId>,
    },
    /// An agent is to be terminated: it accepts nothing new, finishes its inbox, and then terminates.
    AgentDismissed {
        /// The agent that is to end.
        agent: AgentId,
        /// Who ordered it: the person, or its parent.
        caller: AgentId,
        /// The reason, for the record.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        /// Whether its children move to its parent instead of being terminated first.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        detach: bool,
        /// The effect that waits for the termination.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waiter: Option<EffectId>,
    },
    /// An agent was terminated. Its threads stay in the log; its id is not used again.
    AgentTerminated {
        /// The agent that has ended.
        agent: AgentId,
    },
    /// A message was put into its receiver's inbox.
    MessageSent {
        /// The message as its receiver gets it.
        envelope: Arc<Envelope>,
        /// The effect that sent it; none when a person did, or when it is the answer of a settled turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<EffectId>,
    },
    /// A turn took messages of the person about its request out of the inbox. The answer to the request answers them too.
    MessagesTaken {
        /// The effect that took them.
        by: EffectId,
        /// The agent whose inbox they were in.
        agent: AgentId,
        /// The messages, oldest first.
        envelopes: Vec<Arc<Envelope>>,
    },
    /// Entries of an inbox were removed unread, because their request was cancelled or the agent was terminated.
    InboxCleared {
        /// The agent whose inbox was cleared.
        agent: AgentId,
        /// Which entries were removed.
        of: Cleared,
    },
    /// A turn started; its id is the position of this event. A pending phase suggestion was applied or dropped just before.
    TurnStarted {
        /// The agent that runs it.
        agent: AgentId,
        /// The name of the code that runs.
        behaviour: Behaviour,
        /// The version of that code; the turn keeps it to its end.
        #[serde(default, skip_serializing_if = "CodeVersion::is_first")]
        version: CodeVersion,
        /// The phase of the thread, which selects the handler.
        phase: Phase,
        /// What the turn is asked to do.
        task: Task,
        /// Where the task came from.
        origin: Origin,
        /// Who waits for its result.
        #[serde(default)]
        reply_to: ReplyTo,
        /// The user message that the task's text becomes, if it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<MessageId>,
        /// The index of that message, or of the next one if there is none.
        index: u32,
        /// Which part of the thread the model sees.
        #[serde(default, skip_serializing_if = "ContextState::is_default")]
        shown: ContextState,
    },
    /// The intent of an effect. Nothing has happened yet.
    EffectStarted {
        /// The number of the effect in its turn; results name it.
        id: EffectId,
        /// The effect itself.
        effect: Effect,
        /// The terms of the budgets for a model call; none if no budget applies.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permit: Option<Permit>,
    },
    /// An attempt at a model call failed, and another one follows (D09).
    EffectRetried {
        /// The model call that is tried again.
        id: EffectId,
        /// The failed attempt, and which model is next.
        attempt: Attempt,
        /// What the failed attempt cost.
        #[serde(default)]
        spent: Spent,
    },
    /// The result of an effect, successful or not.
    EffectEnded {
        /// The effect that this is the result of.
        id: EffectId,
        /// The result.
        outcome: Outcome,
        /// What a model call cost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spent: Option<Spent>,
    },
    /// A write may have happened, but its result is unknown. It is not repeated unless a person says so.
    EffectDoubted {
        /// A write that may or may not have been done.
        id: EffectId,
    },
    /// A person decided that a write in doubt may be made again.
    EffectCleared {
        /// The write in doubt.
        id: EffectId,
        /// The person who decided it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<PersonId>,
    },
    /// A cleared write is about to be made again.
    EffectRestarted {
        /// The write that a person has cleared.
        id: EffectId,
    },
    /// A running call asks the person or a model. The id of the inquiry is the call's id with the position of this event.
    CallInquired {
        /// The running call that asks.
        id: EffectId,
        /// The server that the call went to.
        by: Arc<str>,
        /// The question.
        inquiry: Inquiry,
        /// The terms of the budgets for a model call; none if no budget applies.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permit: Option<Permit>,
    },
    /// A question of a running call was answered, or became void.
    CallAnswered {
        /// The question.
        id: InquiryId,
        /// The answer.
        answer: Answer,
        /// What a model call cost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spent: Option<Spent>,
    },
    /// An effect was refused; nothing happened.
    EffectRefused {
        /// The effect that was asked for and not started.
        id: EffectId,
        /// Why it failed.
        failure: Failure,
    },
    /// Marks, under the turn's own thread, an effect whose events are recorded under other threads.
    Acted {
        /// The number that the changes take in the turn.
        id: EffectId,
    },
    /// A message was added to the thread.
    MessageAdded {
        /// The effect that added it.
        by: EffectId,
        /// The index of the message.
        index: u32,
        /// The message as it was added.
        message: Arc<Message>,
    },
    /// Fields of a message were changed.
    MessageUpdated {
        /// The effect that changed it.
        by: EffectId,
        /// The index of the message.
        index: u32,
        /// The changed fields.
        patch: MessagePatch,
    },
    /// The thread's settings were replaced.
    SettingsUpdated {
        /// The effect that changed them.
        by: EffectId,
        /// The complete new settings.
        settings: Settings,
    },
    /// The thread's plan was replaced.
    PlanSet {
        /// The effect that set it.
        by: EffectId,
        /// The complete new plan.
        plan: Plan,
    },
    /// A handler or unit suggested the phase for the next task.
    PhaseSuggested {
        /// The effect that suggested it.
        by: EffectId,
        /// The suggested phase.
        phase: Phase,
    },
    /// The suggested phase was applied.
    PhaseApplied {
        /// The new phase of the thread.
        phase: Phase,
    },
    /// The suggestion was dropped and the phase is unchanged, because the task is a retry (R043).
    SuggestionDropped,
    /// From now on the model sees summaries in place of the oldest messages. The messages stay in the log (D10).
    ContextCompressed {
        /// The effect that did it.
        by: EffectId,
        /// The first message that is shown.
        from: u32,
        /// The summaries of the messages before it, oldest first.
        summaries: Vec<String>,
    },
    /// The last compression was undone.
    ContextRestored {
        /// The effect that did it; none when a person did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<EffectId>,
        /// The compression that is active again; none when everything is shown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<Seq>,
    },
    /// A compression failed.
    ContextKept {
        /// The effect that tried.
        by: EffectId,
        /// Why it failed.
        failure: Failure,
    },
    /// A sub-thread was opened; recorded under itself.
    ThreadOpened {
        /// The effect that opened it.
        by: EffectId,
        /// The agent that it belongs to.
        agent: AgentId,
        /// The thread that holds it.
        parent: ThreadId,
        /// Its initial settings (D02: its own, not those of its parent).
        settings: Settings,
        /// Free data.
        #[serde(default, skip_serializing_if = "Meta::is_empty")]
        meta: Meta,
    },
    /// A sub-thread was linked from a message; recorded under the parent thread.
    ThreadLinked {
        /// The effect that opened it.
        by: EffectId,
        /// The index of the message.
        index: u32,
        /// The path in its meta.
        slot: MetaPath,
        /// The sub-thread.
        child: ThreadId,
        /// The prefix of the error text that the message gets if the turn ends before it writes the result of the sub-thread.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held: Option<Arc<str>>,
    },
    /// A turn's code panicked; it is run again.
    TurnCrashed {
        /// The turn whose code panicked.
        turn: TurnId,
        /// The panic.
        failure: Failure,
        /// When it is run again.
        until: Timestamp,
    },
    /// A turn is about to be run by a new process. The turn may be the reason why the last process ended.
    TurnRevived {
        /// The turn that is about to run again.
        turn: TurnId,
        /// When it is run, if other suspects are run first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// A turn has read its answers so far and only waits for the others.
    TurnRested {
        /// The turn that only waits.
        turn: TurnId,
    },
    /// A message was given up: its turn crashed again and again, or failed while nobody waited for its result. The agent goes
    /// on with its next one.
    MessageDeadLettered {
        /// The receiver of the message.
        agent: AgentId,
        /// The request that it belongs to.
        task: TaskId,
        /// The turn that failed.
        turn: TurnId,
        /// Why it failed, or the last crash.
        failure: Failure,
        /// Whether its code crashed, and did not just return a failure.
        crashed: bool,
    },
    /// A turn was parked until a person acts.
    TurnParked {
        /// The turn that is blocked.
        turn: TurnId,
        /// What a person must fix.
        reason: Failure,
    },
    /// A parked turn was resumed.
    TurnResumed {
        /// The turn that may continue.
        turn: TurnId,
        /// The person who resumed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<PersonId>,
    },
    /// A turn ended.
    TurnSettled {
        /// The turn that has ended.
        turn: TurnId,
        /// How it ended.
        settlement: Settlement,
        /// The bot message of its response; none if it was silent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Arc<Message>>,
        /// The index of that message, or of the next one if there is none.
        index: u32,
        /// Tasks that the same agent does next.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        next: Vec<Task>,
    },
}

/// A failed attempt at a model call (R193).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// The model that was asked.
    pub model: Arc<str>,
    /// Which attempt at this model it was, from 1.
    pub attempt: u32,
    /// How many retries this model gets.
    pub max_retries: u32,
    /// What went wrong.
    pub failure: Failure,
    /// How long to wait before the next one.
    pub delay_ms: u64,
    /// The model that is asked next.
    pub next: Arc<str>,
}

/// The terms on which a call may be made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Permit {
    /// The accounts that are nearly used up; the agent is warned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<Level>,
    /// The longest that the call may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// Whether enough is left that the reply needs no token limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ample: bool,
}

/// Which part of a thread the model sees when a turn starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Shown"))]
#[serde(rename_all = "camelCase", default)]
pub struct ContextState {
    /// The active compression; none when everything is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<Seq>,
    /// How many compressions failed since.
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

/// Which entries were removed from an inbox unread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Cleared {
    /// All that belong to a request.
    Task(TaskId),
    /// All whose answer one of these turns waited for, and the follow-ups that lead to such an answer.
    AskedBy(Vec<TurnId>),
    /// All entries.
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
    /// It was cancelled.
    Cancelled(Failure),
}

impl Event {
    /// The effect that this event is part of.
    pub fn effect(&self) -> Option<EffectId> {
        match self {
            Self::EffectStarted { id, .. }
            | Self::EffectRetried { id, .. }
            | Self::EffectEnded { id, .. }
            | Self::EffectDoubted { id }
            | Self::EffectCleared { id, .. }
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
            | Self::MemoryChanged { by, .. }
            | Self::MessageSent { by, .. }
            | Self::ContextRestored { by, .. } => *by,
            Self::SocietyFounded { .. }
            | Self::SocietyForked { .. }
            | Self::RequestDone { .. }
            | Self::ToolAllowed { .. }
            | Self::ToolPinned { .. }
            | Self::VersionsSet { .. }
            | Self::BudgetsSet { .. }
            | Self::BudgetGranted { .. }
            | Self::RoleChanged { .. }
            | Self::ConversationStarted { .. }
            | Self::ConversationChanged { .. }
            | Self::ConversationErased { .. }
            | Self::ErasureDone { .. }
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

impl Recorded {
    /// The turn whose state this event changes.
    pub fn turn(&self) -> Option<TurnId> {
        match &self.event {
            Event::TurnStarted { .. } => Some(TurnId(self.seq)),
            Event::TurnParked { turn, .. }
            | Event::TurnCrashed { turn, .. }
            | Event::TurnRevived { turn, .. }
            | Event::TurnRested { turn }
            | Event::TurnResumed { turn, .. }
            | Event::TurnSettled { turn, .. } => Some(*turn),
            event => event.effect().map(|id| id.turn),
        }
    }
}
