//! How a society behaves, seen through its door.
#![cfg(test)]

mod bed;
mod calls;
mod models;
mod phases;
mod policy;
mod society;
mod threads;
mod turns;
