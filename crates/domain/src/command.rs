//! The commands of a society. Texts and the ids of what comes from outside arrive in commands; the time is an argument of
//! `decide`, and ids that `decide` makes itself are derived from the seed, the time and the position.

use std::sync::Arc;

use crate::{
    AgentId, Answer, ArtifactId, Attempt, Budgets, Children, CodeVersions, ConversationChange, Effect, EffectId, Envelope,
    Failure, Inquiry, InquiryId, Limits, MemoryCommand, MemoryId, Message, MessagePatch, Meta, MetaPath, NewConversation,
    NewMemory, Org, Outcome, PersonId, Phase, Plan, Request, Role, RoleId, Settings, SocietyId, Spent, Task, TaskId, ThreadId,
    Timestamp, TurnId,
};

/// A request to change the society. [`crate::decide`] turns it into events or refuses it.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Found the society.
    Found {
        /// The seed of all ids that its turns make.
        seed: u64,
        /// The limits of the society.
        limits: Limits,
        /// The role of the root agent.
        role: Arc<Role>,
    },
    /// Make this log a fork: from here on it differs from the society whose history it shares.
    Fork {
        /// The name of that society.
        from: SocietyId,
        /// The seed of ids after the fork.
        seed: u64,
        /// The request that asks for it, if it has a key.
        request: Option<Request>,
    },
    /// Do something unless this request was done before.
    Once {
        /// Recognises a repeat.
        request: Request,
        /// What it asks for.
        command: Box<Command>,
    },
    /// A person decides something: the events say who. Stands inside of `Once`.
    By {
        /// Who decides.
        person: PersonId,
        /// What they decide.
        command: Box<Command>,
    },
    /// Replace the newest versions of behaviours. Turns that are open keep theirs.
    SetVersions {
        /// Those that are not version 1.
        versions: Arc<CodeVersions>,
    },
    /// Replace all budgets.
    SetBudgets {
        /// The budgets from now on.
        budgets: Arc<Budgets>,
    },
    /// Create a role, from outside any turn.
    CreateRole {
        /// The new role.
        role: Arc<Role>,
    },
    /// Replace the role of the same id, from outside any turn.
    ChangeRole {
        /// The role as it is from now on.
        role: Arc<Role>,
    },
    /// Create an agent, from outside any turn.
    Spawn {
        /// The id of the new agent.
        agent: AgentId,
        /// The role of the new agent.
        role: RoleId,
        /// The parent of the new agent.
        parent: AgentId,
    },
    /// Terminate an agent, from outside any turn.
    Terminate {
        /// The agent to terminate.
        agent: AgentId,
        /// What happens to its children.
        children: Children,
        /// The reason, for the record.
        reason: String,
        /// Whether it stops at once, with its work undone.
        now: bool,
    },
    /// Create the roles and agents of a document that do not exist yet, all or none of them.
    Import {
        /// The document.
        org: Box<Org>,
        /// Whether root's role is replaced by the one in the document.
        root: bool,
    },
    /// Undo the last compression of a thread, from outside any turn.
    RestoreContext {
        /// The compressed thread.
        thread: ThreadId,
    },
    /// Start a conversation: an agent without a parent that a person talks to.
    StartConversation {
        /// The conversation.
        conversation: Box<NewConversation>,
        /// The first message, from the person to that agent.
        envelope: Option<Arc<Envelope>>,
    },
    /// Change title, list place or settings of a conversation.
    ChangeConversation {
        /// The agent of the conversation.
        agent: AgentId,
        /// What changes.
        change: ConversationChange,
    },
    /// Erase the content of a conversation. It is ended first if it goes on.
    EraseConversation {
        /// The agent of the conversation.
        agent: AgentId,
        /// The artifacts that its events name.
        artifacts: Vec<ArtifactId>,
        /// Only if it is not pinned, has no open request, and has had no message since.
        unused_since: Option<Timestamp>,
    },
    /// What was to be erased has been.
    ConfirmErased {
        /// The agent of the conversation.
        agent: AgentId,
        /// The artifacts that were removed.
        artifacts: Vec<ArtifactId>,
    },
    /// Change memories, from outside any turn.
    ChangeMemories {
        /// What changes.
        change: MemoryCommand,
    },
    /// Deliver a message from outside.
    Send {
        /// From the person to an agent.
        envelope: Arc<Envelope>,
    },
    /// A turn declares effects before they happen.
    DeclareEffects {
        /// The turn that asks for them.
        turn: TurnId,
        /// The number of the first of these effects.
        n: u32,
        /// The effects, numbered from `n` on.
        effects: Vec<Effect>,
    },
    /// An attempt at a model call failed, and the turn tries again.
    Retry {
        /// The model call that failed.
        id: EffectId,
        /// The failed attempt, and which model is next.
        attempt: Attempt,
        /// What the failed attempt cost.
        spent: Spent,
    },
    /// A running call asks the person or a model something.
    Inquire {
        /// The running call that asks.
        id: EffectId,
        /// The server that asks.
        by: Arc<str>,
        /// The question.
        inquiry: Inquiry,
    },
    /// Answer the question of a running call.
    Answer {
        /// The question.
        id: InquiryId,
        /// The answer.
        answer: Answer,
        /// What it cost, if a model answered.
        spent: Option<Spent>,
    },
    /// A turn reports the result of a model or tool call.
    End {
        /// The effect that has a result.
        id: EffectId,
        /// The result.
        outcome: Outcome,
        /// What a model call cost. Only the turn knows how long it waited and what a failed reply had used.
        spent: Option<Spent>,
        /// When the result arrived, by the turn's clock. The turn goes on from there without waiting for the commit.
        at: Timestamp,
    },
    /// A turn changes the society, all or nothing.
    Act {
        /// The number that these changes take in the turn.
        id: EffectId,
        /// The changes.
        acts: Vec<Act>,
        /// When, by the turn's clock, if the turn goes on without waiting for the commit.
        at: Option<Timestamp>,
    },
    /// A turn finds that one of its writes has an intent but no result: it is in doubt.
    Doubt {
        /// A write that an earlier process started and did not finish.
        id: EffectId,
    },
    /// A turn is about to repeat a write that was cleared.
    Restart {
        /// A write in doubt that a person has cleared.
        id: EffectId,
    },
    /// A person ends a wait or a doubt.
    Resolve {
        /// The approval, grant or write in doubt.
        id: EffectId,
        /// The decision.
        resolution: Resolution,
    },
    /// The deadline of a wait has passed.
    Expire {
        /// The wait whose deadline has passed.
        id: EffectId,
    },
    /// A turn's handler returned.
    Settle {
        /// The turn that has ended.
        turn: TurnId,
        /// What it returned.
        result: TurnResult,
    },
    /// The society was opened by a new process, and there are turns to run: count the process for each of them.
    Revive,
    /// A turn has read its answers so far and only waits for the others.
    Rest {
        /// The turn that has read its answers.
        turn: TurnId,
    },
    /// A turn's code has panicked.
    Crash {
        /// The turn whose code panicked.
        turn: TurnId,
        /// The panic.
        failure: Failure,
    },
    /// A turn cannot go on without a person.
    Park {
        /// The turn that cannot continue.
        turn: TurnId,
        /// What a person must fix.
        reason: Failure,
    },
    /// Run a parked turn again.
    Resume {
        /// A parked turn.
        turn: TurnId,
    },
    /// Cancel a task or one turn, with everything below it (P22).
    Cancel {
        /// What to cancel.
        target: Target,
        /// The reason, for those who wait.
        reason: String,
        /// What these turns had said of a reply when they were stopped. It stays in their threads.
        said: Vec<(TurnId, Arc<Message>)>,
    },
}

/// How a person ends a wait or a doubt.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a person decides seldom, and the value lives briefly")]
pub enum Resolution {
    /// Take this as the result.
    Outcome(Outcome),
    /// Make the doubtful write again.
    Again,
}

/// What a turn's handler returned.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnResult {
    /// A response.
    Done {
        /// The bot message to add; none for a silent response.
        message: Option<Message>,
        /// The answer for the turn or person that waits.
        answer: Arc<str>,
        /// Tasks that the same agent does next.
        next: Vec<Task>,
    },
    /// An error.
    Failed(Failure),
}

/// What to cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Everything that is done for a request of a person.
    Task(TaskId),
    /// One turn and what it started.
    Turn(TurnId),
}

/// A change that takes effect with its commit, without a wait.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// Add a message at the end of a thread.
    AddMessage {
        /// The thread that gets the message; one of the agent's own.
        thread: ThreadId,
        /// The message with its id.
        message: Arc<Message>,
    },
    /// Change fields of a message.
    UpdateMessage {
        /// The thread that has the message.
        thread: ThreadId,
        /// The index of the message.
        index: u32,
        /// The changed fields.
        patch: MessagePatch,
    },
    /// Replace a thread's settings.
    UpdateSettings {
        /// The thread whose settings change.
        thread: ThreadId,
        /// The complete new settings.
        settings: Settings,
    },
    /// Set a thread's plan.
    SetPlan {
        /// The thread that the plan belongs to.
        thread: ThreadId,
        /// The complete new plan.
        plan: Plan,
    },
    /// Suggest the phase for a thread's next task.
    SuggestPhase {
        /// The thread whose next turn applies the phase.
        thread: ThreadId,
        /// The phase.
        phase: Phase,
    },
    /// Replace a thread's first messages by summaries in what the model sees.
    CompressContext {
        /// The thread whose older messages are summarised.
        thread: ThreadId,
        /// The first message that is shown.
        from: u32,
        /// The summaries of the messages before it, oldest first, including those of earlier compressions.
        summaries: Vec<String>,
    },
    /// Undo a thread's last compression.
    RestoreContext {
        /// The thread whose last compression is undone.
        thread: ThreadId,
    },
    /// Note that a compression failed.
    KeepContext {
        /// The thread that was to be compressed.
        thread: ThreadId,
        /// Why it failed.
        failure: Failure,
    },
    /// Open a sub-thread in a message.
    OpenSubThread {
        /// The thread that holds it.
        parent: ThreadId,
        /// The message's place; the newest message where it is not said.
        index: Option<u32>,
        /// The path in its meta.
        slot: MetaPath,
        /// The id of the sub-thread.
        child: ThreadId,
        /// Its initial settings.
        settings: Settings,
        /// Free data.
        meta: Meta,
        /// The prefix of the error text that the message gets if the turn ends before it writes the result of the sub-thread.
        held: Option<Arc<str>>,
    },
    /// Take the messages of the person about this request out of the inbox, to act on them in this turn.
    TakeMessages,
    /// Send a message.
    Send {
        /// To another agent, or to the person.
        envelope: Arc<Envelope>,
    },
    /// Create a role.
    CreateRole {
        /// The role.
        role: Arc<Role>,
    },
    /// Create an agent as a child of this one.
    Spawn {
        /// The id of the new agent.
        agent: AgentId,
        /// The role of the new agent.
        role: RoleId,
    },
    /// Store a memory whose text is in the store.
    KeepMemory {
        /// What is remembered, with the key of its text.
        memory: NewMemory,
    },
    /// Erase a memory that the agent sees.
    EraseMemory {
        /// Which memory is meant.
        id: MemoryId,
    },
}
