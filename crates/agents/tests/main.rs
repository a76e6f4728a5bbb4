//! The agents that ship, in societies with a scripted model.
#![cfg(test)]

mod answer_rules;
mod conversation;
mod environment;
mod find_tools;
mod golden;
mod long_turn;
mod media;
mod memory;
mod past_steps;
mod properties;
mod reviewer;
mod role;
mod role_entries;
mod society;
mod unfinished;
mod vendor_tools;
mod walk;
mod workflow;
