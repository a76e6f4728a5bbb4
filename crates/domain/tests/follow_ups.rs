//! Next tasks: an agent's own follow-ups come before what others want, and only the last of them answers.

use polis_domain::*;

use crate::support::*;

fn goes_on(id: TurnId, next: Vec<Task>) -> Said {
    under("a", Event::TurnSettled { turn: id, settlement: Settlement::Done, message: None, index: 1, next })
}

#[test]
fn next_tasks_run_before_other_messages_and_only_the_last_answers() {
    let other = personal("a", "other");
    let given = vec![submit("a", "go"), submit("a", "other")];
    let two = vec![next("one"), next("two")];
    let first = vec![goes_on(turn(8), two.clone()), followed("a", next("one"), ReplyTo::Nobody, 1)];
    check(given.clone(), settle_with(turn(8), "", two.clone()), Ok(first));

    // The first follow-up queues one of its own, which comes before the second.
    let given = [given, vec![settle_with(turn(8), "", two)]].concat();
    let inner = vec![goes_on(turn(11), vec![next("inner")]), followed("a", next("inner"), ReplyTo::Nobody, 1)];
    check(given.clone(), settle_with(turn(11), "", vec![next("inner")]), Ok(inner));

    let given = [given, vec![settle_with(turn(11), "", vec![next("inner")])]].concat();
    let second = vec![goes_on(turn(13), vec![]), followed("a", next("two"), ReplyTo::User, 1)];
    check(given.clone(), settle(turn(13), "kept quiet"), Ok(second));

    let given = [given, vec![settle(turn(13), "kept quiet")]].concat();
    let last = vec![goes_on(turn(15), vec![]), told(17, "a", MessageKind::Answer, "all done"), started(&other, 1)];
    check(given, settle(turn(15), "all done"), Ok(last));
}

#[test]
fn a_follow_up_that_fails_leaves_the_answer_to_the_last_one() {
    let two = vec![next("one"), next("two")];
    let given = vec![submit("a", "go"), settle_with(turn(8), "", two)];
    let failure = Failure::new("broken", "it broke");
    let failed = Command::Settle { turn: turn(10), result: TurnResult::Failed(failure.clone()) };
    let settled = under("a", settled(turn(10), Settlement::Failed(failure), 1));
    check(given, failed, Ok(vec![settled, followed("a", next("two"), ReplyTo::User, 1)]));
}

#[test]
fn a_follow_up_is_shown_in_the_thread_unless_it_says_not_to() {
    let shown = Task::message("t".into(), "think again");
    let society = check(
        vec![submit("a", "go")],
        settle_with(turn(8), "", vec![shown.clone()]),
        Ok(vec![goes_on(turn(8), vec![shown.clone()]), {
            let (thread, mut event) = followed("a", shown, ReplyTo::User, 1);
            if let Event::TurnStarted { message, .. } = &mut event {
                *message = Some(format!("user_{}", unique(SEED, NOON, 9)).into());
            }
            (thread, event)
        }]),
    );
    let texts: Vec<_> = society.thread("a").messages.into_iter().map(|message| message.text.clone()).collect();
    assert_eq!(texts, ["go", "think again"]);
}

#[test]
fn a_response_that_is_too_long_fails_its_turn() {
    let limits = Limits { text_bytes: 8, ..Limits::default() };
    let long = || "too long!".to_owned();
    let failure = Failure::from(Refusal::TextTooLong { bytes: 9, limit: 8 });
    let responses = [
        TurnResult::Done { message: Some(bot(&long())), answer: "ok".into(), next: vec![] },
        TurnResult::Done { message: None, answer: long().into(), next: vec![] },
        TurnResult::Done { message: None, answer: "ok".into(), next: vec![next("short"), next(&long())] },
    ];
    for result in responses {
        let expected = vec![
            under("a", settled(turn(8), Settlement::Failed(failure.clone()), 1)),
            told(10, "a", MessageKind::Failure(failure.clone()), &failure.message),
        ];
        let command = Command::Settle { turn: turn(8), result };
        check_in(four_agents_within(limits), vec![submit("a", "go")], command, Ok(expected));
    }
}
