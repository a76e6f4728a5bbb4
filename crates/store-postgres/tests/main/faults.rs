//! Lost connections, killed servers and full disks: what was acknowledged is there, once, and the log heals by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use polis_domain::{Recorded, Seq, SocietyId};
use polis_ports::{Fork, Log, LogError, NewSnapshot};
use polis_store_postgres::{Options, PostgresLog};
use polis_testkit::conformance::event;
use tokio::task::block_in_place;

use crate::cluster::Cluster;
use crate::proxy::{Cut, Proxy};
use crate::server::{Logs as _, Server};

/// Events after a position.
fn batch(after: u64, count: u64, text: &str) -> Vec<Arc<Recorded>> {
    (after + 1..=after + count).map(|seq| event(seq, Some("root"), text)).collect()
}

/// Appends as the engine does: after an error the head says whether it happened. Gives how often the outcome was unknown.
async fn put(log: &PostgresLog, society: &SocietyId, expected: u64, events: &[Arc<Recorded>]) -> usize {
    let end = expected + events.len() as u64;
    for failures in 0.. {
        match log.append(society, Seq(expected), events).await {
            Ok(()) => return failures,
            Err(LogError::Failed(_)) => {}
            Err(other) => panic!("{other:?}"),
        }
        let head = settled_head(log, society).await;
        if head == end {
            return failures + 1;
        }
        assert_eq!(head, expected, "all of it or nothing");
    }
    unreachable!()
}

/// The head, as soon as the database says it.
async fn settled_head(log: &PostgresLog, society: &SocietyId) -> u64 {
    loop {
        match log.head(society).await {
            Ok(head) => return head.0,
            Err(LogError::Failed(_)) => tokio::task::yield_now().await,
            Err(other) => panic!("{other:?}"),
        }
    }
}

async fn texts(log: &PostgresLog, society: &SocietyId) -> Vec<Recorded> {
    loop {
        match log.read(society, Seq(0), usize::MAX).await {
            Ok(events) => return events,
            Err(LogError::Failed(_)) => tokio::task::yield_now().await,
            Err(other) => panic!("{other:?}"),
        }
    }
}

fn owned(events: &[Arc<Recorded>]) -> Vec<Recorded> {
    events.iter().map(|recorded| Recorded::clone(recorded)).collect()
}

/// Everything that the log writes, through a proxy; gives how often the outcome of an append was unknown.
async fn write_everything(log: &PostgresLog) -> usize {
    let (main, other, fork) = (SocietyId::from("main"), SocietyId::from("other"), SocietyId::from("fork"));
    let mut failures = 0;
    for round in 0..3_u64 {
        let (ours, theirs) = (batch(2 * round, 2, "ours"), batch(round, 1, "theirs"));
        let (one, two) = tokio::join!(put(log, &main, 2 * round, &ours), put(log, &other, round, &theirs));
        failures += one + two;
    }
    let snapshot = || NewSnapshot { seq: Seq(4), version: 1, after: None, write: Box::new(|| (b"four".to_vec(), Vec::new())) };
    while log.save_snapshot(&main, snapshot()).await.is_err() {}
    let wanted = Fork { from: main.clone(), at: Seq(4), to: fork.clone(), aside: None, first: event(5, Some("root"), "fork") };
    while let Err(error) = log.fork(&wanted).await {
        assert!(matches!(error, LogError::Failed(_)), "{error:?}");
        failures += 1;
        if settled_head(log, &fork).await == 5 {
            break;
        }
    }
    failures += put(log, &fork, 5, &batch(5, 1, "fork")).await;
    let [ours, theirs] = [batch(0, 6, "ours"), batch(0, 3, "theirs")];
    assert_eq!(texts(log, &main).await, owned(&ours));
    assert_eq!(texts(log, &other).await, owned(&theirs));
    assert_eq!(texts(log, &fork).await, owned(&[&ours[..4], &batch(4, 2, "fork")].concat()));
    let snapshot = loop {
        // A new connection may be the one that is lost.
        if let Ok(snapshot) = log.load_snapshot(&main).await {
            break snapshot;
        }
    };
    assert_eq!(snapshot.unwrap().body, b"four");
    failures
}

async fn through(proxy: &Proxy, schema: &str) -> PostgresLog {
    let url = format!("postgres://polis@127.0.0.1:{}/postgres?schema={schema}", proxy.port);
    let mut options = Options::parse(&url).unwrap();
    options.node = Some("node".to_owned());
    loop {
        match PostgresLog::open(options.clone()).await {
            Ok(log) => return log,
            Err(LogError::Failed(_)) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_lost_at_any_statement_loses_and_repeats_nothing() {
    let test = "faults::a_connection_that_is_lost_at_any_statement_loses_and_repeats_nothing";
    let Some(server) = Server::shared(test) else { return };
    let statements = {
        let proxy = Proxy::start(server.port()).await;
        assert_eq!(write_everything(&through(&proxy, &server.fresh_schema()).await).await, 0);
        proxy.statements()
    };
    let (mut unknown, mut lost) = (0, 0);
    for at in 1..=statements {
        for cut in [Cut::Before, Cut::After] {
            let proxy = Proxy::start(server.port()).await;
            proxy.cut(at, cut);
            unknown += write_everything(&through(&proxy, &server.fresh_schema()).await).await;
            // Appends that meet share a statement, so a run may have a few less.
            lost += usize::from(proxy.statements() >= at);
        }
    }
    assert!(
        lost > statements && unknown > 10,
        "{lost} lost connections of {statements} statements, {unknown} unknown outcomes"
    );
}

/// The statement was on its way when its connection was lost, and arrives after the log has said what became of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_arrives_late_writes_nothing() {
    let Some(server) = Server::shared("faults::a_statement_that_arrives_late_writes_nothing") else { return };
    for is_claimed in [false, true] {
        let proxy = Proxy::start(server.port()).await;
        let log = through(&proxy, &server.fresh_schema()).await;
        let (main, head) = (SocietyId::from("main"), 2);
        if is_claimed {
            log.claim(&main, Duration::from_secs(3600)).await.unwrap();
        }
        log.append(&main, Seq(0), &batch(0, 2, "sure")).await.unwrap();
        proxy.cut(proxy.statements() + 1, Cut::Hold);
        let lost = log.append(&main, Seq(head), &batch(head, 1, "late")).await;
        assert!(matches!(lost, Err(LogError::Failed(_))), "{lost:?}");
        assert_eq!(settled_head(&log, &main).await, head, "it has not happened");
        proxy.release().await;
        assert_eq!(settled_head(&log, &main).await, head, "and never will");
        log.append(&main, Seq(head), &batch(head, 1, "next")).await.unwrap();
        assert_eq!(texts(&log, &main).await, owned(&[batch(0, 2, "sure"), batch(2, 1, "next")].concat()));
    }
}

/// Writers append while something goes wrong with the server, until so many appends had an unknown outcome.
///
/// A fault between two statements is not noticed by any append, so faults are not counted.
async fn under_load(log: PostgresLog, wanted: u64, fault: impl Fn()) {
    const MOST_FAULTS: u64 = 100;
    let mut faults = 0;
    let until = |unknown| {
        if unknown >= wanted {
            return false;
        }
        assert!(faults < MOST_FAULTS, "{unknown} unknown outcomes after {faults} faults");
        fault();
        faults += 1;
        true
    };
    while_faults(log, until).await;
}

/// Writers append while something goes wrong, as long as `fault` does, which is told how many outcomes were unknown so far.
async fn while_faults(log: PostgresLog, mut fault: impl FnMut(u64) -> bool) {
    const WRITERS: u64 = 4;
    let log = Arc::new(log);
    let stop = Arc::new(AtomicBool::new(false));
    let [acknowledged, unknown] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let writers: Vec<_> = (0..WRITERS)
        .map(|n| {
            let (log, stop, acknowledged, unknown) = (log.clone(), stop.clone(), acknowledged.clone(), unknown.clone());
            tokio::spawn(async move {
                let society = SocietyId::from(format!("society-{n}"));
                let mut head = 0;
                while !stop.load(Ordering::SeqCst) {
                    let failures = put(&log, &society, head, &batch(head, 2, "text")).await;
                    head += 2;
                    unknown.fetch_add(failures as u64, Ordering::SeqCst);
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                }
                (society, head)
            })
        })
        .collect();
    loop {
        // Writers work before each fault and after the last one.
        let before = acknowledged.load(Ordering::SeqCst);
        while acknowledged.load(Ordering::SeqCst) < before + 20 {
            tokio::task::yield_now().await;
        }
        if !block_in_place(|| fault(unknown.load(Ordering::SeqCst))) {
            break;
        }
    }
    stop.store(true, Ordering::SeqCst);
    for writer in writers {
        let (society, head) = writer.await.unwrap();
        assert_eq!(texts(&log, &society).await, owned(&batch(0, head, "text")), "{society}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_under_load_loses_nothing_that_was_acknowledged() {
    let test = "faults::a_server_that_is_killed_under_load_loses_nothing_that_was_acknowledged";
    let Some(server) = Server::own(test) else { return };
    under_load(server.log(&server.fresh_schema()).await, 3, || {
        server.kill();
        server.start();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_are_ended_under_load_lose_and_repeat_nothing() {
    let Some(server) = Server::own("faults::sessions_that_are_ended_under_load_lose_and_repeat_nothing") else { return };
    under_load(server.log(&server.fresh_schema()).await, 10, || {
        server.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'polis'");
    })
    .await;
}

/// The machine of the primary is lost, or its server alone crashes; the standby that has every acknowledged commit takes its place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_fails_over_under_load_loses_nothing_that_was_acknowledged() {
    let test = "faults::a_cluster_that_fails_over_under_load_loses_nothing_that_was_acknowledged";
    let failovers = std::env::var("POLIS_FAILOVERS").map_or(2, |text| text.parse::<usize>().unwrap());
    let Some(cluster) = block_in_place(|| Cluster::start(test)) else { return };
    let log = PostgresLog::open(Options::parse(&cluster.url("polis")).unwrap()).await.unwrap();
    let mut done = 0;
    let fail_over = |_| {
        if done == failovers {
            return false;
        }
        let before = cluster.primary_name().unwrap().to_owned();
        cluster.kill_primary(done % 2 == 0);
        done += 1;
        println!("failover {done}: {before}, then {}", cluster.primary_name().unwrap_or_default());
        true
    };
    while_faults(log, fail_over).await;
}

/// A commit that is not on the standby yet is not acknowledged because an operator cancels the waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_replication_was_cancelled_is_not_acknowledged() {
    let test = "faults::a_commit_whose_replication_was_cancelled_is_not_acknowledged";
    let Some(server) = Server::own(test) else { return };
    let (schema, main) = (server.fresh_schema(), SocietyId::from("main"));
    server.log(&schema).await.append(&main, Seq(0), &batch(0, 1, "first")).await.unwrap();
    server.psql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    server.kill();
    server.start();
    let log = Arc::new(server.log(&schema).await);
    let append = {
        let (log, main) = (log.clone(), main.clone());
        tokio::spawn(async move { log.append(&main, Seq(1), &batch(1, 1, "second")).await })
    };
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    while block_in_place(|| server.psql(cancel)).is_empty() {}
    let done = append.await.unwrap();
    assert!(matches!(&done, Err(LogError::Failed(why)) if why.to_string().contains("warned")), "{done:?}");
    block_in_place(|| {
        server.psql("ALTER SYSTEM RESET synchronous_standby_names");
        server.psql("SELECT pg_reload_conf()");
    });
    assert_eq!(settled_head(&log, &main).await, 2, "it was committed all the same");
    log.append(&main, Seq(2), &batch(2, 1, "third")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_reported_as_such_and_when_there_is_space_the_log_goes_on() {
    let test = "faults::a_full_disk_is_reported_as_such_and_when_there_is_space_the_log_goes_on";
    let Some(server) = Server::shared(test) else { return };
    let (schema, main) = (server.fresh_schema(), SocietyId::from("main"));
    let log = server.log(&schema).await;
    log.append(&main, Seq(0), &batch(0, 1, "first")).await.unwrap();
    // The server says so with this code when it cannot make a table longer.
    let full = format!(
        "CREATE FUNCTION {schema}.no_space() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
         CREATE TRIGGER no_space BEFORE INSERT ON {schema}.events EXECUTE FUNCTION {schema}.no_space()"
    );
    block_in_place(|| server.psql(&full));
    let refused = log.append(&main, Seq(1), &batch(1, 1, "second")).await;
    assert!(matches!(refused, Err(LogError::Full(_))), "{refused:?}");
    assert_eq!(log.readable_head(&main).await.unwrap(), Seq(1));
    assert_eq!(log.head(&main).await.unwrap(), Seq(1));
    block_in_place(|| server.psql(&format!("DROP TRIGGER no_space ON {schema}.events")));
    log.append(&main, Seq(1), &batch(1, 1, "second")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_may_not_be_written_to_is_passed_over_and_one_that_becomes_so_is_left() {
    let test = "faults::a_server_that_may_not_be_written_to_is_passed_over_and_one_that_becomes_so_is_left";
    let (Some(first), Some(second)) = (Server::own(test), Server::shared(test)) else { return };
    let (schema, main) = (second.fresh_schema(), SocietyId::from("main"));
    let read_only = |server: &Server, on: bool| {
        server.psql(&format!("ALTER SYSTEM SET default_transaction_read_only = {}", if on { "on" } else { "off" }));
        server.kill();
        server.start();
    };
    block_in_place(|| read_only(&first, true));
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", first.port(), second.port());
    let open = async |hosts: &str| {
        PostgresLog::open(Options::parse(&format!("postgres://polis@{hosts}/postgres?schema={schema}")).unwrap()).await
    };
    open(&hosts).await.unwrap().append(&main, Seq(0), &batch(0, 1, "first")).await.unwrap();
    assert_eq!(second.log(&schema).await.head(&main).await.unwrap(), Seq(1), "it went to the second one");
    // One that becomes read-only while it is in use.
    block_in_place(|| read_only(&first, false));
    let log = open(&format!("127.0.0.1:{}", first.port())).await.unwrap();
    log.append(&main, Seq(0), &batch(0, 1, "first")).await.unwrap();
    block_in_place(|| read_only(&first, true));
    let refused = log.append(&main, Seq(1), &batch(1, 1, "second")).await;
    assert!(matches!(refused, Err(LogError::Failed(_))), "{refused:?}");
    block_in_place(|| read_only(&first, false));
    assert_eq!(put(&log, &main, 1, &batch(1, 1, "second")).await, 0);
}
