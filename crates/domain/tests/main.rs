//! The laws of a society: cases for each rule, and random societies under all invariants.
#![cfg(test)]

mod acts;
mod artifacts;
mod asks;
mod budgets;
mod cancels;
mod chains;
mod commands;
mod conversations;
mod effects;
mod erasing;
mod failures;
mod flows;
mod follow_ups;
mod forks;
mod inquiries;
mod invariants;
mod laws;
mod memory;
mod messages;
mod org;
mod paging;
mod phases;
mod properties;
mod random;
mod requests;
mod reuse;
mod support;
mod terminating;
