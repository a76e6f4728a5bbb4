//! Effects: stated before they happen, ended once, never repeated unasked.

use polis_domain::*;

use crate::support::*;

const TOOL: fn() -> Effect = || call(EffectClass::Read);
const WRITE: fn() -> Effect = || call(EffectClass::Write);

fn at_work(effects: Vec<Effect>) -> Vec<Command> {
    vec![submit("a", "go"), begin(effect(8, 0), effects)]
}

fn and(mut given: Vec<Command>, more: impl IntoIterator<Item = Command>) -> Vec<Command> {
    given.extend(more);
    given
}

fn asks(wanted: Wanted, deadline: Option<Timestamp>) -> Effect {
    Effect::Approval { question: "may I?".to_owned(), details: ().into(), call: None, deadline, wanted, change: None }
}

fn end(id: EffectId) -> Command {
    Command::End { id, outcome: result("done"), spent: None, at: NOON }
}

#[test]
fn a_second_result_for_one_call_is_refused() {
    let id = effect(8, 0);
    check(at_work(vec![TOOL()]), end(id), Ok(vec![under("a", ended(id, result("done")))]));
    check(and(at_work(vec![TOOL()]), [end(id)]), end(id), Err(Refusal::NotOpen(id)));
    check(and(at_work(vec![TOOL()]), [settle(turn(8), "done")]), end(id), Err(Refusal::NotOpen(id)));
}

#[test]
fn an_effect_takes_only_the_outcome_that_fits_it() {
    let model = || Effect::Model {
        model: "m".into(),
        request: Digest::of(["r"]),
        reserve: Spent::default(),
        tools: None,
        aside: false,
        purpose: "".into(),
    };
    let approval = || asks(Wanted::Agreement, None);
    let sleep = || Effect::Sleep { until: Timestamp(2_000) };
    let reply = || Outcome::Reply(Reply::default());
    let verdict = || Outcome::Verdict(Verdict::yes());
    let failed = || Outcome::Failed(Failure::new("broken", "it broke"));
    let id = effect(8, 0);
    let ends = |effect, outcome: Outcome| {
        let expected = Ok(vec![under("a", ended(id, outcome.clone()))]);
        check(at_work(vec![effect]), Command::End { id, outcome, spent: None, at: NOON }, expected);
    };
    let resolves = |effect, outcome: Outcome| {
        let expected = Ok(vec![under("a", ended(id, outcome.clone()))]);
        check(at_work(vec![effect]), Command::Resolve { id, resolution: Resolution::Outcome(outcome) }, expected);
    };
    let stays = |effect: Effect, command: Command| {
        check(at_work(vec![effect]), command, Err(Refusal::NotWaiting(id)));
    };
    ends(model(), reply());
    ends(model(), failed());
    ends(TOOL(), failed());
    resolves(approval(), verdict());
    stays(model(), end(id));
    stays(TOOL(), Command::End { id, outcome: reply(), spent: None, at: NOON });
    stays(approval(), Command::End { id, outcome: verdict(), spent: None, at: NOON });
    stays(sleep(), Command::End { id, outcome: Outcome::Slept, spent: None, at: NOON });
    stays(approval(), Command::Resolve { id, resolution: Resolution::Outcome(failed()) });
    stays(approval(), Command::Resolve { id, resolution: Resolution::Again });
    stays(TOOL(), Command::Resolve { id, resolution: Resolution::Outcome(result("done")) });
    stays(asking(id, "a", "b"), Command::End { id, outcome: Outcome::Answer("mine".into()), spent: None, at: NOON });
}

#[test]
fn a_write_in_doubt_is_not_ended_by_its_turn_but_settled_or_cleared_by_a_person() {
    let id = effect(8, 0);
    let doubt = || Command::Doubt { id };
    let resolve = |resolution| Command::Resolve { id, resolution };
    let doubted = || and(at_work(vec![WRITE()]), [doubt()]);
    let cleared = || and(doubted(), [resolve(Resolution::Again)]);
    let restart = || Command::Restart { id };

    check(at_work(vec![WRITE()]), doubt(), Ok(vec![under("a", Event::EffectDoubted { id })]));
    check(doubted(), end(id), Err(Refusal::NotWaiting(id)));
    check(doubted(), restart(), Err(Refusal::NotWaiting(id)));
    check(doubted(), doubt(), Err(Refusal::NotWaiting(id)));
    let settled = resolve(Resolution::Outcome(result("it was done")));
    check(doubted(), settled, Ok(vec![under("a", ended(id, result("it was done")))]));
    check(doubted(), resolve(Resolution::Again), Ok(vec![under("a", Event::EffectCleared { id, by: None })]));
    check(cleared(), end(id), Err(Refusal::NotWaiting(id)));
    check(cleared(), restart(), Ok(vec![under("a", Event::EffectRestarted { id })]));
    check(and(cleared(), [restart()]), end(id), Ok(vec![under("a", ended(id, result("done")))]));
}

#[test]
fn only_a_write_can_be_in_doubt() {
    let id = effect(8, 0);
    for other in [TOOL(), call(EffectClass::Idempotent), asking(id, "a", "b")] {
        check(at_work(vec![other]), Command::Doubt { id }, Err(Refusal::NotWaiting(id)));
    }
}

#[test]
fn time_ends_a_wait_at_its_deadline_and_not_before() {
    let id = effect(8, 0);
    let deadline = Timestamp(2_000);
    let waits = [
        (Effect::Sleep { until: deadline }, Outcome::Slept),
        (asks(Wanted::Agreement, Some(deadline)), Outcome::Failed(Failure::new("timed_out", "nobody answered in time"))),
        (asking_until(id, "a", "b", Some(deadline)), Outcome::Failed(Failure::new("timed_out", "nobody answered in time"))),
    ];
    for (wait, outcome) in waits {
        let mut society = check(at_work(vec![wait]), Command::Expire { id }, Err(Refusal::NotWaiting(id)));
        assert_eq!(society.command(Command::Expire { id }, Timestamp(1_999)), Err(Refusal::NotWaiting(id)));
        assert_eq!(society.command(Command::Expire { id }, deadline), Ok(vec![under("a", ended(id, outcome))]));
        assert_eq!(society.command(Command::Expire { id }, deadline), Err(Refusal::NotOpen(id)));
    }
    check(at_work(vec![asking(id, "a", "b")]), Command::Expire { id }, Err(Refusal::NotWaiting(id)));
}

#[test]
fn a_turn_states_its_effects_in_order_and_only_while_it_is_open() {
    let out_of_order = |got, expected| Err(Refusal::OutOfOrder { got, expected });
    check(at_work(vec![TOOL()]), begin(effect(8, 0), vec![TOOL()]), out_of_order(effect(8, 0), 1));
    check(at_work(vec![TOOL()]), begin(effect(8, 2), vec![TOOL()]), out_of_order(effect(8, 2), 1));
    check(at_work(vec![TOOL()]), act(effect(8, 0), vec![]), out_of_order(effect(8, 0), 1));
    let closed = || Err(Refusal::TurnNotOpen(turn(8)));
    let over = || and(at_work(vec![TOOL()]), [settle(turn(8), "done")]);
    check(over(), begin(effect(8, 1), vec![TOOL()]), closed());
    check(over(), act(effect(8, 1), vec![]), closed());
    check(over(), settle(turn(8), "again"), closed());
    let parked = || and(at_work(vec![TOOL()]), [Command::Park { turn: turn(8), reason: Failure::new("stuck", "stuck") }]);
    check(parked(), begin(effect(8, 1), vec![TOOL()]), closed());
    check(parked(), settle(turn(8), "done"), closed());
    check(parked(), Command::Resume { turn: turn(8) }, Ok(vec![under("a", Event::TurnResumed { turn: turn(8), by: None })]));
    check(at_work(vec![TOOL()]), Command::Resume { turn: turn(8) }, Err(Refusal::NotParked(turn(8))));
}

#[test]
fn one_effect_too_many_is_refused_and_refused_ones_take_no_room() {
    let limits = Limits { open_effects: 2, ..Limits::default() };
    let started = |n, effect_| under("a", Event::EffectStarted { id: effect(8, n), effect: effect_, permit: None });
    let stated = vec![
        under("a", refused(effect(8, 0), Refusal::UnknownThread("nowhere".into()))),
        started(1, TOOL()),
        started(2, WRITE()),
        under("a", refused(effect(8, 3), Refusal::TooManyEffects { limit: 2 })),
    ];
    let effects = vec![unit("nowhere"), TOOL(), WRITE(), TOOL()];
    check_in(four_agents_within(limits), vec![submit("a", "go")], begin(effect(8, 0), effects), Ok(stated));
}

#[test]
fn a_turn_is_owed_while_it_can_go_on_and_its_waits_are_owed_their_times() {
    let id = effect(8, 0);
    let deadline = Timestamp(2_000);
    let sleep = || Effect::Sleep { until: deadline };
    let waiting = || Owed { run: false, timers: vec![(deadline, id)] };
    let idle = || Owed { run: false, timers: vec![] };
    let running = || Owed { run: true, timers: vec![] };
    let check = |given: Vec<Command>, owed: Owed| {
        let mut society = four_agents();
        for command in &given {
            society.command(command.clone(), NOON).unwrap();
        }
        assert_eq!(outstanding(&society.spine).next(), Some((turn(8), owed)), "{given:?}");
    };
    let doubt = || Command::Doubt { id };
    let again = || Command::Resolve { id, resolution: Resolution::Again };
    let park = || Command::Park { turn: turn(8), reason: Failure::new("stuck", "stuck") };
    check(vec![submit("a", "go")], running());
    check(at_work(vec![TOOL()]), running());
    check(at_work(vec![sleep()]), waiting());
    check(at_work(vec![sleep(), TOOL()]), Owed { run: true, ..waiting() });
    check(and(at_work(vec![sleep(), TOOL()]), [end(effect(8, 1))]), waiting());
    check(at_work(vec![asking(id, "a", "b")]), idle());
    check(and(at_work(vec![asking(id, "a", "b")]), [settle(turn(10), "yes")]), running());
    check(and(at_work(vec![WRITE()]), [doubt()]), idle());
    check(and(at_work(vec![WRITE()]), [doubt(), again()]), running());
    check(and(at_work(vec![TOOL()]), [park()]), idle());
    check(and(at_work(vec![sleep()]), [park()]), waiting());
    check(and(at_work(vec![TOOL()]), [park(), Command::Resume { turn: turn(8) }]), running());
}

#[test]
fn a_turn_is_owed_a_run_as_soon_as_one_of_its_units_has_ended() {
    let mut society = four_agents();
    let opened = act(effect(8, 0), vec![open("a", "meta.one", "s1"), open("a", "meta.two", "s2")]);
    for command in [submit("a", "go"), opened, begin(effect(8, 1), vec![unit("s1"), unit("s2")])] {
        society.command(command, NOON).unwrap();
    }
    let is_owed = |society: &Society| society.spine.turns[&turn(8)].is_owed();
    assert!(!is_owed(&society), "it only waits");
    for (thread, expected) in [("s1", true), ("s2", true)] {
        let unit = society.spine.threads[&ThreadId::from(thread)].turn.unwrap();
        society.command(settle(unit, "done"), NOON).unwrap();
        assert_eq!(is_owed(&society), expected, "after {thread}");
    }
    society.command(begin(effect(8, 3), vec![unit("s1")]), NOON).unwrap();
    assert!(!is_owed(&society), "it waits for all that is open again");
    society.assert_replays();
}

#[test]
fn a_turn_that_says_it_only_waits_is_owed_nothing_however_often_the_process_ends() {
    let mut society = four_agents();
    let opened = act(effect(8, 0), vec![open("a", "meta.one", "s1"), open("a", "meta.two", "s2")]);
    for command in [submit("a", "go"), opened, begin(effect(8, 1), vec![unit("s1"), unit("s2")])] {
        society.command(command, NOON).unwrap();
    }
    let unit_of = |society: &Society, thread: &str| society.spine.threads[&ThreadId::from(thread)].turn.unwrap();
    let one = unit_of(&society, "s1");
    society.command(settle(one, "done"), NOON).unwrap();
    let two = unit_of(&society, "s2");
    society.command(begin(EffectId { turn: two, n: 0 }, vec![asks(Wanted::Agreement, None)]), NOON).unwrap();
    for _ in 0..9 {
        if society.spine.turns.values().any(|turn| turn.is_owed()) {
            society.command(Command::Revive, NOON).unwrap();
            society.command(Command::Rest { turn: turn(8) }, NOON).unwrap();
        }
    }
    assert!(!society.spine.turns[&turn(8)].is_owed(), "it only waits");
    assert_eq!(
        society.command(Command::Rest { turn: turn(8) }, NOON),
        Err(Refusal::TurnNotOpen(turn(8))),
        "which is noted once"
    );
    society.assert_replays();
}

#[test]
fn a_turn_is_delayed_by_a_crash_parked_by_its_code_and_ready_when_a_person_resumes_it() {
    let mut society = four_agents();
    society.command(submit("a", "go"), NOON).unwrap();
    let (turn, failure) = (turn(8), Failure::new("panicked", "broken"));
    let park = || Command::Park { turn, reason: failure.clone() };
    let states = [
        (Command::Crash { turn, failure: failure.clone() }, TurnState::Delayed(Timestamp(NOON.0 + 500)), true),
        (park(), TurnState::Parked(Box::new(failure.clone())), false),
        (Command::Resume { turn }, TurnState::Ready, true),
        (Command::Revive, TurnState::Ready, true),
    ];
    for (command, state, is_owed) in states {
        society.command(command, NOON).unwrap();
        let turn = &society.spine.turns[&turn];
        assert_eq!((&turn.state, turn.is_owed(), turn.crashes), (&state, is_owed, 1));
    }
    assert_eq!(society.command(Command::Resume { turn }, NOON), Err(Refusal::NotParked(turn)));
    society.assert_replays();
}
