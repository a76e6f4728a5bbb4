//! The real binary, the real store, a real network on loopback.

mod bad_input;
mod chat;
mod look;
mod model;
mod offline;
mod person;
mod run;
mod serve;
mod support;
