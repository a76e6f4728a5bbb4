//! The agents that ship, in societies with a scripted model.
#![cfg(test)]

mod answer_rules;
mod conversation;
mod media;
mod properties;
mod reviewer;
mod role;
mod society;
mod walk;
mod workflow;
