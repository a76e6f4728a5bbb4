//! The operations as one trait: a society in this process and one behind HTTP are called alike.

use async_trait::async_trait;
use polis_domain::{AgentId, Artifact, ArtifactId, MemoryId, Org, TaskId, Thread, ThreadId};
use serde_json::Value;

use crate::{
    Accepted, Acted, AgentDetail, Agents, ApiError, Approvals, ArtifactName, ArtifactPaging, Artifacts, BeginSociety,
    BegunSociety, Cancel, Cancelled, ChangeConversation, ChangedMemory, ComponentAction, Compress, Compressing, Content,
    Conversation, ConversationPaging, Conversations, DeadLetters, DecisionRequest, Deleted, Deployment, Drain, Drained,
    EditMemory, Erased, Fork, Health, ImportRequest, Imported, KeepMemory, LogPage, LogPaging, MadeSociety, Memories,
    MemoryFilter, MessagePaging, Messages, Models, NodeList, Operate, Paging, PendingChange, PlanFilter, Plans, Policy,
    Resolved, Rewind, Roles, Send, SocietyList, StartConversation, Submit, SwitchMemory, TaskState, Tasks, Terminate,
    Terminated, ThreadPart, Threads, Tools, UsageReport, Version,
};

/// The operations of a society.
///
/// `Local` has the society in this process; `polis_client::Client` calls a server. Following events as they happen is not part
/// of it: over HTTP that is a stream of server-sent events, in a process it is `Society::watch`.
#[async_trait]
pub trait Api: Sync {
    /// Submits a request: to a conversation, or to a new one.
    async fn submit(&self, request: Submit) -> Result<Accepted, ApiError>;

    /// Sends a message to an agent, within a request or as a new one.
    async fn send(&self, request: Send) -> Result<Accepted, ApiError>;

    /// The conversations, those with the newest messages first.
    async fn conversations(&self, paging: ConversationPaging) -> Result<Conversations, ApiError>;

    /// One conversation.
    async fn conversation(&self, id: &AgentId) -> Result<Conversation, ApiError>;

    /// Starts a conversation without a message.
    async fn start_conversation(&self, request: StartConversation) -> Result<Conversation, ApiError>;

    /// Changes title, list place or settings of a conversation.
    async fn change_conversation(&self, id: &AgentId, request: ChangeConversation) -> Result<Conversation, ApiError>;

    /// Deletes a conversation: its agent is terminated with all below it. The log keeps what was said.
    async fn delete_conversation(&self, id: &AgentId) -> Result<Deleted, ApiError>;

    /// Erases the content of a conversation for good, also of one that was deleted before. One that goes on is deleted first.
    async fn erase_conversation(&self, id: &AgentId) -> Result<Erased, ApiError>;

    /// The state of a request.
    async fn task(&self, id: &TaskId) -> Result<TaskState, ApiError>;

    /// The open requests.
    async fn tasks(&self, paging: &Paging) -> Result<Tasks, ApiError>;

    /// Cancels a request, or one turn of it, with everything below.
    async fn cancel(&self, id: &TaskId, request: Cancel) -> Result<Cancelled, ApiError>;

    /// Sends the person's last message about a request again.
    async fn retry(&self, id: &TaskId) -> Result<Accepted, ApiError>;

    /// The messages between the person and the society about a request.
    async fn messages(&self, task: &TaskId, which: MessagePaging) -> Result<Messages, ApiError>;

    /// The newest plans, or those of one request, newest first.
    async fn plans(&self, filter: PlanFilter) -> Result<Plans, ApiError>;

    /// The pending approvals.
    async fn approvals(&self, paging: &Paging) -> Result<Approvals, ApiError>;

    /// What the call that waits under this id would change in a file.
    async fn pending_change(&self, id: &str) -> Result<PendingChange, ApiError>;

    /// Decides what waits under this id.
    async fn resolve(&self, id: &str, decision: DecisionRequest) -> Result<Resolved, ApiError>;

    /// A person's action on a component of the page.
    async fn act(&self, request: ComponentAction) -> Result<Acted, ApiError>;

    /// The agents, in the order in which they were spawned.
    async fn agents(&self, paging: &Paging) -> Result<Agents, ApiError>;

    /// One agent, with its role, its children and its operations.
    async fn agent(&self, id: &AgentId) -> Result<AgentDetail, ApiError>;

    /// Runs an operation of an agent.
    async fn operate(&self, id: &AgentId, request: Operate) -> Result<Accepted, ApiError>;

    /// Has an agent compress its conversation, or undoes the last compression.
    async fn compress(&self, id: &AgentId, request: Compress) -> Result<Compressing, ApiError>;

    /// Terminates an agent.
    async fn terminate(&self, id: &AgentId, request: Terminate) -> Result<Terminated, ApiError>;

    /// The dead-lettered messages, newest first.
    async fn dead_letters(&self) -> Result<DeadLetters, ApiError>;

    /// The organisation as one document.
    async fn org(&self) -> Result<Org, ApiError>;

    /// Creates the roles and agents of a document that are not there yet. The document may be of an older version.
    async fn import(&self, document: Value, how: ImportRequest) -> Result<Imported, ApiError>;

    /// The roles, by id.
    async fn roles(&self, paging: &Paging) -> Result<Roles, ApiError>;

    /// The threads, by name.
    async fn threads(&self, paging: &Paging) -> Result<Threads, ApiError>;

    /// A thread, or a part of it by its address.
    async fn thread(&self, main: &ThreadId, part: &ThreadPart) -> Result<Thread, ApiError>;

    /// The artifacts that the log names, oldest first.
    async fn artifacts(&self, paging: ArtifactPaging) -> Result<Artifacts, ApiError>;

    /// The bytes of an artifact.
    async fn content(&self, id: &ArtifactId) -> Result<Content, ApiError>;

    /// Stores a content, for a message to name.
    async fn store_artifact(&self, name: ArtifactName, media_type: &str, content: Content) -> Result<Artifact, ApiError>;

    /// The memories of the caller and of the society: newest first, or best first if words are searched.
    async fn memories(&self, filter: MemoryFilter) -> Result<Memories, ApiError>;

    /// Stores a memory for the caller, or for the society.
    async fn keep_memory(&self, request: KeepMemory) -> Result<ChangedMemory, ApiError>;

    /// Gives a memory another text.
    async fn edit_memory(&self, id: &MemoryId, request: EditMemory) -> Result<ChangedMemory, ApiError>;

    /// Erases a memory and its text.
    async fn erase_memory(&self, id: &MemoryId) -> Result<ChangedMemory, ApiError>;

    /// Switches memory on or off for the caller.
    async fn switch_memory(&self, request: SwitchMemory) -> Result<SwitchMemory, ApiError>;

    /// The available models.
    async fn models(&self) -> Result<Models, ApiError>;

    /// Which tools can be called, and the state of their servers.
    async fn tools(&self, paging: &Paging) -> Result<Tools, ApiError>;

    /// The operator's rules for calls.
    async fn policy(&self) -> Result<Policy, ApiError>;

    /// The spending on models.
    async fn usage(&self) -> Result<UsageReport, ApiError>;

    /// The versions of behaviours, and the open turns that need them.
    async fn deployment(&self) -> Result<Deployment, ApiError>;

    /// The events after a place of the log.
    async fn log(&self, paging: LogPaging) -> Result<LogPage, ApiError>;

    /// The societies of the store, by name.
    async fn societies(&self, paging: &Paging) -> Result<SocietyList, ApiError>;

    /// Begins a society and has it work, unless it is there.
    async fn begin_society(&self, request: BeginSociety) -> Result<BegunSociety, ApiError>;

    /// Begins a society with the past of this one.
    async fn fork(&self, request: Fork) -> Result<MadeSociety, ApiError>;

    /// Has the society go on from an event, and keeps what it was under another name.
    async fn rewind(&self, request: Rewind) -> Result<MadeSociety, ApiError>;

    /// The nodes that share the log.
    async fn nodes(&self) -> Result<NodeList, ApiError>;

    /// Has a node give its societies away, or take some again.
    async fn drain(&self, node: String, request: Drain) -> Result<Drained, ApiError>;

    /// Whether the society is well; a society that is not is no error.
    async fn health(&self) -> Result<Health, ApiError>;

    /// The version of the server.
    async fn version(&self) -> Result<Version, ApiError>;
}
