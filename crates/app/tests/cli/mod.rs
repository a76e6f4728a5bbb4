//! The real binary, the real store, a real network on loopback.

mod artifacts;
mod bad_input;
mod calls;
mod chat;
mod emulated;
mod example_rules;
mod login;
mod look;
mod machine;
mod mcp;
mod model;
mod models;
mod offline;
mod peers;
mod person;
mod policy;
mod questions;
mod roles;
mod run;
mod scaffold;
mod serve;
mod societies;
mod support;
mod tape;
mod tutorial;
mod workflow;
