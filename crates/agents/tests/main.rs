//! The agents that ship, in societies with a scripted model.
#![cfg(test)]

mod answer_rules;
mod conversation;
mod environment;
mod golden;
mod media;
mod past_steps;
mod properties;
mod reviewer;
mod role;
mod society;
mod unfinished;
mod walk;
mod workflow;
