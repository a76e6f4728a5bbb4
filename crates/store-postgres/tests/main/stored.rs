//! What is stored: versions, migrations, damage, and databases that would not keep it.

use std::sync::Arc;

use polis_domain::{Recorded, Seq, SocietyId, ThreadId};
use polis_ports::{Log, LogError, SocietyListing, ThreadListing, ThreadRange};
use polis_store_postgres::{Options, PostgresLog};
use polis_testkit::conformance::event;
use tokio::task::block_in_place;

use crate::server::{Logs as _, Server};

fn batch(after: u64, count: u64) -> Vec<Arc<Recorded>> {
    let long = "a text that is packed because it is long enough for that ".repeat(4);
    (after + 1..=after + count).map(|seq| event(seq, Some("root"), &long)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_is_reported_with_its_place() {
    let Some(server) = Server::shared("stored::damage_is_reported_with_its_place") else { return };
    let main = SocietyId::from("main");
    for (damage, place) in [
        ("UPDATE events SET body = set_byte(body, 9, get_byte(body, 9) # 1) WHERE seq = 3", "event 3"),
        ("UPDATE events SET at = at + 1 WHERE seq = 2", "event 2"),
        ("UPDATE events SET crc = crc + 1 WHERE seq = 4", "event 4"),
        ("UPDATE events SET version = 1 WHERE seq = 4", "event 4"),
        ("UPDATE events SET thread = NULL WHERE seq = 4", "event 4"),
        ("UPDATE threads SET name = 'boot'", "event 1"),
        ("DELETE FROM threads", "event 1"),
        ("DELETE FROM events WHERE seq = 2", "event 2"),
        ("DELETE FROM events WHERE seq = 5", "event 5"),
        ("UPDATE societies SET first_name = 'other'", "event 1"),
    ] {
        let schema = server.fresh_schema();
        let log = server.log(&schema).await;
        log.append(&main, Seq(0), &batch(0, 5)).await.unwrap();
        block_in_place(|| server.psql(&format!("SET search_path = {schema}; {damage}")));
        let read = log.read(&main, Seq(0), 10).await;
        assert!(matches!(&read, Err(LogError::Damaged(what)) if what.contains(place)), "{damage}: {read:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_newer_version_wrote_is_too_new_and_stays_as_it_is() {
    let Some(server) = Server::shared("stored::what_a_newer_version_wrote_is_too_new_and_stays_as_it_is") else { return };
    for column in ["tables", "events"] {
        let schema = server.fresh_schema();
        drop(server.log(&schema).await);
        block_in_place(|| server.psql(&format!("UPDATE {schema}.versions SET {column} = 9999")));
        let opened = PostgresLog::open(server.options(&schema)).await.map(drop);
        assert!(matches!(&opened, Err(LogError::TooNew(what)) if what.contains("9999")), "{opened:?}");
        assert_eq!(block_in_place(|| server.psql(&format!("SELECT {column} FROM {schema}.versions"))), "9999");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_that_make_the_tables_at_the_same_time_make_them_once() {
    let test = "stored::several_that_make_the_tables_at_the_same_time_make_them_once";
    let Some(server) = Server::shared(test) else { return };
    let schema = server.fresh_schema();
    let opening: Vec<_> = (0..6).map(|_| tokio::spawn(PostgresLog::open(server.options(&schema)))).collect();
    for log in opening {
        log.await.unwrap().unwrap();
    }
    assert_eq!(block_in_place(|| server.psql(&format!("SELECT count(*) FROM {schema}.versions"))), "1");
    // Tables of an older version of events are taken over.
    block_in_place(|| server.psql(&format!("UPDATE {schema}.versions SET events = 1")));
    drop(server.log(&schema).await);
    assert_ne!(block_in_place(|| server.psql(&format!("SELECT events FROM {schema}.versions"))), "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_does_not_keep_what_it_acknowledges_is_refused() {
    let test = "stored::a_database_that_does_not_keep_what_it_acknowledges_is_refused";
    let Some(server) = Server::shared(test) else { return };
    block_in_place(|| {
        server.psql("CREATE DATABASE lax");
        server.psql("ALTER DATABASE lax SET synchronous_commit = off");
    });
    let url = format!("postgres://polis@127.0.0.1:{}/lax", server.port());
    let opened = PostgresLog::open(Options::parse(&url).unwrap()).await.map(drop);
    assert!(matches!(&opened, Err(LogError::Failed(why)) if why.to_string().contains("synchronous_commit")), "{opened:?}");
}

/// Models name agents, and agents name threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_may_be_any_text_however_long() {
    let Some(server) = Server::shared("stored::names_may_be_any_text_however_long") else { return };
    let (log, main) = (server.log(&server.fresh_schema()).await, SocietyId::from("main"));
    let names = [format!("long {}", "名".repeat(4_000)), "nul \0 and more".to_owned(), String::new(), "%_\\'\"".to_owned()];
    let events: Vec<_> = (1..).zip(&names).map(|(seq, name)| event(seq, Some(name), "text")).collect();
    log.append(&main, Seq(0), &events).await.unwrap();
    let read: Vec<Arc<Recorded>> = log.read(&main, Seq(0), 9).await.unwrap().into_iter().map(Arc::new).collect();
    assert_eq!(read, events);
    for (n, name) in names.iter().enumerate() {
        let thread = log.read_thread(&main, &ThreadId::from(name.as_str()), ThreadRange::ALL).await.unwrap();
        assert_eq!(thread, [Recorded::clone(&events[n])]);
    }
    let listing = ThreadListing { prefix: names[0].chars().take(100).collect(), before: None, limit: 9 };
    assert_eq!(log.threads(&main, &listing).await.unwrap(), [ThreadId::from(names[0].as_str())]);
}

/// Whether long lists and reads by thread stay cheap depends on the plans of the statements.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_that_are_asked_often_read_indexes_and_not_tables() {
    let test = "stored::statements_that_are_asked_often_read_indexes_and_not_tables";
    let Some(server) = Server::own(test) else { return };
    let schema = server.fresh_schema();
    let log = server.log(&schema).await;
    let societies: Vec<_> = (0..4).map(|n| SocietyId::from(format!("society-{n}"))).collect();
    for society in &societies {
        for after in (0..4_000).step_by(500) {
            let thread = |seq: u64| Some(format!("thread-{}", seq % 400));
            let events: Vec<_> = (after + 1..=after + 500).map(|seq| event(seq, thread(seq).as_deref(), "text")).collect();
            log.append(society, Seq(after), &events).await.unwrap();
        }
    }
    let scans = || {
        let sum = format!(
            "SELECT pg_stat_force_next_flush(); SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables
             WHERE schemaname = '{schema}' AND relname IN ('societies', 'events', 'threads', 'idle')"
        );
        block_in_place(|| server.psql(&sum)).lines().last().unwrap().to_owned()
    };
    let many =
        format!("INSERT INTO {schema}.societies (name, first_name) SELECT n::text::bytea, '' FROM generate_series(1, 2000) n");
    block_in_place(|| server.psql(&format!("{many}; ANALYZE {schema}.societies, {schema}.events, {schema}.threads")));
    let before = scans();
    let society = &societies[2];
    for (after, limit) in [(0, 10), (3_000, 100), (3_999, 10)] {
        log.read(society, Seq(after), limit).await.unwrap();
    }
    let thread = ThreadId::from("thread-7");
    for range in [ThreadRange { newest: 3, ..ThreadRange::ALL }, ThreadRange { oldest: 3, ..ThreadRange::ALL }] {
        assert_eq!(log.read_thread(society, &thread, range).await.unwrap().len(), 3);
    }
    let listing = ThreadListing { prefix: "thread".to_owned(), before: Some(thread), limit: 5 };
    assert_eq!(log.threads(society, &listing).await.unwrap().len(), 5);
    log.whole(society, Seq(2_000)).await.unwrap();
    for seq in 4_001..4_020 {
        log.append(society, Seq(seq - 1), &[event(seq, Some("thread-1"), "text")]).await.unwrap();
    }
    let listing = SocietyListing { after: Some("society-1".into()), limit: 2 };
    assert_eq!(log.list_societies(&listing).await.unwrap().len(), 2);
    // A session reports what it has read when it ends at the latest.
    drop(log);
    while block_in_place(|| server.psql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'polis'")) != "0" {}
    assert_eq!(scans(), before, "rows that were read without an index");
}
