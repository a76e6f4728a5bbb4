//! `kill -9` before and after every event, on a real process and the real store: no finished unit is run again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use polis::domain::Outcome;
use polis::{Event, Log, Recorded, Seq, Thread};
use polis_store_local::LocalLog;
use polis_testkit::kill::{RestartedRun, Target};

#[test]
fn an_article_killed_at_every_event_is_finished_and_nothing_is_asked_twice() {
    let target = Target { life: &life, read: &read };
    let dir = tempfile::tempdir().unwrap();
    let whole = target.undisturbed(dir.path()).unwrap();
    assert!(whole.len() > 150, "it is rich enough: {} events", whole.len());
    let (threads, asked) = (texts(&whole), lines(dir.path(), "asked"));
    assert_eq!(threads.len(), 1 + 1 + 3 + 2, "the conversation, the article, three researches, two reviews");
    assert_eq!(asked.len(), replies(&whole));

    let checked = target.at_every_event(whole.len(), |RestartedRun { dir, kept, log }| {
        if texts(log) != threads {
            return Err(format!("the threads say something else: {:?}", texts(log)));
        }
        let (again, missing) = (lines(dir, "asked").len(), replies(log) - replies(kept));
        if again != missing {
            return Err(format!("the model was asked {again} times for {missing} replies"));
        }
        Ok(())
    });
    assert_eq!(checked, Ok(()));
}

/// What each thread says in the end, whatever the order in which it was said.
fn texts(log: &[Recorded]) -> Vec<Vec<String>> {
    let mut events = BTreeMap::<_, Vec<_>>::new();
    for recorded in log {
        if let Some(thread) = &recorded.thread {
            events.entry(thread.clone()).or_default().push(recorded.clone());
        }
    }
    let threads = events.into_iter().map(|(id, events)| Thread::fold(id, &events));
    let said = |thread: Thread| thread.messages.into_iter().map(|message| message.text.clone()).collect::<Vec<_>>();
    let mut said: Vec<_> = threads.map(said).filter(|texts| !texts.is_empty()).collect();
    said.sort();
    said
}

/// How often a model has answered.
fn replies(log: &[Recorded]) -> usize {
    let is_reply = |recorded: &&Recorded| matches!(&recorded.event, Event::EffectEnded { outcome: Outcome::Reply(_), .. });
    log.iter().filter(is_reply).count()
}

fn life(dir: &Path) -> Command {
    let mut command = Command::new(program());
    command.arg(dir);
    command
}

/// The example that lies beside the test programs.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().join("examples/article_kill_target")
}

fn read(dir: &Path) -> Vec<Recorded> {
    let log = LocalLog::open(&dir.join("data")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(log.read(&"main".into(), Seq(0), usize::MAX)).unwrap()
}

fn lines(dir: &Path, file: &str) -> Vec<String> {
    fs::read_to_string(dir.join(file)).unwrap_or_default().lines().map(str::to_owned).collect()
}
