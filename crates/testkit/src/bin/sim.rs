//! Runs many seeds through the simulator and names the first that breaks something.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use std::process::ExitCode;

use polis_testkit::sim::{Plan, run};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (mut seeds, mut from) = (1_000_u64, 0_u64);
    while let Some(flag) = arguments.next() {
        let number = arguments.next().and_then(|number| number.parse().ok());
        match (flag.as_str(), number) {
            ("--seeds", Some(number)) => seeds = number,
            ("--from", Some(number)) => from = number,
            _ => {
                eprintln!("usage: sim [--seeds N] [--from S]");
                return ExitCode::from(2);
            }
        }
    }
    let (mut events, mut kills, mut failures, mut doubts) = (0, 0, 0, 0);
    for seed in from..from + seeds {
        match run(Plan::new(seed)) {
            Ok(report) => {
                events += report.log.len();
                kills += report.kills;
                failures += report.failures;
                doubts += report.doubts;
            }
            Err(broken) => {
                eprintln!("seed {seed}: {broken}\nrun it again with: cargo xtask sim --from {seed} --seeds 1");
                return ExitCode::FAILURE;
            }
        }
    }
    println!(
        "{seeds} seeds from {from}: {events} events, {kills} kills, {failures} failed writes, {doubts} writes in doubt; all held"
    );
    ExitCode::SUCCESS
}
