//! Giving the society something to do: a new request, or a message to an agent.

use polis_domain::{AgentId, MessageId, ModelSettings, RoleId, Sender, Seq, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A new request.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Submit {
    /// What is wanted.
    pub text: String,
    /// The conversation that it belongs to; a new one if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<AgentId>,
    /// What the application says about the request, or, for a new conversation, what was said before, elsewhere.
    #[serde(default, skip_serializing_if = "RequestContext::is_empty")]
    pub context: RequestContext,
    /// The role to talk to in a new conversation; that of root if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_id: Option<RoleId>,
    /// The model that the conversation asks from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How to go about it: a new conversation keeps it. As the conversation has it when not given, else the agent's own choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// How models are called for it, over the settings of the conversation. A new conversation keeps them.
    #[serde(default, skip_serializing_if = "ModelSettings::is_default")]
    pub settings: ModelSettings,
    /// When to ask about its plans before they are carried out; at least as often as the server was told to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_approval: Option<AskAboutPlans>,
    /// Artifacts that were stored before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Attachment>,
}

/// What a request comes with.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, expecting = "`context` is a list of messages with `sender` and `text`, or an object")]
pub enum RequestContext {
    /// What was said before, elsewhere; only for a new conversation.
    Earlier(Vec<EarlierMessage>),
    /// What the application says about the request, such as `{"currentResourceId": "doc-7"}`. Agents read it, and MCP servers get it
    /// with each call.
    Application(Map<String, Value>),
}

impl RequestContext {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Earlier(messages) => messages.is_empty(),
            Self::Application(fields) => fields.is_empty(),
        }
    }
}

impl Default for RequestContext {
    fn default() -> Self {
        Self::Earlier(Vec::new())
    }
}

/// A message of an earlier conversation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EarlierMessage {
    /// Who said it: `user` or `bot`.
    pub sender: Sender,
    /// What was said.
    pub text: String,
}

/// How to go about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Strategy {
    /// As the request needs it.
    Auto,
    /// One agent answers with its tools.
    Simple,
    /// The steps of a standard operating procedure.
    Template,
    /// Plan, execute, verify, summarise.
    Workflow,
}

impl Strategy {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Simple => "simple",
            Self::Template => "template",
            Self::Workflow => "workflow",
        }
    }
}

/// When to ask about a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AskAboutPlans {
    /// Not at all.
    Never,
    /// Where the plan says that it changes something.
    Ask,
    /// Each time.
    Always,
}

/// A message to an agent.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Send {
    /// The agent, or the role that has only one.
    pub agent_id: AgentId,
    /// What it says.
    pub text: String,
    /// The request that it belongs to; a new one if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// How models are called for it, over the settings of the conversation.
    #[serde(default, skip_serializing_if = "ModelSettings::is_default")]
    pub settings: ModelSettings,
    /// When to ask about the plans of a new request before they are carried out; at least as often as the server was told to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_approval: Option<AskAboutPlans>,
    /// What the application says about the request.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub context: Map<String, Value>,
    /// Artifacts that were stored before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Attachment>,
}

/// An artifact that goes with a message.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Attached")]
pub struct Attachment {
    /// Its id, as `POST /api/artifacts` gave it.
    pub id: String,
    /// The name that the message gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Ignored; the stored size counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// What was accepted is in the log; the events after `seq` tell what comes of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// The request.
    pub task_id: TaskId,
    /// The conversation, or the agent that the message went to.
    pub conversation: AgentId,
    /// The message.
    pub message_id: MessageId,
    /// The position of the message in the log.
    pub seq: Seq,
}
