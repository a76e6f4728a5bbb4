//! The operations of a society: one typed operation for every protocol.
//!
//! Requests and answers are plain types that exist once; REST, MCP, A2A, OpenAI and AG-UI translate to and from them. An
//! operation checks the caller's scope and its input. [`Api`] is the trait of all operations: [`Local`] has the society in this
//! process, `polis_client::Client` calls one over HTTP.

mod access;
mod actions;
mod agents;
mod approvals;
mod artifacts;
mod conversations;
mod deployment;
mod error;
mod health;
#[cfg(feature = "local")]
pub mod local;
mod log;
mod memories;
mod messages;
mod models;
mod nodes;
mod operations;
mod org;
pub mod paging;
mod plans;
mod policy;
mod shown_answer;
mod societies;
mod submit;
mod tasks;
mod threads;
mod tools;
mod views;

pub use access::{BadScope, Caller, Scope, Scopes};
pub use actions::{Acted, ComponentAction};
pub use agents::{
    Agent, AgentActivity, AgentContext, AgentDetail, AgentOperation, AgentState, Agents, Compress, Compressing, DeadLetters,
    Operate,
};
pub use approvals::{
    Approval, Approvals, Decision, DecisionOutcome, DecisionRequest, FileChange, Pending, PendingChange, Resolved,
};
pub use artifacts::{ArtifactName, ArtifactPaging, Artifacts, Content, NumberedArtifact};
pub use conversations::{
    ChangeConversation, Conversation, ConversationPaging, Conversations, DeleteConversation, Deleted, EraseConversation,
    Erased, Excerpt, StartConversation,
};
pub use deployment::{BehaviourVersion, Deployment, OpenTurn};
pub use error::{ApiError, ProblemDetails};
pub use health::{Health, HealthModel, HealthStatus, HealthStore, Version};
#[cfg(feature = "local")]
pub use local::Local;
pub use log::{LogPage, LogPaging};
pub use memories::{ChangedMemory, EditMemory, EraseMemory, KeepMemory, Memories, MemoryFilter, MemoryRecord, SwitchMemory};
pub use messages::{Direction, MessagePaging, Messages, UserMessage, UserMessageKind};
pub use models::{ModelVendor, Models, Spending, UsageReport};
pub use nodes::{Drain, Drained, ListedNode, NodeList};
pub use operations::Api;
pub use org::{ImportRequest, Imported, MAX_ORG_BYTES, Roles, Terminate, Terminated};
pub use paging::Paging;
pub use plans::{AgentPlan, PlanFilter, Plans};
pub use policy::{Policy, PolicyRule, PolicyThen};
pub use shown_answer::unshown;
pub use societies::{BeginSociety, BegunSociety, Fork, ListedSociety, MadeSociety, Rewind, SocietyList};
pub use submit::{Accepted, AskAboutPlans, Attachment, EarlierMessage, RequestContext, Send, Strategy, Submit};
pub use tasks::{Cancel, Cancelled, OpenTask, Retry, TaskState, TaskStatus, Tasks};
pub use threads::{ListedThread, ThreadPart, Threads};
pub use tools::{Tool, ToolServer, ToolServerState, Tools};
pub use views::{
    AgentRecord, CallCost, ConversationPage, Dismissal, EffectRecord, EffectStage, InboxRecord, InquiryRecord, Moment,
    OrganisationPage, RequestPage, RequestRecord, ThreadItem, ThreadPlace, ThreadRecord, TurnPage, TurnRecord, View,
    WaitingFor, WaitingRecord,
};
