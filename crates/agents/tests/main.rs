//! The agents that ship, in societies with a scripted model.
#![cfg(test)]

mod conversation;
mod reviewer;
mod role;
