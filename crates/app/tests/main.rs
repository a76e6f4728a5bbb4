//! Tests of the whole program.

mod cli;
mod kill;
