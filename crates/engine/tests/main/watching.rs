//! Watching: everything in the log is seen, whatever befell it, and then it ends with the society.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use polis_domain::{OpenKind, Seq, ThreadId};
use polis_engine::{Cast, CommandError, Society, Watch, WatchEvent};
use polis_testkit::{GatedLog, Op};

use crate::bed::{Bed, PATIENCE, answer, ask, is_approval, open_effect, submit};
use crate::society::Flaky;

/// One who watches everything, and one who watches a thread.
fn watches(society: &Society) -> [Watch; 2] {
    [society.watch(Seq(0)), society.watch_thread("root".into(), Seq(0))]
}

/// The places of the events that each of them should see.
fn logged(bed: &Bed) -> [Vec<u64>; 2] {
    let root = ThreadId::from("root");
    let all = bed.events();
    let of_thread = all.iter().filter(|recorded| recorded.thread.as_ref() == Some(&root));
    [all.iter().map(|recorded| recorded.seq.0).collect(), of_thread.map(|recorded| recorded.seq.0).collect()]
}

/// The places of the events that are seen until there is nothing more, and how many chunks of replies.
async fn seen(mut watch: Watch) -> (Vec<u64>, usize) {
    let all = async {
        let (mut seen, mut chunks) = (Vec::new(), 0);
        while let Some(next) = watch.next().await.unwrap() {
            match next {
                WatchEvent::Event(recorded) => seen.push(recorded.seq.0),
                WatchEvent::Delta(_) | WatchEvent::Step(_) => chunks += 1,
            }
        }
        assert!(watch.next().await.unwrap().is_none(), "what has ended begins again");
        (seen, chunks)
    };
    tokio::time::timeout(PATIENCE, all).await.expect("it never ends")
}

#[tokio::test(start_paused = true)]
async fn whoever_watches_sees_everything_and_then_that_the_society_has_ended() {
    for is_stopped in [true, false] {
        let bed = Bed::new();
        let society = bed.open().await;
        let quick = watches(&society).map(|watch| tokio::spawn(seen(watch)));
        let slow = watches(&society);
        ask(&society, vec![Op::Think("live".into())]).await.unwrap();
        submit(&society, vec![Op::Approve("wait".into())]).await;
        open_effect(&society, is_approval).await;
        assert!(quick.iter().all(|watching| !watching.is_finished()));
        if is_stopped {
            society.stop(Duration::ZERO).await;
            for (watch, logged) in watches(&society).into_iter().zip(logged(&bed)) {
                assert_eq!(seen(watch).await, (logged, 0), "who comes after the end sees what there is");
            }
        }
        // Where it was not stopped, it ends with its last handle.
        drop(society);
        for ((quick, slow), logged) in quick.into_iter().zip(slow).zip(logged(&bed)) {
            let (events, chunks) = quick.await.unwrap();
            assert!(chunks > 0);
            assert_eq!((&events, seen(slow).await), (&logged, (logged.clone(), chunks)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_in_the_log_and_was_told_to_nobody_is_seen_before_the_end() {
    let bed = Bed::new();
    let gate = Flaky { failures: AtomicUsize::new(0), writes_anyway: true };
    let log = Arc::new(GatedLog { log: bed.log.clone(), gate });
    let society = bed.open_on(log.clone()).await;
    let watching = watches(&society).map(|watch| tokio::spawn(seen(watch)));
    ask(&society, vec![Op::Say("told".into())]).await.unwrap();
    let before = logged(&bed);
    log.gate.failures.store(1, Ordering::Relaxed);
    assert_eq!(society.submit("in the log all the same").await.unwrap_err().code(), "disk_full");
    society.stop(Duration::ZERO).await;
    for ((watching, logged), before) in watching.into_iter().zip(logged(&bed)).zip(before) {
        assert!(logged.len() > before.len());
        assert_eq!(watching.await.unwrap().0, logged);
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_an_answer_is_told_that_the_society_has_ended() {
    let bed = Bed::new();
    let society = bed.open().await;
    let answered = submit(&society, vec![Op::Say("done".into())]).await;
    let cut = submit(&society, vec![Op::Approve("wait".into())]).await;
    let waiting = tokio::spawn({
        let (society, cut) = (society.clone(), cut.clone());
        async move { tokio::time::timeout(PATIENCE, society.answer(&cut)).await.expect("it never ends") }
    });
    open_effect(&society, is_approval).await;
    assert!(!waiting.is_finished());
    society.stop(Duration::ZERO).await;
    assert_eq!(waiting.await.unwrap().unwrap_err(), CommandError::Stopping);
    assert_eq!(society.answer(&cut).await.unwrap_err(), CommandError::Stopping);
    assert_eq!(answer(&society, &answered).await.unwrap(), "said:done");
}

#[tokio::test(start_paused = true)]
async fn whoever_watches_a_society_that_is_looked_at_sees_what_is_done_there_until_it_is_stopped() {
    let bed = Bed::new();
    let ports = bed.ports(bed.log.clone());
    let looked_at = Society::open_read_only("main".into(), ports.clone(), Cast::new()).await.unwrap();
    let watching = watches(&looked_at).map(|watch| tokio::spawn(seen(watch)));
    let working = Society::open("main".into(), ports, bed.cast.clone(), bed.options.clone()).await.unwrap();
    ask(&working, vec![Op::Think("live".into())]).await.unwrap();
    working.stop(Duration::ZERO).await;
    assert!(watching.iter().all(|watching| !watching.is_finished()));
    looked_at.stop(Duration::ZERO).await;
    for (watching, logged) in watching.into_iter().zip(logged(&bed)) {
        assert_eq!(watching.await.unwrap().0, logged);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_log_has_written_though_it_failed_is_seen_when_it_works_again() {
    let bed = Bed::new();
    let gate = Flaky { failures: AtomicUsize::new(0), writes_anyway: true };
    let log = Arc::new(GatedLog { log: bed.log.clone(), gate });
    let society = bed.open_on(log.clone()).await;
    let sent = submit(&society, vec![Op::Sleep(60_000), Op::Say("said".into())]).await;
    open_effect(&society, |kind, _| *kind == OpenKind::Sleep).await;
    log.gate.failures.store(100, Ordering::Relaxed);
    let answered = tokio::time::timeout(PATIENCE, society.answer(&sent)).await.expect("it never comes");
    assert_eq!(&*answered.unwrap().payload.text, "slept said:said");
}
