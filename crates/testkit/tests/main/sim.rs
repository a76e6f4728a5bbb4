//! Many societies in bad weather, and the proof that a seed is a run.

use polis_domain::Event;
use polis_testkit::sim::{Plan, run, run_owners};

#[test]
fn a_few_hundred_seeds_hold() {
    let (mut kills, mut failures, mut doubts) = (0, 0, 0);
    for seed in 0..256 {
        let report = run(Plan::new(seed)).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
        kills += report.kills;
        failures += report.failures;
        doubts += report.doubts;
    }
    assert!(
        kills > 100 && failures > 100 && doubts > 10,
        "the weather is bad: {kills} kills, {failures} failures, {doubts} doubts"
    );
}

#[test]
fn two_owners_under_leases_hold_for_a_hundred_seeds() {
    let (mut takeovers, mut disturbances, mut doubts) = (0, 0, 0);
    for seed in 0..100 {
        let report = run_owners(Plan::new(seed)).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
        takeovers += report.kills;
        disturbances += report.failures;
        doubts += report.doubts;
    }
    assert!(
        takeovers > 50 && disturbances > 100 && doubts > 5,
        "the weather is bad: {takeovers} takeovers, {disturbances} disturbances, {doubts} doubts"
    );
}

#[test]
fn the_same_seed_gives_the_same_run_of_two_owners() {
    for seed in 2_000..2_020 {
        let [one, other] =
            [(); 2].map(|()| run_owners(Plan::new(seed)).unwrap_or_else(|broken| panic!("seed {seed}: {broken}")));
        assert_eq!(one.log, other.log, "seed {seed}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_to_the_last_id_and_time() {
    for seed in 1_000..1_020 {
        let [one, other] = [(); 2].map(|()| run(Plan::new(seed)).unwrap_or_else(|broken| panic!("seed {seed}: {broken}")));
        assert_eq!(one.log, other.log, "seed {seed}");
    }
}

#[test]
fn the_seeds_meet_every_kind_of_event_that_an_engine_can_cause() {
    let mut met = std::collections::BTreeSet::new();
    for seed in 0..120 {
        let report = run(Plan::new(seed)).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
        let name = |event: &Event| {
            serde_json::to_value(event).ok().and_then(|value| match value {
                serde_json::Value::Object(map) => map.keys().next().cloned(),
                serde_json::Value::String(name) => Some(name),
                _ => None,
            })
        };
        met.extend(report.log.iter().filter_map(|recorded| name(&recorded.event)));
    }
    for wanted in [
        "acted",
        "agentSpawned",
        "budgetGranted",
        "budgetsSet",
        "effectCleared",
        "effectDoubted",
        "effectEnded",
        "effectRestarted",
        "effectRetried",
        "effectStarted",
        "messageSent",
        "messageAdded",
        "messageUpdated",
        "threadLinked",
        "threadOpened",
        "turnSettled",
        "turnStarted",
    ] {
        assert!(met.contains(wanted), "no seed met {wanted}; met: {met:?}");
    }
}
