//! The operations on a society in this process.

mod agents;
mod approvals;
mod error;
mod messages;
mod org;
mod plans;
mod submit;
mod tasks;
mod threads;
mod views;

use polis_engine::Society;

pub use approvals::{SettledApproval, settle, settled, waiting};
pub use submit::artifact_id;
pub use tasks::{OpenState, TurnStanding, open_task};

use crate::Caller;

/// A society as one caller may use it. For a request with an idempotency key, `society` is a handle of [`Society::once`].
#[derive(Clone)]
pub struct Local {
    /// The society.
    pub society: Society,
    /// Who calls.
    pub caller: Caller,
}
