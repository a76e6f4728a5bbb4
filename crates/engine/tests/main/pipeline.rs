//! Pipelined commits: what is decided while an append is being written, what becomes of it, and what need not wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use polis_domain::{EffectClass, Event, Recorded, Seq, SocietyId, Spine};
use polis_engine::{CommandError, Ports, Society, WatchEvent};
use polis_ports::{Log, LogError};
use polis_testkit::crash::CommitEnds;
use polis_testkit::{Gate, GatedLog, Op, Program, ScriptedModel, ScriptedReply, world};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::bed::{Bed, answer, spawn, submit};

/// A disk that writes an append only when the test lets it.
struct HeldDisk {
    begun: AtomicUsize,
    permits: Semaphore,
    is_full: AtomicBool,
}

impl HeldDisk {
    fn writing(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    fn write(&self, appends: usize) {
        self.permits.add_permits(appends);
    }
}

#[async_trait]
impl Gate for HeldDisk {
    async fn append(
        &self,
        log: &dyn Log,
        society: &SocietyId,
        expected: Seq,
        events: &[Arc<Recorded>],
    ) -> Result<(), LogError> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.permits.acquire().await.unwrap().forget();
        self.begun.fetch_sub(1, Ordering::Relaxed);
        match self.is_full.load(Ordering::Relaxed) {
            true => Err(LogError::Full("no room".into())),
            false => log.append(society, expected, events).await,
        }
    }
}

async fn open(bed: &Bed) -> (Society, Arc<GatedLog<HeldDisk>>) {
    let gate = HeldDisk { begun: AtomicUsize::new(0), permits: Semaphore::new(1), is_full: AtomicBool::new(false) };
    let log = Arc::new(GatedLog { log: bed.log.clone(), gate });
    let society = bed.open_on(log.clone()).await;
    (society, log)
}

fn spawning(society: &Society, name: &'static str) -> JoinHandle<Result<(), CommandError>> {
    let society = society.clone();
    tokio::spawn(async move { society.spawn(name.into(), "worker".into(), "root".into()).await.map(drop) })
}

/// Lets everything run that can, in virtual time.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn passes_are_decided_while_one_is_written_and_released_in_the_order_of_the_log() {
    let bed = Bed::new();
    let (society, log) = open(&bed).await;
    let mut spawned = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        spawned.push(spawning(&society, name));
        settle().await;
    }
    assert_eq!(log.gate.writing(), 4, "the fifth pass waits: there is a limit");
    let before = bed.events().len();
    for written in 1..=4 {
        log.gate.write(1);
        settle().await;
        assert_eq!(bed.events().len(), before + written);
        let answered = spawned.iter().filter(|spawned| spawned.is_finished()).count();
        assert_eq!(answered, written, "a sender is answered when its own append is in the log");
        assert!(spawned[written - 1].is_finished(), "the oldest first");
    }
    log.gate.write(1);
    settle().await;
    assert!(spawned.iter().all(|spawned| spawned.is_finished()));
    assert_eq!(society.look(Clone::clone).await.unwrap(), Spine::from_iter(&bed.events()));
}

#[tokio::test(start_paused = true)]
async fn a_query_sees_what_is_in_the_log_and_nothing_more() {
    let bed = Bed::new();
    let (society, log) = open(&bed).await;
    let first = spawning(&society, "a");
    settle().await;
    let looking = society.clone();
    let seen = tokio::spawn(async move { looking.look(Clone::clone).await.unwrap() });
    settle().await;
    let second = spawning(&society, "b");
    settle().await;
    assert_eq!(log.gate.writing(), 1, "nothing is decided behind a query that waits for the log");
    assert!(!seen.is_finished());
    log.gate.write(1);
    settle().await;
    let seen = seen.now_or_never().expect("it is answered").unwrap();
    assert_eq!(seen, Spine::from_iter(&bed.events()));
    assert!(first.is_finished() && !second.is_finished());
    log.gate.write(1);
    second.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_was_decided_behind_an_append_that_fails_fails_with_it() {
    let bed = Bed::new();
    let (society, log) = open(&bed).await;
    let before = bed.events();
    let mut refused = Vec::new();
    for name in ["a", "b", "a"] {
        refused.push(spawning(&society, name));
        settle().await;
    }
    log.gate.is_full.store(true, Ordering::Relaxed);
    log.gate.write(1);
    settle().await;
    log.gate.is_full.store(false, Ordering::Relaxed);
    log.gate.write(2);
    for refused in refused {
        assert_eq!(
            refused.await.unwrap().unwrap_err().code(),
            "disk_full",
            "a refusal too: it followed from what is not there"
        );
    }
    assert_eq!(bed.events(), before, "an append that expects a failed one is refused by the log");
    log.gate.write(1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    spawn(&society, &["a"]).await;
    assert_eq!(society.look(Clone::clone).await.unwrap(), Spine::from_iter(&bed.events()));
}

#[tokio::test(start_paused = true)]
async fn calls_that_may_be_repeated_are_made_before_their_intent_is_in_the_log_and_writes_are_not() {
    let bed = Bed::new();
    let (society, log) = open(&bed).await;
    let call = |tool: &str| Op::Call(vec![(tool.to_owned(), "x".to_owned())]);
    let text = Program(vec![Op::Think("a".into()), call("look"), Op::Think("b".into()), call("mark")]).text();
    let sent = tokio::spawn({
        let society = society.clone();
        async move { society.submit(&text).await.unwrap() }
    });
    settle().await;
    assert_eq!(bed.thoughts.load(Ordering::Relaxed), 0, "a turn is started when its first event is in the log");
    log.gate.write(1);
    settle().await;
    let before = bed.events().len();
    assert_eq!(bed.thoughts.load(Ordering::Relaxed), 2);
    let made = || bed.done.lock().unwrap().iter().map(|(class, _)| *class).collect::<Vec<_>>();
    assert_eq!(made(), [EffectClass::Read], "the write waits for its intent");
    assert_eq!(bed.events().len(), before);
    assert_eq!(log.gate.writing(), 1, "what could wait is written together with the intent of the write");
    log.gate.write(1);
    settle().await;
    assert_eq!(made(), [EffectClass::Read, EffectClass::Write]);
    log.gate.write(1);
    let sent = sent.await.unwrap();
    answer(&society, &sent).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_of_two_model_calls_and_a_read_takes_two_appends_and_one_more_for_each_reply_that_is_watched_while_it_comes() {
    for (is_watched, is_whole, appends) in [(false, false, 2), (true, true, 2), (true, false, 4)] {
        let bed = Bed::new();
        let ends = CommitEnds::default();
        let model = ScriptedModel::new(move |request| {
            let reply = ScriptedReply::text(&world::model_reply(request));
            if is_whole { reply.at_once() } else { reply }
        });
        let ports = Ports { model: Arc::new(model), ..bed.ports(ends.of(bed.log.clone())) };
        let society = Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap();
        let before = ends.all().len();
        let _watch = is_watched.then(|| society.watch(Seq(0)));
        let look = Op::Call(vec![("look".to_owned(), "x".to_owned())]);
        submit(&society, vec![Op::Think("a".into()), look, Op::Think("b".into())]).await;
        settle().await;
        assert!(bed.events().iter().any(|recorded| matches!(recorded.event, Event::TurnSettled { .. })));
        assert_eq!(ends.all().len() - before, appends);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_held_back_is_written_soon_when_nothing_follows() {
    let bed = Bed::new();
    let ports = Ports {
        model: Arc::new(ScriptedModel::new(|_| ScriptedReply::text("late").after(Duration::from_secs(60)))),
        ..bed.ports(bed.log.clone())
    };
    let society = Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap();
    submit(&society, vec![Op::Think("a".into())]).await;
    let is_declared = || bed.events().iter().any(|recorded| matches!(recorded.event, Event::EffectStarted { .. }));
    settle().await;
    assert!(!is_declared());
    tokio::time::sleep(Duration::from_millis(25)).await;
    assert!(is_declared());
}

#[tokio::test(start_paused = true)]
async fn a_watcher_learns_of_a_model_call_before_it_sees_its_reply() {
    let bed = Bed::new();
    let society = bed.open().await;
    let mut watch = society.watch(Seq(0));
    submit(&society, vec![Op::Think("a".into()), Op::Think("b".into())]).await;
    let (mut open, mut deltas) = (std::collections::BTreeSet::new(), 0);
    loop {
        match watch.next().await.unwrap().unwrap() {
            WatchEvent::Event(recorded) => match &recorded.event {
                Event::EffectStarted { id, .. } => drop(open.insert(*id)),
                Event::EffectEnded { id, .. } => drop(open.remove(id)),
                Event::TurnSettled { .. } => break,
                _ => {}
            },
            WatchEvent::Delta(delta) => {
                assert_eq!(open.iter().collect::<Vec<_>>(), [&delta.effect]);
                deltas += 1;
            }
            WatchEvent::Step(_) => {}
        }
    }
    assert!(deltas >= 2, "{deltas}");
}
