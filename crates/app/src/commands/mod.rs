//! The commands, one file each; those that only tell the society something share one.

pub(crate) mod act;
pub(crate) mod agents;
pub(crate) mod approvals;
pub(crate) mod approve;
pub(crate) mod artifacts;
pub(crate) mod chat;
pub(crate) mod check;
pub(crate) mod doctor;
pub(crate) mod lists;
pub(crate) mod log;
pub(crate) mod login;
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod new;
pub(crate) mod org;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod societies;
pub(crate) mod tasks;
pub(crate) mod token;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod usage;
