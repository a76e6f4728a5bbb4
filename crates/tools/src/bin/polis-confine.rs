//! The sandbox's own program, for whoever cannot start itself again: tests, and programs that embed the tools.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    polis_tools::sandbox::enter().unwrap_or(ExitCode::FAILURE)
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    ExitCode::FAILURE
}
