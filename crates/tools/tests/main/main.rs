//! The tools from outside: what they do, and every way out of the workspace that we know of.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod artifacts;
mod bench;
#[cfg(target_os = "linux")]
mod commands;
mod editing;
mod escaping;
mod fetching;
#[cfg(target_os = "linux")]
mod governing;
mod listing;
mod mcp;
mod reading;
mod searching;
mod telling_time;
mod web_searching;
mod writing;
