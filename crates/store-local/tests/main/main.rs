//! The local log under everything that can happen to a disk and to a process.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "these are tests, helpers included")]

mod contract;
mod damage;
mod disk_full;
mod kill;

mod opening;
mod support;
mod torn_tail;
