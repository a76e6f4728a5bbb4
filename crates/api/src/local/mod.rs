//! The operations on a society in this process.

mod actions;
mod agents;
mod api;
mod approvals;
mod artifacts;
mod changes;
mod conversations;
mod deployment;
mod error;
mod health;
mod host_settings;
mod log;
mod memories;
mod messages;
mod nodes;
mod org;
mod plans;
mod search;
mod societies;
mod submit;
mod tasks;
mod threads;
mod tools;
mod uploads;
mod usage;
mod views;

use std::sync::Arc;

use polis_engine::Society;

pub use approvals::{SettledApproval, settle, settled, waiting};
pub use host_settings::{HostSettings, Vendor};
pub use societies::{Registry, no_nodes, one_society};
pub use submit::artifact_id;
pub use tasks::{OpenTaskState, TurnActivity, open_task};
pub use tools::all_tools;
pub use uploads::Uploads;

use crate::Caller;

/// A society as one caller may use it. For a request with an idempotency key, `society` is a handle of [`Society::once`].
#[derive(Clone)]
pub struct Local {
    /// The society, limited to what the caller may see.
    pub society: Society,
    /// The caller, with its scopes.
    pub caller: Caller,
    /// The settings of the program that hosts the society.
    pub host: Arc<HostSettings>,
    /// What persons have stored and not sent yet.
    pub uploads: Arc<Uploads>,
    /// The other societies of the store; none where there is only this one.
    pub registry: Option<Arc<dyn Registry>>,
}
