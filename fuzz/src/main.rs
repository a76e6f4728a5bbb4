//! Changes inputs at random for a while: `fuzz [TARGET] [--seconds N] [--seed S]`. An input that breaks a promise is written to a file.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use polis_fuzz::mutate::{Finding, explore};
use polis_fuzz::{TARGETS, Target, find};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (mut wanted, mut seconds, mut seed) = (Vec::new(), 60, now());
    while let Some(arg) = args.next() {
        let number = |next: Option<String>| next.and_then(|next| next.parse::<u64>().ok());
        let is_good = match arg.as_str() {
            "--seconds" => number(args.next()).map(|number| seconds = number).is_some(),
            "--seed" => number(args.next()).map(|number| seed = number).is_some(),
            name => find(name).map(|target| wanted.push(target)).is_some(),
        };
        if !is_good {
            let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            eprintln!(
                "fuzz: `{arg}` is not understood; write [TARGET …] [--seconds N] [--seed S] with a target of: {}",
                names.join(", ")
            );
            return ExitCode::from(2);
        }
    }
    if wanted.is_empty() {
        wanted = TARGETS.iter().collect();
    }
    let each = Duration::from_secs(seconds) / u32::try_from(wanted.len()).unwrap_or(u32::MAX);
    // Findings are told here, in one place.
    std::panic::set_hook(Box::new(|_| {}));
    let failed = wanted.into_iter().filter(|target| !runs_well(target, seed, each)).count();
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn runs_well(target: &Target, seed: u64, time: Duration) -> bool {
    let began = Instant::now();
    match explore(target, seed, |_| began.elapsed() < time) {
        Ok(count) => {
            println!("{}: {count} inputs, seed {seed}", target.name);
            true
        }
        Err(Finding { input, message }) => {
            let file = std::env::temp_dir().join(format!("polis-fuzz-{}-{seed}", target.name));
            let kept = std::fs::write(&file, &input).map_or_else(|error| error.to_string(), |()| file.display().to_string());
            println!(
                "{}: FOUND with seed {seed}: {message}\n  input: {kept}\n  {:?}",
                target.name,
                String::from_utf8_lossy(&input)
            );
            false
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "a new seed for each run")]
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}
