//! Why a command changes nothing. Each refusal has a stable code and says what to do.

use std::sync::Arc;

use crate::{AgentId, BadOrg, Counted, DoneRequest, EffectId, Failure, InquiryId, MessageId, RoleId, TaskId, ThreadId, TurnId};

/// Why a command changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The society has not begun.
    #[error("the society has not been founded yet")]
    NotFounded,
    /// The society has begun already.
    #[error("the society has been founded already")]
    AlreadyFounded,
    /// The request was done before; the log has its effect. Whoever sent the command answers from there.
    #[error("this request was done before, at event {}", .0.seq)]
    DoneBefore(DoneRequest),
    /// The key of the request belongs to another one.
    #[error("this idempotency key was used for another request; take a new one")]
    KeyReused,
    /// The person's endpoint sends, it does not receive orders (R157).
    #[error("不能向用户端点发送消息 (messages cannot be sent to the user endpoint; name an agent, for example root)")]
    ToUser,
    /// No such agent.
    #[error("there is no agent `{0}`; GET /api/agents or `polis agents` lists them")]
    UnknownAgent(AgentId),
    /// It is about to go, or gone.
    #[error("`{0}` has been sent away and takes on nothing more")]
    Terminating(AgentId),
    /// Only who made an agent may send it away (R177).
    #[error("只能终止自己创建的子智能体 (only its parent may terminate `{0}`)")]
    NotYourChild(AgentId),
    /// The document is not sound.
    #[error(transparent)]
    BadOrg(#[from] BadOrg),
    /// It is to stay while it has children.
    #[error("`{0}` has children; let them go with it (cascade), or to its parent (detach)")]
    HasChildren(AgentId),
    /// The society would have no entry.
    #[error("root stays as long as the society does")]
    RootStays,
    /// Agents make too many agents (P21).
    #[error("no more agents may be made here: {what} is limited to {limit}; use those that are there, or terminate some")]
    TooManyAgents {
        /// What is limited.
        what: &'static str,
        /// To how much.
        limit: usize,
    },
    /// Agents write to each other without end.
    #[error("this would be message {} in a row from agent to agent, and {limit} are allowed; answer with what you have", limit + 1)]
    TooManyHops {
        /// How many there may be.
        limit: u32,
    },
    /// Two agents write to each other without end.
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
        /// How many there may be.
        limit: u32,
    },
    /// No such role.
    #[error("there is no role `{0}`; create it first")]
    UnknownRole(RoleId),
    /// Nothing would change.
    #[error("role `{0}` is like this already")]
    SameRole(RoleId),
    /// The name is in use.
    #[error("`{0}` exists already; choose another name")]
    NameTaken(String),
    /// The name cannot be used.
    #[error("`{0}` cannot be a name; use 1 to 128 letters, digits, `-`, `_` or `.`")]
    BadName(String),
    /// What people would read as a role's name cannot be one.
    #[error("a role's name is one line of 1 to 128 characters, without control characters; `{0}` is not")]
    BadTitle(String),
    /// An agent would have more children than it may when those of another come to it (P21).
    #[error(
        "the children of `{agent}` would come to `{parent}`, which may have {limit}; let them go with it (cascade), or terminate some first"
    )]
    NoRoomAbove {
        /// Who goes.
        agent: AgentId,
        /// Who would get its children.
        parent: AgentId,
        /// How many that one may have.
        limit: usize,
    },
    /// Nothing is being done for that task.
    #[error("nothing is under way for task `{0}`")]
    UnknownTask(TaskId),
    /// What a turn starts belongs to the request that it works for.
    #[error("task `{0}` is another request's; give what a turn starts the id of its own task")]
    ForeignTask(TaskId),
    /// The envelope does not say the truth.
    #[error("message `{0}` does not come from whom it says, or answers what it was not asked")]
    FalseSender(MessageId),
    /// The turn is over or never was.
    #[error("turn {0} is not open")]
    TurnNotOpen(TurnId),
    /// The turn is not parked.
    #[error("turn {0} is not parked")]
    NotParked(TurnId),
    /// The effect has its result already, or never began.
    #[error("effect {0} is not open: it has its result already, or never began")]
    NotOpen(EffectId),
    /// The effect is open but this does not end it.
    #[error("effect {0} does not wait for that")]
    NotWaiting(EffectId),
    /// The question has its answer already, or its call has ended.
    #[error("question {0} is not open: it is answered already, or whoever asked is gone")]
    NotAsked(InquiryId),
    /// The answer is not what was asked for.
    #[error("that does not answer the question: {0}")]
    BadAnswer(String),
    /// A rule says no.
    #[error("{what} may not be used here: {why}")]
    Denied {
        /// What.
        what: Arc<str>,
        /// Why.
        why: String,
    },
    /// Nothing is left, and this is nothing to ask the person for.
    #[error("{}; nothing is left for this", .0.join("; "))]
    UsedUp(Vec<String>),
    /// A turn's effects are numbered without gaps.
    #[error("effect {got} is out of order; the next one of its turn is number {expected}")]
    OutOfOrder {
        /// The effect stated.
        got: EffectId,
        /// The number that is next.
        expected: u32,
    },
    /// Some effects are stated by the society itself.
    #[error("a turn cannot ask for a grant; it asks a model, and the society asks the person when a budget is used up")]
    NotYours,
    /// Calls under way may use up what is left of a budget.
    #[error("what is left of a budget is reserved for calls under way; this one has its turn when they have ended")]
    BudgetBusy,
    /// One call alone is larger than the budget of a call.
    #[error("this call may take {}, and one call may take {}; send less, or raise budget.call", of.amount(*wanted), of.amount(*limit))]
    CallTooLarge {
        /// What is counted.
        of: Counted,
        /// What it may take.
        wanted: u64,
        /// What it is allowed.
        limit: u64,
    },
    /// Too much text.
    #[error("the text has {bytes} bytes; at most {limit} are allowed")]
    TextTooLong {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// No text at all.
    #[error("the text is empty")]
    EmptyText,
    /// The inbox is full.
    #[error("`{0}` has too much waiting in its inbox; try again later")]
    Busy(AgentId),
    /// Too many effects at once.
    #[error("a turn may have at most {limit} effects open at once")]
    TooManyEffects {
        /// How many it may have.
        limit: usize,
    },
    /// A asks B asks A (D31).
    #[error("this would wait for ever: {}", cycle(.0))]
    WouldDeadlock(Vec<AgentId>),
    /// No such thread.
    #[error("there is no thread `{0}`")]
    UnknownThread(ThreadId),
    /// There is nothing that a summary could stand for.
    #[error("there is nothing to compress in thread `{0}`; keep fewer messages, or wait until there are more")]
    NothingToCompress(ThreadId),
    /// Nothing was compressed.
    #[error("nothing of thread `{0}` is compressed")]
    NothingToRestore(ThreadId),
    /// A turn writes its own agent's threads only (R122).
    #[error("thread `{0}` belongs to another agent")]
    NotYourThread(ThreadId),
    /// Units run in sub-threads; a main thread is for what comes through the inbox.
    #[error("thread `{0}` is a main thread; a unit runs in a sub-thread")]
    NotASubThread(ThreadId),
    /// Somebody works in the thread already.
    #[error("a turn is open in thread `{0}`")]
    ThreadBusy(ThreadId),
    /// No message at that place.
    #[error("找不到索引为 {index} 的消息 (thread `{thread}` has no message {index})")]
    NoSuchMessage {
        /// The thread.
        thread: ThreadId,
        /// The place.
        index: u32,
    },
    /// A sub-thread hangs there already, or above or below that place.
    #[error("message {index} of thread `{thread}` holds a sub-thread there already")]
    SlotTaken {
        /// The thread.
        thread: ThreadId,
        /// The message's place.
        index: u32,
    },
}

fn cycle(agents: &[AgentId]) -> String {
    agents.iter().map(AgentId::as_str).collect::<Vec<_>>().join(" waits for ")
}

impl Refusal {
    /// A stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFounded => "not_founded",
            Self::AlreadyFounded => "already_founded",
            Self::DoneBefore(_) => "done_before",
            Self::KeyReused => "key_reused",
            Self::ToUser => "to_user",
            Self::UnknownAgent(_) => "unknown_agent",
            Self::Terminating(_) => "leaving",
            Self::NotYourChild(_) => "not_your_child",
            Self::BadOrg(_) => "bad_org",
            Self::HasChildren(_) => "has_children",
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
