//! Calls that are answered from the log: an auditor who learns from the log alone, and cases for each rule (D20).

use std::collections::BTreeMap;

use polis_domain::*;

use crate::invariants::Law;
use crate::laws::law;
use crate::support::*;

/// What an auditor knows of calls and their results.
#[derive(Default)]
pub(crate) struct Calls {
    tasks: BTreeMap<TurnId, TaskId>,
    open: BTreeMap<EffectId, (Call, Seq)>,
    results: BTreeMap<Seq, (EffectId, TaskId, Digest, Seq)>,
    written: Seq,
    spoken: BTreeMap<TaskId, Seq>,
    reuse: bool,
}

impl Calls {
    /// A call that is answered from the log is one that reads; the result is a good one of the same call for the same request,
    /// and nothing was written since that call began, nor has the person spoken since it ended.
    pub(crate) fn audit(&mut self, recorded: &Recorded) -> Law {
        match &recorded.event {
            Event::SocietyFounded { limits, .. } => self.reuse = limits.reuse_ms > 0,
            Event::TurnStarted { task, .. } => {
                self.tasks.insert(TurnId(recorded.seq), task.id.clone());
            }
            Event::EffectStarted { id, effect: Effect::Tool(call), .. } => {
                self.judge(*id, call)?;
                if call.may_write() {
                    self.written = recorded.seq;
                }
                self.open.insert(*id, (Call::clone(call), recorded.seq));
            }
            Event::EffectEnded { id, outcome, .. } => {
                let task = self.tasks[&id.turn].clone();
                match (self.open.remove(id), outcome) {
                    (Some((call, _)), _) if call.may_write() => self.written = recorded.seq,
                    (Some((Call { key: Some(key), from: None, .. }, began)), Outcome::Result(result)) if !result.is_error => {
                        self.results.insert(recorded.seq, (*id, task, key, began));
                    }
                    (None, Outcome::Verdict(_)) => drop(self.spoken.insert(task, recorded.seq)),
                    _ => {}
                }
            }
            Event::TurnSettled { turn, .. } => {
                if self.open.iter().any(|(id, (call, _))| id.turn == *turn && call.may_write()) {
                    self.written = recorded.seq;
                }
                self.open.retain(|id, _| id.turn != *turn);
            }
            Event::MessageSent { envelope, .. } if envelope.from.is_user() => {
                self.spoken.insert(envelope.task_id.clone(), recorded.seq);
            }
            _ => {}
        }
        Ok(())
    }

    fn judge(&self, id: EffectId, call: &Call) -> Law {
        let Some(source) = &call.from else { return Ok(()) };
        let reads = call.class == EffectClass::Read && call.fresh.is_none() && call.ruling == Ruling::Allow && self.reuse;
        law!(reads, "{id} must be made");
        let Some((effect, task, key, began)) = self.results.get(&source.seq) else {
            return Err(format!("{id} is answered by no good result"));
        };
        law!(*effect == source.effect && Some(*key) == call.key, "{id} is answered by another call");
        law!(*task == self.tasks[&id.turn], "{id} is answered by a result of another request");
        law!(*began > self.written, "{id} is answered by what was read before something was written");
        let spoken = self.spoken.get(task).copied().unwrap_or_default();
        law!(source.seq > spoken, "{id} is answered by what was read before the person spoke");
        Ok(())
    }
}

fn key() -> Digest {
    Call::key_of("look", r#"{"path":"a"}"#).unwrap()
}

fn looks() -> Effect {
    with(|call| call.key = Some(key()))
}

fn with(change: impl FnOnce(&mut Call)) -> Effect {
    let Effect::Tool(mut made) = call(EffectClass::Read) else { unreachable!() };
    change(&mut made);
    Effect::Tool(made)
}

/// Whether `next` of the same turn is answered by the first call, after what happens in between.
#[track_caller]
fn answered(outcome: Outcome, between: impl FnOnce(&mut Society), next: Effect) -> bool {
    let mut society = four_agents();
    society.command(submit("a", "go"), NOON).unwrap();
    society.command(begin(effect(8, 0), vec![looks()]), NOON).unwrap();
    society.command(Command::End { id: effect(8, 0), outcome, spent: None, at: NOON }, NOON).unwrap();
    between(&mut society);
    let n = society.spine.turns[&turn(8)].next;
    let said = society.command(begin(effect(8, n), vec![next]), NOON).unwrap();
    society.assert_replays();
    matches!(&said[0].1, Event::EffectStarted { effect: Effect::Tool(call), .. } if call.from.as_ref().is_some_and(|from| from.seq == Seq(10)))
}

fn nothing(_: &mut Society) {}

#[test]
fn an_identical_call_with_a_good_result_is_answered_from_the_log() {
    assert!(answered(result("done"), nothing, looks()));
    assert!(!answered(result("done"), nothing, with(|call| call.key = Call::key_of("look", "{}"))));
    assert!(!answered(result("done"), nothing, with(|_| {})), "one without a key is never known");
    assert!(!answered(Outcome::Result(CallResult::failed("no")), nothing, looks()), "a failure is tried again (R287)");
    assert!(!answered(Outcome::Failed(Failure::new("broken", "it broke")), nothing, looks()));
}

#[test]
fn a_call_is_made_where_the_model_says_why_or_a_person_has_agreed_to_it() {
    let fresh = with(|call| (call.key, call.fresh) = (Some(key()), Some("the file has changed".into())));
    assert!(!answered(result("done"), nothing, fresh));
    let approved = with(|call| (call.key, call.ruling) = (Some(key()), Ruling::Approved));
    assert!(!answered(result("done"), nothing, approved));
    for class in [EffectClass::Write, EffectClass::Idempotent] {
        let writes = with(|call| (call.key, call.class) = (Some(key()), class));
        assert!(!answered(result("done"), nothing, writes), "{class:?} is never answered from memory");
    }
}

#[test]
fn whatever_is_written_anywhere_is_read_again() {
    let writes = |class| {
        move |society: &mut Society| {
            society.command(begin(effect(8, 1), vec![call(class)]), NOON).unwrap();
        }
    };
    assert!(answered(result("done"), writes(EffectClass::Read), looks()));
    assert!(!answered(result("done"), writes(EffectClass::Write), looks()));
    assert!(!answered(result("done"), writes(EffectClass::Idempotent), looks()));
    let own = |society: &mut Society| {
        let own = with(|call| (call.class, call.own) = (EffectClass::Write, true));
        society.command(begin(effect(8, 1), vec![own]), NOON).unwrap();
    };
    assert!(answered(result("done"), own, looks()), "what a turn does itself changes no file");
    let another = |society: &mut Society| {
        society.command(submit("b", "something else"), NOON).unwrap();
        society.command(begin(effect(12, 0), vec![call(EffectClass::Write)]), NOON).unwrap();
    };
    assert!(!answered(result("done"), another, looks()), "another request may have changed the same file");
}

#[test]
fn a_result_is_the_requests_own_and_goes_with_its_answer_and_with_the_persons_next_word() {
    let speaks = |society: &mut Society| drop(society.command(submit("a", "look again"), NOON).unwrap());
    let task = four_agents().command(submit("a", "go"), NOON).unwrap();
    let Event::MessageSent { envelope, .. } = &task[0].1 else { panic!() };
    assert_eq!(envelope.task_id, TaskId::from("t"), "all of them are one request here");
    assert!(!answered(result("done"), speaks, looks()));
}

#[test]
fn a_result_that_is_too_old_is_no_answer_and_a_society_may_forbid_all() {
    for (reuse_ms, later, expected) in [(1_000, 1_000, true), (1_000, 1_001, false), (0, 0, false)] {
        let mut society = four_agents_within(Limits { reuse_ms, ..Limits::default() });
        society.command(submit("a", "go"), NOON).unwrap();
        society.command(begin(effect(8, 0), vec![looks()]), NOON).unwrap();
        let id = effect(8, 0);
        society.command(Command::End { id, outcome: result("done"), spent: None, at: NOON }, NOON).unwrap();
        let said = society.command(begin(effect(8, 1), vec![looks()]), Timestamp(NOON.0 + later)).unwrap();
        let Event::EffectStarted { effect: Effect::Tool(call), .. } = &said[0].1 else { panic!() };
        assert_eq!(call.from.is_some(), expected, "{reuse_ms} {later}");
    }
}

#[test]
fn a_list_of_tools_is_named_once() {
    let list = |digest: &str| ToolList { digest: Digest::of([digest]), names: vec![digest.into()] };
    let model = |list: ToolList| Effect::Model {
        model: "m".into(),
        request: Digest::of(["r"]),
        reserve: Spent::default(),
        tools: Some(list.into()),
        aside: false,
        purpose: "".into(),
    };
    let mut society = four_agents();
    society.command(submit("a", "go"), NOON).unwrap();
    for (n, (digest, named)) in (0..).zip([("one", true), ("one", false), ("two", true), ("one", false), ("two", false)]) {
        let said = society.command(begin(effect(8, n), vec![model(list(digest))]), NOON).unwrap();
        let Event::EffectStarted { effect: Effect::Model { tools: Some(logged), .. }, .. } = &said[0].1 else { panic!() };
        assert_eq!((logged.digest, logged.names.len()), (Digest::of([digest]), usize::from(named)));
    }
    society.assert_replays();
}

#[test]
fn a_turn_that_does_a_call_itself_is_as_far_as_the_effects_of_that_call() {
    let own = || with(|call| (call.class, call.own) = (EffectClass::Write, true));
    let mut society = four_agents();
    society.command(submit("a", "go"), NOON).unwrap();
    society.command(begin(effect(8, 0), vec![own()]), NOON).unwrap();
    assert!(society.spine.turns[&turn(8)].is_owed());
    assert_eq!(society.command(Command::Doubt { id: effect(8, 0) }, NOON), Err(Refusal::NotWaiting(effect(8, 0))));
    society.command(ask(effect(8, 1), "a", "b"), NOON).unwrap();
    assert!(!society.spine.turns[&turn(8)].is_owed(), "it only waits");
    society.command(settle(turn(11), "yes"), NOON).unwrap();
    assert!(society.spine.turns[&turn(8)].is_owed(), "it goes on");
}

#[test]
fn a_plan_stands_in_the_settings_of_its_thread() {
    let steps = vec![Step { text: "look".to_owned(), status: StepStatus::InProgress, ..Step::default() }];
    let set = act(effect(8, 0), vec![Act::SetPlan { thread: "a".into(), plan: Plan { steps, ..Plan::default() } }]);
    let mut society = four_agents();
    society.command(submit("a", "go"), NOON).unwrap();
    society.command(set, NOON).unwrap();
    let shown = serde_json::to_value(society.thread("a").settings).unwrap();
    assert_eq!(shown["plan"], serde_json::json!({ "steps": [{ "text": "look", "status": "in_progress" }] }));
    let others = act(effect(8, 1), vec![Act::SetPlan { thread: "b".into(), plan: Plan::default() }]);
    let said = society.command(others, NOON).unwrap();
    assert!(matches!(said[0].1, Event::EffectRefused { .. }));
}
