//! Views: the records that one view of a user interface shows, folded from the log up to a position.
//!
//! A view is small whatever the length of the history. The events after its position, from the event stream, change its
//! records. Records may be brief: long texts are cut, and steps of settled turns are left out until they are asked for.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use polis_domain::{
    AgentId, Allowed, Answer, Attempt, Behaviour, Call, Effect, EffectId, Envelope, Failure, Inquiry, Level, ListedArtifact,
    Message, MessageId, Meta, MetaPath, Origin, Outcome, Plan, ReplyTo, Role, RoleId, Seq, Settlement, Spent, Task, TaskId,
    ThreadId, Timestamp, TurnId, Wanted,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AgentOperation, Conversation};

/// The records of a view.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct View {
    /// The last event that is folded in; live events follow it.
    pub seq: Seq,
    /// The name of that position, for `Last-Event-ID`.
    pub place: String,
    /// What the society has spent.
    pub spent: Spent,
    /// The tools that have a lasting approval.
    pub allowed: Vec<Allowed>,
    /// How many agents the society has.
    pub agent_count: usize,
    /// How many decisions wait for a person.
    pub waiting_count: usize,
    /// The roles of the agents below, with cut prompts.
    pub roles: Vec<Role>,
    /// Agents: all of a small society, else the first of them and those that the view is about.
    pub agents: Vec<AgentRecord>,
    /// Threads, or parts of them.
    pub threads: Vec<ThreadRecord>,
    /// Turns, oldest first.
    pub turns: Vec<TurnRecord>,
    /// Effects of these turns.
    pub effects: Vec<EffectRecord>,
    /// The conversations, as `GET /api/conversations` lists them; only where the view is a conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversations: Vec<Conversation>,
    /// The cursor of the conversations after these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_conversations: Option<String>,
    /// Requests of people, the newest first.
    pub requests: Vec<RequestRecord>,
    /// The decisions that wait for a person.
    pub waiting: Vec<WaitingRecord>,
    /// What the agent of a conversation offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<AgentOperation>,
    /// Whether the default model is the offline one.
    pub offline: bool,
    /// The newest artifacts.
    pub artifacts: Vec<ListedArtifact>,
    /// What single calls cost, where the view sums up more than it shows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<CallCost>,
    /// The event at the position, where the view is about the past.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Moment>,
    /// The cursor of the next page of what the view lists; none when there is no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The open turns of each request.
    #[serde(skip)]
    pub(crate) open: HashMap<TaskId, Vec<TurnId>>,
}

/// One agent of the society, with its inbox and its open turn.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentRecord {
    /// The name that messages are addressed to.
    pub id: AgentId,
    /// The role that it was created with; the view has it in `roles`.
    pub role: RoleId,
    /// The agent that spawned it; none for root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// When it was created.
    pub created_at: Timestamp,
    /// The first entries of its inbox.
    pub inbox: Vec<InboxRecord>,
    /// How many more entries its inbox has.
    pub unlisted: usize,
    /// The open turn of its main thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Set when it is to be terminated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dismissed: Option<Dismissal>,
    /// When it was terminated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminated_at: Option<Timestamp>,
    /// What its own turns have spent.
    pub spent: Spent,
}

/// An entry of an inbox.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct InboxRecord {
    /// The request that it belongs to.
    pub task: TaskId,
    /// The message; none for a task that the agent queued for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope: Option<Arc<Envelope>>,
    /// When it was sent, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// Who wants an agent terminated.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Dismissal {
    /// Who ordered it.
    pub caller: AgentId,
    /// The reason, for the record.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A thread, or the part of it that the view shows.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadRecord {
    /// The id that events of the thread carry.
    pub id: ThreadId,
    /// The agent that it belongs to.
    pub agent: AgentId,
    /// The message that holds it; none for a main thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<ThreadPlace>,
    /// Messages by their index.
    #[schemars(with = "BTreeMap<String, Message>")]
    pub messages: BTreeMap<u32, Message>,
    /// Messages and turns in their order.
    pub items: Vec<ThreadItem>,
    /// Messages that hold a sub-thread, and which.
    #[schemars(with = "BTreeMap<String, ThreadId>")]
    pub holds: BTreeMap<u32, ThreadId>,
    /// Its plan, if a listed turn set one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// The turn that set the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_turn: Option<TurnId>,
    /// Free data.
    #[serde(default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// The turn that is open in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The position of the first listed turn, if there are earlier ones: `before` of the page before this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Seq>,
    /// The position of the next turn, if the page does not reach the end of the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later: Option<Seq>,
}

/// Where a sub-thread is held.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ThreadPlace {
    /// The thread that holds it.
    pub thread: ThreadId,
    /// The message in that thread.
    pub index: u32,
    /// The path in the message's meta.
    pub slot: MetaPath,
}

/// One item of a thread.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ThreadItem {
    /// A message of the thread.
    Message {
        /// Its key in `messages` of the thread.
        index: u32,
        /// The turn that it belongs to.
        #[serde(skip_serializing_if = "Option::is_none")]
        turn: Option<TurnId>,
        /// The event that added it.
        seq: Seq,
        /// When it was added.
        at: Timestamp,
    },
    /// A turn that ran in the thread.
    Turn {
        /// Its id, as in `turns` of the view.
        turn: TurnId,
    },
    /// A message that a running turn took out of the inbox.
    Heard {
        /// The message.
        message: Box<Message>,
        /// The event that took it.
        seq: Seq,
        /// When it was taken.
        at: Timestamp,
    },
}

/// One turn: a run of an agent's code for a task.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnRecord {
    /// The position of the event that started it.
    pub id: TurnId,
    /// The thread that it runs in.
    pub thread: ThreadId,
    /// The agent that runs it.
    pub agent: AgentId,
    /// The name of the code that runs.
    pub behaviour: Behaviour,
    /// What it works on, and for which request.
    pub task: Task,
    /// Where the task came from.
    pub origin: Origin,
    /// Who waits for its result.
    pub reply_to: ReplyTo,
    /// The effect of another turn that it works for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<EffectId>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled_at: Option<Timestamp>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settlement: Option<Settlement>,
    /// Why it is blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parked: Option<Failure>,
    /// Those of its effects that the view has.
    pub effects: Vec<EffectId>,
    /// How many of its effects are not listed.
    pub omitted: usize,
    /// Whether steps are left out or have cut texts; the view of the turn has them.
    pub brief: bool,
    /// How many of its effects a user interface shows as steps.
    pub steps: usize,
    /// The index of the message that it answered with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<u32>,
    /// What it spent, with all turns below it.
    pub spent: Spent,
    /// How many tool calls it made, with all turns below it.
    pub tools: u32,
}

/// One effect of a turn: a call, a message or a wait, with its result.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EffectRecord {
    /// Its turn and its number in it.
    pub id: EffectId,
    /// The turn that started it.
    pub turn: TurnId,
    /// The thread that it is recorded under.
    pub thread: ThreadId,
    /// What was started, with its arguments.
    pub effect: Effect,
    /// When it started.
    pub started_at: Timestamp,
    /// The event that started it.
    pub started_seq: Seq,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Its result; none while it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Failure>,
    /// What it cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// Its failed attempts.
    pub retries: Vec<Attempt>,
    /// How far it has got.
    pub stage: EffectStage,
    /// The turns that were done for it.
    pub children: Vec<TurnId>,
    /// The questions of the call.
    pub inquiries: Vec<InquiryRecord>,
}

/// How far an effect has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectStage {
    /// It has no result yet.
    Open,
    /// It has a result, or was refused.
    Ended,
    /// A write whose result is not known.
    Doubted,
    /// Such a write that may be made again.
    Cleared,
    /// Its turn ended before it.
    Void,
}

/// A question of a running call.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct InquiryRecord {
    /// Names it in a decision.
    pub id: String,
    /// The server that asks.
    pub by: Arc<str>,
    /// The question.
    pub inquiry: Inquiry,
    /// When it was asked.
    pub at: Timestamp,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
}

/// A request of a person.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestRecord {
    /// The task id, which all work for the request carries.
    pub id: TaskId,
    /// The agent that it was sent to.
    pub to: AgentId,
    /// Its text, cut where it is long.
    pub text: String,
    /// When it was sent.
    pub at: Timestamp,
    /// The event that sent it.
    pub seq: Seq,
    /// The id of its first message.
    pub message: MessageId,
    /// The meta of its first message.
    #[serde(default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
    /// The turns for it that are not settled.
    pub open: Vec<TurnId>,
    /// What was spent for it, as far as the view knows.
    pub spent: Spent,
    /// Why it failed or was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// When it was answered or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The failure of a part of it that nobody waited for, if it was answered nevertheless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_part: Option<Failure>,
}

/// A decision that waits for a person.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct WaitingRecord {
    /// Names it in a decision.
    pub id: String,
    /// Since when it waits.
    pub at: Timestamp,
    /// The agent whose turn waits.
    pub agent: AgentId,
    /// The request that it works on.
    pub task: TaskId,
    /// The thread of the turn.
    pub thread: ThreadId,
    /// What is to be decided.
    pub what: WaitingFor,
}

/// What is to be decided, as the event stream has it. `Pending` of an approval is the same for callers that only decide: there
/// a used-up budget is a question like any other.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WaitingFor {
    /// Whether a call is made, or whether something else may go on.
    Approval {
        /// The question.
        question: String,
        /// More about it.
        #[serde(default)]
        details: Value,
        /// The call.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<Box<Call>>,
        /// When it is denied without a decision.
        #[serde(skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
    /// A question of an agent, or of a server while a call runs there.
    Question {
        /// The question.
        question: String,
        /// More about it.
        #[serde(default)]
        details: Value,
        /// The form of the answer.
        wanted: Wanted,
        /// The server that asks; none when it is the agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        server: Option<Arc<str>>,
        /// The call that waits for the answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<Box<Call>>,
        /// When it ends without an answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
    /// Whether a request may spend more than its budget.
    Grant {
        /// The budgets that are used up.
        lacking: Vec<Level>,
        /// Model calls for the request, by agent.
        calls: BTreeMap<AgentId, u32>,
    },
    /// Whether a write was done whose result is not known.
    InDoubt {
        /// The call.
        call: Box<Call>,
    },
    /// Whether a blocked turn tries again.
    Parked {
        /// Why it is blocked.
        failure: Failure,
    },
}

/// What one call cost.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct CallCost {
    /// The request that it was for.
    pub task: TaskId,
    /// The agent that made it.
    pub agent: AgentId,
    /// The model or tool.
    pub name: String,
    /// When it ended.
    pub at: Timestamp,
    /// What it cost.
    pub spent: Spent,
}

/// An event without its data.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Moment {
    /// The kind of event.
    pub name: String,
    /// When it happened.
    pub at: Timestamp,
}

/// Which page of a conversation.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConversationPage {
    /// Only turns that started before this position; without it, the newest.
    pub before: Option<Seq>,
    /// The page begins with this request.
    pub task: Option<TaskId>,
    /// At most this many turns, 20 unless given.
    pub limit: Option<usize>,
}

/// Which steps of a turn.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnPage {
    /// Only effects with a smaller number; without it, the newest.
    pub before: Option<u32>,
    /// Whether the messages before the turn are wanted too.
    #[serde(default)]
    pub context: bool,
}

/// Which requests.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestPage {
    /// Only requests that began before this one.
    pub before: Option<TaskId>,
    /// Only requests whose text contains this, in any case.
    #[serde(default)]
    pub find: String,
    /// At most this many, 25 unless given.
    pub limit: Option<usize>,
}

/// Which agents, and when.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OrganisationPage {
    /// The organisation as it was after this event; without it, as it is.
    pub at: Option<Seq>,
    /// The cursor of the page before.
    pub after: Option<String>,
    /// At most this many agents, 500 unless given.
    pub limit: Option<usize>,
}
