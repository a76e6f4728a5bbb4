//! [`Local`] as an [`Api`]: each operation is the one of the same name in this folder.

use std::io;

use async_trait::async_trait;
use futures_util::TryStreamExt;
use polis_domain::{AgentId, Artifact, ArtifactId, MemoryId, Org, TaskId, Thread, ThreadId};
use serde_json::Value;

use super::Local;
use crate::*;

#[async_trait]
impl Api for Local {
    async fn submit(&self, request: Submit) -> Result<Accepted, ApiError> {
        Local::submit(self, request).await
    }

    async fn send(&self, request: Send) -> Result<Accepted, ApiError> {
        Local::send(self, request).await
    }

    async fn conversations(&self, paging: ConversationPaging) -> Result<Conversations, ApiError> {
        Local::conversations(self, paging).await
    }

    async fn conversation(&self, id: &AgentId) -> Result<Conversation, ApiError> {
        Local::conversation(self, id).await
    }

    async fn start_conversation(&self, request: StartConversation) -> Result<Conversation, ApiError> {
        Local::start_conversation(self, request).await
    }

    async fn change_conversation(&self, id: &AgentId, request: ChangeConversation) -> Result<Conversation, ApiError> {
        Local::change_conversation(self, id, request).await
    }

    async fn delete_conversation(&self, id: &AgentId) -> Result<Deleted, ApiError> {
        Local::delete_conversation(self, id).await
    }

    async fn erase_conversation(&self, id: &AgentId) -> Result<Erased, ApiError> {
        Local::erase_conversation(self, id).await
    }

    async fn task(&self, id: &TaskId) -> Result<TaskState, ApiError> {
        Local::task(self, id).await
    }

    async fn tasks(&self, paging: &Paging) -> Result<Tasks, ApiError> {
        Local::tasks(self, paging).await
    }

    async fn cancel(&self, id: &TaskId, request: Cancel) -> Result<Cancelled, ApiError> {
        Local::cancel(self, id, request).await
    }

    async fn retry(&self, id: &TaskId) -> Result<Accepted, ApiError> {
        Local::retry(self, id).await
    }

    async fn messages(&self, task: &TaskId, which: MessagePaging) -> Result<Messages, ApiError> {
        Local::messages(self, task, which).await
    }

    async fn plans(&self, filter: PlanFilter) -> Result<Plans, ApiError> {
        Local::plans(self, filter).await
    }

    async fn approvals(&self, paging: &Paging) -> Result<Approvals, ApiError> {
        Local::approvals(self, paging).await
    }

    async fn pending_change(&self, id: &str) -> Result<PendingChange, ApiError> {
        Local::pending_change(self, id).await
    }

    async fn resolve(&self, id: &str, decision: DecisionRequest) -> Result<Resolved, ApiError> {
        Local::resolve(self, id, decision.decision()?).await
    }

    async fn act(&self, request: ComponentAction) -> Result<Acted, ApiError> {
        Local::act(self, request).await
    }

    async fn agents(&self, paging: &Paging) -> Result<Agents, ApiError> {
        Local::agents(self, paging).await
    }

    async fn agent(&self, id: &AgentId) -> Result<AgentDetail, ApiError> {
        Local::agent(self, id).await
    }

    async fn operate(&self, id: &AgentId, request: Operate) -> Result<Accepted, ApiError> {
        Local::operate(self, id.clone(), request).await
    }

    async fn compress(&self, id: &AgentId, request: Compress) -> Result<Compressing, ApiError> {
        Local::compress(self, id.clone(), request).await
    }

    async fn terminate(&self, id: &AgentId, request: Terminate) -> Result<Terminated, ApiError> {
        Local::terminate(self, id.clone(), request).await
    }

    async fn dead_letters(&self) -> Result<DeadLetters, ApiError> {
        Local::dead_letters(self).await
    }

    async fn org(&self) -> Result<Org, ApiError> {
        Local::org(self).await
    }

    async fn import(&self, document: Value, how: ImportRequest) -> Result<Imported, ApiError> {
        Local::import(self, document, how).await
    }

    async fn roles(&self, paging: &Paging) -> Result<Roles, ApiError> {
        Local::roles(self, paging).await
    }

    async fn threads(&self, paging: &Paging) -> Result<Threads, ApiError> {
        Local::threads(self, paging).await
    }

    async fn thread(&self, main: &ThreadId, part: &ThreadPart) -> Result<Thread, ApiError> {
        Local::thread(self, main, part).await
    }

    async fn artifacts(&self, paging: ArtifactPaging) -> Result<Artifacts, ApiError> {
        Local::artifacts(self, paging).await
    }

    async fn content(&self, id: &ArtifactId) -> Result<Content, ApiError> {
        let total = self.artifact(id).await?.bytes;
        Local::content(self, id, 0..total).await
    }

    async fn store_artifact(&self, name: ArtifactName, media_type: &str, content: Content) -> Result<Artifact, ApiError> {
        let broken = |error: io::Error| ApiError::bad_request("bad_body", format!("the content broke off: {error}"));
        Local::store_artifact(self, name, media_type, content.map_err(broken)).await
    }

    async fn memories(&self, filter: MemoryFilter) -> Result<Memories, ApiError> {
        Local::memories(self, filter).await
    }

    async fn keep_memory(&self, request: KeepMemory) -> Result<ChangedMemory, ApiError> {
        Local::keep_memory(self, request).await
    }

    async fn edit_memory(&self, id: &MemoryId, request: EditMemory) -> Result<ChangedMemory, ApiError> {
        Local::edit_memory(self, id, request).await
    }

    async fn erase_memory(&self, id: &MemoryId) -> Result<ChangedMemory, ApiError> {
        Local::erase_memory(self, id).await
    }

    async fn switch_memory(&self, request: SwitchMemory) -> Result<SwitchMemory, ApiError> {
        Local::switch_memory(self, request).await
    }

    async fn models(&self) -> Result<Models, ApiError> {
        Local::models(self).await
    }

    async fn tools(&self, paging: &Paging) -> Result<Tools, ApiError> {
        Local::tools(self, paging).await
    }

    async fn policy(&self) -> Result<Policy, ApiError> {
        Local::policy(self).await
    }

    async fn deployment(&self) -> Result<Deployment, ApiError> {
        Local::deployment(self).await
    }

    async fn usage(&self) -> Result<UsageReport, ApiError> {
        Local::usage(self).await
    }

    async fn log(&self, paging: LogPaging) -> Result<LogPage, ApiError> {
        Local::log(self, paging).await
    }

    async fn societies(&self, paging: &Paging) -> Result<SocietyList, ApiError> {
        Local::societies(self, paging).await
    }

    async fn begin_society(&self, request: BeginSociety) -> Result<BegunSociety, ApiError> {
        Local::begin_society(self, request).await
    }

    async fn fork(&self, request: Fork) -> Result<MadeSociety, ApiError> {
        Local::fork(self, request).await
    }

    async fn rewind(&self, request: Rewind) -> Result<MadeSociety, ApiError> {
        Local::rewind(self, request).await
    }

    async fn nodes(&self) -> Result<NodeList, ApiError> {
        Local::nodes(self).await
    }

    async fn drain(&self, node: String, request: Drain) -> Result<Drained, ApiError> {
        Local::drain(self, node, request).await
    }

    async fn health(&self) -> Result<Health, ApiError> {
        Ok(Local::health(self).await)
    }

    async fn version(&self) -> Result<Version, ApiError> {
        Local::version(self).await
    }
}
