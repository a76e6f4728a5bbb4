//! Hears what a server says unasked: requests, changes of its lists, its log.

#![allow(deprecated, reason = "servers of today still ask for roots and samples")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    ElicitationAction, ErrorCode, Implementation, InputRequest, ListRootsResult, LoggingMessageNotificationParam, Root,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::asked::Asked;

/// One server's.
#[derive(Clone)]
pub(super) struct Ear {
    pub(super) server: Arc<str>,
    pub(super) roots: Arc<[PathBuf]>,
    pub(super) asked: Arc<dyn Asked>,
    /// Its tools are no longer those that it listed.
    pub(super) changed: Arc<Notify>,
}

impl Ear {
    /// Answers what a server needs to know before it goes on with a call.
    pub(super) async fn answer(&self, request: InputRequest) -> Result<Value, ErrorData> {
        let answer = match request {
            InputRequest::CreateMessage(request) => serde_json::to_value(self.sample(request.params).await?),
            InputRequest::Elicitation(request) => serde_json::to_value(self.elicit(request.params).await),
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

    async fn sample(&self, request: CreateMessageRequestParams) -> Result<CreateMessageResult, ErrorData> {
        let no = |why: String| ErrorData::new(ErrorCode::INVALID_REQUEST, why, None);
        let request = serde_json::to_value(request).map_err(|error| no(error.to_string()))?;
        let answer = self.asked.sample(&self.server, request).await.map_err(no)?;
        serde_json::from_value(answer).map_err(|error| no(error.to_string()))
    }

    async fn elicit(&self, request: ElicitRequestParams) -> ElicitResult {
        let answer = match serde_json::to_value(request) {
            Ok(request) => self.asked.elicit(&self.server, request).await,
            Err(_) => None,
        };
        match answer {
            Some(content) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
            None => ElicitResult::new(ElicitationAction::Decline),
        }
    }
}

impl ClientHandler for Ear {
    fn get_info(&self) -> ClientConfig {
        let mut offered = json!({ "roots": {} });
        if self.asked.lends_models() {
            offered["sampling"] = json!({});
        }
        if self.asked.asks_the_person() {
            offered["elicitation"] = json!({ "form": {} });
        }
        let capabilities = serde_json::from_value::<ClientCapabilities>(offered).unwrap_or_default();
        ClientConfig::new(capabilities, Implementation::new("polis", env!("CARGO_PKG_VERSION")))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.sample(params).await
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.elicit(request).await)
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.roots())
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
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
