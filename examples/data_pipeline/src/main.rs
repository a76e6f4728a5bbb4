//! The program: a table in, the answer on stdout, the report as a file. Killed and run again, it goes on where it was.

#[cfg(target_os = "linux")]
mod program;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    use std::io::Write;

    // Scripts are confined by this program, started again.
    if let Some(code) = polis::tools::sandbox::enter() {
        return code;
    }
    match program::main() {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "data_pipeline: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    // There is no sandbox to run the scripts in.
    ExitCode::FAILURE
}
