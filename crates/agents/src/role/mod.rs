//! The role agent: what a member of the society runs when a task arrives (document 004). It chooses a strategy, makes a plan of
//! own and collaboration steps, and carries it out.

mod action;
mod base;
mod execute;
mod message;
mod options;
mod plan;
mod planner;
mod sop;
pub(crate) mod start_workflow;
mod state;
mod strategy;

pub use action::{Action, ActionResult, Actions, AskAgent, CONVERSE, PLAN_TOOL, REQUEST_COLLABORATION, Tools, WORK};
pub use base::{AgentBaseRole, Member, RoleAgent};
pub use execute::Record;
pub use message::{CollaborationResponse, ResponseStatus, StructuredMessage, TaskInfo};
pub use options::{LlmConfig, RoleParts};
pub use plan::{InternalPlan, InternalStep, OnFailure, StepType};
pub use sop::{Sop, SopFault, Sops};
pub use state::{AgentState, AgentStatus};
pub use strategy::{Choice, PlanningStrategy, STRATEGY};
