//! Cancels: everything below goes, children first, and everybody outside who waits is told (P22).

use polis_domain::*;

use crate::support::*;

fn gone(thread: &str, seq: u64, index: u32) -> Said {
    under(thread, settled(turn(seq), Settlement::Cancelled(enough()), index))
}

fn cleared(agent: &str, of: Cleared) -> Said {
    (None, Event::InboxCleared { agent: agent.into(), of })
}

/// `a` (turn 8) runs a unit in `s` (12), which asks `b` (14), which asks `c` (16).
fn four_deep() -> Vec<Command> {
    vec![
        submit("a", "go"),
        act(effect(8, 0), vec![open("a", "meta._thread", "s")]),
        begin(effect(8, 1), vec![unit("s")]),
        ask(effect(12, 0), "a", "b"),
        ask_after(1, effect(14, 0), "b", "c"),
    ]
}

#[test]
fn a_cancelled_task_settles_children_first_and_tells_the_person_once() {
    let task = || Target::Task("t".into());
    let failed = |seq, from| told(seq, from, MessageKind::Failure(enough()), "enough");
    let expected = vec![gone("c", 16, 1), gone("b", 14, 1), gone("s", 12, 0), gone("a", 8, 1), failed(21, "a")];
    check(four_deep(), cancel(task()), Ok(expected));

    // More of the same task waits in the inbox; it goes too, and the person still hears of it once.
    let given = vec![submit("a", "one"), submit("a", "two"), submit("b", "three")];
    let expected = vec![gone("b", 11, 1), gone("a", 8, 1), cleared("a", Cleared::Task("t".into())), failed(15, "a")];
    check(given, cancel(task()), Ok(expected));
    check(vec![], cancel(task()), Err(Refusal::UnknownTask("t".into())));
}

#[test]
fn what_a_cancelled_turn_had_said_stays_in_its_thread() {
    let said = |turns: &[u64]| turns.iter().map(|seq| (turn(*seq), bot("half a").into())).collect();
    let cancel = |turns| Command::Cancel { target: Target::Turn(turn(8)), reason: "enough".to_owned(), said: said(turns) };
    let kept = |text: &str| Event::TurnSettled {
        turn: turn(8),
        settlement: Settlement::Cancelled(enough()),
        message: Some(bot(text).into()),
        index: 1,
        next: Vec::new(),
    };
    let failed = told(10, "a", MessageKind::Failure(enough()), "enough");
    // What a turn that is not cancelled had said is left out.
    let society = check(vec![submit("a", "go")], cancel(&[8, 99]), Ok(vec![under("a", kept("half a")), failed]));
    assert_eq!(society.spine.threads[&ThreadId::from("a")].messages, 2);
}

/// Opens a sub-thread whose message is to show what comes of it.
fn hold(parent: &str, child: &str) -> Act {
    match open(parent, "meta._thread", child) {
        Act::OpenSubThread { parent, index, slot, child, settings, meta, .. } => {
            Act::OpenSubThread { parent, index, slot, child, settings, meta, held: Some("Nothing: ".into()) }
        }
        other => other,
    }
}

#[test]
fn a_message_that_waits_for_its_sub_thread_says_why_nothing_came_of_it() {
    let given = || vec![submit("a", "go"), act(effect(8, 0), vec![hold("a", "s")])];
    let patch = |text: &str| MessagePatch { text: Some(text.to_owned()), ..MessagePatch::default() };
    let told_why = || {
        let patch = patch(&format!("Nothing: {}", enough()));
        under("a", Event::MessageUpdated { by: effect(8, 1), index: 0, patch })
    };
    let failed = |seq| told(seq, "a", MessageKind::Failure(enough()), "enough");
    check(given(), cancel(Target::Turn(turn(8))), Ok(vec![told_why(), gone("a", 8, 1), failed(13)]));
    let fail = Command::Settle { turn: turn(8), result: TurnResult::Failed(enough()) };
    let expected = vec![told_why(), under("a", settled(turn(8), Settlement::Failed(enough()), 1)), failed(13)];
    check(given(), fail, Ok(expected));
    // One that says what came of it is left alone.
    let told = act(effect(8, 1), vec![Act::UpdateMessage { thread: "a".into(), index: 0, patch: patch("42") }]);
    let given = given().into_iter().chain([told]).collect();
    check(given, cancel(Target::Turn(turn(8))), Ok(vec![gone("a", 8, 1), failed(13)]));
}

#[test]
fn a_cancelled_turn_takes_what_it_started_and_tells_the_turn_above() {
    let expected = vec![gone("c", 16, 1), gone("b", 14, 1), under("s", ended(effect(12, 0), Outcome::Failed(enough())))];
    check(four_deep(), cancel(Target::Turn(turn(14))), Ok(expected));
    let society = check(four_deep(), cancel(Target::Turn(turn(99))), Err(Refusal::TurnNotOpen(turn(99))));
    assert_eq!(society.spine.turns.len(), 4);
}

#[test]
fn a_cancelled_turn_withdraws_what_it_asked_and_its_agent_goes_on_with_what_is_left() {
    let other = personal("a", "other");
    let given = vec![submit("b", "busy"), submit("a", "go"), ask(effect(10, 0), "a", "b"), submit("a", "other")];
    let expected = vec![
        gone("a", 10, 1),
        cleared("b", Cleared::AskedBy(vec![turn(10)])),
        told(15, "a", MessageKind::Failure(enough()), "enough"),
        started(&other, 1),
    ];
    check(given, cancel(Target::Turn(turn(10))), Ok(expected));
}

/// Whoever asked is called off while the one asked is in the middle of its follow-ups, of which only the last answers.
#[test]
fn a_cancelled_turn_takes_the_whole_chain_of_follow_ups_that_works_for_it() {
    let other = personal("b", "other");
    let three = vec![next("one"), next("two"), next("three")];
    let given = vec![
        submit("a", "go"),
        ask(effect(8, 0), "a", "b"),
        submit("b", "other"),
        settle_with(turn(10), "", three),
        ask_after(1, effect(13, 0), "b", "c"),
    ];
    let expected = vec![
        gone("c", 15, 1),
        gone("b", 13, 1),
        gone("a", 8, 1),
        cleared("b", Cleared::AskedBy(vec![turn(8), turn(13), turn(15)])),
        told(20, "a", MessageKind::Failure(enough()), "enough"),
        started(&other, 1),
    ];
    check(given, cancel(Target::Turn(turn(8))), Ok(expected));
}

#[test]
fn a_late_result_of_a_cancelled_turn_is_refused() {
    let id = effect(8, 0);
    let given = vec![submit("a", "go"), begin(id, vec![call(EffectClass::Read)]), cancel(Target::Turn(turn(8)))];
    check(given.clone(), Command::End { id, outcome: result("late"), spent: None, at: NOON }, Err(Refusal::NotOpen(id)));
    check(given, settle(turn(8), "late"), Err(Refusal::TurnNotOpen(turn(8))));
}

#[test]
fn a_turn_that_ends_withdraws_what_all_its_units_asked_before_anybody_goes_on() {
    let mut society = four_agents();
    let opened = act(effect(8, 0), vec![open("a", "meta.one", "s1"), open("a", "meta.two", "s2")]);
    for command in [submit("a", "go"), opened, begin(effect(8, 1), vec![unit("s1"), unit("s2")])] {
        society.command(command, NOON).unwrap();
    }
    for thread in ["s1", "s2"] {
        let unit = society.spine.threads[&ThreadId::from(thread)].turn.unwrap();
        let id = EffectId { turn: unit, n: 0 };
        let envelope = Envelope { reply_to: ReplyTo::Effect(id), ..envelope("a", "b", thread) };
        society.command(begin(id, vec![Effect::Ask { envelope: envelope.into(), deadline: None }]), NOON).unwrap();
    }
    let b = AgentId::from("b");
    assert!(society.spine.agents[&b].turn.is_some() && society.spine.agents[&b].inbox.is_some());
    society.command(settle(turn(8), "done"), NOON).unwrap();
    let b = &society.spine.agents[&b];
    assert_eq!((society.spine.turns.len(), b.turn, &b.inbox), (0, None, &None), "nobody waits for b any more");
    society.assert_replays();
}
