//! How a society behaves, seen through its door.
#![cfg(test)]

mod agents;
mod artifacts;
mod bed;
mod calls;
mod conversation;
mod conversations;
mod crashes;
mod endings;
mod erasing;
mod forks;
mod models;
mod once;
mod person;
mod phases;
mod pipeline;
mod policy;
mod properties;
mod requests;
mod servers;
mod society;
mod sub_threads;
mod terminating;
mod threads;
mod turns;
mod versions;
mod waits;
mod watching;
