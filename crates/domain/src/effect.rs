//! Effects: what a turn wants from the world, numbered and logged, and their results.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    AgentId, Artifact, Behaviour, Citation, Digest, EffectId, Envelope, Failure, Flow, Level, Matching, PersonId, Question,
    Source, Spent, Task, TaskId, ThreadId, Timestamp, ToolList, Usage, VendorCall, Verdict, Wanted,
};

/// Something that a turn wants and waits for. Its intent is logged before it happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// A model call. The request is derived from the log, so only its digest is logged.
    #[serde(rename_all = "camelCase")]
    Model {
        /// The model; empty for the default.
        model: Arc<str>,
        /// The digest of the request.
        request: Digest,
        /// What is reserved for it in budgets.
        #[serde(default)]
        reserve: Spent,
        /// The tools that the model sees.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Arc<ToolList>>,
        /// Whether the reply is internal to the turn, such as notes or a judgement, and not shown as text of the agent.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        aside: bool,
        /// What the call is for, if its code has named it. A second run with another prompt is then the same call.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        purpose: Arc<str>,
    },
    /// A request to a person for more budget. No turn states this: `decide` puts it in the place of a model call.
    #[serde(rename_all = "camelCase")]
    Grant {
        /// The accounts that are used up.
        lacking: Vec<Level>,
        /// Model calls made for the request so far, by agent.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        calls: BTreeMap<AgentId, u32>,
    },
    /// A tool call.
    Tool(Box<Call>),
    /// A question to another agent. The message is put into its inbox by this event.
    #[serde(rename_all = "camelCase")]
    Ask {
        /// The message with the question.
        envelope: Arc<Envelope>,
        /// When the wait times out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
    /// An approval by a person.
    #[serde(rename_all = "camelCase")]
    Approval {
        /// The question to the person.
        question: String,
        /// The full details.
        #[serde(default)]
        details: Value,
        /// The call that needs the approval. No turn states this: `decide` puts the approval in the place of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<Box<Call>>,
        /// When the wait times out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
        /// The form of the answer, if a yes or no is not enough.
        #[serde(default, skip_serializing_if = "Wanted::is_agreement")]
        wanted: Wanted,
        /// The JSON schema of changes that the person may make when they approve.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<Value>,
    },
    /// The termination of a child, and the wait for it.
    #[serde(rename_all = "camelCase")]
    Terminate {
        /// The agent to terminate.
        agent: AgentId,
        /// What happens to its own children.
        #[serde(default)]
        children: Children,
        /// The reason, for the record.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        /// When it is terminated with its work undone.
        deadline: Timestamp,
    },
    /// A wait for a point in time.
    Sleep {
        /// The end of the wait.
        until: Timestamp,
    },
    /// A unit in a sub-thread, which runs as a turn of its own.
    #[serde(rename_all = "camelCase")]
    Unit {
        /// The sub-thread.
        thread: ThreadId,
        /// The name of the code that runs.
        behaviour: Behaviour,
        /// The task of the unit.
        task: Task,
    },
    /// Storing an artifact. Repeating it changes nothing.
    Keep(Artifact),
}

/// What happens to the children of a terminated agent (D12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Children {
    /// They are terminated first.
    #[default]
    Cascade,
    /// They become children of its parent.
    Detach,
    /// The termination is refused while there are any.
    Refuse,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// The id that the model gave the call; our own id is that of the effect.
    pub call_id: Arc<str>,
    /// The listed name of the tool.
    pub tool: Arc<str>,
    /// The name that the model wrote, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrote: Option<Arc<str>>,
    /// The arguments as JSON text, exactly as the model wrote them, without the arguments that are meant for the engine.
    pub arguments: Arc<str>,
    /// Whether it may be repeated.
    pub class: EffectClass,
    /// What policy says about it.
    #[serde(default, skip_serializing_if = "Ruling::is_allow")]
    pub ruling: Ruling,
    /// Identifies equal calls, if results may be reused between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Digest>,
    /// Why the model needs a fresh result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<Arc<str>>,
    /// The earlier result that answers this call, so that it is not made. Set by `decide` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Source>,
    /// Whether its result may change although nothing was written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub volatile: bool,
    /// Whether the tool runs inside the turn and acts by its effects. Such a call is never in doubt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// Where its content comes from and goes to.
    #[serde(default, skip_serializing_if = "Flow::is_none")]
    pub flow: Flow,
    /// For a server tool: the digest of its definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Arc<str>>,
    /// For a server tool: its definition as text. The log has it once, in `ToolPinned`.
    #[serde(skip)]
    pub definition: Option<Arc<str>>,
    /// While a person is asked about it: the tools that its server declares as read-only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<ReadTool>,
}

/// A tool that its server declares as read-only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReadTool {
    /// The listed name of the tool.
    pub tool: Arc<str>,
    /// The digest of its definition.
    pub identity: Arc<str>,
}

/// The `details` of an approval of a call: what a person should know before they decide.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// The outside content that the agent has read, if that is why the person is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<Arc<str>>,
    /// How the tool has changed since it was last used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Changed>,
    /// What an approval with `always` would cover; none if it is not possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<Matching>,
    /// The same as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub covers: String,
    /// The tools that an approval of all read-only tools of the server would cover.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<Arc<str>>,
}

/// A tool whose server has changed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// The definition that was approved.
    pub before: Arc<str>,
    /// The definition that the server lists now.
    pub after: Arc<str>,
}

/// What policy says about a call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Ruling {
    /// It is allowed.
    #[default]
    Allow,
    /// A person must approve it, for this reason.
    Ask(String),
    /// It is forbidden, for this reason.
    Deny(String),
    /// It was repeated too often, as this text explains.
    Stop(String),
    /// A person has approved it.
    Approved,
    /// The tool is a question: the answer of a person is its result, and no tool runs.
    Person(Question),
    /// It is impossible: there is no such tool, or its arguments are invalid.
    Refuse(Failure),
    /// A person must approve every single call, for this reason; `always` is not possible.
    AskEach(String),
}

impl Ruling {
    fn is_allow(&self) -> bool {
        *self == Self::Allow
    }
}

impl Call {
    /// The key that identifies equal calls; none if the arguments are not JSON.
    pub fn key_of(tool: &str, arguments: &str) -> Option<Digest> {
        Some(Digest::of([tool, &crate::canonical(arguments)?]))
    }

    /// Whether it may change what other calls read.
    pub fn may_write(&self) -> bool {
        self.class != EffectClass::Read && !self.own
    }

    /// Whether it logs what only models and later runs need, such as the environment that the model is told: no tool is called, and
    /// no user interface shows it.
    pub fn is_environment(&self) -> bool {
        self.own && &*self.tool == crate::ENVIRONMENT
    }

    /// Whether this is the same call as another, ignoring policy, the class of the tool, and what the name resolves to: these
    /// may have changed since.
    pub fn is_same(&self, other: &Self) -> bool {
        let written = |call: &Self| call.wrote.clone().unwrap_or_else(|| call.tool.clone());
        (&self.call_id, written(self), &self.arguments) == (&other.call_id, written(other), &other.arguments)
    }
}

/// Whether a tool call may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum EffectClass {
    /// It changes nothing: repeat freely.
    Read,
    /// Repeating it with the same key changes nothing more.
    Idempotent,
    /// A repetition may act twice: never repeat it without permission. Unknown tools are writes.
    #[default]
    Write,
}

/// The result of an effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// The model's whole reply.
    Reply(Reply),
    /// The result of a tool, successful or not; each call gets exactly one (D22).
    Result(CallResult),
    /// The text of an answer or of a finished unit.
    Answer(Arc<str>),
    /// The decision of a person.
    Verdict(Verdict),
    /// The wait is over.
    Slept,
    /// The artifact is stored.
    Kept(Artifact),
    /// The effect failed.
    Failed(Failure),
}

/// The whole reply of a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    /// The text of the reply.
    pub text: String,
    /// The reasoning, if the vendor provides it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// The tool calls that the model wants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The tool of the first call that is not made: the reply was cut within it, so that its arguments may be incomplete, or it
    /// is one too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_call: Option<Arc<str>>,
    /// Why it stopped.
    #[serde(default)]
    pub finish: Finish,
    /// The usage of the call.
    #[serde(default)]
    pub usage: Usage,
    /// The model that answered, as `vendor/name`.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub model: Arc<str>,
    /// What tools of the vendor did while it was written.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub vendor_calls: Arc<[VendorCall]>,
    /// The sources that the text cites.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub citations: Arc<[Citation]>,
    /// Opaque data that the vendor wants back when the conversation goes on within this turn, such as signed reasoning. Only
    /// the vendor's own adapter reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo: Option<Arc<Value>>,
}

/// A tool call as a model writes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// The id that the model gave the call.
    pub id: Arc<str>,
    /// The name of the tool.
    pub name: Arc<str>,
    /// The arguments as JSON text.
    pub arguments: Arc<str>,
}

impl ToolCall {
    /// The tool that calls another one, which the model was not shown in its list of tools.
    pub const USE_TOOL: &str = "use_tool";

    /// Names that no client's tool can have, because calls of them mean something else.
    pub const RESERVED: [&str; 3] = [Self::USE_TOOL, "find_tools", "start_workflow"];

    /// Whether the arguments are a whole object. An empty one may stand for arguments that have not begun.
    fn has_whole_arguments(&self) -> bool {
        serde_json::from_str(&self.arguments).is_ok_and(|arguments: serde_json::Map<String, Value>| !arguments.is_empty())
    }

    /// The call that is meant: the one inside a call of [`Self::USE_TOOL`], or this one.
    pub fn meant(&self) -> Cow<'_, Self> {
        #[derive(Deserialize)]
        struct Inner {
            tool: Arc<str>,
            #[serde(default)]
            arguments: Value,
        }
        if *self.name != *Self::USE_TOOL {
            return Cow::Borrowed(self);
        }
        let Ok(Inner { tool, arguments }) = serde_json::from_str(&self.arguments) else { return Cow::Borrowed(self) };
        let arguments = match arguments {
            Value::Null => "{}".into(),
            // Some models write the object as text.
            Value::String(text) => text.into(),
            other => other.to_string().into(),
        };
        Cow::Owned(Self { id: self.id.clone(), name: tool, arguments })
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It finished.
    #[default]
    Stop,
    /// It wants tool calls.
    ToolCalls,
    /// It reached the token limit.
    Length,
    /// A content filter of the vendor stopped it.
    ContentFilter,
    /// The model refused; its text says so.
    Refusal,
    /// The vendor paused its own tools; it continues when it is sent the conversation with this reply.
    Paused,
    /// A reason that only this vendor uses.
    Other(String),
}

impl Finish {
    /// The key of an answer's meta that says why the model stopped, where it did not simply finish.
    pub const META: &str = "finish";
}

/// The result of a tool, as the model reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CallResult {
    /// The text for the model.
    pub content: Arc<str>,
    /// Whether the call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Contents that are too long or not text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// Pictures, PDFs and audio that the model is shown with the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Artifact>,
    /// The earlier call whose result was reused, if none was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<EffectId>,
    /// The arguments of the call if a person changed them. The log has them in the verdict.
    #[serde(skip)]
    pub changed: Option<Arc<str>>,
    /// What the model is told about the call beside its result, such as that an earlier result was reused. It is no part of the
    /// content, so nothing that reads the content as data meets it; the log does not have it.
    #[serde(skip)]
    pub note: Option<Box<CallNote>>,
}

/// What a model is told about a call beside its result. It is boxed, because few results have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallNote(pub String);

impl CallNote {
    /// A note with this text.
    pub fn new(text: impl Into<String>) -> Box<Self> {
        Box::new(Self(text.into()))
    }
}

/// How many bytes of changed arguments the model sees.
const CHANGED_BYTES: usize = 8 << 10;

impl CallResult {
    /// A successful result.
    pub fn good(content: impl Into<Arc<str>>) -> Self {
        Self {
            content: content.into(),
            is_error: false,
            from: None,
            artifacts: Vec::new(),
            media: Vec::new(),
            changed: None,
            note: None,
        }
    }

    /// An error result.
    pub fn failed(content: impl Into<Arc<str>>) -> Self {
        Self { is_error: true, ..Self::good(content) }
    }

    /// Adds artifacts.
    #[must_use]
    pub fn with_artifacts(self, artifacts: Vec<Artifact>) -> Self {
        Self { artifacts, ..self }
    }

    /// Adds artifacts that the model is shown.
    #[must_use]
    pub fn with_media(self, media: Vec<Artifact>) -> Self {
        Self { media, ..self }
    }

    /// The content as the model reads it; if a person has changed the arguments, the actual call comes first.
    pub fn for_model(&self) -> Arc<str> {
        let Some(changed) = &self.changed else { return self.content.clone() };
        let shown = &changed[..changed.floor_char_boundary(CHANGED_BYTES)];
        let rest = if shown.len() < changed.len() { " …" } else { "" };
        let note = "Report that, not your own version.";
        format!("[polis] The person changed the arguments. What was called: {shown}{rest}. {note}\n\n{}", self.content).into()
    }
}

/// A lasting approval of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Allowed {
    /// The name of the tool.
    pub tool: Arc<str>,
    /// The agent that is covered; none for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The person whose agents are covered; none for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<PersonId>,
    /// The request that is covered; none for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The pattern of covered calls; none for all.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub matching: Option<Matching>,
    /// For a server tool: the digest of the approved definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Arc<str>>,
}

/// The longest name of a tool that every vendor takes, in characters.
const MAX_TOOL_NAME: usize = 64;

impl Reply {
    /// The most calls of a reply that are kept. A reply with more is from a model that does not know when to stop.
    pub const MAX_CALLS: usize = 256;

    /// Whether the model said nothing, for no reason that its vendor tells.
    pub fn is_empty(&self) -> bool {
        self.tool_calls.is_empty() && self.text.trim().is_empty() && self.finish == Finish::Stop
    }

    /// Writes the names of tools that nobody offered in letters that every vendor takes back in a history. Some models write
    /// `functions.read_file`, or blanks around a name.
    #[must_use]
    pub fn with_plain_names(mut self, is_offered: impl Fn(&str) -> bool) -> Self {
        for call in self.tool_calls.iter_mut().filter(|call| !is_offered(&call.name)) {
            let bare = call.name.trim();
            let bare = bare.strip_prefix("functions.").unwrap_or(bare);
            let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
            let name: String = bare.chars().take(MAX_TOOL_NAME).map(plain).collect();
            call.name = if name.is_empty() { "unnamed".into() } else { name.into() };
        }
        self
    }

    /// Drops the last call of a truncated reply, because its arguments may be incomplete. A reply that reached the limit of tokens
    /// keeps a last call whose arguments are whole.
    #[must_use]
    pub fn without_torn_call(mut self) -> Self {
        let is_torn = match self.finish {
            Finish::Length => !self.tool_calls.last().is_some_and(ToolCall::has_whole_arguments),
            Finish::ContentFilter | Finish::Refusal => true,
            Finish::Stop | Finish::ToolCalls | Finish::Paused | Finish::Other(_) => false,
        };
        if is_torn {
            self.cut_call = self.tool_calls.pop().map(|call| call.name);
        }
        self
    }

    /// Drops the calls beyond [`Reply::MAX_CALLS`].
    #[must_use]
    pub fn without_excess_calls(mut self) -> Self {
        if let Some(first) = self.tool_calls.get(Self::MAX_CALLS) {
            self.cut_call = Some(first.name.clone());
            self.tool_calls.truncate(Self::MAX_CALLS);
        }
        self
    }

    /// Whether calls of the reply were dropped because it had too many.
    pub fn had_excess_calls(&self) -> bool {
        self.cut_call.is_some() && self.tool_calls.len() >= Self::MAX_CALLS
    }
}

impl Effect {
    /// The call that a client answers: the result of a client's tool arrives as an answer to an approval.
    pub fn made_call(&self) -> Option<&Call> {
        match self {
            Self::Tool(call) => Some(call),
            Self::Approval { call, wanted, .. } => call.as_deref().filter(|_| *wanted != Wanted::Agreement),
            _ => None,
        }
    }

    /// Whether the turn only waits: the answer arrives through the log, so the turn may leave memory.
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

    /// When the wait times out.
    pub fn deadline(&self) -> Option<Timestamp> {
        match self {
            Self::Ask { deadline, .. } | Self::Approval { deadline, .. } => *deadline,
            Self::Terminate { deadline, .. } => Some(*deadline),
            Self::Sleep { until } => Some(*until),
            Self::Model { .. } | Self::Grant { .. } | Self::Tool(_) | Self::Unit { .. } | Self::Keep(_) => None,
        }
    }

    /// The kind of effect, for error messages.
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
    fn a_call_inside_another_is_the_one_that_is_meant() {
        let meant = |name: &str, arguments: &str| {
            let call = ToolCall { id: "c".into(), name: name.into(), arguments: arguments.into() };
            let ToolCall { id, name, arguments } = call.meant().into_owned();
            assert_eq!(&*id, "c");
            format!("{name} {arguments}")
        };
        assert_eq!(meant("read", "{\"tool\":\"x\"}"), "read {\"tool\":\"x\"}");
        assert_eq!(meant("use_tool", "{\"tool\":\"read\",\"arguments\":{\"path\":\"a\"}}"), "read {\"path\":\"a\"}");
        assert_eq!(meant("use_tool", "{\"tool\":\"read\",\"arguments\":\"{}\"}"), "read {}");
        assert_eq!(meant("use_tool", "{\"tool\":\"read\"}"), "read {}");
        assert_eq!(meant("use_tool", "{\"name\":\"read\"}"), "use_tool {\"name\":\"read\"}");
    }

    #[test]
    fn names_that_nobody_offered_become_ones_that_vendors_take() {
        let named = |name: &str| {
            let call = ToolCall { name: name.into(), ..ToolCall::default() };
            let reply = Reply { tool_calls: vec![call], ..Reply::default() };
            reply.with_plain_names(|name| name == "a.b").tool_calls[0].name.to_string()
        };
        let names = ["read_file", " write_file ", "functions.read_file", "a.b", "list files\npolis: now", "", "读"];
        let wanted = ["read_file", "write_file", "read_file", "a.b", "list_files_polis__now", "unnamed", "_"];
        assert_eq!(names.map(named), wanted);
        assert_eq!(named(&"x".repeat(99)).len(), 64);
    }

    #[test]
    fn a_call_that_the_model_could_not_finish_is_no_call() {
        let calls = |finish, arguments: &str| {
            let call = ToolCall { arguments: arguments.into(), ..ToolCall::default() };
            let reply = Reply { finish, tool_calls: vec![call; 2], ..Reply::default() };
            reply.without_torn_call().tool_calls.len()
        };
        let finishes = [Finish::ToolCalls, Finish::Stop, Finish::Length, Finish::ContentFilter, Finish::Refusal];
        assert_eq!(finishes.clone().map(|finish| calls(finish, "")), [2, 2, 1, 1, 1]);
        assert_eq!(finishes.map(|finish| calls(finish, "{\"path\":\"a\"}")), [2, 2, 2, 1, 1], "it is whole at the limit");
        assert_eq!(["{}", "{\"path\":\"a\"", "7"].map(|arguments| calls(Finish::Length, arguments)), [1, 1, 1]);
    }
    #[test]
    fn calls_beyond_the_most_that_are_kept_are_dropped() {
        let dropped = |count: usize| {
            let call = |n: usize| ToolCall { name: format!("f{n}").into(), ..ToolCall::default() };
            let reply = Reply { tool_calls: (0..count).map(call).collect(), finish: Finish::ToolCalls, ..Reply::default() };
            let reply = reply.without_excess_calls();
            (reply.tool_calls.len(), reply.had_excess_calls(), reply.cut_call)
        };
        assert_eq!(dropped(Reply::MAX_CALLS), (Reply::MAX_CALLS, false, None));
        assert_eq!(dropped(20_000), (Reply::MAX_CALLS, true, Some("f256".into())));
    }
}
