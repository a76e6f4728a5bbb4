//! Refusals of commands. Each has a stable code and says what to do.

use std::sync::Arc;

use crate::{
    AgentId, BadOrg, Counted, DoneRequest, EffectId, Failure, InquiryId, MemoryId, MessageId, RoleId, TaskId, ThreadId, TurnId,
};

/// Why a command was refused. It has changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The society is not founded.
    #[error("the society has not been founded yet")]
    NotFounded,
    /// The society is founded already.
    #[error("the society has been founded already")]
    AlreadyFounded,
    /// The request was done before; the log has its effect, and the sender of the command answers from there.
    #[error("this request was done before, at event {}", .0.seq)]
    DoneBefore(DoneRequest),
    /// The key of the request belongs to another one.
    #[error("this idempotency key was used for another request; take a new one")]
    KeyReused,
    /// The person cannot be given work (R157).
    #[error("不能向用户端点发送消息 (messages cannot be sent to the user endpoint; name an agent, for example root)")]
    ToUser,
    /// There is no such agent.
    #[error("there is no agent `{0}`; GET /api/agents or `polis agents` lists them")]
    UnknownAgent(AgentId),
    /// There is no such conversation.
    #[error("there is no conversation `{0}`; GET /api/conversations or `polis conversations` lists them")]
    UnknownConversation(AgentId),
    /// The content of the conversation has been erased, or is being erased.
    #[error("the content of `{0}` is erased already; nothing is left to erase")]
    ErasedAlready(AgentId),
    /// Another agent still works for the conversation.
    #[error("`{agent}` still works on task `{task}` of this conversation; cancel that task first, with `polis cancel {task}`")]
    ConversationBusy {
        /// The agent that works.
        agent: AgentId,
        /// The request that it works on.
        task: TaskId,
    },
    /// The conversation was to be erased only if nobody used it.
    #[error("`{0}` is pinned, has an open request, or has had a message since; nothing was erased")]
    ConversationInUse(AgentId),
    /// There is no such memory.
    #[error("there is no memory `{0}`; GET /api/memories or `polis memory list` lists them")]
    UnknownMemory(MemoryId),
    /// The scope has as many memories as it may have.
    #[error("no more can be remembered here: {limit} memories are allowed; edit one that exists, or erase some")]
    TooManyMemories {
        /// How many there may be.
        limit: usize,
    },
    /// The agent is being terminated or was terminated.
    #[error("`{0}` is being terminated and accepts nothing more")]
    Terminating(AgentId),
    /// Only the parent may terminate an agent (R177).
    #[error("只能终止自己创建的子智能体 (only its parent may terminate `{0}`)")]
    NotYourChild(AgentId),
    /// The document is invalid.
    #[error(transparent)]
    BadOrg(#[from] BadOrg),
    /// The agent has children, and the command refuses that.
    #[error("`{0}` has children; terminate them too (cascade), or give them to its parent (detach)")]
    HasChildren(AgentId),
    /// There is nobody above the agent to take its children.
    #[error(
        "`{0}` is the agent of a conversation and has no parent that could take its children; let them go with it (cascade)"
    )]
    NoParent(AgentId),
    /// Root cannot be terminated.
    #[error("root stays as long as the society does")]
    RootStays,
    /// A limit for spawning agents is reached (P21).
    #[error("no more agents may be created: {what} is limited to {limit}; use the existing ones, or terminate some")]
    TooManyAgents {
        /// What is limited, for people.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// A chain of messages between agents is too long.
    #[error("this would be message {} in a row from agent to agent, and {limit} are allowed; answer with what you have", limit + 1)]
    TooManyHops {
        /// Messages in a row that are allowed.
        limit: u32,
    },
    /// Two agents have exchanged too many messages.
    #[error(
        "no more messages are passed on between you and `{to}` for this request: you have sent {sent} and received {received}, and \
         {limit} are allowed until the person writes again; answer with what you have"
    )]
    MessageLoop {
        /// The receiver of the message that was refused.
        to: AgentId,
        /// Messages sent to it.
        sent: u32,
        /// Messages received from it.
        received: u32,
        /// Most messages between two agents.
        limit: u32,
    },
    /// A request takes too many turns.
    #[error("{limit} turns have been spent on this request since the person last wrote; answer with what you have")]
    TooManyTurns {
        /// Turns per request that are allowed.
        limit: u32,
    },
    /// There is no such role.
    #[error("there is no role `{0}`; create it first")]
    UnknownRole(RoleId),
    /// Nothing would change.
    #[error("role `{0}` is like this already")]
    SameRole(RoleId),
    /// The name is in use.
    #[error("`{0}` exists already; choose another name")]
    NameTaken(String),
    /// The name has characters that are not allowed.
    #[error("`{0}` cannot be a name; use 1 to 128 letters, digits, `-`, `_` or `.`")]
    BadName(String),
    /// The display name is not allowed.
    #[error("a name or title is one line of 1 to 128 characters, without control characters; `{0}` is not")]
    BadTitle(String),
    /// The children of a detached agent would exceed the limit of its parent (P21).
    #[error(
        "the children of `{agent}` would come to `{parent}`, which may have {limit}; let them go with it (cascade), or terminate some first"
    )]
    NoRoomAbove {
        /// The agent to terminate.
        agent: AgentId,
        /// The agent that would get its children.
        parent: AgentId,
        /// The limit of that agent.
        limit: usize,
    },
    /// There is no such task in progress.
    #[error("task `{0}` has no open work")]
    UnknownTask(TaskId),
    /// A turn tried to start something for another request.
    #[error("task `{0}` is another request's; give what a turn starts the id of its own task")]
    ForeignTask(TaskId),
    /// The addresses of the message are false.
    #[error("message `{0}` does not come from whom it says, or answers what it was not asked")]
    FalseSender(MessageId),
    /// There is no such open turn, or it is parked.
    #[error("turn {0} is not open")]
    TurnNotOpen(TurnId),
    /// The turn is not parked.
    #[error("turn {0} is not parked")]
    NotParked(TurnId),
    /// The effect has ended or was never declared.
    #[error("effect {0} is not open: it has its result already, or never began")]
    NotOpen(EffectId),
    /// The effect is open, but not in a state that this command ends.
    #[error("effect {0} does not wait for that")]
    NotWaiting(EffectId),
    /// The question was answered, or its call has ended.
    #[error("question {0} is not open: it is already answered, or its call has ended")]
    NotAsked(InquiryId),
    /// The answer does not have the requested form.
    #[error("that does not answer the question: {0}")]
    BadAnswer(String),
    /// A policy rule forbids it.
    #[error("{what} may not be used here: {why}")]
    Denied {
        /// What is forbidden.
        what: Arc<str>,
        /// The reason of the rule.
        why: String,
    },
    /// The budget is used up, and the person is not asked for more here.
    #[error("{}; nothing is left for this", .0.join("; "))]
    UsedUp(Vec<String>),
    /// The number of the effect is not the next one.
    #[error("effect {got} is out of order; the next one of its turn is number {expected}")]
    OutOfOrder {
        /// The effect declared.
        got: EffectId,
        /// The next number.
        expected: u32,
    },
    /// Only `decide` itself may declare this effect.
    #[error("a turn cannot ask for a grant; it asks a model, and the society asks the person when a budget is used up")]
    NotYours,
    /// Reservations of other calls may use up the rest of a budget.
    #[error("what is left of a budget is reserved for calls under way; this one has its turn when they have ended")]
    BudgetBusy,
    /// A single call exceeds the limit for one call.
    #[error("this call may take {}, and one call may take {}; send less, or raise budget.call", of.amount(*wanted), of.amount(*limit))]
    CallTooLarge {
        /// What is limited.
        of: Counted,
        /// What the call may take.
        wanted: u64,
        /// What the budget allows at most.
        limit: u64,
    },
    /// The text is too long.
    #[error("the text has {bytes} bytes; at most {limit} are allowed")]
    TextTooLong {
        /// Its length in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The text is empty.
    #[error("the text is empty")]
    EmptyText,
    /// The inbox is full.
    #[error("`{0}` has too much waiting in its inbox; try again later")]
    Busy(AgentId),
    /// The turn has too many open effects.
    #[error("a turn may have at most {limit} effects open at once")]
    TooManyEffects {
        /// Open effects per turn that are allowed.
        limit: usize,
    },
    /// The ask would close a cycle of waits (D31).
    #[error("this would wait for ever: {}", cycle(.0))]
    WouldDeadlock(Vec<AgentId>),
    /// There is no such thread.
    #[error("there is no thread `{0}`")]
    UnknownThread(ThreadId),
    /// There is nothing to compress.
    #[error("there is nothing to compress in thread `{0}`; keep fewer messages, or wait until there are more")]
    NothingToCompress(ThreadId),
    /// Nothing was compressed.
    #[error("nothing of thread `{0}` is compressed")]
    NothingToRestore(ThreadId),
    /// A turn may write to threads of its own agent only (R122).
    #[error("thread `{0}` belongs to another agent")]
    NotYourThread(ThreadId),
    /// Units run in sub-threads; a main thread is for inbox turns.
    #[error("thread `{0}` is a main thread; a unit runs in a sub-thread")]
    NotASubThread(ThreadId),
    /// A turn is open in the thread.
    #[error("a turn is open in thread `{0}`")]
    ThreadBusy(ThreadId),
    /// There is no message at that index.
    #[error("找不到索引为 {index} 的消息 (thread `{thread}` has no message {index})")]
    NoSuchMessage {
        /// The thread that was searched.
        thread: ThreadId,
        /// The index of the message.
        index: u32,
    },
    /// A sub-thread hangs at that path already, or above or below it.
    #[error("message {index} of thread `{thread}` holds a sub-thread there already")]
    SlotTaken {
        /// The thread that has the message.
        thread: ThreadId,
        /// The index of the message.
        index: u32,
    },
}

fn cycle(agents: &[AgentId]) -> String {
    agents.iter().map(AgentId::as_str).collect::<Vec<_>>().join(" waits for ")
}

impl Refusal {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFounded => "not_founded",
            Self::AlreadyFounded => "already_founded",
            Self::DoneBefore(_) => "done_before",
            Self::KeyReused => "key_reused",
            Self::ToUser => "to_user",
            Self::UnknownAgent(_) => "unknown_agent",
            Self::UnknownConversation(_) => "unknown_conversation",
            Self::ErasedAlready(_) => "erased_already",
            Self::ConversationBusy { .. } => "conversation_busy",
            Self::ConversationInUse(_) => "conversation_in_use",
            Self::UnknownMemory(_) => "unknown_memory",
            Self::TooManyMemories { .. } => "too_many_memories",
            Self::Terminating(_) => "leaving",
            Self::NotYourChild(_) => "not_your_child",
            Self::BadOrg(_) => "bad_org",
            Self::HasChildren(_) => "has_children",
            Self::NoParent(_) => "no_parent",
            Self::RootStays => "root_stays",
            Self::TooManyAgents { .. } => "too_many_agents",
            Self::TooManyHops { .. } => "too_many_hops",
            Self::MessageLoop { .. } => "message_loop",
            Self::TooManyTurns { .. } => "too_many_turns",
            Self::UnknownRole(_) => "unknown_role",
            Self::SameRole(_) => "same_role",
            Self::NameTaken(_) => "name_taken",
            Self::BadName(_) | Self::BadTitle(_) => "bad_name",
            Self::NoRoomAbove { .. } => "too_many_agents",
            Self::UnknownTask(_) => "unknown_task",
            Self::ForeignTask(_) => "foreign_task",
            Self::FalseSender(_) => "false_sender",
            Self::TurnNotOpen(_) => "turn_not_open",
            Self::NotParked(_) => "not_parked",
            Self::NotOpen(_) => "not_open",
            Self::NotWaiting(_) => "not_waiting",
            Self::NotAsked(_) => "not_open",
            Self::BadAnswer(_) => "bad_answer",
            Self::Denied { .. } => "policy_denied",
            Self::UsedUp(_) => "budget_exhausted",
            Self::OutOfOrder { .. } => "out_of_order",
            Self::TextTooLong { .. } => "text_too_long",
            Self::EmptyText => "empty_text",
            Self::Busy(_) => "busy",
            Self::NotYours => "not_yours",
            Self::BudgetBusy => "budget_busy",
            Self::CallTooLarge { .. } => "call_too_large",
            Self::TooManyEffects { .. } => "too_many_effects",
            Self::WouldDeadlock(_) => "would_deadlock",
            Self::UnknownThread(_) => "unknown_thread",
            Self::NothingToCompress(_) => "nothing_to_compress",
            Self::NothingToRestore(_) => "nothing_to_restore",
            Self::NotYourThread(_) => "not_your_thread",
            Self::NotASubThread(_) => "not_a_sub_thread",
            Self::ThreadBusy(_) => "thread_busy",
            Self::NoSuchMessage { .. } => "no_such_message",
            Self::SlotTaken { .. } => "slot_taken",
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.code(), refusal.to_string())
    }
}
