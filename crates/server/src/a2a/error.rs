//! The errors of the protocol, with their codes.

use polis_api::ApiError;
use serde_json::{Map, Value, json};

use crate::rpc::Fault;

/// What the protocol has a code for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    TaskNotFound,
    TaskNotCancelable,
    PushNotificationNotSupported,
    UnsupportedOperation,
    ContentTypeNotSupported,
    VersionNotSupported,
}

impl Reason {
    fn code(self) -> i64 {
        match self {
            Self::TaskNotFound => -32001,
            Self::TaskNotCancelable => -32002,
            Self::PushNotificationNotSupported => -32003,
            Self::UnsupportedOperation => -32004,
            Self::ContentTypeNotSupported => -32005,
            Self::VersionNotSupported => -32009,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::TaskNotFound => "TASK_NOT_FOUND",
            Self::TaskNotCancelable => "TASK_NOT_CANCELABLE",
            Self::PushNotificationNotSupported => "PUSH_NOTIFICATION_NOT_SUPPORTED",
            Self::UnsupportedOperation => "UNSUPPORTED_OPERATION",
            Self::ContentTypeNotSupported => "CONTENT_TYPE_NOT_SUPPORTED",
            Self::VersionNotSupported => "VERSION_NOT_SUPPORTED",
        }
    }
}

/// An error of the protocol, with details for programs.
pub(super) fn protocol_error(reason: Reason, message: impl Into<String>, details: &[(&str, &str)]) -> Fault {
    let metadata: Map<String, Value> = details.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    Fault::new(reason.code(), message).with_data(json!([info(reason.name(), "a2a-protocol.org", metadata)]))
}

pub(super) fn not_found(task: &str) -> Fault {
    protocol_error(Reason::TaskNotFound, "there is no such task", &[("taskId", task)])
}

/// An error of our own API, with its code.
pub(super) fn fault(error: &ApiError) -> Fault {
    if error.code() == "unknown_task" {
        return protocol_error(Reason::TaskNotFound, "there is no such task", &[]);
    }
    let metadata = Map::from_iter([("status".to_owned(), json!(error.status().to_string()))]);
    Fault::from(error).with_data(json!([info(&error.code().to_uppercase(), "polis", metadata)]))
}

fn info(reason: &str, domain: &str, metadata: Map<String, Value>) -> Value {
    json!({ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": domain, "metadata": metadata })
}
