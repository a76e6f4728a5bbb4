//! The crate from outside: real HTTP over loopback, against a server that behaves as badly as told.
#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a test may")]

mod attempts;
mod cassette;
mod dialects;
mod emulate;
mod failing;
mod fixtures;
mod hostile;
mod kept;
mod many;
mod models;
mod recordings;
mod script;
mod server;
mod streaming;
