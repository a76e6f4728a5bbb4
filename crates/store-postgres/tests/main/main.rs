//! The log in PostgreSQL, on real servers that the tests start.
#![cfg(test)]

mod beside;
mod cluster;
mod contract;
mod engine;
mod faults;
mod leases;
mod owners;
mod proxy;
mod server;
mod stored;
