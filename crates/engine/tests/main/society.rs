//! The door of a society: what it takes in, what it refuses, how it stops and comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{AgentId, Envelope, Event, MessageKind, Recorded, Seq, SocietyId, Spine};
use polis_engine::{CommandError, WatchEvent};
use polis_ports::{Log, LogError};
use polis_testkit::{FullDisk, Gate, GatedLog, Lease, Op, Program, whole_state};

use crate::bed::{Bed, answer, ask, call, is_approval, open_effect, spawn, submit};

#[tokio::test(start_paused = true)]
async fn what_cannot_be_done_is_refused_with_a_code_and_changes_nothing() {
    let bed = Bed::new();
    let society = bed.open().await;
    let before = bed.events().len();
    let long = "x".repeat(256 * 1_024 + 1);
    for (to, text, code) in [
        ("user", "hi", "to_user"),
        ("nobody", "hi", "unknown_agent"),
        ("root", "", "empty_text"),
        ("root", long.as_str(), "text_too_long"),
    ] {
        let rejected = society.send(to.into(), text, None).await.unwrap_err();
        assert_eq!(rejected.code(), code);
    }
    assert_eq!(society.spawn("root".into(), "worker".into(), AgentId::root()).await.unwrap_err().code(), "name_taken");
    assert_eq!(society.spawn("a b".into(), "worker".into(), AgentId::root()).await.unwrap_err().code(), "bad_name");
    assert_eq!(society.spawn("a".into(), "nothing".into(), AgentId::root()).await.unwrap_err().code(), "unknown_role");
    assert_eq!(bed.events().len(), before);
}

#[tokio::test(start_paused = true)]
async fn a_full_inbox_pushes_back() {
    let mut bed = Bed::new();
    bed.options.limits.inbox_entries = 3;
    let society = bed.open().await;
    submit(&society, vec![Op::Approve("wait".into())]).await;
    for _ in 0..3 {
        submit(&society, vec![]).await;
    }
    assert_eq!(society.submit("one too many").await.unwrap_err().code(), "busy");
}

#[tokio::test(start_paused = true)]
async fn messages_are_taken_in_the_order_in_which_they_were_sent() {
    let bed = Bed::new();
    let society = bed.open().await;
    let mut sent = Vec::new();
    for n in 0..20 {
        sent.push(submit(&society, vec![Op::Think(n.to_string())]).await);
    }
    for (n, sent) in sent.iter().enumerate() {
        assert_eq!(answer(&society, sent).await.unwrap(), format!("thought({n})"));
    }
    let taken: Vec<_> = bed
        .events()
        .into_iter()
        .filter_map(|recorded| match recorded.event {
            Event::TurnStarted { message, .. } => message,
            _ => None,
        })
        .collect();
    assert_eq!(taken, sent.iter().map(|sent| sent.message_id.clone()).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn what_passed_between_person_and_society_is_listed_by_task() {
    let bed = Bed::new();
    let society = bed.open().await;
    let sent = submit(&society, vec![Op::Tell("on the way".into()), Op::Say("aside".into())]).await;
    answer(&society, &sent).await.unwrap();
    let other = submit(&society, vec![]).await;
    answer(&society, &other).await.unwrap();
    let envelopes = society.messages(&sent.task_id).await.unwrap();
    let told: Vec<_> =
        envelopes.iter().map(|(_, envelope)| (envelope.from.as_str(), envelope.kind == MessageKind::Answer)).collect();
    assert_eq!(told, [("user", false), ("root", false), ("root", true)]);
    assert!(society.messages(&"no such task".into()).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_live_state_is_the_fold_of_the_log_and_so_is_a_snapshot() {
    let bed = Bed::new();
    let society = bed.open().await;
    spawn(&society, &["a1"]).await;
    let program = Program(vec![Op::Think("x".into()), Op::Units(vec![Program(vec![Op::Say("y".into())])])]);
    ask(&society, vec![Op::Ask { agent: "a1".into(), program, patience_ms: 1_000 }]).await.unwrap();
    submit(&society, vec![Op::Approve("wait".into())]).await;
    open_effect(&society, is_approval).await;
    let live = society.look(Clone::clone).await.unwrap();
    assert_eq!(live, Spine::from_iter(&bed.events()));
    society.stop(Duration::ZERO).await;
    let saved = bed.log.load_snapshot(&"main".into()).await.unwrap().unwrap();
    let saved = Spine::read(&saved.body).unwrap();
    assert!(saved.is_partial() && saved.threads.len() < live.threads.len(), "what is settled is not in the snapshot");
    assert_eq!((saved.seq, &saved.turns), (live.seq, &live.turns));
    let again = bed.open().await;
    assert_eq!(whole_state(&again, &bed.log.events(&"main".into())).await.unwrap(), live);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_sees_every_event_once_from_wherever_it_starts() {
    let bed = Bed::new();
    let society = bed.open().await;
    submit(&society, vec![Op::Say("before".into())]).await;
    let mut watch = society.watch(Seq(2));
    let watching = tokio::spawn(async move {
        let (mut seen, mut deltas) = (Vec::new(), 0);
        loop {
            match watch.next().await.unwrap().unwrap() {
                WatchEvent::Event(recorded) => {
                    seen.push(recorded.seq.0);
                    let answers = |envelope: &Arc<Envelope>| envelope.to.is_user() && envelope.payload.text.contains("live");
                    if recorded.event.envelope().is_some_and(answers) {
                        return (seen, deltas);
                    }
                }
                WatchEvent::Delta(_) => deltas += 1,
                WatchEvent::Step(chunk) => panic!("{chunk:?}"),
            }
        }
    });
    assert_eq!(ask(&society, vec![Op::Think("live".into())]).await.unwrap(), "thought(live)");
    let (seen, deltas) = watching.await.unwrap();
    assert_eq!(seen, (3..=bed.events().len() as u64).collect::<Vec<_>>());
    assert!(deltas > 0, "a reply is seen while it is written");
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_falls_behind_reads_the_log_again_and_misses_nothing() {
    let bed = Bed::new();
    let society = bed.open().await;
    let mut watch = society.watch(Seq(0));
    assert_eq!(watch.next_event().await.unwrap().unwrap().seq, Seq(1));
    for n in 0..3_000 {
        society.spawn(format!("a{n}").into(), "worker".into(), AgentId::root()).await.unwrap();
    }
    let last = bed.events().len() as u64;
    for expected in 2..=last {
        assert_eq!(watch.next_event().await.unwrap().unwrap().seq.0, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn stopping_lets_turns_finish_takes_nothing_in_and_owes_what_was_cut() {
    let bed = Bed::new();
    let society = bed.open().await;
    spawn(&society, &["a1"]).await;
    let cut = submit(&society, vec![Op::Sleep(3_600_000), Op::Say("late".into())]).await;
    open_effect(&society, |kind, _| *kind == polis_domain::OpenKind::Sleep).await;
    let stopping = tokio::spawn({
        let society = society.clone();
        async move { society.stop(Duration::from_secs(30)).await }
    });
    stopping.await.unwrap();
    assert_eq!(society.submit("too late").await.unwrap_err(), CommandError::Stopping);
    let again = bed.open().await;
    assert_eq!(answer(&again, &cut).await.unwrap(), "slept said:late");
}

/// Fails a few times, having written or not.
pub(crate) struct Flaky {
    pub(crate) failures: AtomicUsize,
    pub(crate) writes_anyway: bool,
}

#[async_trait]
impl Gate for Flaky {
    async fn append(
        &self,
        log: &dyn Log,
        society: &SocietyId,
        expected: Seq,
        events: &[Arc<Recorded>],
    ) -> Result<(), LogError> {
        let fails = self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if !fails || self.writes_anyway {
            log.append(society, expected, events).await?;
        }
        if fails { Err(LogError::Full("no room".into())) } else { Ok(()) }
    }
}

#[tokio::test]
async fn nothing_holds_the_log_of_a_society_that_has_stopped() {
    let mut bed = Bed::new();
    bed.options.own_thread = true;
    for round in 0..50 {
        let society = bed.open().await;
        submit(&society, vec![Op::Approve("may I?".to_owned())]).await;
        open_effect(&society, is_approval).await;
        society.stop(Duration::ZERO).await;
        drop(society);
        assert_eq!(Arc::strong_count(&bed.log), 1, "round {round}: whoever opens it now finds it free");
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_that_fails_stops_intake_with_a_code_and_goes_on_when_it_works_again() {
    for writes_anyway in [false, true] {
        let bed = Bed::new();
        let gate = Flaky { failures: AtomicUsize::new(0), writes_anyway };
        let log = Arc::new(GatedLog { log: bed.log.clone(), gate });
        let society = bed.open_on(log.clone()).await;
        let waiting = submit(&society, vec![Op::Approve("wait".into())]).await;
        let id = open_effect(&society, is_approval).await;
        log.gate.failures.store(1, Ordering::Relaxed);
        let rejected = society.submit("no room for this").await.unwrap_err();
        assert_eq!(rejected.code(), "disk_full");
        assert_eq!(society.submit("still standing by").await.unwrap_err().code(), "disk_full");
        // Virtual time: nobody waits for it.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let verdict = polis_domain::Verdict::yes();
        society.resolve(id, polis_domain::Resolution::Outcome(polis_domain::Outcome::Verdict(verdict))).await.unwrap();
        assert_eq!(answer(&society, &waiting).await.unwrap(), "approved");
        assert_eq!(society.look(Clone::clone).await.unwrap(), Spine::from_iter(&bed.events()));
    }
}

#[tokio::test(start_paused = true)]
async fn while_the_disk_is_full_everything_can_be_read_and_only_writes_are_refused() {
    let bed = Bed::new();
    let log = Arc::new(GatedLog { log: bed.log.clone(), gate: FullDisk::default() });
    let society = bed.open_on(log.clone()).await;
    let said = submit(&society, vec![Op::Say("before".into())]).await;
    answer(&society, &said).await.unwrap();
    let waiting = submit(&society, vec![Op::Approve("wait".into())]).await;
    let id = open_effect(&society, is_approval).await;
    let before = Spine::from_iter(&bed.events());
    log.gate.fill(true);
    // A question in the same pass as a write that fails is answered as well.
    let (rejected, seen) = tokio::join!(society.submit("no room for this"), society.look(Clone::clone));
    assert_eq!(rejected.unwrap_err().code(), "disk_full");
    assert_eq!(seen.unwrap(), before);
    // Longer than it takes to try the log again, several times.
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(700)).await;
        assert_eq!(society.look(Clone::clone).await.unwrap(), before, "nothing is seen that is not in the log");
        assert_eq!(society.thread(&"root".into(), &Default::default()).await.unwrap().messages.len(), 4);
        assert_eq!(society.messages(&said.task_id).await.unwrap().len(), 2);
        assert_eq!(society.submit("still no room").await.unwrap_err().code(), "disk_full");
        assert_eq!(society.standby().map(|failure| failure.code.to_string()).as_deref(), Some("disk_full"));
    }
    let mut watch = society.watch(Seq(0));
    let first = watch.next_event().await.unwrap().unwrap();
    assert_eq!(first.seq, Seq(1), "streams begin");
    log.gate.fill(false);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(society.standby().is_none());
    let verdict = polis_domain::Verdict::yes();
    society.resolve(id, polis_domain::Resolution::Outcome(polis_domain::Outcome::Verdict(verdict))).await.unwrap();
    assert_eq!(answer(&society, &waiting).await.unwrap(), "approved");
    assert_eq!(society.look(Clone::clone).await.unwrap(), Spine::from_iter(&bed.events()));
}

#[tokio::test(start_paused = true)]
async fn an_owner_whose_lease_ends_begins_no_call_any_more_and_the_next_one_does() {
    for (op, classes) in [(Op::Think("x".into()), 0), (call("look", "x"), 1), (call("stamp", "x"), 1), (call("mark", "x"), 0)] {
        let bed = Bed::new();
        let log = Arc::new(GatedLog { log: bed.log.clone(), gate: Lease::default() });
        let owner = bed.open_on(log.clone()).await;
        submit(&owner, vec![Op::Approve("wait".into()), op.clone()]).await;
        let id = open_effect(&owner, is_approval).await;
        log.gate.end();
        let verdict = polis_domain::Verdict::yes();
        owner.resolve(id, polis_domain::Resolution::Outcome(polis_domain::Outcome::Verdict(verdict))).await.unwrap();
        // Virtual time.
        tokio::time::sleep(Duration::from_secs(60)).await;
        let made = || bed.thoughts.load(Ordering::Relaxed) + bed.done.lock().unwrap().len();
        assert_eq!(made(), 0, "{op:?}");
        owner.stop(Duration::ZERO).await;
        let next = bed.open().await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        // Whether the write was made is not known to the next one.
        let thoughts = usize::from(matches!(op, Op::Think(_)));
        assert_eq!((bed.thoughts.load(Ordering::Relaxed), made()), (thoughts, thoughts + classes), "{op:?}");
        next.stop(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_whose_picture_of_the_log_is_stale_is_fenced_off() {
    let bed = Bed::new();
    let stale = bed.open().await;
    let owner = bed.open().await;
    ask(&owner, vec![Op::Say("mine".into())]).await.unwrap();
    let before = bed.events().len();
    assert_eq!(stale.submit("not yours").await.unwrap_err().code(), "log_conflict");
    assert_eq!(bed.events().len(), before);
    assert_eq!(stale.ended().await.expect("it was not told to").code(), "log_conflict");
    assert_eq!(stale.submit("it has ended").await.unwrap_err().code(), "log_conflict");
    assert_eq!(stale.look(|spine| spine.seq).await.unwrap_err().code(), "log_conflict");
    ask(&owner, vec![Op::Say("still mine".into())]).await.unwrap();
    owner.stop(Duration::ZERO).await;
    assert!(owner.ended().await.is_none(), "it was told to");
    assert_eq!(owner.submit("it has ended").await.unwrap_err(), CommandError::Stopping);
}

#[tokio::test(start_paused = true)]
async fn few_slots_are_enough_for_many_turns() {
    let mut bed = Bed::new();
    bed.options.max_running = 1;
    let society = bed.open().await;
    spawn(&society, &["a1", "a2", "a3"]).await;
    let mut sent = Vec::new();
    for n in 1..=3 {
        let program = Program(vec![Op::Sleep(10), Op::Think(n.to_string())]);
        sent.push(society.send(format!("a{n}").into(), &program.text(), None).await.unwrap());
    }
    for (n, sent) in (1..).zip(&sent) {
        assert_eq!(answer(&society, sent).await.unwrap(), format!("slept thought({n})"));
    }
}
