//! The server as its clients see it: real TCP on loopback, the real engine, a log in memory.
#![cfg(test)]

mod access;
mod agui;
mod api;
mod artifacts;
mod bad_input;
mod events;
mod openai;
mod org;
mod person;
mod support;
