//! The server as its clients see it: real TCP on loopback, the real engine, a log in memory.
#![cfg(test)]

mod access;
mod api;
mod artifacts;
mod bad_input;
mod events;
mod org;
mod person;
mod properties;
mod support;
