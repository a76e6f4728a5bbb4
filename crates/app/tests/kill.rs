//! `kill -9` after every event in turn, on a real process and the real store: it resumes, and the log tells the same story.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use polis_domain::{Effect, Event, ListedArtifact, Outcome, Recorded, Seq, Spine};
use polis_engine::{Branch, SystemClock, fork};
use polis_ports::{Artifacts, Log};
use polis_store_local::{ArtifactLimits, LocalArtifacts, LocalLog};
use polis_testkit::equivalence;
use polis_testkit::kill::{PATIENCE, RestartedRun, Target, wait};

#[test]
fn a_society_killed_at_every_event_resumes_and_tells_the_same_story() {
    let undisturbed = tempfile::tempdir().unwrap();
    let target = Target { life: &command, read: &read };
    let story = target.undisturbed(undisturbed.path()).unwrap();
    assert!(story.len() > 80, "the scenario is rich enough: {} events", story.len());
    let checked = target.at_every_event(story.len(), |remains| check(&story, remains));
    assert_eq!(checked, Ok(()));
}

/// The texts of memories are outside the log: after a kill at any event what is remembered is there once, and what is forgotten is
/// in no file of the store of texts.
#[test]
fn what_is_remembered_and_forgotten_survives_a_kill_at_every_event() {
    let life = |dir: &Path| {
        let mut command = command(dir);
        command.arg("memory");
        command
    };
    let undisturbed = tempfile::tempdir().unwrap();
    let target = Target { life: &life, read: &read };
    let story = target.undisturbed(undisturbed.path()).unwrap();
    assert_eq!(memories_are_right(undisturbed.path(), &story), Ok(()));
    let checked = target.at_every_event(story.len(), |RestartedRun { dir, log, .. }| memories_are_right(dir, log));
    assert_eq!(checked, Ok(()));
}

fn memories_are_right(dir: &Path, log: &[Recorded]) -> Result<(), String> {
    let spine = Spine::from_iter(log);
    let kept = spine.memories.of_person(&"owner".into()).count();
    if (kept, spine.memories.removing().count()) != (1, 0) {
        return Err(format!("{kept} memories, {:?} to be removed", spine.memories.removing().collect::<Vec<_>>()));
    }
    let stored = fs::read(dir.join("data/memory.db")).map_err(|error| error.to_string())?;
    let has = |word: &str| stored.windows(word.len()).any(|window| window == word.as_bytes());
    let count = stored.windows(11).filter(|window| window == b"tea, please").count();
    if count != 1 || has("osprey") {
        return Err(format!("the kept text is stored {count} times, the forgotten one: {}", has("osprey")));
    }
    Ok(())
}

/// The whole walk of an approval: it waits three levels deep, the process is killed, another one is given the word, with other
/// arguments, and is killed at every event from there on.
#[test]
fn a_call_that_waits_three_levels_deep_is_made_once_with_the_arguments_of_a_word_given_after_a_kill() {
    const EDITED: &str = r#"{"text":"edited"}"#;
    let approve = |dir: &Path, kill: Option<(u64, &str)>| {
        let mut command = command(dir);
        command.arg("deep").env("APPROVE", EDITED);
        if let Some((at, when)) = kill {
            command.env("KILL_AT", at.to_string()).env("KILL_WHEN", when);
        }
        wait(command.spawn().unwrap()).unwrap()
    };
    let waits = || {
        let dir = tempfile::tempdir().unwrap();
        let mut life = command(dir.path()).arg("deep").spawn().unwrap();
        let start = Instant::now();
        while lines(dir.path(), "waits").is_empty() {
            assert!(start.elapsed() < PATIENCE, "it never waits");
            std::thread::park_timeout(Duration::from_millis(2));
        }
        life.kill().unwrap();
        assert_eq!(life.wait().unwrap().signal(), Some(9));
        assert_eq!(lines(dir.path(), "ledger"), Vec::<String>::new(), "nothing is done unasked");
        dir
    };
    let undisturbed = waits();
    let asked = read(undisturbed.path()).len() as u64;
    assert!(approve(undisturbed.path(), None).success());
    let story = read(undisturbed.path());
    assert_eq!(lines(undisturbed.path(), "ledger"), [EDITED]);
    assert!(story.iter().any(|recorded| {
        let address = recorded.thread.as_ref().map(|thread| Spine::from_iter(&story).address(thread).1);
        matches!(recorded.event, Event::EffectStarted { effect: Effect::Tool(_), .. })
            && address.is_some_and(|path| path.segments().len() == 3)
    }));

    // Killed between the word and the call, or after the call: it is made once, or the word is asked for again.
    for at in asked + 1..=story.len() as u64 {
        let dir = waits();
        assert_eq!(approve(dir.path(), Some((at, "before"))).signal(), Some(9), "at {at}");
        let kept = read(dir.path());
        let verdict = |recorded: &Recorded| matches!(recorded.event, Event::EffectEnded { outcome: Outcome::Verdict(_), .. });
        if !kept.iter().any(verdict) {
            assert!(approve(dir.path(), None).success());
            assert_eq!(lines(dir.path(), "ledger"), [EDITED], "killed before event {at}");
        } else {
            assert!(lines(dir.path(), "ledger").len() <= 1, "killed before event {at}");
        }
    }
}

/// P19 on the real store: killed at each tenth event and forked there, both come to their end, and neither sees the other.
#[test]
fn a_society_forked_at_each_tenth_event_comes_to_its_end_twice() {
    let undisturbed = tempfile::tempdir().unwrap();
    assert!(wait(command(undisturbed.path()).spawn().unwrap()).unwrap().success());
    let story = read(undisturbed.path());
    for at in (10..=story.len() as u64).step_by(10) {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(
            wait(command(dir.path()).env("KILL_AT", at.to_string()).env("KILL_WHEN", "after").spawn().unwrap())
                .unwrap()
                .signal(),
            Some(9),
            "at {at}"
        );
        let shared = fork_here(dir.path());
        let other = wait(command(dir.path()).env("SOCIETY", "other").spawn().unwrap()).unwrap();
        assert!(other.success(), "forked at {at}: the fork ended with {other}");
        assert_eq!(read(dir.path()).len(), shared, "forked at {at}: the other one has not moved");
        let main = wait(command(dir.path()).spawn().unwrap()).unwrap();
        assert!(main.success(), "forked at {at}: the society ended with {main}");
        let (ours, theirs) = (read(dir.path()), read_society(dir.path(), "other"));
        assert_eq!(ours[..shared], theirs[..shared], "forked at {at}");
        assert_eq!(equivalence::difference(&story, &ours), None, "forked at {at}");
        artifacts_are_whole(dir.path(), &theirs).unwrap();
        let mut writes = BTreeSet::new();
        let done = lines(dir.path(), "ledger").into_iter().filter(|line| line.starts_with("Write"));
        let twice: Vec<_> = done.filter(|line| !writes.insert(line.clone())).collect();
        assert_eq!(twice, Vec::<String>::new(), "forked at {at}");
    }
}

/// Forks `main` where it ends, and gives that place.
fn fork_here(dir: &Path) -> usize {
    let log = LocalLog::open(&dir.join("data")).unwrap();
    let branch = Branch { from: "main".into(), at: None, to: "other".into(), aside: None, request: None };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(fork(&log, &SystemClock, &branch, 3)).unwrap().at.0 as usize
}

fn check(undisturbed: &[Recorded], &RestartedRun { dir, log, .. }: &RestartedRun<'_>) -> Result<(), String> {
    for accepted in lines(dir, "accepted") {
        let is_it = |recorded: &&Recorded| recorded.event.envelope().is_some_and(|envelope| envelope.id.as_str() == accepted);
        if log.iter().filter(is_it).count() != 1 {
            return Err(format!("an accepted message is missing: {accepted}"));
        }
    }
    let mut writes = BTreeSet::new();
    let done = lines(dir, "ledger").into_iter().filter(|line| line.starts_with("Write"));
    if let Some(twice) = done.into_iter().find(|line| !writes.insert(line.clone())) {
        return Err(format!("a write happened twice: {twice}"));
    }
    artifacts_are_whole(dir, log)?;
    match equivalence::difference(undisturbed, log) {
        Some(difference) => Err(format!("the log differs from the undisturbed one {difference}")),
        None => Ok(()),
    }
}

/// What the log names is there and whole: it was kept before it was named.
fn artifacts_are_whole(dir: &Path, log: &[Recorded]) -> Result<(), String> {
    let store = LocalArtifacts::open(&dir.join("data"), ArtifactLimits::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let entries = Spine::from_iter(log).artifacts.entries().to_vec();
    if entries.len() != 2 {
        return Err(format!("{} artifacts are named instead of 2", entries.len()));
    }
    for ListedArtifact { artifact, .. } in entries {
        runtime.block_on(store.read(&artifact.id, 0, 1)).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn command(dir: &Path) -> Command {
    let mut command = Command::new(target());
    command.arg(dir).env_remove("SOCIETY").env_remove("KILL_AT").env_remove("APPROVE");
    command
}

/// The example that lies beside the test programs.
fn target() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().join("examples/kill_target")
}

fn read(dir: &Path) -> Vec<Recorded> {
    read_society(dir, "main")
}

fn read_society(dir: &Path, society: &str) -> Vec<Recorded> {
    let log = LocalLog::open(&dir.join("data")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(log.read(&society.into(), Seq(0), usize::MAX)).unwrap()
}

fn lines(dir: &Path, file: &str) -> Vec<String> {
    fs::read_to_string(dir.join(file)).unwrap_or_default().lines().map(str::to_owned).collect()
}
