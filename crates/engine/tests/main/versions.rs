//! Behaviours in several versions side by side: a turn keeps the one that it began with, wherever and whenever it continues.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use polis_domain::{
    Event, Failure, Message, Origin, Outcome, Recorded, Resolution, Response, Seq, SubThreadRequest, Timestamp, Verdict,
};
use polis_engine::{
    Agent, Branch, Cast, DeployedVersion, InteractionUnit, Options, Society, StateHandler, SubThreadAgent, SubThreads, Turn,
    Units, fork, replay, replay_open,
};
use polis_ports::Log;
use polis_testkit::crash::CommitEnds;
use polis_testkit::{ManualClock, MemoryLog, equivalence, worker_role};

use crate::bed::{Bed, answer, is_approval, open_effect, parked, submit, until};

/// Thinks, has a part done in a sub-thread, asks the person, and says which version it is. The order differs by version, so that
/// the code of one cannot continue a turn of another.
struct Article(u32);

impl Agent for Article {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let Self(version) = self;
        if *version >= 2 {
            turn.sleep(Duration::from_secs(1)).await?;
        }
        let thought = turn.generate(format!("v{version}")).await?;
        turn.approve("go on?", serde_json::Value::Null, None).await?;
        let part = turn.run_sub_thread(SubThreadRequest::new("part", "do it")).await?;
        Ok(Response::new(format!("{thought}, {} by v{version}", part.text)))
    }

    fn sub_threads(&self) -> SubThreads {
        SubThreads::new().with("part", Part(self.0))
    }
}

/// Its one unit has the same name in all versions.
struct Part(u32);

impl SubThreadAgent for Part {
    fn units(&self) -> Units {
        Units::new().on("initial_phase", Done).with_handler(Says(self.0))
    }
}

struct Says(u32);

impl StateHandler for Says {
    async fn handle(&self, turn: &mut Turn) -> Result<Response, Failure> {
        Ok(Response::new(turn.generate(format!("part of v{}", self.0)).await?))
    }
}

struct Done;

impl InteractionUnit for Done {
    async fn user_message(&self, bot: &Message, _: &mut Turn) -> Result<String, Failure> {
        Ok(bot.text.to_string())
    }
}

fn cast(versions: &[u32]) -> Cast {
    versions.iter().fold(Cast::new(), |cast, version| cast.with_version("programmed", *version, Article(*version)))
}

/// The same log with a program that has these versions.
fn with(bed: &Bed, versions: &[u32]) -> Bed {
    // Two lives must not make the same ids.
    let options = Options::new(bed.events().len() as u64, worker_role());
    Bed { log: bed.log.clone(), thoughts: bed.thoughts.clone(), cast: cast(versions), options, ..Bed::new() }
}

fn yes() -> Resolution {
    Resolution::Outcome(Outcome::Verdict(Verdict::yes()))
}

fn said(version: u32) -> String {
    format!("thought(v{version}), thought(part of v{version}) by v{version}")
}

/// The version of each turn that has begun, and whether it is a unit, in the order of the log.
fn begun(events: &[Recorded]) -> Vec<(u32, bool)> {
    let begun = |recorded: &Recorded| match &recorded.event {
        Event::TurnStarted { version, origin, .. } => Some((version.0, *origin != Origin::Inbox)),
        _ => None,
    };
    events.iter().filter_map(begun).collect()
}

/// Behaviour, version, whether it is registered, whether it can be removed, how many open turns it has.
async fn status(society: &Society) -> Vec<(u32, bool, bool, usize)> {
    let line = |it: DeployedVersion| (it.version.0, it.is_registered, it.is_removable(), it.turns.len());
    society.deployment().await.unwrap().into_iter().map(line).collect()
}

async fn resolve_next(society: &Society) {
    let id = open_effect(society, is_approval).await;
    society.resolve(id, yes()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_turn_keeps_the_version_that_it_began_with_and_new_turns_begin_with_the_newest() {
    let bed = with(&Bed::new(), &[1]);
    let first = bed.open().await;
    let old = submit(&first, vec![]).await;
    open_effect(&first, is_approval).await;
    assert_eq!(status(&first).await, [(1, true, false, 1)]);
    first.stop(Duration::ZERO).await;
    let is_change = |recorded: &Recorded| matches!(recorded.event, Event::VersionsSet { .. });
    assert!(!bed.events().iter().any(is_change), "version 1 needs no event");

    let both = with(&bed, &[2, 1]);
    let second = both.open().await;
    let new = submit(&second, vec![]).await;
    assert_eq!(status(&second).await, [(1, true, false, 1), (2, true, false, 0)]);
    resolve_next(&second).await;
    assert_eq!(answer(&second, &old).await.unwrap(), said(1));
    resolve_next(&second).await;
    assert_eq!(answer(&second, &new).await.unwrap(), said(2));
    assert_eq!(begun(&bed.events()), [(1, false), (1, true), (2, false), (2, true)]);
    assert_eq!(status(&second).await, [(1, true, true, 0), (2, true, false, 0)], "now version 1 can be removed");
    assert_eq!(bed.thoughts.load(Ordering::Relaxed), 4, "nothing is asked twice");
    second.stop(Duration::ZERO).await;

    let last = with(&bed, &[2]);
    let third = last.open().await;
    assert_eq!(bed.events().iter().filter(|recorded| is_change(recorded)).count(), 1, "the same versions are noted once");
    third.stop(Duration::ZERO).await;
    let replayed = replay(&"main".into(), &both.ports(bed.log.clone()), &both.cast).await.unwrap();
    assert_eq!((replayed.turns, replayed.retired, &replayed.divergences[..]), (4, 0, &[][..]));
    let replayed = replay(&"main".into(), &last.ports(bed.log.clone()), &last.cast).await.unwrap();
    assert_eq!((replayed.turns, replayed.retired, &replayed.divergences[..]), (2, 2, &[][..]));
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_version_is_missing_is_parked_and_continues_when_it_is_registered_again() {
    let bed = with(&Bed::new(), &[1]);
    let first = bed.open().await;
    let old = submit(&first, vec![]).await;
    let id = open_effect(&first, is_approval).await;
    first.stop(Duration::ZERO).await;

    let without = with(&bed, &[3, 2]);
    let dry_run = replay_open(&"main".into(), &without.ports(bed.log.clone()), &without.cast).await.unwrap();
    assert_eq!(dry_run.divergences.len(), 1, "{dry_run:?}");
    let second = without.open().await;
    second.resolve(id, yes()).await.unwrap();
    let (turn, why) = parked(&second).await;
    assert_eq!((turn, &*why.code), (id.turn, "version_missing"));
    assert!(why.message.contains("version 1 of `programmed`, and version 2, 3 is registered"), "{}", why.message);
    let deployed = second.deployment().await.unwrap();
    assert_eq!(deployed[0].turns[0].parked.as_deref(), Some("version_missing"), "{deployed:?}");
    assert_eq!(status(&second).await, [(1, false, false, 1), (2, true, true, 0), (3, true, false, 0)]);
    second.resume(turn).await.unwrap();
    assert_eq!(&*parked(&second).await.1.code, "version_missing", "it is never guessed");
    second.stop(Duration::ZERO).await;

    let third = with(&bed, &[1, 3]).open().await;
    assert_eq!(answer(&third, &old).await.unwrap(), said(1));
    assert_eq!(bed.thoughts.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn an_older_program_begins_with_its_own_version_again() {
    let bed = with(&Bed::new(), &[1, 2]);
    let first = bed.open().await;
    let sent = submit(&first, vec![]).await;
    resolve_next(&first).await;
    assert_eq!(answer(&first, &sent).await.unwrap(), said(2));
    first.stop(Duration::ZERO).await;
    let second = with(&bed, &[1]).open().await;
    let sent = submit(&second, vec![]).await;
    resolve_next(&second).await;
    assert_eq!(answer(&second, &sent).await.unwrap(), said(1));
}

#[tokio::test(start_paused = true)]
async fn a_fork_goes_on_with_the_version_of_each_turn() {
    let bed = with(&Bed::new(), &[1]);
    let first = bed.open().await;
    let old = submit(&first, vec![]).await;
    let id = open_effect(&first, is_approval).await;
    first.stop(Duration::ZERO).await;
    let clock = ManualClock::at(Timestamp(1_700_000_000_000));
    let branch = Branch { from: "main".into(), at: None, to: "other".into(), aside: None, request: None };
    fork(&*bed.log, &clock, &branch, 11).await.unwrap();

    let both = with(&bed, &[1, 2]);
    let open = Society::open("other".into(), both.ports(bed.log.clone()), both.cast.clone(), both.options.clone());
    let other = open.await.unwrap();
    let new = submit(&other, vec![]).await;
    other.resolve(id, yes()).await.unwrap();
    assert_eq!(answer(&other, &old).await.unwrap(), said(1));
    resolve_next(&other).await;
    assert_eq!(answer(&other, &new).await.unwrap(), said(2));
}

/// One life of the upgrade: what is not done yet is done with the program that would do it.
async fn upgrade(bed: &Bed, ends: &CommitEnds) -> (String, String) {
    let is_upgraded = |recorded: &Recorded| matches!(recorded.event, Event::VersionsSet { .. });
    let requests = |bed: &Bed| bed.events().iter().filter(|recorded| is_request(recorded)).count();
    if !bed.events().iter().any(is_upgraded) {
        let first = with(bed, &[1]).open_on(ends.of(bed.log.clone())).await;
        if requests(bed) == 0 {
            submit(&first, vec![]).await;
        }
        open_effect(&first, is_approval).await;
        first.stop(Duration::ZERO).await;
    }
    let second = with(bed, &[1, 2]).open_on(ends.of(bed.log.clone())).await;
    if requests(bed) == 1 {
        submit(&second, vec![]).await;
    }
    // Both approvals, one after the other, unless they were given before.
    loop {
        let next = until(&second, |spine| {
            let open = spine.turns.iter().find_map(|(turn, state)| {
                let open = state.open.iter().find(|open| is_approval(&open.kind, open.stage))?;
                Some(polis_domain::EffectId { turn: *turn, n: open.n })
            });
            if spine.turns.is_empty() { Some(None) } else { open.map(Some) }
        });
        let Some(id) = next.await else { break };
        second.resolve(id, yes()).await.unwrap();
    }
    second.stop(Duration::ZERO).await;
    let mut answers = bed.events().into_iter().filter_map(|recorded| match recorded.event {
        Event::MessageSent { envelope, .. } if envelope.to.is_user() => Some(envelope.payload.text.to_string()),
        _ => None,
    });
    (answers.next().unwrap_or_default(), answers.next().unwrap_or_default())
}

fn is_request(recorded: &Recorded) -> bool {
    matches!(&recorded.event, Event::MessageSent { envelope, .. } if envelope.from.is_user())
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_commit_of_an_upgrade_changes_no_turns_version() {
    let (bed, ends) = (Bed::new(), CommitEnds::default());
    assert_eq!(upgrade(&bed, &ends).await, (said(1), said(2)));
    let whole = bed.events();
    assert_eq!(begun(&whole), [(1, false), (1, true), (2, false), (2, true)]);
    let ends = ends.all();
    assert!(ends.len() > 12, "{ends:?}");
    for end in ends {
        let log = Arc::new(MemoryLog::new());
        let before: Vec<_> = whole[..end.0 as usize].iter().cloned().map(Arc::new).collect();
        log.append(&"main".into(), Seq(0), &before).await.unwrap();
        let again = Bed { log, ..Bed::new() };
        assert_eq!(upgrade(&again, &CommitEnds::default()).await, (said(1), said(2)), "stopped after event {end}");
        let events = again.events();
        assert_eq!(begun(&events), begun(&whole), "stopped after event {end}");
        assert_eq!(equivalence::difference(&whole, &events), None, "stopped after event {end}");
    }
}

#[test]
fn what_does_not_fit_together_is_reported() {
    let faults = |cast: Cast| cast.check().unwrap_err().to_string();
    assert!(faults(Cast::new().with_version("a", 0, Article(1))).contains("`a` has version 0; versions begin at 1"));
    let twice = Cast::new().with("a", Article(1)).with_version("a", 2, Article(2)).with_version("a", 2, Article(2));
    assert!(faults(twice).contains("`a` is registered twice in version 2"));
    assert!(faults(Cast::new().with("a/b", Article(1))).contains("`a/b` has a `/` in its name"));
    assert!(Cast::new().with("a", Article(1)).with_version("a", 2, Article(2)).check().is_ok());
}
