//! Handles what a server sends on its own: requests, changes of its tool list, log messages.

#![allow(deprecated, reason = "servers of today still ask for roots and samples")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    ErrorCode, Implementation, InputRequest, ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam, Root,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::active_calls::{ActiveCall, ActiveCalls};
use super::server_requests;

/// The handler of one server's requests and notifications.
#[derive(Clone)]
pub(super) struct McpClientHandler {
    pub(super) server: Arc<str>,
    pub(super) roots: Arc<[PathBuf]>,
    /// The calls that it is running for us.
    pub(super) calls: Arc<ActiveCalls>,
    /// Notified when its list of tools has changed.
    pub(super) changed: Arc<Notify>,
}

impl McpClientHandler {
    /// Answers what a server needs to know before it goes on with a call.
    pub(super) async fn answer(&self, call: &ActiveCall, request: InputRequest) -> Result<Value, ErrorData> {
        let answer = match request {
            InputRequest::CreateMessage(request) => serde_json::to_value(self.sample(call, request.params).await?),
            InputRequest::Elicitation(request) => serde_json::to_value(self.elicit(call, request.params).await?),
            InputRequest::ListRoots(_) => serde_json::to_value(self.roots()),
            _ => return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "not known here", None)),
        };
        answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    fn roots(&self) -> ListRootsResult {
        let root = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Root::new(file_uri(path)).with_name(name)
        };
        ListRootsResult::new(self.roots.iter().map(root).collect())
    }

    async fn sample(&self, call: &ActiveCall, params: CreateMessageRequestParams) -> Result<CreateMessageResult, ErrorData> {
        let request = server_requests::model_request(&params).map_err(refused)?;
        match call.ask(|host| async move { host.ask_model(&self.server, request).await }).await {
            Some(Ok(reply)) => Ok(server_requests::sample_result(&params, reply)),
            Some(Err(failure)) => Err(refused(failure.to_string())),
            None => Err(refused("no model is available for this call".to_owned())),
        }
    }

    async fn elicit(&self, call: &ActiveCall, params: ElicitRequestParams) -> Result<ElicitResult, ErrorData> {
        let question = server_requests::question_for_person(&self.server, params).map_err(refused)?;
        let verdict = call.ask(|host| async move { host.ask_person(&self.server, question).await }).await;
        Ok(server_requests::elicit_result(verdict.flatten()))
    }
}

fn refused(why: String) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_REQUEST, why, None)
}

/// Gives up what the server no longer waits for.
async fn unless_cancelled<T>(
    context: &RequestContext<RoleClient>,
    answer: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    tokio::select! {
        biased;
        () = context.ct.cancelled() => Err(refused("it is no longer needed".to_owned())),
        answer = answer => answer,
    }
}

impl ClientHandler for McpClientHandler {
    fn get_info(&self) -> ClientConfig {
        let offered = json!({ "roots": {}, "sampling": {}, "elicitation": { "form": {}, "url": {} } });
        let capabilities = serde_json::from_value::<ClientCapabilities>(offered).unwrap_or_default();
        ClientConfig::new(capabilities, Implementation::new("polis", env!("CARGO_PKG_VERSION")))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let call = self.calls.caller().map_err(refused)?;
        unless_cancelled(&context, self.sample(&call, params)).await
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let call = self.calls.caller().map_err(refused)?;
        unless_cancelled(&context, self.elicit(&call, request)).await
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.roots())
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.calls.progress(&params.progress_token);
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        let text: String = params.data.to_string().chars().take(2_000).collect();
        tracing::debug!(server = &*self.server, "{text}");
    }
}

/// A path as servers want it: `file:///a%20b`.
fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => uri.push(char::from(*byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_an_address() {
        assert_eq!(file_uri(Path::new("/a b/文")), "file:///a%20b/%E6%96%87");
    }
}
