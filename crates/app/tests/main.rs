//! Tests of the whole program.
#![cfg(test)]

mod cli;
mod kill;
mod local;
mod operations;
