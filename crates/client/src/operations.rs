//! The operations of a society over HTTP: one route each.

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use polis_api::*;
use polis_domain::{AgentId, Artifact, ArtifactId, MemoryId, Org, TaskId, Thread, ThreadId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::exchange::{Client, problem, read, whole};

/// Characters that are percent-encoded in a path segment.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

const JSON: &str = "application/json";

impl Client {
    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        Ok(read(self.call(path, None).await?).await?)
    }

    async fn query<T: DeserializeOwned>(&self, path: &str, query: &impl Serialize) -> Result<T, ApiError> {
        self.get(&with_query(path, query)?).await
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, request: &impl Serialize) -> Result<T, ApiError> {
        let body = serde_json::to_vec(request).map_err(unwritable)?;
        Ok(read(self.call(path, Some((JSON, body))).await?).await?)
    }
}

/// A path with a query.
fn with_query(path: &str, query: &impl Serialize) -> Result<String, ApiError> {
    let query = serde_urlencoded::to_string(query).map_err(unwritable)?;
    Ok(if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") })
}

fn unwritable(error: impl std::fmt::Display) -> ApiError {
    ApiError::bad_request("bad_json", format!("the request cannot be written: {error}"))
}

/// `/api/KIND/ID`, and what follows.
fn path(kind: &str, id: &str, rest: &str) -> String {
    format!("/api/{kind}/{}{rest}", utf8_percent_encode(id, SEGMENT))
}

#[async_trait]
impl Api for Client {
    async fn submit(&self, request: Submit) -> Result<Accepted, ApiError> {
        self.post("/api/submit", &request).await
    }

    async fn send(&self, request: Send) -> Result<Accepted, ApiError> {
        self.post("/api/send", &request).await
    }

    async fn conversations(&self, paging: ConversationPaging) -> Result<Conversations, ApiError> {
        self.query("/api/conversations", &paging).await
    }

    async fn conversation(&self, id: &AgentId) -> Result<Conversation, ApiError> {
        self.get(&path("conversations", id.as_str(), "")).await
    }

    async fn start_conversation(&self, request: StartConversation) -> Result<Conversation, ApiError> {
        self.post("/api/conversations", &request).await
    }

    async fn change_conversation(&self, id: &AgentId, request: ChangeConversation) -> Result<Conversation, ApiError> {
        self.post(&path("conversations", id.as_str(), ""), &request).await
    }

    async fn delete_conversation(&self, id: &AgentId) -> Result<Deleted, ApiError> {
        self.post(&path("conversations", id.as_str(), "/delete"), &DeleteConversation {}).await
    }

    async fn erase_conversation(&self, id: &AgentId) -> Result<Erased, ApiError> {
        self.post(&path("conversations", id.as_str(), "/erase"), &EraseConversation {}).await
    }

    async fn task(&self, id: &TaskId) -> Result<TaskState, ApiError> {
        self.get(&path("tasks", id.as_str(), "")).await
    }

    async fn tasks(&self, paging: &Paging) -> Result<Tasks, ApiError> {
        self.query("/api/tasks", paging).await
    }

    async fn cancel(&self, id: &TaskId, request: Cancel) -> Result<Cancelled, ApiError> {
        self.post(&path("tasks", id.as_str(), "/cancel"), &request).await
    }

    async fn retry(&self, id: &TaskId) -> Result<Accepted, ApiError> {
        self.post(&path("tasks", id.as_str(), "/retry"), &Retry {}).await
    }

    async fn messages(&self, task: &TaskId, which: MessagePaging) -> Result<Messages, ApiError> {
        self.query(&path("messages", task.as_str(), ""), &which).await
    }

    async fn plans(&self, filter: PlanFilter) -> Result<Plans, ApiError> {
        self.query("/api/plans", &filter).await
    }

    async fn approvals(&self, paging: &Paging) -> Result<Approvals, ApiError> {
        self.query("/api/approvals", paging).await
    }

    async fn pending_change(&self, id: &str) -> Result<PendingChange, ApiError> {
        self.get(&path("approvals", id, "/change")).await
    }

    async fn resolve(&self, id: &str, decision: DecisionRequest) -> Result<Resolved, ApiError> {
        self.post(&path("approvals", id, ""), &decision).await
    }

    async fn act(&self, request: ComponentAction) -> Result<Acted, ApiError> {
        self.post("/api/actions", &request).await
    }

    async fn agents(&self, paging: &Paging) -> Result<Agents, ApiError> {
        self.query("/api/agents", paging).await
    }

    async fn agent(&self, id: &AgentId) -> Result<AgentDetail, ApiError> {
        self.get(&path("agents", id.as_str(), "")).await
    }

    async fn operate(&self, id: &AgentId, request: Operate) -> Result<Accepted, ApiError> {
        self.post(&path("agents", id.as_str(), "/operate"), &request).await
    }

    async fn compress(&self, id: &AgentId, request: Compress) -> Result<Compressing, ApiError> {
        self.post(&path("agents", id.as_str(), "/compress"), &request).await
    }

    async fn terminate(&self, id: &AgentId, request: Terminate) -> Result<Terminated, ApiError> {
        self.post(&path("agents", id.as_str(), "/terminate"), &request).await
    }

    async fn dead_letters(&self) -> Result<DeadLetters, ApiError> {
        self.get("/api/dead-letters").await
    }

    async fn org(&self) -> Result<Org, ApiError> {
        self.get("/api/org").await
    }

    async fn import(&self, document: Value, how: ImportRequest) -> Result<Imported, ApiError> {
        self.post(&with_query("/api/org", &how)?, &document).await
    }

    async fn roles(&self, paging: &Paging) -> Result<Roles, ApiError> {
        self.query("/api/roles", paging).await
    }

    async fn threads(&self, paging: &Paging) -> Result<Threads, ApiError> {
        self.query("/api/threads", paging).await
    }

    async fn thread(&self, main: &ThreadId, part: &ThreadPart) -> Result<Thread, ApiError> {
        self.query(&path("threads", main.as_str(), ""), part).await
    }

    async fn artifacts(&self, paging: ArtifactPaging) -> Result<Artifacts, ApiError> {
        self.query("/api/artifacts", &paging).await
    }

    async fn content(&self, id: &ArtifactId) -> Result<Content, ApiError> {
        let response = self.call(&path("artifacts", &id.to_string(), ""), None).await?.accepted().await?;
        Ok(Box::pin(response.body.map_ok(|chunk| chunk.to_vec())))
    }

    async fn store_artifact(&self, name: ArtifactName, media_type: &str, mut content: Content) -> Result<Artifact, ApiError> {
        let mut body = Vec::new();
        while let Some(chunk) = content.next().await {
            let broken = |error| ApiError::bad_request("bad_body", format!("the content broke off: {error}"));
            body.extend_from_slice(&chunk.map_err(broken)?);
        }
        Ok(read(self.call(&with_query("/api/artifacts", &name)?, Some((media_type, body))).await?).await?)
    }

    async fn memories(&self, filter: MemoryFilter) -> Result<Memories, ApiError> {
        self.query("/api/memories", &filter).await
    }

    async fn keep_memory(&self, request: KeepMemory) -> Result<ChangedMemory, ApiError> {
        self.post("/api/memories", &request).await
    }

    async fn edit_memory(&self, id: &MemoryId, request: EditMemory) -> Result<ChangedMemory, ApiError> {
        self.post(&path("memories", id.as_str(), ""), &request).await
    }

    async fn erase_memory(&self, id: &MemoryId) -> Result<ChangedMemory, ApiError> {
        self.post(&path("memories", id.as_str(), "/erase"), &EraseMemory {}).await
    }

    async fn switch_memory(&self, request: SwitchMemory) -> Result<SwitchMemory, ApiError> {
        self.post("/api/memories/enabled", &request).await
    }

    async fn models(&self) -> Result<Models, ApiError> {
        self.get("/api/models").await
    }

    async fn tools(&self, paging: &Paging) -> Result<Tools, ApiError> {
        self.query("/api/tools", paging).await
    }

    async fn policy(&self) -> Result<Policy, ApiError> {
        self.get("/api/policy").await
    }

    async fn deployment(&self) -> Result<Deployment, ApiError> {
        self.get("/api/deployment").await
    }

    async fn usage(&self) -> Result<UsageReport, ApiError> {
        self.get("/api/usage").await
    }

    async fn log(&self, paging: LogPaging) -> Result<LogPage, ApiError> {
        self.query("/api/log", &paging).await
    }

    async fn societies(&self, paging: &Paging) -> Result<SocietyList, ApiError> {
        self.query("/api/societies", paging).await
    }

    async fn begin_society(&self, request: BeginSociety) -> Result<BegunSociety, ApiError> {
        self.post("/api/societies", &request).await
    }

    async fn fork(&self, request: Fork) -> Result<MadeSociety, ApiError> {
        self.post("/api/fork", &request).await
    }

    async fn rewind(&self, request: Rewind) -> Result<MadeSociety, ApiError> {
        self.post("/api/rewind", &request).await
    }

    async fn nodes(&self) -> Result<NodeList, ApiError> {
        self.get("/api/nodes").await
    }

    async fn drain(&self, node: String, request: Drain) -> Result<Drained, ApiError> {
        self.post(&path("nodes", &node, "/drain"), &request).await
    }

    async fn health(&self) -> Result<Health, ApiError> {
        let response = self.call("/api/health", None).await?;
        let status = response.status;
        let body = whole(response.body).await?;
        // A society that is down says so with status 503.
        serde_json::from_slice(&body).map_err(|_| problem(status, &body).into())
    }

    async fn version(&self) -> Result<Version, ApiError> {
        self.get("/api/version").await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_queries_are_encoded() {
        assert_eq!(path("threads", "a.b/线?", "/x"), "/api/threads/a.b%2F%E7%BA%BF%3F/x");
        let part = ThreadPart { path: "messages[0].meta._thread&tree=x".to_owned(), tree: true };
        let target = with_query("/api/threads/root", &part).unwrap();
        assert_eq!(target, "/api/threads/root?path=messages%5B0%5D.meta._thread%26tree%3Dx&tree=true");
        assert_eq!(with_query("/api/agents", &Paging::default()).unwrap(), "/api/agents");
        let which = MessagePaging { direction: Direction::All, after: None, limit: Some(7) };
        assert_eq!(with_query("/m", &which).unwrap(), "/m?direction=all&limit=7");
    }
}
