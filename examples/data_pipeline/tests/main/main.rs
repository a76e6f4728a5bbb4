//! The pipeline with its real parts: the real sandbox, real scripts, a real log where it counts. Only the model is scripted.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may")]

mod crash;
mod figures;
mod hostile;
mod models;
mod place;
mod program;
mod table;
