//! The simulator at work.

mod sim;
