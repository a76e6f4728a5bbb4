//! Forks and replays: what had ended stays ended, what was open is owed in both, and a replay notices changed code.

use std::sync::atomic::Ordering;
use std::time::Duration;

use polis_domain::{
    Effect, EffectClass, Event, Failure, Meta, Outcome, Recorded, Resolution, Response, Sender, Seq, SocietyId, Stage, Verdict,
};
use polis_engine::{Agent, Branch, Cast, ForkError, Forked, NewMessage, Options, Society, Turn, fork, free_name, replay};
use polis_ports::Log;
use polis_testkit::{ManualClock, Op, Program, ProgrammedAgent, worker_role};

use crate::bed::{Bed, answer, call, is_approval, open_effect, submit};

async fn branch(bed: &Bed, at: Option<u64>, to: &str, aside: Option<&str>) -> Result<Forked, ForkError> {
    let clock = ManualClock::at(polis_domain::Timestamp(1_700_000_000_000));
    let branch =
        Branch { from: "main".into(), at: at.map(Seq), to: to.into(), aside: aside.map(SocietyId::from), request: None };
    fork(&*bed.log, &clock, &branch, 11).await
}

async fn open(bed: &Bed, name: &str) -> Society {
    let options = Options { entropy: 99, ..Options::new(99, worker_role()) };
    Society::open(name.into(), bed.ports(bed.log.clone()), bed.cast.clone(), options).await.unwrap()
}

fn log_of(bed: &Bed, name: &str) -> Vec<Recorded> {
    bed.log.events(&name.into()).iter().map(|recorded| Recorded::clone(recorded)).collect()
}

fn yes() -> Resolution {
    Resolution::Outcome(Outcome::Verdict(Verdict::yes()))
}

#[tokio::test(start_paused = true)]
async fn a_fork_goes_on_where_the_society_was_and_does_nothing_again() {
    let bed = Bed::new();
    let society = bed.open().await;
    let ops = vec![
        call("mark", "one"),
        Op::Think("first".into()),
        Op::Approve("on?".into()),
        call("mark", "two"),
        Op::Say("x".into()),
    ];
    let sent = submit(&society, ops).await;
    let asked = open_effect(&society, is_approval).await;
    let shared = bed.events().len();
    let forked = branch(&bed, None, "other", None).await.unwrap();
    assert_eq!(forked, Forked { at: Seq(shared as u64), open_turns: 1, in_doubt: 0 });

    let other = open(&bed, "other").await;
    other.resolve(asked, yes()).await.unwrap();
    let told = answer(&other, &sent).await.unwrap();
    assert_eq!(log_of(&bed, "main").len(), shared, "the first one waits as before");
    society.resolve(asked, yes()).await.unwrap();
    assert_eq!(answer(&society, &sent).await.unwrap(), told);

    assert_eq!(log_of(&bed, "main")[..shared], log_of(&bed, "other")[..shared]);
    assert_eq!(bed.thoughts.load(Ordering::Relaxed), 1, "what the model said is said");
    assert_eq!(bed.writes(), 3, "one before the fork, one in each after it");
    let keys = bed.done.lock().unwrap().clone();
    assert!(
        keys.iter().all(|key| keys.iter().filter(|other| *other == key).count() == 1),
        "each call has a key of its own: {keys:?}"
    );
    let drawn = |name: &str| -> Vec<String> {
        let events = log_of(&bed, name).split_off(shared);
        let id = |recorded: &Recorded| match &recorded.event {
            Event::MessageAdded { message, .. } | Event::TurnSettled { message: Some(message), .. } => {
                Some(message.id.to_string())
            }
            event => event.envelope().map(|envelope| envelope.id.to_string()),
        };
        events.iter().filter_map(id).collect()
    };
    let (ours, theirs) = (drawn("main"), drawn("other"));
    assert!(ours.len() >= 3 && ours.iter().all(|id| !theirs.contains(id)), "{ours:?} {theirs:?}");
}

#[tokio::test(start_paused = true)]
async fn a_write_without_a_result_is_in_doubt_in_the_fork_as_well() {
    let bed = Bed::new();
    let society = bed.open().await;
    let sent = submit(&society, vec![call("mark", "one")]).await;
    answer(&society, &sent).await.unwrap();
    society.stop(Duration::ZERO).await;
    let is_call = |recorded: &Recorded| matches!(&recorded.event, Event::EffectStarted { effect: Effect::Tool(_), .. });
    let stated = log_of(&bed, "main").iter().find(|recorded| is_call(recorded)).unwrap().seq;
    let forked = branch(&bed, Some(stated.0), "other", None).await.unwrap();
    assert_eq!((forked.at, forked.in_doubt), (stated, 1));
    let other = open(&bed, "other").await;
    let id = open_effect(&other, |_, stage| stage == Stage::InDoubt).await;
    other.resolve(id, Resolution::Again).await.unwrap();
    answer(&other, &sent).await.unwrap();
    let keys: Vec<_> = bed.done.lock().unwrap().iter().filter(|(class, _)| *class == EffectClass::Write).cloned().collect();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1], "a call that was open at the fork has one key in both");
}

#[tokio::test(start_paused = true)]
async fn a_rewind_gives_the_name_to_a_fork_and_keeps_the_old_one() {
    let bed = Bed::new();
    let society = bed.open().await;
    let sent = submit(&society, vec![Op::Say("one".into())]).await;
    answer(&society, &sent).await.unwrap();
    let place = bed.events().len() as u64;
    let second = submit(&society, vec![Op::Say("two".into())]).await;
    answer(&society, &second).await.unwrap();
    society.stop(Duration::ZERO).await;
    let whole = bed.events();
    let aside = free_name(&*bed.log, &"main".into()).await.unwrap();
    assert_eq!(aside.as_str(), "main-1");
    assert_eq!(branch(&bed, Some(place), "main", Some("main-1")).await.unwrap().at, Seq(place));
    assert_eq!(log_of(&bed, "main-1"), whole);
    let society = bed.open().await;
    let third = submit(&society, vec![Op::Say("three".into())]).await;
    answer(&society, &third).await.unwrap();
    society.stop(Duration::ZERO).await;
    let (now, shared) = (bed.events(), place as usize);
    assert_eq!(now[..shared], whole[..shared]);
    assert!(matches!(&now[shared].event, Event::SocietyForked { from, .. } if from.as_str() == "main"));
    assert_eq!(free_name(&*bed.log, &"main".into()).await.unwrap().as_str(), "main-2");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_forked_is_refused_with_a_code() {
    let bed = Bed::new();
    let code = async |at, to: &str, aside| branch(&bed, at, to, aside).await.map_err(|error| error.code()).unwrap_err();
    assert_eq!(code(None, "other", None).await, "unknown_society");
    let society = bed.open().await;
    let sent = submit(&society, vec![Op::Say("one".into())]).await;
    answer(&society, &sent).await.unwrap();
    let last = bed.events().len() as u64;
    assert_eq!(code(Some(last + 1), "other", None).await, "no_such_event");
    assert_eq!(code(Some(0), "other", None).await, "too_early");
    assert_eq!(code(Some(1), "other", None).await, "too_early", "root is not there yet");
    assert_eq!(code(None, "main", None).await, "society_exists");
    assert_eq!(code(None, "a b", None).await, "bad_society_name");
    assert_eq!(code(None, "main", Some("")).await, "bad_society_name");
    assert_eq!(branch(&bed, Some(5), "other", None).await.unwrap().at, bed.log.whole(&"main".into(), Seq(5)).await.unwrap());
    assert_eq!(bed.log.societies().await.unwrap().len(), 2);
}

/// An agent that says another thing than it said.
struct Changed;

impl Agent for Changed {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        if turn.task().message.contains("changed") {
            turn.say("something else").await?;
        }
        ProgrammedAgent.execute_task(turn).await
    }
}

/// An agent that has one more word to say in the end.
struct Wordier;

impl Agent for Wordier {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let response = ProgrammedAgent.execute_task(turn).await?;
        let message = NewMessage { sender: Sender::Bot, text: "one more".to_owned(), meta: Meta::new() };
        turn.add_messages(vec![message], Vec::new()).await?;
        Ok(response)
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_notices_what_is_only_said_right_before_the_end() {
    let bed = Bed::new();
    let society = bed.open().await;
    let sent = submit(&society, vec![Op::Think("first".into())]).await;
    answer(&society, &sent).await.unwrap();
    society.stop(Duration::ZERO).await;
    let cast = Cast::new().with(ProgrammedAgent::NAME, Wordier);
    let replayed = replay(&"main".into(), &bed.ports(bed.log.clone()), &cast).await.unwrap();
    let [divergence] = replayed.divergences.as_slice() else { panic!("{replayed:?}") };
    assert_eq!(divergence.effect.map(|id| id.n), Some(1), "{divergence:?}");
}

#[tokio::test(start_paused = true)]
async fn a_replay_calls_nothing_and_names_the_turn_and_the_effect_where_code_has_changed() {
    let bed = Bed::new();
    let society = bed.open().await;
    let unit = Program(vec![Op::Say("below".into()), call("mark", "deep"), Op::Think("deep".into())]);
    let ops = vec![call("look", "a"), Op::Think("first".into()), Op::Units(vec![unit]), Op::Sleep(5), Op::Fail("no".into())];
    let sent = submit(&society, ops).await;
    answer(&society, &sent).await.unwrap_err();
    let changed = submit(&society, vec![Op::Say("changed".into()), call("mark", "x")]).await;
    answer(&society, &changed).await.unwrap();
    society.stop(Duration::ZERO).await;
    let (done, thoughts) = (bed.done.lock().unwrap().len(), bed.thoughts.load(Ordering::Relaxed));

    let ports = bed.ports(bed.log.clone());
    let replayed = replay(&"main".into(), &ports, &bed.cast).await.unwrap();
    assert_eq!(replayed.divergences, []);
    assert_eq!((replayed.events, replayed.turns, replayed.open), (bed.events().len() as u64, 3, 0));
    assert!(replayed.effects >= 8, "{replayed:?}");
    assert_eq!((bed.done.lock().unwrap().len(), bed.thoughts.load(Ordering::Relaxed)), (done, thoughts));

    let cast = Cast::new().with(ProgrammedAgent::NAME, Changed);
    let replayed = replay(&"main".into(), &ports, &cast).await.unwrap();
    let [divergence] = replayed.divergences.as_slice() else { panic!("{replayed:?}") };
    assert_eq!(divergence.effect.map(|id| id.n), Some(0), "{divergence:?}");
    assert_eq!(divergence.agent.as_str(), "root");
    assert_eq!((bed.done.lock().unwrap().len(), bed.thoughts.load(Ordering::Relaxed)), (done, thoughts));
    let nobody = replay(&"main".into(), &ports, &Cast::new()).await.unwrap();
    assert_eq!(nobody.divergences.len(), 3, "{nobody:?}");
}
