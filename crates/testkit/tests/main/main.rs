//! The simulator at work.
#![cfg(test)]

mod crash;
mod sim;
