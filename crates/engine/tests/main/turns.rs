//! Durable turns: run again, never repeated, caught when they differ.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use polis_domain::{
    CallResult, EffectClass, Event, Failure, OpenKind, Outcome, Resolution, Response, Stage, Target, TurnId, Verdict,
};
use polis_engine::{Agent, Cast, Society, Turn};
use polis_ports::{ChatMessage, ModelRequest};
use polis_testkit::{Op, Program, ScriptedTools};

use crate::bed::{Bed, answer, ask, call, is_approval, open_effect, parked, spawn, submit};

fn yes() -> Resolution {
    Resolution::Outcome(Outcome::Verdict(Verdict::yes()))
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_run_again_gets_the_logged_answers_and_repeats_nothing() {
    let bed = Bed::new();
    let first = bed.open().await;
    let ops =
        vec![Op::Think("a".into()), call("mark", "b"), Op::Say("c".into()), Op::Approve("d".into()), Op::Think("e".into())];
    let sent = submit(&first, ops).await;
    let id = open_effect(&first, is_approval).await;
    first.stop(Duration::ZERO).await;

    let second = bed.open().await;
    second.resolve(id, yes()).await.unwrap();
    assert_eq!(answer(&second, &sent).await.unwrap(), "thought(a) mark(b) said:c approved thought(e)");
    assert_eq!(bed.thoughts.load(Ordering::Relaxed), 2, "each thought once, over both lives");
    assert_eq!(bed.writes(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_turn_leaves_memory_and_goes_on_when_its_answer_comes() {
    let mut bed = Bed::new();
    bed.options.max_lingering = 0;
    let society = bed.open().await;
    spawn(&society, &["a1", "a2"]).await;
    let deepest = Program(vec![Op::Sleep(50), call("mark", "deep")]);
    let middle = Program(vec![Op::Ask { agent: "a2".into(), program: deepest, patience_ms: 10_000 }, Op::Think("m".into())]);
    let ops = vec![Op::Think("top".into()), Op::Ask { agent: "a1".into(), program: middle, patience_ms: 10_000 }];
    assert_eq!(ask(&society, ops).await.unwrap(), "thought(top) [[slept mark(deep)] thought(m)]");
    assert_eq!(bed.thoughts.load(Ordering::Relaxed), 2);
    assert_eq!(bed.writes(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_an_agent_ends_at_its_time_and_a_late_answer_changes_nothing() {
    let bed = Bed::new();
    let society = bed.open().await;
    spawn(&society, &["slow"]).await;
    let slow = Program(vec![Op::Sleep(60_000)]);
    let ops = vec![Op::Ask { agent: "slow".into(), program: slow, patience_ms: 1_000 }, Op::Sleep(120_000)];
    assert_eq!(ask(&society, ops).await.unwrap(), "[!timed_out] slept");
}

#[tokio::test(start_paused = true)]
async fn asking_in_a_circle_is_refused_at_once_with_the_circle_named() {
    let bed = Bed::new();
    let society = bed.open().await;
    spawn(&society, &["a1"]).await;
    let back = Program(vec![Op::Ask { agent: "root".into(), program: Program::default(), patience_ms: 10_000 }]);
    let ops = vec![Op::Ask { agent: "a1".into(), program: back, patience_ms: 10_000 }];
    assert_eq!(ask(&society, ops).await.unwrap(), "[[!would_deadlock]]");
    let named = bed.events().into_iter().find_map(|recorded| match recorded.event {
        Event::EffectRefused { failure, .. } => Some(failure.message),
        _ => None,
    });
    assert_eq!(named.unwrap(), "this would wait for ever: a1 waits for root waits for a1");
}

/// Asks for one thing or another, as a switch outside the log says.
struct Fickle {
    changed: Arc<AtomicBool>,
}

impl Agent for Fickle {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let prompt = if self.changed.load(Ordering::Relaxed) { "something else" } else { "this" };
        let messages = vec![ChatMessage::user(prompt)];
        let reply = turn.model(ModelRequest { messages, ..ModelRequest::default() }).await?;
        turn.approve("go on?", serde_json::Value::Null, None).await?;
        Ok(Response::new(reply.text))
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_asks_for_something_else_is_parked_and_goes_on_when_it_is_put_right() {
    let mut bed = Bed::new();
    let changed = Arc::new(AtomicBool::new(false));
    bed.cast = Cast::new().with("programmed", Fickle { changed: changed.clone() });
    let first = bed.open().await;
    let sent = submit(&first, vec![]).await;
    let id = open_effect(&first, is_approval).await;
    first.stop(Duration::ZERO).await;

    changed.store(true, Ordering::Relaxed);
    let second = bed.open().await;
    second.resolve(id, yes()).await.unwrap();
    assert_eq!(&*parked(&second).await.1.code, "diverged");

    changed.store(false, Ordering::Relaxed);
    second.resume(id.turn).await.unwrap();
    assert_eq!(answer(&second, &sent).await.unwrap(), "thought(this)");
    assert_eq!(bed.thoughts.load(Ordering::Relaxed), 1);
}

/// Has names for its calls and versions of its steps; which code it is, a switch outside the log says.
struct Upgraded {
    build: Arc<AtomicUsize>,
}

impl Agent for Upgraded {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let build = self.build.load(Ordering::Relaxed);
        let (prompt, purpose) = (format!("prompt {build}"), if build == 3 { "summary" } else { "draft" });
        let messages = vec![ChatMessage::user(prompt)];
        let reply = turn.model(ModelRequest { messages, purpose: purpose.into(), ..ModelRequest::default() }).await?;
        let version = match build {
            1 => 0,
            2 | 3 => turn.version("review", 1..=2).await,
            _ => turn.version("review", 2..=3).await,
        };
        turn.approve("go on?", serde_json::Value::Null, None).await?;
        Ok(Response::new(format!("{} by version {version}", reply.text)))
    }
}

#[tokio::test(start_paused = true)]
async fn open_turns_survive_new_prompts_and_new_code_and_a_dry_run_says_which_do_not() {
    let mut bed = Bed::new();
    let build = Arc::new(AtomicUsize::new(1));
    bed.cast = Cast::new().with("programmed", Upgraded { build: build.clone() });
    let first = bed.open().await;
    let old = submit(&first, vec![]).await;
    let old_id = open_effect(&first, is_approval).await;
    first.stop(Duration::ZERO).await;
    let dry_run = async || {
        let ports = bed.ports(bed.log.clone());
        polis_engine::replay_open(&"main".into(), &ports, &bed.cast).await.unwrap()
    };

    build.store(3, Ordering::Relaxed);
    let events = bed.events().len();
    let found = dry_run().await;
    assert_eq!((found.open, found.divergences.len(), bed.events().len()), (1, 1, events));
    assert_eq!(found.divergences[0].effect.map(|id| id.n), Some(0), "{found:?}");
    build.store(2, Ordering::Relaxed);
    assert_eq!(dry_run().await.divergences, []);
    let second = bed.open().await;
    second.resolve(old_id, yes()).await.unwrap();
    assert_eq!(answer(&second, &old).await.unwrap(), "thought(prompt 1) by version 1", "it goes on as it began");
    let new = submit(&second, vec![]).await;
    let new_id = open_effect(&second, is_approval).await;
    second.stop(Duration::ZERO).await;

    build.store(4, Ordering::Relaxed);
    assert_eq!(dry_run().await.divergences, []);
    let third = bed.open().await;
    third.resolve(new_id, yes()).await.unwrap();
    assert_eq!(answer(&third, &new).await.unwrap(), "thought(prompt 2) by version 2");
    third.stop(Duration::ZERO).await;
    let strict = polis_engine::replay(&"main".into(), &bed.ports(bed.log.clone()), &bed.cast).await.unwrap();
    assert_eq!(strict.divergences.len(), 2, "a replay tells of prompts that have changed: {strict:?}");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_asks_for_less_than_before_is_parked() {
    let bed = Bed::new();
    let first = bed.open().await;
    submit(&first, vec![Op::Think("a".into()), Op::Approve("b".into())]).await;
    let id = open_effect(&first, is_approval).await;
    first.stop(Duration::ZERO).await;

    let mut shorter = Bed { log: bed.log.clone(), ..Bed::new() };
    shorter.cast = Cast::new().with("programmed", Mute);
    let second = shorter.open().await;
    second.resolve(id, yes()).await.unwrap();
    assert_eq!(&*parked(&second).await.1.code, "diverged");
}

/// Fills the mailbox and gives up on its first effect, so that this is never declared. Then it asks for another one.
struct Impatient {
    society: Arc<Mutex<Option<Society>>>,
}

impl Agent for Impatient {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let society = self.society.lock().unwrap().take();
        if let Some(society) = society {
            assert!(society.look(|_| ()).now_or_never().is_none());
            assert!(turn.approve("dropped", serde_json::Value::Null, None).now_or_never().is_none());
        }
        turn.approve("go on?", serde_json::Value::Null, None).await?;
        Ok(Response::new("done"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_command_is_refused_is_parked_and_goes_on_when_it_is_resumed() {
    let mut bed = Bed::new();
    let handle = Arc::new(Mutex::new(None));
    bed.options.mailbox = 1;
    bed.cast = Cast::new().with("programmed", Impatient { society: handle.clone() });
    let society = bed.open().await;
    *handle.lock().unwrap() = Some(society.clone());
    let sent = submit(&society, vec![]).await;
    let (turn, reason) = parked(&society).await;
    assert_eq!(&*reason.code, "command_refused");
    assert!(reason.message.contains("is out of order"), "{}", reason.message);

    society.resume(turn).await.unwrap();
    let id = open_effect(&society, is_approval).await;
    assert_eq!((id.turn, id.n), (turn, 0));
    society.resolve(id, yes()).await.unwrap();
    assert_eq!(answer(&society, &sent).await.unwrap(), "done");
}

struct Mute;

impl Agent for Mute {
    async fn execute_task(&self, _: &mut Turn) -> Result<Response, Failure> {
        Ok(Response::silent())
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_without_code_is_parked_until_there_is_some() {
    let mut bed = Bed::new();
    bed.cast = Cast::new();
    let first = bed.open().await;
    let sent = submit(&first, vec![Op::Say("a".into())]).await;
    let (_, reason) = parked(&first).await;
    assert_eq!(&*reason.code, "no_behaviour");
    first.stop(Duration::ZERO).await;
    let with_code = Bed { log: bed.log.clone(), ..Bed::new() };
    let second = with_code.open().await;
    assert_eq!(answer(&second, &sent).await.unwrap(), "said:a");
}

#[tokio::test(start_paused = true)]
async fn a_panic_fails_its_own_turn_and_disturbs_nobody_else() {
    let bed = Bed::new();
    let society = bed.open().await;
    spawn(&society, &["a1"]).await;
    let bad = Program(vec![Op::Panic("on purpose".into())]);
    let asks = Op::Ask { agent: "a1".into(), program: bad, patience_ms: 10_000 };
    assert_eq!(ask(&society, vec![asks]).await.unwrap(), "[!panicked]");
    assert_eq!(ask(&society, vec![Op::Panic("again".into())]).await.unwrap_err(), "panicked");
    assert_eq!(ask(&society, vec![Op::Say("still here".into())]).await.unwrap(), "said:still here");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_cut_is_in_doubt_until_a_person_says() {
    for (resolution, runs, told) in [
        (Resolution::Outcome(Outcome::Result(CallResult::good("it was done"))), 1, "it was done"),
        (Resolution::Again, 2, "done at last"),
    ] {
        let bed = Bed::new();
        let runs_so_far = Arc::new(AtomicUsize::new(0));
        let open = |hang: bool| {
            let runs_so_far = runs_so_far.clone();
            let tools = ScriptedTools::new().with("mark", EffectClass::Write, move |_, _| {
                runs_so_far.fetch_add(1, Ordering::Relaxed);
                CallResult::good("done at last")
            });
            let wait = if hang { Duration::from_secs(1_000_000) } else { Duration::ZERO };
            let mut ports = bed.ports(bed.log.clone());
            ports.toolbox = Arc::new(tools.delayed(move |_| wait));
            polis_engine::Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone())
        };
        let first = open(true).await.unwrap();
        let sent = submit(&first, vec![call("mark", "x")]).await;
        let id = open_effect(&first, |kind, stage| matches!(kind, OpenKind::Tool(_)) && stage == Stage::Working).await;
        // The write is done half-way through its time; the process dies before it hears of it.
        tokio::time::sleep(Duration::from_secs(600_000)).await;
        assert_eq!(runs_so_far.load(Ordering::Relaxed), 1);
        first.stop(Duration::ZERO).await;

        let second = open(false).await.unwrap();
        assert_eq!(open_effect(&second, |_, stage| stage == Stage::InDoubt).await, id);
        assert_eq!(runs_so_far.load(Ordering::Relaxed), 1, "nobody repeats it unasked");
        second.resolve(id, resolution).await.unwrap();
        assert_eq!(answer(&second, &sent).await.unwrap(), told);
        assert_eq!(runs_so_far.load(Ordering::Relaxed), runs);
    }
}

#[tokio::test(start_paused = true)]
async fn reads_and_keyed_calls_that_were_cut_are_simply_done_again_with_the_same_key() {
    let bed = Bed::new();
    let society = bed.open().await;
    let calls = [("look", "a"), ("stamp", "b")].map(|(tool, argument)| (tool.to_owned(), argument.to_owned()));
    let sent = submit(&society, vec![Op::Call(calls.to_vec()), Op::Approve("wait".into())]).await;
    let id = open_effect(&society, is_approval).await;
    // Cut the log behind the two intents: that is what a crash at that place leaves.
    society.stop(Duration::ZERO).await;
    let begun = bed.events().iter().filter(|recorded| !matches!(recorded.event, Event::EffectEnded { .. })).count();
    let kept: Vec<_> =
        bed.events().into_iter().take_while(|recorded| !matches!(recorded.event, Event::EffectEnded { .. })).collect();
    assert!(kept.len() < begun);
    let again = Bed::new();
    let kept: Vec<_> = kept.into_iter().map(Arc::new).collect();
    polis_ports::Log::append(&*again.log, &"main".into(), polis_domain::Seq(0), &kept).await.unwrap();
    let society = again.open().await;
    assert_eq!(open_effect(&society, is_approval).await, id);
    society.resolve(id, yes()).await.unwrap();
    assert_eq!(answer(&society, &sent).await.unwrap(), "look(a),stamp(b) approved");
    assert_eq!(*bed.done.lock().unwrap(), *again.done.lock().unwrap(), "the same keys");
}

/// Draws ids and looks at the time, before and after a wait.
struct Diary;

impl Agent for Diary {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let before = (turn.new_id("a"), turn.now());
        turn.say(format!("{before:?}")).await?;
        turn.sleep(Duration::from_secs(5)).await?;
        turn.approve("go on?", serde_json::Value::Null, None).await?;
        let after = (turn.new_id("b"), turn.now());
        Ok(Response::new(format!("{before:?} {after:?}")))
    }
}

#[tokio::test(start_paused = true)]
async fn ids_and_times_are_the_same_in_a_second_run() {
    let mut bed = Bed::new();
    bed.cast = Cast::new().with("programmed", Diary);
    let first = bed.open().await;
    let sent = submit(&first, vec![]).await;
    let id = open_effect(&first, is_approval).await;
    first.stop(Duration::ZERO).await;
    let second = bed.open().await;
    second.resolve(id, yes()).await.unwrap();
    let told = answer(&second, &sent).await.unwrap();
    let said = bed.events().into_iter().find_map(|recorded| match recorded.event {
        Event::MessageAdded { message, .. } => Some(message.text.clone()),
        _ => None,
    });
    assert!(told.starts_with(&said.unwrap()), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_stops_what_runs_children_first_and_refuses_late_results() {
    let bed = Bed::new();
    let society = bed.open().await;
    spawn(&society, &["a1"]).await;
    let below = Program(vec![Op::Units(vec![Program(vec![Op::Sleep(1_000_000)])])]);
    let sent = submit(&society, vec![Op::Ask { agent: "a1".into(), program: below, patience_ms: 2_000_000 }]).await;
    let sleeping = open_effect(&society, |kind, _| *kind == OpenKind::Sleep).await;
    society.cancel(Target::Task(sent.task_id.clone()), "not needed").await.unwrap();
    assert_eq!(answer(&society, &sent).await.unwrap_err(), "cancelled");
    let settled: Vec<TurnId> = bed
        .events()
        .iter()
        .filter_map(|recorded| match &recorded.event {
            Event::TurnSettled { turn, .. } => Some(*turn),
            _ => None,
        })
        .collect();
    assert!(settled.is_sorted_by(|a, b| a > b) && settled.len() == 3, "{settled:?}");
    assert_eq!(settled[0], sleeping.turn);
    let late = society.resolve(sleeping, yes()).await.unwrap_err();
    assert_eq!(late.code(), "not_open");
    assert_eq!(ask(&society, vec![Op::Say("free again".into())]).await.unwrap(), "said:free again");
}
