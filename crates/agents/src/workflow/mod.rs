//! Planner, executor and verifier: what they are told, what they owe in return, and how their replies are read. Nothing here
//! asks a model or runs a tool.

mod fields;
mod format;
mod json;
mod plan;
mod proof;
mod repair;
mod reply;
mod response;
mod todo;

pub use fields::{Parsed, Unreadable};
pub use format::{executor_format, planner_format, verifier_format};
pub use json::{JsonError, JsonEvent, JsonLimits, JsonReader, Listener, Opened, Step};
pub use plan::{MOST_TODOS, Plan, PlanError};
pub use proof::{Evidence, check_proof};
pub use reply::{Piece, ReplyReader};
pub use response::{
    Component, ExecutorResponse, NextAction, PlannerResponse, SummaryResponse, TaskJudgement, TodoList, TodoState, Verdict,
    VerifierResponse, parse_executor_response, parse_planner_response, parse_verifier_response,
};
pub use todo::{Todo, TodoStatus};
