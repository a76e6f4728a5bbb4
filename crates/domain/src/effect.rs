//! What a turn asks of the world, numbered and logged, and what came of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    AgentId, Artifact, Behaviour, Digest, EffectId, Envelope, Failure, Flow, Level, Matching, Question, Source, Spent, Task,
    TaskId, ThreadId, Timestamp, ToolList, Wanted,
};

/// Something that a turn asks for and waits for. Its intent is logged before it happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// A model is asked. The request itself is derived from the log, so only its digest is kept.
    #[serde(rename_all = "camelCase")]
    Model {
        /// Which model.
        model: Arc<str>,
        /// Tells this request from any other.
        request: Digest,
        /// The most that it can cost.
        #[serde(default)]
        reserve: Spent,
        /// The tools that it is shown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Arc<ToolList>>,
        /// Whether what it says is for the turn alone: notes, a judgement. Nobody is told it as words of the agent.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        aside: bool,
    },
    /// A person is asked for more, because a budget is used up. Nobody asks for this: it stands where a model was to be asked.
    #[serde(rename_all = "camelCase")]
    Grant {
        /// What is used up.
        lacking: Vec<Level>,
        /// Model calls made for the request so far, by agent.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        calls: BTreeMap<AgentId, u32>,
    },
    /// A tool is called.
    Tool(Box<Call>),
    /// Another agent is asked. The message goes into its inbox with this event.
    #[serde(rename_all = "camelCase")]
    Ask {
        /// What is asked, and of whom.
        envelope: Arc<Envelope>,
        /// When waiting ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
    /// A person is asked to agree.
    #[serde(rename_all = "camelCase")]
    Approval {
        /// What to agree to.
        question: String,
        /// What it is about, in full.
        #[serde(default)]
        details: Value,
        /// The call that may not be made without a person's word. Nobody asks for this: it stands where the call was to be.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<Box<Call>>,
        /// When waiting ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
        /// What an answer must be, where a yes is not enough.
        #[serde(default, skip_serializing_if = "Wanted::is_agreement")]
        wanted: Wanted,
        /// The form of what may be given in place of what is asked about, as a JSON schema.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<Value>,
    },
    /// A child is sent away, and waited for until it is gone.
    #[serde(rename_all = "camelCase")]
    Terminate {
        /// Who.
        agent: AgentId,
        /// What becomes of its own children.
        #[serde(default)]
        children: Children,
        /// Why.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        /// When it goes with its work undone.
        deadline: Timestamp,
    },
    /// Nothing happens until then.
    Sleep {
        /// When to go on.
        until: Timestamp,
    },
    /// A unit runs in a sub-thread, as a turn of its own.
    #[serde(rename_all = "camelCase")]
    Unit {
        /// Where.
        thread: ThreadId,
        /// What runs.
        behaviour: Behaviour,
        /// What it is asked.
        task: Task,
    },
    /// A content is kept outside the log. Repeating it changes nothing.
    Keep(Artifact),
}

/// What becomes of the children of an agent that goes (D12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Children {
    /// They go before it.
    #[default]
    Cascade,
    /// They become children of its parent.
    Detach,
    /// It stays while it has any.
    Refuse,
}

/// One use of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// The model's own name for the call; our name is the effect's id.
    pub call_id: Arc<str>,
    /// Which tool, by the name that it is listed under.
    pub tool: Arc<str>,
    /// What the model wrote for it, where that is another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrote: Option<Arc<str>>,
    /// The arguments, as JSON text exactly as the model wrote them, but for what was meant for us.
    pub arguments: Arc<str>,
    /// What a repetition would mean.
    pub class: EffectClass,
    /// Whether it may be made.
    #[serde(default, skip_serializing_if = "Ruling::is_allow")]
    pub ruling: Ruling,
    /// What tells it from other calls, where the result of an earlier one may answer it, and its own a later one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Digest>,
    /// Why no earlier result will do, in the model's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<Arc<str>>,
    /// The result of an earlier call that answers this one: nothing is called. Nobody asks for this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Source>,
    /// Whether its result may change by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub volatile: bool,
    /// Whether the turn itself does it, by effects of its own. It is never in doubt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// Where its content comes from and goes.
    #[serde(default, skip_serializing_if = "Flow::is_none")]
    pub flow: Flow,
    /// For a tool of a server: tells this definition of it from any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Arc<str>>,
    /// That definition in words. The log has it once, where it was pinned.
    #[serde(skip)]
    pub definition: Option<Arc<str>>,
    /// While a person is asked about it: the tools of its server that only read, as the server says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<ReadTool>,
}

/// A tool that only reads, by the word of the server that brings it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReadTool {
    /// Its name, as it is listed.
    pub tool: Arc<str>,
    /// Tells this definition of it from any other.
    pub identity: Arc<str>,
}

/// What a person should know before they agree to a call: the `details` of its approval.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// The outside content that the agent has read, on account of which it asks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<Arc<str>>,
    /// How the tool differs from the one that was used before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Changed>,
    /// What a yes for always would cover; none where each call is asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<Matching>,
    /// The same in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub covers: String,
    /// The tools that a yes for all reading tools of the server would cover.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<Arc<str>>,
}

/// A tool whose server has changed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// The definition that was agreed to.
    pub before: Arc<str>,
    /// The definition that the server lists now.
    pub after: Arc<str>,
}

/// What the policy says to a call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Ruling {
    /// It may be made.
    #[default]
    Allow,
    /// A person must say so first, for this reason.
    Ask(String),
    /// It may not be made, for this reason.
    Deny(String),
    /// It was made too often, as this says.
    Stop(String),
    /// A person has said so.
    Approved,
    /// The tool is a question: what a person answers is its result, and it is never run.
    Person(Question),
    /// It cannot be made, whoever wants it: there is no such tool, or its arguments are none.
    Refuse(Failure),
    /// A person must say so each time, for this reason; no word for always counts.
    AskEach(String),
}

impl Ruling {
    fn is_allow(&self) -> bool {
        *self == Self::Allow
    }
}

impl Call {
    /// What tells a call from others; none where its arguments are no JSON.
    pub fn key_of(tool: &str, arguments: &str) -> Option<Digest> {
        Some(Digest::of([tool, &crate::canonical(arguments)?]))
    }

    /// Whether it may change something that others read.
    pub fn may_write(&self) -> bool {
        self.class != EffectClass::Read && !self.own
    }

    /// Whether this is the same call as another, whatever the policy and the tool's class say by now, and whichever tool the
    /// name means by now.
    pub fn is_same(&self, other: &Self) -> bool {
        let written = |call: &Self| call.wrote.clone().unwrap_or_else(|| call.tool.clone());
        (&self.call_id, written(self), &self.arguments) == (&other.call_id, written(other), &other.arguments)
    }
}

/// What repeating a tool call means to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum EffectClass {
    /// It changes nothing: repeat freely.
    Read,
    /// Repeating it with the same key changes nothing more.
    Idempotent,
    /// Repeating it may do the thing twice: never repeat unasked. Unknown tools are this.
    #[default]
    Write,
}

/// What came of an effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// The model's whole reply.
    Reply(Reply),
    /// The tool's result, good or bad: each call gets exactly one (D22).
    Result(CallResult),
    /// The text of an answer or of a finished unit.
    Answer(Arc<str>),
    /// What the person said to an approval.
    Verdict(Verdict),
    /// The time has come.
    Slept,
    /// The content is kept.
    Kept(Artifact),
    /// It came to nothing.
    Failed(Failure),
}

/// What a model said, whole.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    /// The text.
    pub text: String,
    /// The reasoning, if the vendor shows it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// The tools that the model wants used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Why it stopped.
    #[serde(default)]
    pub finish: Finish,
    /// What it cost.
    #[serde(default)]
    pub usage: Usage,
    /// The model that answered, as `vendor/name`.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub model: Arc<str>,
    /// What the vendor wants to see again, word for word, when the conversation goes on within this turn: signed reasoning
    /// and the like. Only the vendor's own adapter reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo: Option<Arc<Value>>,
}

/// A tool call as a model writes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// The model's name for the call.
    pub id: Arc<str>,
    /// The tool's name.
    pub name: Arc<str>,
    /// JSON text.
    pub arguments: Arc<str>,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It was done.
    #[default]
    Stop,
    /// It wants tools used.
    ToolCalls,
    /// It ran into the token limit.
    Length,
    /// The vendor held the rest back.
    ContentFilter,
    /// The model will not do it; its text says so.
    Refusal,
    /// A vendor's own word.
    Other(String),
}

/// Tokens of one model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Tokens in the request, cached ones included.
    pub input_tokens: u64,
    /// Tokens in the reply, reasoning included.
    pub output_tokens: u64,
    /// Of the input, how many the vendor had cached.
    pub cached_tokens: u64,
    /// Of the output, how many were reasoning.
    pub reasoning_tokens: u64,
    /// Of the input, how many the vendor put into its cache for the next time.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// The price in billionths of a US dollar; nothing where the price is not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub cost_nanos: u64,
}

impl Usage {
    /// This and another together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_add(other.cache_write_tokens),
            cost_nanos: self.cost_nanos.saturating_add(other.cost_nanos),
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What a tool gave back, as the model will read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CallResult {
    /// The text for the model.
    pub content: Arc<str>,
    /// Whether it tells of a failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// What it made that is too long or of another kind than text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The earlier call that it was taken from, if none was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<EffectId>,
    /// The arguments of the call where a person gave others than the model wrote. The log has them in the verdict.
    #[serde(skip)]
    pub changed: Option<Arc<str>>,
}

/// Most bytes of changed arguments that the model is told.
const CHANGED_BYTES: usize = 8 << 10;

impl CallResult {
    /// What the tool was to bring.
    pub fn good(content: impl Into<Arc<str>>) -> Self {
        Self { content: content.into(), is_error: false, from: None, artifacts: Vec::new(), changed: None }
    }

    /// What went wrong.
    pub fn failed(content: impl Into<Arc<str>>) -> Self {
        Self { content: content.into(), is_error: true, from: None, artifacts: Vec::new(), changed: None }
    }

    /// The same with these artifacts.
    #[must_use]
    pub fn with_artifacts(self, artifacts: Vec<Artifact>) -> Self {
        Self { artifacts, ..self }
    }

    /// The content as the model reads it: where a person has changed the arguments, what was called comes first.
    pub fn for_model(&self) -> Arc<str> {
        let Some(changed) = &self.changed else { return self.content.clone() };
        let shown = &changed[..changed.floor_char_boundary(CHANGED_BYTES)];
        let rest = if shown.len() < changed.len() { " …" } else { "" };
        let note = "Report that, not your own version.";
        format!("[polis] The person changed the arguments. What was called: {shown}{rest}. {note}\n\n{}", self.content).into()
    }
}

/// What a person says to an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// Whether it may happen.
    pub approved: bool,
    /// Why, for the model to read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For a call: other arguments than it was to have, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Arc<str>>,
    /// For a call: whom not to ask again about calls like this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<Always>,
    /// With `always`: which calls are meant; what the approval proposes where nothing is said.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub matching: Option<Matching>,
    /// What the person answers, where a yes is not enough: a text, or an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
}

impl Verdict {
    /// The reason of a no that nobody gave: the run was started without approvals.
    pub const NOBODY_ASKED: &str = "approvals are turned off for this run (--approve never)";

    /// Agrees, and says no more.
    pub fn yes() -> Self {
        Self { approved: true, reason: String::new(), arguments: None, always: None, matching: None, answer: None }
    }

    /// Answers with words.
    pub fn words(text: impl Into<String>) -> Self {
        Self { answer: Some(Value::String(text.into())), ..Self::yes() }
    }

    /// Disagrees.
    pub fn no(reason: impl Into<String>) -> Self {
        Self { approved: false, reason: reason.into(), ..Self::yes() }
    }
}

/// How far a person's word about a tool goes beyond the one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Always {
    /// This agent, from now on.
    Agent,
    /// Everybody who works on this request.
    Task,
    /// Everybody, from now on.
    Tool,
    /// Everybody, from now on, for all tools of the same server that only read by its word.
    Reads,
}

/// A tool that need not be asked about any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Allowed {
    /// The tool.
    pub tool: Arc<str>,
    /// For whom; none for everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// For which request; none for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Which calls; none for all.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub matching: Option<Matching>,
    /// For a tool of a server: the definition of it that was agreed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Arc<str>>,
}

impl Reply {
    /// Drops the call that the model was stopped at: what stands there is not what it meant.
    #[must_use]
    pub fn without_torn_call(mut self) -> Self {
        if matches!(self.finish, Finish::Length | Finish::ContentFilter | Finish::Refusal) {
            self.tool_calls.pop();
        }
        self
    }
}

impl Effect {
    /// The call that is made with it: what a client's own tool returns is given as an answer.
    pub fn made_call(&self) -> Option<&Call> {
        match self {
            Self::Tool(call) => Some(call),
            Self::Approval { call, wanted, .. } => call.as_deref().filter(|_| *wanted != Wanted::Agreement),
            _ => None,
        }
    }

    /// Whether the turn only waits: the answer comes through the log, so the turn may leave memory meanwhile.
    pub fn is_wait(&self) -> bool {
        match self {
            Self::Model { .. } | Self::Tool(_) | Self::Keep(_) => false,
            Self::Ask { .. }
            | Self::Approval { .. }
            | Self::Grant { .. }
            | Self::Terminate { .. }
            | Self::Sleep { .. }
            | Self::Unit { .. } => true,
        }
    }

    /// When waiting ends by itself.
    pub fn deadline(&self) -> Option<Timestamp> {
        match self {
            Self::Ask { deadline, .. } | Self::Approval { deadline, .. } => *deadline,
            Self::Terminate { deadline, .. } => Some(*deadline),
            Self::Sleep { until } => Some(*until),
            Self::Model { .. } | Self::Grant { .. } | Self::Tool(_) | Self::Unit { .. } | Self::Keep(_) => None,
        }
    }

    /// A word for people.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Model { .. } => "model",
            Self::Tool(_) => "tool",
            Self::Ask { .. } => "ask",
            Self::Approval { .. } => "approval",
            Self::Grant { .. } => "grant",
            Self::Terminate { .. } => "terminate",
            Self::Sleep { .. } => "sleep",
            Self::Unit { .. } => "unit",
            Self::Keep(_) => "artifact",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_the_model_could_not_finish_is_no_call() {
        let calls = |finish| {
            let reply = Reply { finish, tool_calls: vec![ToolCall::default(); 2], ..Reply::default() };
            reply.without_torn_call().tool_calls.len()
        };
        let finishes = [Finish::ToolCalls, Finish::Stop, Finish::Length, Finish::ContentFilter, Finish::Refusal];
        assert_eq!(finishes.map(calls), [2, 2, 1, 1, 1]);
    }
}
