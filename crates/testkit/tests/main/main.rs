//! The simulator at work.
#![cfg(test)]

mod sim;
