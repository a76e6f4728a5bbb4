//! Phases: proposed by a turn, applied when the next one starts, dropped on a retry (R038-R044, D02, D03).

use std::sync::Arc;

use polis_domain::*;
use serde_json::{Value, json};

use crate::support::*;

fn phase(name: &str) -> Phase {
    Phase::new(name).expect("a phase of the case")
}

fn map(value: Value) -> serde_json::Map<String, Value> {
    value.as_object().expect("an object of the case").clone()
}

/// Agent `a` stands in `drafting` with a note beside it and proposes `review`; its turn 8 is over.
fn proposed() -> Vec<Command> {
    let settings = Settings {
        brief_status: BriefStatus { phase: phase("drafting"), rest: map(json!({ "note": "kept" })).into() },
        phase_update_suggestion: None,
        rest: map(json!({ "colour": "blue" })).into(),
    };
    let acts = vec![Act::UpdateSettings { thread: "a".into(), settings }, suggest("a", "review")];
    vec![submit("a", "one"), act(effect(8, 0), acts), settle(turn(8), "done")]
}

fn settings(phase: &str) -> Settings {
    serde_json::from_value(json!({ "briefStatus": { "phase": phase, "note": "kept" }, "colour": "blue" }))
        .expect("settings of the case")
}

/// The next message to `a` starts its turn in a phase, after these events; the fold says the same.
#[track_caller]
fn check_next(meta: Value, before: Event, standing: &str) {
    let envelope = Arc::new(Envelope {
        payload: Payload { text: "two".into(), meta: map(meta).into() },
        ..(*personal("a", "two")).clone()
    });
    let sent = under("task:t", Event::MessageSent { envelope: envelope.clone(), by: None });
    let (thread, mut event) = started(&envelope, 1);
    if let Event::TurnStarted { phase: at, .. } = &mut event {
        *at = phase(standing);
    }
    let expected = vec![sent, under("a", before), (thread, event)];
    let society = check(proposed(), Command::Send { envelope }, Ok(expected));
    assert_eq!(society.thread("a").settings, settings(standing));
}

#[test]
fn the_next_task_applies_the_suggestion_and_keeps_all_other_settings() {
    check_next(json!({}), Event::PhaseApplied { phase: phase("review") }, "review");
    check_next(json!({ "_ui_action": "submit" }), Event::PhaseApplied { phase: phase("review") }, "review");
}

#[test]
fn a_retry_drops_the_suggestion_and_keeps_the_phase() {
    check_next(json!({ "_ui_action": "retry" }), Event::SuggestionDropped, "drafting");
}

#[test]
fn a_follow_up_applies_the_suggestion_of_the_turn_that_queued_it() {
    let given = vec![submit("a", "one"), act(effect(8, 0), vec![suggest("a", "review")])];
    let (thread, mut event) = followed("a", next("go on"), ReplyTo::User, 1);
    if let Event::TurnStarted { phase: at, .. } = &mut event {
        *at = phase("review");
    }
    let settled =
        Event::TurnSettled { turn: turn(8), settlement: Settlement::Done, message: None, index: 1, next: vec![next("go on")] };
    let applied = Event::PhaseApplied { phase: phase("review") };
    let expected = vec![under("a", settled), under("a", applied), (thread, event)];
    check(given, settle_with(turn(8), "", vec![next("go on")]), Ok(expected));
}

#[test]
fn a_sub_thread_starts_with_its_own_settings_and_its_unit_moves_no_other_thread() {
    let given = vec![
        submit("a", "one"),
        act(effect(8, 0), vec![suggest("a", "review"), open("a", "meta._thread", "s"), suggest("s", "completed")]),
    ];
    let Effect::Unit { behaviour, task, .. } = unit("s") else { unreachable!("it is a unit") };
    let id = effect(8, 1);
    let started = Event::TurnStarted {
        agent: "a".into(),
        behaviour,
        version: CodeVersion::FIRST,
        phase: phase("completed"),
        task,
        origin: Origin::Unit(id),
        reply_to: ReplyTo::Effect(id),
        message: None,
        index: 0,
        shown: ContextState::default(),
    };
    let expected = vec![
        under("a", Event::EffectStarted { id, effect: unit("s"), permit: None }),
        under("s", Event::PhaseApplied { phase: phase("completed") }),
        under("s", started),
    ];
    let society = check(given, begin(id, vec![unit("s")]), Ok(expected));
    let standing = |thread: &str| {
        let head = &society.spine.threads[&ThreadId::from(thread)];
        (head.phase.as_str(), head.suggestion.as_ref().map(Phase::as_str))
    };
    assert_eq!(standing("a"), (Phase::INITIAL, Some("review")));
    assert_eq!(standing("s"), (Phase::COMPLETED, None));
}
