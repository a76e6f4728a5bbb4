//! The society as an A2A agent: its card, and JSON-RPC at `/a2a`, version 1.0 of the protocol. A task of the protocol is a
//! request of a person; who asks is treated as that person. Push notifications are not there, and the card says so.

mod card;
mod error;
mod list;
mod message;
mod send;
mod stream;
mod task;
pub(crate) mod task_index;

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use polis_api::Cancel;
use polis_domain::TaskId;
use serde::Deserialize;
use serde_json::{Map, Value};

pub(crate) use card::card;

use crate::body::Json;
use crate::caller::{RequestCaller, Scope};
use crate::extract::{CallerState, QueryParams};
use crate::problem::Problem;
use crate::rpc::{self, Fault, Incoming, METHOD_NOT_FOUND};
use crate::task_follower::Peer;
use card::Base;
use error::{Reason, fault, protocol_error};

/// The version that is spoken.
const VERSION: &str = "1.0";

/// The version that is assumed where none is sent.
const DEFAULT_VERSION: &str = "0.3";

#[derive(Deserialize)]
pub(crate) struct VersionQuery {
    #[serde(rename = "A2A-Version", alias = "a2a-version")]
    version: Option<String>,
}

pub(crate) async fn post(
    CallerState(state): CallerState,
    RequestCaller(caller): RequestCaller,
    base: Base,
    QueryParams(asked): QueryParams<VersionQuery>,
    headers: HeaderMap,
    body: Result<Json<Value>, Problem>,
) -> Result<Response, Problem> {
    let (id, method, params) = match rpc::read(body)? {
        Ok(Incoming::Request { id, method, params }) => (id, method, params),
        // The protocol has no notifications to act on.
        Ok(Incoming::Notification { .. } | Incoming::Answer { .. }) => return Ok(StatusCode::NO_CONTENT.into_response()),
        Err(fault) => return Ok(axum::Json(fault.answer(None)).into_response()),
    };
    let version = headers.get("a2a-version").and_then(|value| value.to_str().ok()).map(str::to_owned).or(asked.version);
    let call = Call { peer: Peer { state, caller }, base, params };
    let answered = match check_version(version.as_deref()) {
        Ok(()) => call.answer(&id, &method).await,
        Err(fault) => Err(fault),
    };
    Ok(answered.unwrap_or_else(|fault| axum::Json(fault.answer(Some(&id))).into_response()))
}

fn check_version(version: Option<&str>) -> Result<(), Fault> {
    let version = version.map(str::trim).filter(|version| !version.is_empty()).unwrap_or(DEFAULT_VERSION);
    // Patches make no difference.
    if version == VERSION || version.strip_prefix(VERSION).is_some_and(|rest| rest.starts_with('.')) {
        return Ok(());
    }
    let message = format!("version {version} of A2A is not supported; send the header A2A-Version: {VERSION}");
    Err(protocol_error(Reason::VersionNotSupported, message, &[("supportedVersions", VERSION)]))
}

/// A request of the protocol.
struct Call {
    peer: Peer,
    base: Base,
    params: Map<String, Value>,
}

impl Call {
    async fn answer(&self, id: &Value, method: &str) -> Result<Response, Fault> {
        if matches!(method, "GetTask" | "ListTasks" | "CancelTask" | "SubscribeToTask") {
            self.peer.caller.needs(Scope::Read).map_err(|problem| fault(&problem))?;
        }
        let result = match method {
            "SendMessage" => self.send().await?,
            "SendStreamingMessage" => return self.send_streaming(id).await,
            "GetTask" => {
                let length = self.history_length(&self.params)?;
                task::task_json(self, &self.task_id()?, length).await?
            }
            "ListTasks" => self.list().await?,
            "CancelTask" => self.cancel().await?,
            "SubscribeToTask" => return self.subscribe(id).await,
            "CreateTaskPushNotificationConfig"
            | "GetTaskPushNotificationConfig"
            | "ListTaskPushNotificationConfigs"
            | "DeleteTaskPushNotificationConfig" => return Err(no_push()),
            "GetExtendedAgentCard" => {
                return Err(protocol_error(Reason::UnsupportedOperation, "there is no extended card", &[]));
            }
            _ => return Err(Fault::new(METHOD_NOT_FOUND, format!("there is no method `{method}` in A2A {VERSION}"))),
        };
        Ok(axum::Json(rpc::done(id, &result)).into_response())
    }

    /// The same with the scope `read`, for the task that this message started.
    fn with_read_scope(&self) -> Self {
        Self { peer: self.peer.with_read_scope(), base: Base(self.base.0.clone()), params: self.params.clone() }
    }

    /// The task that is meant, which need not be there.
    fn task_id(&self) -> Result<TaskId, Fault> {
        let id = self.params.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        id.map(TaskId::from).ok_or_else(|| Fault::invalid("`id` must name a task"))
    }

    /// How much of the history is wanted. JSON of protobuf may also have the names of the fields as the proto file has them.
    fn history_length(&self, from: &Map<String, Value>) -> Result<Option<usize>, Fault> {
        match from.get("historyLength").or_else(|| from.get("history_length")) {
            None | Some(Value::Null) => Ok(None),
            Some(length) => match length.as_u64() {
                Some(length) => Ok(Some(usize::try_from(length).unwrap_or(usize::MAX))),
                None => Err(Fault::invalid("`historyLength` must be 0 or more")),
            },
        }
    }

    async fn cancel(&self) -> Result<Value, Fault> {
        let id = self.task_id()?;
        task::envelopes(self, &id).await?;
        let summary = self.peer.summary(&id).await.map_err(|problem| fault(&problem))?;
        if summary.is_over() {
            let message = format!("the task is {} and cannot be cancelled any more", summary.status_name());
            return Err(protocol_error(Reason::TaskNotCancelable, message, &[("taskId", id.as_str())]));
        }
        let why = Cancel { reason: "an A2A client cancelled it".to_owned(), turn: None };
        self.peer.api().cancel(&id, why).await.map_err(|error| fault(&error))?;
        task::task_json(self, &id, None).await
    }
}

fn no_push() -> Fault {
    protocol_error(
        Reason::PushNotificationNotSupported,
        "push notifications are not supported; use SubscribeToTask or GetTask",
        &[],
    )
}
