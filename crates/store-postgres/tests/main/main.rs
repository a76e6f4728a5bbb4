//! The log in PostgreSQL, on real servers that the tests start.
#![cfg(test)]

mod contract;
mod engine;
mod faults;
mod leases;
mod owners;
mod proxy;
mod server;
mod stored;
