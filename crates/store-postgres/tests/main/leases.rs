//! Leases that a node holds: renewed for as long as it lives, and given up in time.

use std::time::Duration;

use polis_domain::{Seq, SocietyId};
use polis_ports::{Fork, Log, LogError, NewSnapshot, Outdated, Placement, Snapshot};
use polis_store_postgres::{Claim, Options, PostgresLog};
use polis_testkit::conformance::event;
use tokio::task::block_in_place;

use crate::server::{Logs as _, Server};

async fn node(server: &Server, schema: &str, name: &str, lease: Duration) -> PostgresLog {
    let mut options = server.options(schema);
    (options.node, options.lease) = (Some(name.to_owned()), lease);
    PostgresLog::open(options).await.unwrap()
}

const SHORT: Duration = Duration::from_millis(500);
const LONG: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_society_that_is_held_is_renewed_and_given_back_at_the_end() {
    let Some(server) = Server::shared("leases::a_society_that_is_held_is_renewed_and_given_back_at_the_end") else { return };
    let (schema, main) = (server.fresh_schema(), SocietyId::from("main"));
    let a = node(&server, &schema, "a", Duration::from_secs(4)).await;
    let b = node(&server, &schema, "b", LONG).await;
    assert!(matches!(a.hold(&main).await.unwrap(), Claim::Ours(_)));
    a.append(&main, Seq(0), &[event(1, Some("root"), "a")]).await.unwrap();
    // Its lease becomes longer again, which only a renewal does.
    let mut before = b.owner(&main).await.unwrap().unwrap();
    loop {
        let owner = b.owner(&main).await.unwrap().unwrap();
        assert_eq!(owner.node, "a");
        if owner.remaining > before.remaining {
            break;
        }
        before = owner;
        tokio::task::yield_now().await;
    }
    assert!(matches!(b.hold(&main).await.unwrap(), Claim::Theirs(owner) if owner.node == "a"));
    assert!(a.is_owned(&main) && b.is_owned(&main), "nothing is forbidden to a log that holds nothing");
    block_in_place(|| drop(a));
    assert!(matches!(b.hold(&main).await.unwrap(), Claim::Ours(_)));
    b.append(&main, Seq(1), &[event(2, Some("root"), "b")]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_society_that_another_node_has_taken_is_lost_and_stays_so() {
    let Some(server) = Server::shared("leases::a_society_that_another_node_has_taken_is_lost_and_stays_so") else { return };
    let (schema, main, other) = (server.fresh_schema(), SocietyId::from("main"), SocietyId::from("other"));
    let a = node(&server, &schema, "a", Duration::from_secs(4)).await;
    a.hold(&main).await.unwrap();
    a.hold(&other).await.unwrap();
    block_in_place(|| {
        server.psql(&format!("UPDATE {schema}.societies SET owner = 'b', epoch = epoch + 1 WHERE name = 'main'"))
    });
    assert_eq!(a.lost().await, (main.clone(), "another node has taken `main` over".to_owned()));
    assert!(!a.is_owned(&main) && a.is_owned(&other));
    block_in_place(|| server.psql(&format!("UPDATE {schema}.societies SET owner = 'a' WHERE name = 'main'")));
    assert!(!a.is_owned(&main));
}

/// The owner stops while the database still has its lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_cannot_be_renewed_ends_here_before_it_ends_in_the_database() {
    let test = "leases::a_lease_that_cannot_be_renewed_ends_here_before_it_ends_in_the_database";
    let Some(server) = Server::shared(test) else { return };
    let (schema, main) = (server.fresh_schema(), SocietyId::from("main"));
    let (a, b) = (node(&server, &schema, "a", Duration::from_secs(12)).await, node(&server, &schema, "b", LONG).await);
    a.hold(&main).await.unwrap();
    // Whatever changes the row waits.
    let hold = format!("BEGIN; SELECT FROM {schema}.societies FOR UPDATE; SELECT pg_sleep(3600)");
    let blocked = server.clone();
    let blocker = tokio::task::spawn_blocking(move || blocked.try_psql(&hold));
    let (_, why) = a.lost().await;
    let (is_owned, owner) = (a.is_owned(&main), b.owner(&main).await.unwrap());
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(3600)%' AND pid <> pg_backend_pid()";
    block_in_place(|| server.psql(end));
    assert!(blocker.await.unwrap().is_err());
    assert!(why.contains("`main` could not be renewed in time"), "{why}");
    assert!(!is_owned);
    assert_eq!(owner.expect("it has not ended there").node, "a");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_rewind_the_name_is_claimed_anew_and_nothing_was_lost() {
    let Some(server) = Server::shared("leases::after_a_rewind_the_name_is_claimed_anew_and_nothing_was_lost") else { return };
    let (schema, main, aside) = (server.fresh_schema(), SocietyId::from("main"), SocietyId::from("before"));
    let a = node(&server, &schema, "a", SHORT).await;
    a.hold(&main).await.unwrap();
    a.append(&main, Seq(0), &[event(1, Some("root"), "one")]).await.unwrap();
    a.append(&main, Seq(1), &[event(2, Some("root"), "two")]).await.unwrap();
    let rewind = |at| Fork {
        from: main.clone(),
        at: Seq(at),
        to: main.clone(),
        aside: Some(aside.clone()),
        first: event(at + 1, None, "again"),
    };
    assert!(a.fork(&rewind(9)).await.is_err());
    a.append(&main, Seq(2), &[event(3, Some("root"), "three")]).await.unwrap();
    a.fork(&rewind(1)).await.unwrap();
    a.hold(&main).await.unwrap();
    a.append(&main, Seq(2), &[event(3, Some("root"), "other")]).await.unwrap();
    assert!(a.is_owned(&main) && a.is_owned(&aside));
    let b = node(&server, &schema, "b", LONG).await;
    assert!(matches!(b.hold(&aside).await.unwrap(), Claim::Ours(_)), "nobody has it");
    let late = a.append(&aside, Seq(3), &[event(4, None, "late")]).await;
    assert!(matches!(late, Err(LogError::Conflict { .. })), "{late:?}");
}

/// A host that is switched off accepts nothing and refuses nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_host_that_does_not_answer_costs_no_lease() {
    let Some(server) = Server::own("leases::a_first_host_that_does_not_answer_costs_no_lease") else { return };
    let (schema, main) = (server.fresh_schema(), SocietyId::from("main"));
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (known, port) = (server.url(&schema), server.port());
    let several = format!("127.0.0.1:{},127.0.0.1:{port}", silent.local_addr().unwrap().port());
    let mut options = Options::parse(&known.replacen(&format!("127.0.0.1:{port}"), &several, 1)).unwrap();
    assert_ne!(known, known.replacen(&format!("127.0.0.1:{port}"), &several, 1), "{known}");
    (options.node, options.lease) = (Some("a".to_owned()), Duration::from_secs(4));
    let a = PostgresLog::open(options).await.unwrap();
    assert!(matches!(a.hold(&main).await.unwrap(), Claim::Ours(_)));
    let b = node(&server, &schema, "b", LONG).await;
    let mut renewals = 0;
    let mut before = b.owner(&main).await.unwrap().unwrap();
    while renewals < 4 {
        // Each renewal has to connect anew.
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        block_in_place(|| server.psql(end));
        let Ok(owner) = b.owner(&main).await else { continue };
        let owner = owner.expect("it is not given up");
        renewals += usize::from(owner.remaining > before.remaining);
        before = owner;
    }
    assert!(a.is_owned(&main));
}

/// The owner of a fork may be gone, or be opening it, when another node erases texts that both have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_from_before_an_erasure_by_another_node_never_counts_again() {
    let test = "leases::a_snapshot_from_before_an_erasure_by_another_node_never_counts_again";
    let Some(server) = Server::shared(test) else { return };
    let (schema, main, other) = (server.fresh_schema(), SocietyId::from("main"), SocietyId::from("other"));
    let [a, b] = [node(&server, &schema, "a", LONG).await, node(&server, &schema, "b", LONG).await];
    assert!(matches!(a.hold(&main).await.unwrap(), Claim::Ours(_)));
    for seq in 1..=3 {
        a.append(&main, Seq(seq - 1), &[event(seq, Some("root"), "secret")]).await.unwrap();
    }
    let first = event(4, Some("root"), "theirs");
    a.fork(&Fork { from: main.clone(), at: Seq(3), to: other.clone(), aside: None, first }).await.unwrap();
    assert!(matches!(b.hold(&other).await.unwrap(), Claim::Ours(_)));
    let save = async |body: &'static [u8]| {
        let write = Box::new(|| (body.to_vec(), Vec::new()));
        b.save_snapshot(&other, NewSnapshot { seq: Seq(4), version: 1, after: None, write }).await.unwrap();
    };
    let loaded = async || b.load_snapshot(&other).await.unwrap().map(|Snapshot { body, .. }| body);
    save(b"secret").await;
    assert_eq!(loaded().await, Some(b"secret".to_vec()));
    let redacted: Vec<_> = (1..=2).map(|seq| (*event(seq, Some("root"), "")).clone()).collect();
    a.redact(&main, &redacted).await.unwrap();
    a.forget_redacted(&main).await.unwrap();
    assert_eq!((loaded().await, b.outdated().await.unwrap()), (None, vec![Outdated { society: other.clone(), erasures: 1 }]));
    assert_eq!(a.outdated().await.unwrap(), [], "its own state has followed");
    // What the old state still saves does not count either.
    save(b"secret").await;
    assert_eq!(loaded().await, None);
    b.release(&other).await.unwrap();
    assert!(matches!(b.hold(&other).await.unwrap(), Claim::Ours(_)));
    assert_eq!((loaded().await, b.outdated().await.unwrap()), (None, vec![]));
    save(b"without").await;
    assert_eq!(loaded().await, Some(b"without".to_vec()));
}
