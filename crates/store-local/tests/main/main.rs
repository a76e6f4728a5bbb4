//! The local log under everything that can happen to a disk and to a process.
#![cfg(test)]

mod artifacts;
mod backup_faults;
mod backup_kill;
mod backups;
mod contract;
mod damage;
mod disk_full;
mod documents;
mod erasing;
mod forks;
mod kill;
mod memory_texts;

mod opening;
mod sealing;
mod support;
mod torn_tail;
