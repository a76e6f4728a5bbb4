//! The real binary, the real store, a real network on loopback.

mod bad_input;
mod calls;
mod chat;
mod emulated;
mod look;
mod machine;
mod mcp;
mod model;
mod models;
mod offline;
mod person;
mod policy;
mod run;
mod serve;
mod support;
mod tape;
