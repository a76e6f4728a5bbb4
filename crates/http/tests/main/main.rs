//! The client against servers and proxies of its own. No test reads a variable of this machine or uses its network.

#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a test may")]

mod events;
mod proxies;
mod sending;
mod servers;
mod tls;
