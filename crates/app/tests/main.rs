//! Tests of the whole program.

mod kill;
