//! What can be asked of a society: one typed operation for every protocol.
//!
//! Requests and answers are plain types that exist once; REST, MCP, A2A, OpenAI and AG-UI translate to and from them. An
//! operation checks the caller's scope and its input. [`Local`] has the operations of a society in
//! this process.

mod access;
mod agents;
mod approvals;
mod error;
#[cfg(feature = "local")]
pub mod local;
mod messages;
mod org;
pub mod paging;
mod plans;
mod submit;
mod tasks;
mod threads;
mod views;

pub use access::{BadScope, Caller, Scope, Scopes};
pub use agents::{
    Agent, AgentContext, AgentDetail, AgentOperation, AgentState, AgentStatus, Agents, Compress, Compressing, DeadLetters,
    Operate,
};
pub use approvals::{Approval, Approvals, Decision, DecisionRequest, Pending, Resolved};
pub use error::ApiError;
#[cfg(feature = "local")]
pub use local::Local;
pub use messages::{Direction, MessagePaging, Messages, UserMessage, UserMessageKind};
pub use org::{ImportRequest, Imported, Roles, Terminate, Terminated};
pub use paging::Paging;
pub use plans::{AgentPlan, PlanFilter, Plans};
pub use submit::{Accepted, AskAboutPlans, Attachment, Send, Strategy, Submit};
pub use tasks::{Cancel, Cancelled, OpenTask, Retry, TaskState, TaskStatus, Tasks};
pub use threads::{ListedThread, ThreadPart, Threads};
pub use views::{
    AgentRecord, CallCost, ConversationPage, Dismissal, EffectRecord, EffectStage, InboxRecord, InquiryRecord, Moment,
    OrganisationPage, RequestPage, RequestRecord, ThreadItem, ThreadPlace, ThreadRecord, TurnPage, TurnRecord, View,
    WaitingFor, WaitingRecord,
};
