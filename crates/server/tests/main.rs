//! The server as its clients see it: real TCP on loopback, the real engine, a log in memory.
#![cfg(test)]

mod a2a;
mod access;
mod agui;
mod api;
mod artifacts;
mod bad_input;
mod beside;
mod contract;
mod conversations;
mod disk_full;
mod event_versions;
mod events;
mod lists;
mod mcp;
mod media;
mod model_settings;
mod once;
mod openai;
mod openai_answers;
mod org;
mod page;
mod people;
mod person;
mod properties;
mod schemathesis;
mod support;
mod typescript;
mod views;
