//! The crate from outside: real HTTP over loopback, against a server that behaves as badly as told.
#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a test may")]

mod attempts;
mod bedrock;
mod cassette;
mod dialects;
mod embeddings;
mod emulated_tools;
mod endpoints;
mod failing;
mod fixtures;
mod golden;
mod hostile;
mod models;
mod parallel_streams;
mod recordings;
mod reused_connections;
mod routes;
mod script;
mod server;
mod streaming;
mod tolerance;
mod vendor_tools;
mod vertex;
