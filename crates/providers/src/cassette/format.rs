//! The file format of a cassette, and its conversion from and to the port's types. Only this module knows it.

use std::sync::Arc;
use std::time::Duration;

use polis_domain::{Digest, Finish, Text, Usage};
use polis_ports::{
    ChatMessage, Citation, Delta, Format, Media, ModelError, ModelRequest, ModelSettings, ToolChoice, VendorCall, VendorTool,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) cassette: u32,
}

/// One request and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Interaction {
    pub(super) request: RecordedRequest,
    pub(super) deltas: Vec<RecordedDelta>,
    pub(super) end: End,
}

/// How an interaction ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum End {
    /// With the reply's own end.
    Done,
    /// Without it: the stream just stopped.
    Cut,
    /// The caller dropped the stream.
    Dropped,
    Error(RecordedError),
}

/// What belongs to the identity of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RecordedRequest {
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub(super) model: Arc<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub(super) system: Text,
    pub(super) messages: Vec<ChatMessage>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<RecordedTool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) vendor_tools: Vec<VendorTool>,
    #[serde(default, skip_serializing_if = "is_auto")]
    pub(super) tool_choice: ToolChoice,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) one_call: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) format: Option<Arc<Format>>,
    #[serde(flatten)]
    pub(super) settings: ModelSettings,
}

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RecordedTool {
    pub(super) name: Arc<str>,
    pub(super) description: String,
    pub(super) parameters: Value,
}

/// A [`Delta`] that a vendor can send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordedDelta {
    Content(String),
    Reasoning(String),
    ToolCall {
        index: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<Arc<str>>,
        arguments: String,
    },
    Usage(Usage),
    Echo(Arc<Value>),
    VendorCall(VendorCall),
    Citation(Citation),
    Model(Arc<str>),
    Done(Finish),
}

/// A [`ModelError`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum RecordedError {
    Throttled {
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
    Rejected {
        reason: String,
    },
    Adapted {
        reason: String,
    },
    Failed {
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
    Resting {
        vendor: Arc<str>,
        failures: u32,
        retry_after_ms: u64,
    },
    Cut {
        reason: String,
    },
    Unreachable {
        reason: String,
    },
}

impl RecordedRequest {
    /// The same text for the same request.
    pub(super) fn key(&self) -> String {
        serde_json::to_string(self).expect("strings and finite numbers can always be written")
    }
}

impl From<&ModelRequest> for RecordedRequest {
    fn from(request: &ModelRequest) -> Self {
        let ModelRequest {
            model,
            system,
            messages,
            tools,
            vendor_tools,
            tool_choice,
            one_call,
            format,
            settings,
            takes_effort: _,
            asker: _,
            aside: _,
            purpose: _,
            effect: _,
        } = request;
        let mut settings = settings.clone();
        // One place of the recording has the choice of tools.
        let tool_choice = if *tool_choice == ToolChoice::Auto { settings.tool_choice.take() } else { None }
            .unwrap_or_else(|| tool_choice.clone());
        settings.tool_choice = None;
        let offered = tools.iter().map(|tool| RecordedTool {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        });
        Self {
            model: model.clone(),
            system: system.clone(),
            messages: messages.iter().map(without_bytes).collect(),
            tools: offered.collect(),
            vendor_tools: vendor_tools.clone(),
            tool_choice,
            one_call: *one_call,
            format: format.clone(),
            settings,
        }
    }
}

fn is_auto(choice: &ToolChoice) -> bool {
    *choice == ToolChoice::Auto
}

/// The message with the digests of its media in the place of their bytes.
fn without_bytes(message: &ChatMessage) -> ChatMessage {
    let digest = |data: &str| format!("digest:{}", json!(Digest::of([data])).as_str().unwrap_or_default()).into();
    message.clone().with_media(|media| {
        Ok(match media {
            Media::Inline { media_type, name, data } => Media::Inline { media_type, name, data: digest(&data) },
            Media::Url(url) if url.starts_with("data:") => Media::Url(digest(&url)),
            other => other,
        })
    })
}

impl RecordedDelta {
    /// None for what no vendor sends.
    pub(super) fn of(delta: &Delta) -> Option<Self> {
        Some(match delta.clone() {
            Delta::Content(text) => Self::Content(text),
            Delta::Reasoning(text) => Self::Reasoning(text),
            Delta::ToolCall { index, id, name, arguments } => Self::ToolCall { index, id, name, arguments },
            Delta::Usage(usage) => Self::Usage(usage),
            Delta::Echo(echo) => Self::Echo(echo),
            Delta::VendorCall(call) => Self::VendorCall(call),
            Delta::Citation(cited) => Self::Citation(cited),
            Delta::Model(model) => Self::Model(model),
            Delta::Done(finish) => Self::Done(finish),
            Delta::Stopped | Delta::Error(_) => return None,
        })
    }
}

impl From<RecordedDelta> for Delta {
    fn from(delta: RecordedDelta) -> Self {
        match delta {
            RecordedDelta::Content(text) => Self::Content(text),
            RecordedDelta::Reasoning(text) => Self::Reasoning(text),
            RecordedDelta::ToolCall { index, id, name, arguments } => Self::ToolCall { index, id, name, arguments },
            RecordedDelta::Usage(usage) => Self::Usage(usage),
            RecordedDelta::Echo(echo) => Self::Echo(echo),
            RecordedDelta::VendorCall(call) => Self::VendorCall(call),
            RecordedDelta::Citation(cited) => Self::Citation(cited),
            RecordedDelta::Model(model) => Self::Model(model),
            RecordedDelta::Done(finish) => Self::Done(finish),
        }
    }
}

impl From<&ModelError> for RecordedError {
    fn from(error: &ModelError) -> Self {
        let ms = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        match error {
            ModelError::Throttled { reason, retry_after } => {
                Self::Throttled { reason: reason.clone(), retry_after_ms: retry_after.map(ms) }
            }
            ModelError::Rejected { reason } => Self::Rejected { reason: reason.clone() },
            ModelError::Adapted { reason } => Self::Adapted { reason: reason.clone() },
            ModelError::Failed { reason, retry_after } => {
                Self::Failed { reason: reason.clone(), retry_after_ms: retry_after.map(ms) }
            }
            ModelError::Resting { vendor, failures, retry_after } => {
                Self::Resting { vendor: vendor.clone(), failures: *failures, retry_after_ms: ms(*retry_after) }
            }
            ModelError::Cut { reason } => Self::Cut { reason: reason.clone() },
            ModelError::Unreachable(error) => Self::Unreachable { reason: error.to_string() },
        }
    }
}

impl From<RecordedError> for ModelError {
    fn from(refusal: RecordedError) -> Self {
        let wait = |ms: Option<u64>| ms.map(Duration::from_millis);
        match refusal {
            RecordedError::Throttled { reason, retry_after_ms } => {
                Self::Throttled { reason, retry_after: wait(retry_after_ms) }
            }
            RecordedError::Rejected { reason } => Self::Rejected { reason },
            RecordedError::Adapted { reason } => Self::Adapted { reason },
            RecordedError::Failed { reason, retry_after_ms } => Self::Failed { reason, retry_after: wait(retry_after_ms) },
            RecordedError::Resting { vendor, failures, retry_after_ms } => {
                Self::Resting { vendor, failures, retry_after: Duration::from_millis(retry_after_ms) }
            }
            RecordedError::Cut { reason } => Self::Cut { reason },
            RecordedError::Unreachable { reason } => Self::Unreachable(reason.into()),
        }
    }
}
