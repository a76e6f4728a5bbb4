//! Runs many seeds through the simulator and names the first that breaks something.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use std::process::ExitCode;

use polis_testkit::sim::{Plan, run, run_owners};

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
    let (mut events, mut kills, mut failures, mut doubts, mut takeovers) = (0, 0, 0, 0, 0);
    for seed in from..from + seeds {
        match run(Plan::new(seed)) {
            Ok(report) => {
                events += report.log.len();
                kills += report.kills;
                failures += report.failures;
                doubts += report.doubts;
            }
            Err(broken) => return failed(seed, &broken),
        }
        match run_owners(Plan::new(seed)) {
            Ok(report) => takeovers += report.kills,
            Err(broken) => return failed(seed, &format!("on two nodes: {broken}")),
        }
    }
    println!(
        "{seeds} seeds from {from}: {events} events, {kills} kills, {failures} failed writes, {doubts} writes in doubt, and on two \
         nodes {takeovers} takeovers; all held"
    );
    ExitCode::SUCCESS
}

fn failed(seed: u64, broken: &str) -> ExitCode {
    eprintln!("seed {seed}: {broken}\nrun it again with: cargo xtask sim --from {seed} --seeds 1");
    ExitCode::FAILURE
}
