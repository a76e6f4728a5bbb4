//! The server as its clients see it: real TCP on loopback, the real engine, a log in memory.
#![cfg(test)]

mod a2a;
mod access;
mod api;
mod artifacts;
mod bad_input;
mod contract;
mod events;
mod lists;
mod mcp;
mod once;
mod org;
mod person;
mod schemathesis;
mod support;
mod typescript;
