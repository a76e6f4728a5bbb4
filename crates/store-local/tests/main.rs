//! The local log under everything that can happen to a disk and to a process.

mod contract;
mod support;
