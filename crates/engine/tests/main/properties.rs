//! What the documents promise, over random work on the whole engine: what reaches the person (P3), what a breakdown disturbs
//! (P12), and how a stop ends (P14).

use std::future::Future;
use std::time::Duration;

use futures_util::FutureExt;
use polis_domain::{Envelope, Event, OpenKind, Recorded, Seq, Stage};
use polis_engine::{CommandError, Sent, Society, Watch};
use polis_testkit::{Op, Program, expected};
use proptest::prelude::*;

use crate::bed::{Bed, answer, call, spawn};

const NAMES: [&str; 4] = ["root", "a", "b", "c"];

/// Runs one case in virtual time.
fn live(case: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(case);
}

async fn send(society: &Society, to: usize, ops: &[Op]) -> Sent {
    society.send(NAMES[to].into(), &Program(ops.to_vec()).text(), None).await.unwrap()
}

fn envelope(recorded: &Recorded) -> Option<&Envelope> {
    recorded.event.envelope().map(|envelope| &**envelope).filter(|envelope| envelope.to.is_user())
}

/// The messages to the person that a watcher is shown, up to an event.
async fn shown(mut watch: Watch, last: Seq) -> Vec<Envelope> {
    let mut envelopes = Vec::new();
    loop {
        let recorded = watch.next_event().await.unwrap().unwrap();
        envelopes.extend(envelope(&recorded).cloned());
        if recorded.seq == last {
            return envelopes;
        }
    }
}

/// Who is told to do what, one message after another.
fn envelopes(op: impl Strategy<Value = Op> + 'static, most: usize) -> impl Strategy<Value = Vec<(usize, Vec<Op>)>> {
    prop::collection::vec((0..NAMES.len(), prop::collection::vec(op, 1..4)), 1..most)
}

fn telling() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => "[a-z]{1,6}".prop_map(Op::Tell),
        1 => (1_u64..5_000).prop_map(Op::Sleep),
        1 => "[a-z]{1,3}".prop_map(Op::Think),
    ]
}

fn working() -> impl Strategy<Value = Op> {
    prop_oneof![
        "[a-z]{1,3}".prop_map(Op::Say),
        "[a-z]{1,3}".prop_map(Op::Think),
        "[a-z]{1,3}".prop_map(|argument| call("mark", &argument)),
        (1_u64..100_000).prop_map(Op::Sleep),
    ]
}

fn breaking() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => "[a-z]{1,3}".prop_map(Op::Say),
        1 => Just(Op::Panic("broken".into())),
        1 => Just(Op::Fail("no".into())),
        1 => (1_u64..5_000).prop_map(Op::Sleep),
    ]
}

/// What a program comes to: its words, or the code of its failure.
fn outcome(ops: &[Op]) -> Result<String, String> {
    expected(&Program(ops.to_vec()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// P3: whatever agents write to the person is kept under its request, and everybody who listens is told of it, once and in
    /// the same order.
    #[test]
    fn whatever_is_written_to_the_person_is_kept_and_told_to_all_who_listen(work in envelopes(telling(), 6), listeners in 1_usize..4) {
        live(async move {
            let bed = Bed::new();
            let society = bed.open().await;
            spawn(&society, &NAMES[1..]).await;
            let watches: Vec<_> = (0..listeners).map(|_| society.watch(Seq(0))).collect();
            let mut sent = Vec::new();
            for (to, ops) in &work {
                sent.push(send(&society, *to, ops).await);
            }
            for (sent, (to, ops)) in sent.iter().zip(&work) {
                answer(&society, sent).await.unwrap();
                let kept = society.messages(&sent.task_id).await.unwrap();
                let kept: Vec<_> = kept.iter().filter_map(|(recorded, _)| envelope(recorded)).collect();
                let told = ops.iter().filter_map(|op| match op {
                    Op::Tell(text) => Some(text.clone()),
                    _ => None,
                });
                let all: Vec<_> = told.chain(outcome(ops)).collect();
                assert_eq!(kept.iter().map(|envelope| envelope.payload.text.to_string()).collect::<Vec<_>>(), all);
                assert!(kept.iter().all(|envelope| envelope.from.as_str() == NAMES[*to]));
            }
            let events = bed.events();
            let logged: Vec<_> = events.iter().filter_map(envelope).cloned().collect();
            for watch in watches {
                assert_eq!(shown(watch, events.last().unwrap().seq).await, logged);
            }
        });
    }

    /// Whoever watches one thread is told what the log has of it, all of it, once and in order, whenever it comes and
    /// wherever it begins.
    #[test]
    fn who_watches_a_thread_is_told_all_of_it_and_nothing_else(work in envelopes(telling(), 6), late in 0_usize..6, after in 0_u64..40) {
        live(async move {
            let bed = Bed::new();
            let society = bed.open().await;
            spawn(&society, &NAMES[1..]).await;
            let watch = |after| NAMES.map(|name| (after, society.watch_thread(name.into(), Seq(after))));
            let mut watches = Vec::from(watch(0));
            let mut sent = Vec::new();
            for (n, (to, ops)) in work.iter().enumerate() {
                if n == late && n > 0 {
                    answer(&society, &sent[0]).await.unwrap();
                    watches.extend(watch(after));
                }
                sent.push(send(&society, *to, ops).await);
            }
            for sent in &sent {
                answer(&society, sent).await.unwrap();
            }
            let events = bed.events();
            for ((after, mut watch), name) in watches.into_iter().zip(NAMES.iter().cycle()) {
                let is_meant = |event: &&Recorded| event.thread == Some((*name).into()) && event.seq > Seq(after);
                for event in events.iter().filter(is_meant) {
                    assert_eq!(*watch.next_event().await.unwrap().unwrap(), *event, "{name} after {after}");
                }
                assert!(watch.next_event().now_or_never().is_none(), "{name} after {after}: nothing else");
            }
        });
    }

    /// P12: a breakdown fails its own message alone; whatever else anybody is asked is done, by the same agent as well.
    #[test]
    fn a_breakdown_fails_its_own_message_and_nothing_else(work in envelopes(breaking(), 8)) {
        // Three in a row would make an agent stand still, which is another matter.
        let work = &work;
        let panics = |who: usize| work.iter().filter(|(to, ops)| *to == who && outcome(ops) == Err("panicked".into())).count();
        prop_assume!((0..NAMES.len()).all(|who| panics(who) < 3));
        live(async move {
            let bed = Bed::new();
            let society = bed.open().await;
            spawn(&society, &NAMES[1..]).await;
            let mut sent = Vec::new();
            for (to, ops) in work {
                sent.push(send(&society, *to, ops).await);
            }
            for (sent, (to, ops)) in sent.iter().zip(work) {
                assert_eq!(answer(&society, sent).await, outcome(ops), "{} with {ops:?}", NAMES[*to]);
            }
            let set_aside = society.look(|spine| spine.dead_letters.len()).await.unwrap();
            assert_eq!(set_aside, (0..NAMES.len()).map(panics).sum::<usize>());
        });
    }

    /// P14: a stop takes nothing more in and waits for what is being done; nothing is in doubt, everything that was accepted is
    /// in the log, and the next opening finishes it without doing anything twice.
    #[test]
    fn a_stop_takes_nothing_in_and_leaves_nothing_in_doubt(work in envelopes(working(), 6), after in 0_u64..60_000) {
        live(async move {
            let bed = Bed::new();
            let society = bed.open().await;
            spawn(&society, &NAMES[1..]).await;
            let mut sent = Vec::new();
            for (to, ops) in &work {
                sent.push(send(&society, *to, ops).await);
            }
            tokio::time::sleep(Duration::from_millis(after)).await;
            let begun = tokio::time::Instant::now();
            let ((), more) = tokio::join!(society.stop(Duration::from_secs(30)), society.submit("more"));
            assert!(begun.elapsed() <= Duration::from_secs(30));
            assert!(matches!(more, Err(CommandError::Stopping)), "{more:?}");
            assert!(matches!(society.submit("more").await, Err(CommandError::Stopping)));
            let rest = society.unfinished_work().await.unwrap();
            let answered = bed.events().iter().filter(|recorded| envelope(recorded).is_some()).count();
            assert_eq!(rest.open_turns + rest.pending_messages + answered, work.len(), "nothing accepted is lost");
            let spine = polis_domain::Spine::from_iter(&bed.events());
            let cut = spine.turns.values().flat_map(|turn| &turn.open);
            let cut = cut.filter(|open| matches!(open.kind, OpenKind::Tool(_)) || open.stage == Stage::InDoubt).count();
            assert_eq!(cut, 0, "no call was cut off");

            let society = bed.open().await;
            for (sent, (_, ops)) in sent.iter().zip(&work) {
                assert_eq!(answer(&society, sent).await, outcome(ops));
            }
            let marks = work.iter().flat_map(|(_, ops)| ops).filter(|op| matches!(op, Op::Call(_))).count();
            assert_eq!(bed.writes(), marks);
            let doubted = |recorded: &&Recorded| matches!(recorded.event, Event::EffectDoubted { .. });
            assert_eq!(bed.events().iter().filter(doubted).count(), 0);
        });
    }
}
