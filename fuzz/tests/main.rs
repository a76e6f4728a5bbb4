//! The corpus as ordinary tests, and a little exploring from there with a new seed each time, which is printed.
#![cfg(test)]

use std::time::{SystemTime, UNIX_EPOCH};

use polis_fuzz::mutate::{Finding, explore, try_one};
use polis_fuzz::{TARGETS, find};

/// Inputs that each test makes beside those of the corpus.
const INPUTS: u64 = 2_000;

/// `POLIS_FUZZ_SEED=…` gives the same inputs again.
#[allow(clippy::disallowed_methods, reason = "a new seed for each run")]
fn seed() -> u64 {
    let said = std::env::var("POLIS_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok());
    said.unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64)
}

fn holds(name: &str) {
    let target = find(name).unwrap();
    let corpus = target.corpus();
    assert!(corpus.len() >= 5, "corpus/{name} has {} inputs", corpus.len());
    for (file, input) in &corpus {
        if let Err(Finding { message, .. }) = try_one(target, input) {
            panic!("corpus/{name}/{file}: {message}");
        }
    }
    let seed = seed();
    println!("{name}: seed {seed}");
    if let Err(Finding { input, message }) = explore(target, seed, |count| count < INPUTS) {
        panic!("{name}: {message}\nPOLIS_FUZZ_SEED={seed} gives this input again: {:?}", String::from_utf8_lossy(&input));
    }
}

macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        const TESTED: &[&str] = &[$(stringify!($name)),*];
        $(#[test]
        fn $name() {
            holds(stringify!($name));
        })*
    };
}

targets!(
    address, charset, client_sse, emulated, html, json, mcp_frames, mcp_tools, org, path, pattern, policy, reply, role_file,
    sop, sse, url, workflow,
);

#[test]
fn every_target_has_its_test_and_no_corpus_is_left_behind() {
    let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(names, TESTED);
    let folders = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus")).unwrap();
    let mut folders: Vec<_> = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    folders.sort();
    assert_eq!(folders, TESTED);
}

#[test]
fn a_broken_promise_is_found_and_the_seed_gives_it_again() {
    let planted =
        polis_fuzz::Target { name: "pattern", run: |input| assert!(!input.contains(&b'7'), "a seven"), words: &["7"] };
    let found = explore(&planted, 5, |count| count < INPUTS).unwrap_err();
    assert_eq!(found.message, "a seven");
    assert_eq!(explore(&planted, 5, |count| count < INPUTS).unwrap_err().input, found.input);
}
