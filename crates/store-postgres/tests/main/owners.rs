//! Two owners of one society: the one that has lost it is fenced.

use std::sync::Arc;
use std::time::Duration;

use polis_domain::{Recorded, Seq, SocietyId};
use polis_ports::{Fork, Log, LogError};
use polis_store_postgres::{Claim, PostgresLog};
use polis_testkit::conformance::event;
use proptest::prelude::*;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use crate::server::{Logs as _, Server};

const LONG: Duration = Duration::from_secs(3600);

fn one(seq: u64, text: &str) -> Vec<Arc<Recorded>> {
    vec![event(seq, Some("root"), text)]
}

async fn append(log: &PostgresLog, society: &SocietyId, expected: u64, text: &str) -> Result<(), LogError> {
    log.append(society, Seq(expected), &one(expected + 1, text)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_has_lost_its_society_is_refused_at_the_right_place_too() {
    let test = "owners::an_owner_that_has_lost_its_society_is_refused_at_the_right_place_too";
    let Some(server) = Server::shared(test) else { return };
    let (schema, main) = (server.fresh_schema(), SocietyId::from("main"));
    let (a, b) = (server.node(&schema, "a").await, server.node(&schema, "b").await);
    assert_eq!(a.claim(&main, LONG).await.unwrap(), Claim::Ours(1));
    assert_eq!(a.societies().await.unwrap(), [], "a claim alone makes no society");
    append(&a, &main, 0, "a").await.unwrap();
    // Nobody else may write, nor claim it.
    assert!(matches!(append(&b, &main, 1, "b").await, Err(LogError::Conflict { actual: Seq(1), .. })));
    assert!(matches!(b.claim(&main, LONG).await.unwrap(), Claim::Theirs(owner) if owner.node == "a" && owner.epoch == 1));
    // A lease that has ended lets nobody write until it is renewed or claimed.
    assert_eq!(a.renew(std::slice::from_ref(&main), Duration::ZERO).await.unwrap(), std::slice::from_ref(&main));
    assert_eq!(b.owner(&main).await.unwrap(), None);
    let late = append(&a, &main, 1, "a").await;
    assert!(matches!(&late, Err(LogError::Failed(why)) if why.to_string().contains("lease")), "{late:?}");
    a.renew(std::slice::from_ref(&main), LONG).await.unwrap();
    append(&a, &main, 1, "a").await.unwrap();
    // Another node takes over; the first one is refused although it knows the right position.
    a.renew(std::slice::from_ref(&main), Duration::ZERO).await.unwrap();
    assert!(matches!(b.claim(&main, LONG).await.unwrap(), Claim::Ours(epoch) if epoch > 1));
    assert_eq!(a.renew(std::slice::from_ref(&main), LONG).await.unwrap(), []);
    assert!(matches!(append(&a, &main, 2, "stale").await, Err(LogError::Conflict { .. })));
    append(&b, &main, 2, "b").await.unwrap();
    assert_eq!(a.owner(&main).await.unwrap().unwrap().node, "b");
    // Any node can write to it once it is released, except one that relies on an older claim.
    b.release(&main).await.unwrap();
    assert!(matches!(append(&a, &main, 3, "stale").await, Err(LogError::Conflict { .. })));
    append(&server.log(&schema).await, &main, 3, "any node").await.unwrap();
    assert!(matches!(a.claim(&main, LONG).await.unwrap(), Claim::Ours(_)));
    append(&a, &main, 4, "a").await.unwrap();
    assert!(server.log(&schema).await.claim(&main, LONG).await.is_err(), "it has no name");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_of_one_society_lets_the_others_of_its_group_be_written() {
    let test = "owners::a_conflict_of_one_society_lets_the_others_of_its_group_be_written";
    let Some(server) = Server::shared(test) else { return };
    let log = server.log(&server.fresh_schema()).await;
    let names: Vec<_> = (0..20).map(|n| SocietyId::from(format!("society-{n}"))).collect();
    for name in &names {
        append(&log, name, 0, "first").await.unwrap();
    }
    let (wrong, right) = (one(8, "stale"), one(2, "second"));
    let appends = names.iter().enumerate().map(|(n, name)| {
        let (expected, events) = if n % 3 == 0 { (Seq(7), &wrong) } else { (Seq(1), &right) };
        log.append(name, expected, events)
    });
    let mut appends: Vec<_> = appends.map(Box::pin).collect();
    // All are queued before the first is waited for.
    std::future::poll_fn(|cx| {
        appends.iter_mut().for_each(|append| assert!(append.as_mut().poll(cx).is_pending()));
        std::task::Poll::Ready(())
    })
    .await;
    for (n, append) in appends.into_iter().enumerate() {
        match append.await {
            Ok(()) => assert_ne!(n % 3, 0),
            Err(LogError::Conflict { society, actual, .. }) => assert_eq!((n % 3, &society, actual), (0, &names[n], Seq(1))),
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// What one of two nodes does with the society.
#[derive(Debug, Clone, Copy)]
enum Step {
    Claim,
    /// Its lease ends.
    Expire,
    Renew,
    Release,
    /// Appends at the position that it knows.
    Append,
    /// Reads the position.
    Look,
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let steps = [Step::Claim, Step::Expire, Step::Renew, Step::Release, Step::Append, Step::Append, Step::Append, Step::Look];
    (0..2_usize, proptest::sample::select(steps.to_vec()))
}

/// What the database should have.
#[derive(Debug, Default)]
struct Model {
    owner: Option<usize>,
    is_leased: bool,
    texts: Vec<String>,
    /// What each node knows: the head, and whether it has claimed.
    heads: [usize; 2],
    claims: [bool; 2],
}

impl Model {
    /// Whether an append of this node is written.
    fn writes(&self, node: usize) -> bool {
        let may = match (self.claims[node], self.owner) {
            (true, owner) => owner == Some(node) && self.is_leased,
            (false, owner) => owner.is_none(),
        };
        may && self.heads[node] == self.texts.len()
    }
}

async fn check(server: &Server, steps: &[(usize, Step)]) {
    let (schema, main) = (server.fresh_schema(), SocietyId::from("main"));
    let nodes = [server.node(&schema, "a").await, server.node(&schema, "b").await];
    let mut model = Model::default();
    for (n, (node, step)) in steps.iter().enumerate() {
        let (node, log) = (*node, &nodes[*node]);
        let mine = model.owner == Some(node);
        match step {
            Step::Claim => {
                let free = model.owner.is_none() || mine || !model.is_leased;
                let claimed = log.claim(&main, LONG).await.unwrap();
                assert_eq!(matches!(claimed, Claim::Ours(_)), free, "step {n}: {claimed:?}");
                if free {
                    (model.owner, model.is_leased, model.claims[node]) = (Some(node), true, true);
                }
            }
            Step::Expire | Step::Renew => {
                let lease = if matches!(step, Step::Renew) { LONG } else { Duration::ZERO };
                let renewed = log.renew(std::slice::from_ref(&main), lease).await.unwrap();
                assert_eq!(renewed.len(), usize::from(mine), "step {n}");
                if mine {
                    model.is_leased = lease == LONG;
                }
            }
            Step::Release => {
                log.release(&main).await.unwrap();
                model.claims[node] = false;
                if mine {
                    model.owner = None;
                }
            }
            Step::Append => {
                let text = format!("step {n}");
                let written = append(log, &main, model.heads[node] as u64, &text).await;
                assert_eq!(written.is_ok(), model.writes(node), "step {n} of {node}: {written:?} in {model:?}");
                if written.is_ok() {
                    model.texts.push(text);
                    model.heads[node] += 1;
                }
            }
            Step::Look => {
                model.heads[node] = log.head(&main).await.unwrap().0 as usize;
                assert_eq!(model.heads[node], model.texts.len());
            }
        }
    }
    let expected: Vec<_> =
        (1..).zip(&model.texts).map(|(seq, text)| Recorded::clone(&event(seq, Some("root"), text))).collect();
    for log in &nodes {
        assert_eq!(log.read(&main, Seq(0), usize::MAX).await.unwrap(), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_two_owners_do_in_turn_only_the_one_that_may_writes() {
    let Some(server) = Server::shared("owners::whatever_two_owners_do_in_turn_only_the_one_that_may_writes") else { return };
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let steps = proptest::collection::vec(step(), 10..60);
    let ran = block_in_place(|| {
        runner.run(&steps, |steps| {
            Handle::current().block_on(check(&server, &steps));
            Ok(())
        })
    });
    ran.unwrap();
}

/// Two nodes claim, write and lose leases at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_what_two_owners_write_at_the_same_time_everything_acknowledged_is_there_once() {
    let test = "owners::of_what_two_owners_write_at_the_same_time_everything_acknowledged_is_there_once";
    let Some(server) = Server::shared(test) else { return };
    let (schema, main) = (server.fresh_schema(), SocietyId::from("main"));
    let mut writers = Vec::new();
    for node in ["a", "b"] {
        let (log, main) = (server.node(&schema, node).await, main.clone());
        writers.push(tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            for n in 0..40 {
                if let Claim::Theirs(_) = log.claim(&main, LONG).await.unwrap() {
                    continue;
                }
                let mut head = log.head(&main).await.unwrap().0;
                for part in 0..3 {
                    if part == 2 {
                        // Its lease ends while it still writes.
                        log.renew(std::slice::from_ref(&main), Duration::ZERO).await.unwrap();
                        tokio::task::yield_now().await;
                    }
                    let text = format!("{node} {n} {part}");
                    if append(&log, &main, head, &text).await.is_ok() {
                        head += 1;
                        acknowledged.push((head, text));
                    }
                }
            }
            acknowledged
        }));
    }
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    acknowledged.sort();
    let expected: Vec<_> = acknowledged.iter().map(|(seq, text)| Recorded::clone(&event(*seq, Some("root"), text))).collect();
    assert!(expected.len() > 20, "they hardly wrote");
    assert_eq!(server.log(&schema).await.read(&main, Seq(0), usize::MAX).await.unwrap(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_society_that_another_node_has_is_not_renamed() {
    let Some(server) = Server::shared("owners::a_society_that_another_node_has_is_not_renamed") else { return };
    let (schema, main) = (server.fresh_schema(), SocietyId::from("main"));
    let (a, b) = (server.node(&schema, "a").await, server.node(&schema, "b").await);
    append(&a, &main, 0, "one").await.unwrap();
    append(&a, &main, 1, "two").await.unwrap();
    assert!(matches!(a.claim(&main, LONG).await.unwrap(), Claim::Ours(_)));
    let rewind = |kept: &str| Fork {
        from: main.clone(),
        at: Seq(1),
        to: main.clone(),
        aside: Some(kept.into()),
        first: event(2, Some("root"), "anew"),
    };
    assert!(matches!(b.fork(&rewind("kept")).await, Err(LogError::Conflict { .. })));
    a.fork(&rewind("kept")).await.unwrap();
    // Its claim was on what has another name now.
    assert_eq!(a.owner(&main).await.unwrap(), None);
    append(&b, &main, 2, "three").await.unwrap();
    assert!(matches!(a.claim(&main, LONG).await.unwrap(), Claim::Ours(_)));
    append(&a, &main, 3, "four").await.unwrap();
    assert_eq!(a.societies().await.unwrap(), ["kept".into(), main]);
}
