//! Asks between agents: answered once, late answers change nothing, no circles.

use polis_domain::*;

use crate::support::*;

#[test]
fn an_answer_ends_the_ask_of_whoever_waits() {
    let id = effect(8, 0);
    let asking = envelope_of(asking(id, "a", "b"));
    let stated = vec![
        under(
            "a",
            Event::EffectStarted { id, effect: Effect::Ask { envelope: asking.clone().into(), deadline: None }, permit: None },
        ),
        started(&asking, 0),
    ];
    check(vec![submit("a", "go")], ask(id, "a", "b"), Ok(stated));
    let answered =
        vec![under("b", settled(turn(10), Settlement::Done, 1)), under("a", ended(id, Outcome::Answer("so be it".into())))];
    check(vec![submit("a", "go"), ask(id, "a", "b")], settle(turn(10), "so be it"), Ok(answered));
}

#[test]
fn an_answer_after_the_time_out_changes_nothing() {
    let id = effect(8, 0);
    let mut society = four_agents();
    let waits = asking_until(id, "a", "b", Some(Timestamp(2_000)));
    for command in [submit("a", "go"), begin(id, vec![waits])] {
        society.command(command, NOON).unwrap();
    }
    society.command(Command::Expire { id }, Timestamp(2_000)).unwrap();
    let before = society.spine.turns[&turn(8)].clone();
    let late = vec![under("b", settled(turn(10), Settlement::Done, 1))];
    assert_eq!(society.command(settle(turn(10), "too late"), Timestamp(2_001)), Ok(late));
    assert_eq!(society.spine.turns[&turn(8)], before);
}

#[test]
fn an_ask_that_closes_a_circle_is_refused_with_the_circle_named() {
    let circle = |names: &[&str]| Refusal::WouldDeadlock(names.iter().map(|name| (*name).into()).collect());
    let id = effect(8, 0);
    check(vec![submit("a", "go")], ask(id, "a", "a"), Ok(vec![under("a", refused(id, circle(&["a", "a"])))]));

    let two = vec![submit("a", "go"), ask(id, "a", "b")];
    let back = effect(10, 0);
    check(two.clone(), ask_after(1, back, "b", "a"), Ok(vec![under("b", refused(back, circle(&["b", "a", "b"])))]));

    let three = [two, vec![ask_after(1, back, "b", "c")]].concat();
    let back = effect(12, 0);
    check(three, ask_after(2, back, "c", "a"), Ok(vec![under("c", refused(back, circle(&["c", "a", "b", "c"])))]));
    assert_eq!(circle(&["a", "b", "a"]).to_string(), "this would wait for ever: a waits for b waits for a");
}

#[test]
fn a_unit_that_asks_counts_as_its_agent() {
    let given = vec![
        submit("a", "go"),
        act(effect(8, 0), vec![open("a", "meta._thread", "s")]),
        begin(effect(8, 1), vec![unit("s")]),
        ask(effect(12, 0), "a", "b"),
    ];
    let back = effect(14, 0);
    let circle = Refusal::WouldDeadlock(vec!["b".into(), "a".into(), "b".into()]);
    check(given, ask_after(1, back, "b", "a"), Ok(vec![under("b", refused(back, circle))]));
}

fn envelope_of(effect: Effect) -> Envelope {
    match effect {
        Effect::Ask { envelope, .. } => (*envelope).clone(),
        other => unreachable!("{other:?} is no ask"),
    }
}
