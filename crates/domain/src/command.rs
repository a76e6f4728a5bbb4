//! What can be asked of a society. A command carries everything that `decide` may not make up: ids and texts.

use std::sync::Arc;

use crate::{
    AgentId, Answer, Attempt, Budgets, Children, Effect, EffectId, Envelope, Failure, Inquiry, InquiryId, Limits, Message,
    MessagePatch, Meta, MetaPath, Org, Outcome, Phase, Plan, Request, Role, RoleId, Settings, SocietyId, Spent, Task, TaskId,
    ThreadId, Timestamp, TurnId,
};

/// A command; `decide` says what happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Begin the society.
    Found {
        /// Where its ids come from.
        seed: u64,
        /// What holds in it.
        limits: Limits,
        /// The role of the root agent.
        role: Arc<Role>,
    },
    /// Go another way than the society that the past is shared with.
    Fork {
        /// What that one is called.
        from: SocietyId,
        /// Where ids come from after the fork.
        seed: u64,
        /// The request that asks for it, if it has a key.
        request: Option<Request>,
    },
    /// Do something unless this request was done before.
    Once {
        /// The request.
        request: Request,
        /// What it asks for.
        command: Box<Command>,
    },
    /// Set all budgets.
    SetBudgets {
        /// What may be spent from now on.
        budgets: Arc<Budgets>,
    },
    /// Make a role, from outside any turn.
    CreateRole {
        /// The role.
        role: Arc<Role>,
    },
    /// Put another role in the place of one of the same name, from outside any turn.
    ChangeRole {
        /// The role as it is from now on.
        role: Arc<Role>,
    },
    /// Make an agent, from outside any turn.
    Spawn {
        /// Its name.
        agent: AgentId,
        /// Its role.
        role: RoleId,
        /// Whose child it is.
        parent: AgentId,
    },
    /// Send an agent away, from outside any turn.
    Terminate {
        /// Who.
        agent: AgentId,
        /// What becomes of its children.
        children: Children,
        /// Why.
        reason: String,
        /// Whether it goes with its work undone.
        now: bool,
    },
    /// Make the roles and agents of a document that are not there yet; all of it or nothing.
    Import {
        /// The document.
        org: Box<Org>,
        /// Whether root's role becomes what the document says.
        root: bool,
    },
    /// Undo the last compression of a thread, from outside any turn.
    RestoreContext {
        /// The thread.
        thread: ThreadId,
    },
    /// Deliver a message from outside.
    Send {
        /// The message.
        envelope: Arc<Envelope>,
    },
    /// A turn states what it wants before it happens.
    Begin {
        /// Which turn.
        turn: TurnId,
        /// The number of the first of these effects.
        n: u32,
        /// What it wants, all at once.
        effects: Vec<Effect>,
    },
    /// A turn has tried a model in vain and tries again.
    Retry {
        /// Which effect.
        id: EffectId,
        /// What was tried, and what is next.
        attempt: Attempt,
        /// What it cost all the same.
        spent: Spent,
    },
    /// A call that a turn makes asks for a word of the person or of a model.
    Inquire {
        /// Which call.
        id: EffectId,
        /// Who asks.
        by: Arc<str>,
        /// What.
        inquiry: Inquiry,
    },
    /// Answers what a running call has asked.
    Answer {
        /// Which inquiry.
        id: InquiryId,
        /// With what.
        answer: Answer,
        /// What it cost, if it is a model's.
        spent: Option<Spent>,
    },
    /// A turn reports what came of a model call or tool call.
    End {
        /// Which effect.
        id: EffectId,
        /// What came.
        outcome: Outcome,
        /// What it cost, if it is a model's; only the turn knows how long it waited and what a failed reply had used.
        spent: Option<Spent>,
        /// When it came, by the turn's clock: the turn goes on from there before it is told that this is in the log.
        at: Timestamp,
    },
    /// A turn changes the society at once; all of it or nothing.
    Act {
        /// Which effect.
        id: EffectId,
        /// What changes.
        acts: Vec<Act>,
        /// When, by the turn's clock, where the turn goes on before it is told that this is in the log.
        at: Option<Timestamp>,
    },
    /// A turn finds one of its writes without a result.
    Doubt {
        /// Which effect.
        id: EffectId,
    },
    /// A turn is about to repeat a cleared write.
    Restart {
        /// Which effect.
        id: EffectId,
    },
    /// A person or policy ends a wait or a doubt.
    Resolve {
        /// Which effect.
        id: EffectId,
        /// How.
        resolution: Resolution,
    },
    /// The time of a wait has come.
    Expire {
        /// Which effect.
        id: EffectId,
    },
    /// A turn's handler returned.
    Settle {
        /// Which turn.
        turn: TurnId,
        /// With what.
        result: TurnResult,
    },
    /// The society is open again after its process has ended, however it did: what should be running is about to be run,
    /// and there is something.
    Revive,
    /// A turn has no use for what it was told last: it only waits for the rest.
    Rest {
        /// Which turn.
        turn: TurnId,
    },
    /// A turn's code has broken down.
    Crash {
        /// Which turn.
        turn: TurnId,
        /// How.
        failure: Failure,
    },
    /// A turn cannot go on without a person.
    Park {
        /// Which turn.
        turn: TurnId,
        /// Why.
        reason: Failure,
    },
    /// A parked turn may try again.
    Resume {
        /// Which turn.
        turn: TurnId,
    },
    /// Call off a task or one turn, with everything below it (P22).
    Cancel {
        /// What.
        target: Target,
        /// Why.
        reason: String,
    },
}

/// How a person or policy ends a wait.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolution {
    /// Take this as what came of it.
    Outcome(Outcome),
    /// Do the doubtful write again.
    Again,
}

/// What a turn's handler returned.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnResult {
    /// A response.
    Done {
        /// The bot message that it becomes, unless it is silent.
        message: Option<Message>,
        /// What whoever waits is told.
        answer: Arc<str>,
        /// Tasks that the same agent does next.
        next: Vec<Task>,
    },
    /// An error.
    Failed(Failure),
}

/// What to call off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Everything that is done for a person's request.
    Task(TaskId),
    /// One turn and what it started.
    Turn(TurnId),
}

/// A change that a turn makes at once.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// Add a message at the end of a thread.
    AddMessage {
        /// The thread.
        thread: ThreadId,
        /// The message.
        message: Arc<Message>,
    },
    /// Change fields of a message.
    UpdateMessage {
        /// The thread.
        thread: ThreadId,
        /// The message's place.
        index: u32,
        /// What changes.
        patch: MessagePatch,
    },
    /// Replace a thread's settings.
    UpdateSettings {
        /// The thread.
        thread: ThreadId,
        /// All of them.
        settings: Settings,
    },
    /// Set a thread's plan.
    SetPlan {
        /// The thread.
        thread: ThreadId,
        /// All of it.
        plan: Plan,
    },
    /// Propose the phase for a thread's next task.
    SuggestPhase {
        /// The thread.
        thread: ThreadId,
        /// The phase.
        phase: Phase,
    },
    /// Show the model summaries in place of a thread's first messages.
    CompressContext {
        /// The thread.
        thread: ThreadId,
        /// The first message that is shown.
        from: u32,
        /// What stands for those before it, oldest first; what earlier compressions said is among them.
        summaries: Vec<String>,
    },
    /// Undo a thread's last compression.
    RestoreContext {
        /// The thread.
        thread: ThreadId,
    },
    /// Note that a compression came to nothing.
    KeepContext {
        /// The thread.
        thread: ThreadId,
        /// Why.
        failure: Failure,
    },
    /// Open a sub-thread in a message.
    OpenSubThread {
        /// The thread that holds it.
        parent: ThreadId,
        /// The message's place; the newest message where it is not said.
        index: Option<u32>,
        /// The place in its meta.
        slot: MetaPath,
        /// The sub-thread's name.
        child: ThreadId,
        /// Its first settings.
        settings: Settings,
        /// Free data.
        meta: Meta,
        /// How the message begins to say why, should the turn end before it says what came of the sub-thread.
        held: Option<Arc<str>>,
    },
    /// Take what the person has said to the agent about this request meanwhile out of its inbox, to act on it at once.
    TakeMessages,
    /// Send a message.
    Send {
        /// The message.
        envelope: Arc<Envelope>,
    },
    /// Make a role.
    CreateRole {
        /// The role.
        role: Arc<Role>,
    },
    /// Make an agent below this one.
    Spawn {
        /// Its name.
        agent: AgentId,
        /// Its role.
        role: RoleId,
    },
}
