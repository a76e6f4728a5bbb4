//! Planner, executor and verifier: what they are told, what they owe in return, how their replies are read, and the engine that
//! has them work. [`Workflow`] is the agent; [`AgentWorkflowEngine`] runs over any [`AgentBackend`].

mod agent;
mod agent_type;
mod answer;
mod application;
mod backend;
mod call_memory;
mod call_shape;
mod changed_plan;
mod context;
mod empty_summary;
mod engine;
mod evidence;
mod fields;
mod format;
mod json;
mod language;
mod messages;
mod once;
mod order;
mod phrases;
mod plain_backend;
mod plan;
mod plan_approval;
mod prompts;
mod proof;
mod repair;
mod reply;
mod reply_listener;
mod request_text;
mod response;
mod role;
mod template;
mod todo;
mod transcript;
mod truncate;
mod turn_backend;
mod work;
mod work_note;

pub use agent::Workflow;
pub use agent_type::{AgentAction, AgentType, BadAgentType};
pub use application::{
    McpHints, McpServerConfig, McpServerInfo, McpTool, WorkflowCallbacks, available_tools, find_tool_server, run_agent_workflow,
};
pub use backend::{Activity, AgentBackend, AiMessage, ChatOptions, Listeners, Speaker, StreamCallbacks, ToolScope, Watcher};
pub use call_memory::CallMemory;
pub use context::{ContextError, MOST_CONTEXT_BYTES};
pub use engine::{AgentWorkflowEngine, RunOptions, RunSettings, WorkflowLimits, WorkflowResult};
pub use evidence::Evidence;
pub use fields::{Parsed, Unreadable};
pub use format::{executor_format, planner_format, verifier_format};
pub use json::{JsonError, JsonEvent, JsonLimits, JsonReader, Listener, Opened, Step};
pub use language::Language;
pub use messages::{Refused, executor_message, planner_message, tool_lines, verifier_message};
pub use order::{Done, Order, RoleOutcome};
pub use plain_backend::{CallTool, PlainBackend, StopHandle};
pub use plan::{FailedAttempt, MOST_TODOS, Plan, PlanError};
pub use plan_approval::PlanApproval;
pub use prompts::{
    ContextSource, EXECUTOR_CORE_TEMPLATE, FALLBACK_CORE_TEMPLATE, PLANNER_CORE_TEMPLATE, Prompt, PromptError, PromptManager,
    PromptOptions, VERIFIER_CORE_TEMPLATE,
};
pub use proof::check_proof;
pub use reply::{Chunk, ReplyReader};
pub use response::{
    Component, ExecutorResponse, NextAction, PlannerResponse, SummaryResponse, TaskJudgement, TodoList, TodoState, Verdict,
    VerifierResponse, parse_executor_response, parse_planner_response, parse_verifier_response,
};
pub use role::{RoleReply, WorkflowRole, WorkflowState};
pub use template::{BUSINESS_CONTEXT, Template, TemplateError};
pub use todo::{Todo, TodoStatus};
pub use work::work;
pub(crate) use work_note::work_note;
