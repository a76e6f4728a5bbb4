//! Requests that happen once: at the same time, after a restart, and after a rewind.

use polis_domain::{Digest, Event, IdempotencyKey, Refusal, Request, Seq};
use polis_engine::{Branch, CommandError, SystemClock, fork, forked_before};
use polis_testkit::{Op, Program};

use crate::bed::{Bed, answer};

fn messages(bed: &Bed) -> usize {
    let is_request = |event: &Event| event.envelope().is_some_and(|envelope| envelope.from.is_user());
    bed.events().iter().filter(|recorded| is_request(&recorded.event)).count()
}

#[tokio::test(start_paused = true)]
async fn a_request_given_twice_is_one_request_also_at_the_same_time_and_after_a_restart() {
    let bed = Bed::new();
    let society = bed.open().await;
    let text = Program(vec![Op::Think("x".into())]).text();
    let (one, other) = tokio::join!(society.submit_once("k", &text), society.submit_once("k", &text));
    let sent = one.unwrap();
    assert_eq!(other.unwrap(), sent);
    let first = answer(&society, &sent).await.unwrap();
    let reused = society.submit_once("k", "another").await.unwrap_err();
    assert!(matches!(reused, CommandError::Refused(Refusal::KeyReused)), "{reused}");
    society.stop(std::time::Duration::ZERO).await;
    let again = bed.open().await;
    assert_eq!(again.submit_once("k", &text).await.unwrap(), sent);
    assert_eq!(answer(&again, &sent).await.unwrap(), first);
    assert_eq!(messages(&bed), 1);
    assert_ne!(again.submit_once("k2", &text).await.unwrap().task_id, sent.task_id);
}

#[tokio::test(start_paused = true)]
async fn a_key_counts_in_the_history_that_it_was_used_in_and_a_fork_is_found_by_its_own() {
    let bed = Bed::new();
    let society = bed.open().await;
    let text = Program(vec![]).text();
    let before = society.look(|spine| spine.seq).await.unwrap();
    answer(&society, &society.submit_once("k", &text).await.unwrap()).await.unwrap();
    society.stop(std::time::Duration::ZERO).await;
    let request = Request { key: IdempotencyKey::of(["fork"]), fingerprint: Digest::of(["fork"]) };
    let branch =
        Branch { from: "main".into(), at: Some(before), to: "main".into(), aside: Some("old".into()), request: Some(request) };
    assert!(forked_before(&*bed.log, &"main".into(), request).await.unwrap().is_none());
    let made = fork(&*bed.log, &SystemClock, &branch, 1).await.unwrap();
    assert_eq!(forked_before(&*bed.log, &"main".into(), request).await.unwrap(), Some(("old".into(), made)));
    let other = Request { fingerprint: Digest::of(["other"]), ..request };
    assert!(forked_before(&*bed.log, &"main".into(), other).await.is_err(), "the key belongs to another request");
    let again = bed.open().await;
    let sent = again.submit_once("k", &text).await.unwrap();
    assert!(sent.seq > Seq(before.0 + 1), "it is done again: {sent:?}");
}

#[tokio::test(start_paused = true)]
async fn the_rewind_of_a_request_is_found_below_a_later_one() {
    let bed = Bed::new();
    let request = |name: &str| Request { key: IdempotencyKey::of([name]), fingerprint: Digest::of([name]) };
    let rewound = async |name: &str, aside: &str, at: Option<Seq>| {
        let (aside, request) = (Some(aside.into()), Some(request(name)));
        let branch = Branch { from: "main".into(), at, to: "main".into(), aside, request };
        fork(&*bed.log, &SystemClock, &branch, 1).await.unwrap()
    };
    bed.open().await.stop(std::time::Duration::ZERO).await;
    let first = rewound("first", "main-1", None).await;
    let second = rewound("second", "main-2", None).await;
    let found = async |name: &str| forked_before(&*bed.log, &"main".into(), request(name)).await.unwrap();
    assert_eq!(found("first").await, Some(("main-1".into(), first.clone())));
    assert_eq!(found("second").await, Some(("main-2".into(), second)));
    rewound("third", "main-3", Some(first.at)).await;
    assert_eq!(found("first").await, None, "it was rewound itself");
}
