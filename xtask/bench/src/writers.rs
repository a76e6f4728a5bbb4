//! Durable appends by 64 writers at once, against a bare loop over SQLite that writes the same rows at the same places, 64 to a
//! commit.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use polis_domain::{AgentId, Event, Recorded, Seq, SocietyId, Timestamp};
use polis_engine::Cast;
use polis_testkit::ProgrammedAgent;

use crate::figures::{Figures, Goal};
use crate::world::{self, Kind};

const WRITERS: usize = 64;
const EACH: u64 = 300;

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    for (name, rate) in [("64 writers, a society each: log against floor", true), ("64 writers: society against floor", false)]
    {
        // Alternating, so that a slow moment of the disk hits both.
        let (mut ours, mut floors) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let (rate, rows) =
                world::runtime()?.block_on(async { if rate { log_rate().await } else { society_rate().await } })?;
            ours.push(rate);
            floors.push(floor(&rows)?);
        }
        let (ours, floor) = (world::median(ours), world::median(floors));
        let detail = format!("{ours:.0} appends/s against {floor:.0} rows/s in groups of {WRITERS}");
        figures.add(name, ours / floor, Goal::AtLeast(0.6), detail);
    }
    Ok(())
}

/// A row as the log must have it: its place, its thread by number, its body.
struct Row {
    id: i64,
    thread: i64,
    body: Vec<u8>,
}

/// Rows per second of a bare loop that writes these, with a time, a check sum and an index by thread.
fn floor(rows: &[Row]) -> Result<f64> {
    let dir = world::folder()?;
    let db = rusqlite::Connection::open(dir.path().join("floor.db"))?;
    db.execute_batch(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=2048;
         CREATE TABLE event(id INTEGER PRIMARY KEY, at INTEGER, thread INTEGER, version INTEGER, crc INTEGER, body BLOB);
         CREATE INDEX by_thread ON event(thread) WHERE thread IS NOT NULL;",
    )?;
    let start = Instant::now();
    for group in rows.chunks(WRITERS) {
        db.execute_batch("BEGIN IMMEDIATE")?;
        let mut insert = db.prepare_cached("INSERT INTO event VALUES (?1, 1, ?2, 1, 1, ?3)")?;
        for row in group {
            insert.execute((row.id, row.thread, &row.body))?;
        }
        db.execute_batch("COMMIT")?;
    }
    Ok(rows.len() as f64 / start.elapsed().as_secs_f64())
}

/// Appends per second of 64 writers, each to a society of its own; and what they wrote.
async fn log_rate() -> Result<(f64, Vec<Row>)> {
    let (log, _guard) = world::log(Kind::Durable)?;
    let start = Instant::now();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let log = log.clone();
        writers.spawn(async move {
            let society = SocietyId::from(format!("s{writer}"));
            for seq in 1..=EACH {
                log.append(&society, Seq(seq - 1), &[Arc::new(event(seq))]).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = writers.join_next().await {
        done??;
    }
    let rate = (WRITERS as u64 * EACH) as f64 / start.elapsed().as_secs_f64();
    let row = |seq: u64, writer: i64| {
        Ok(Row { id: writer << 40 | seq as i64, thread: writer, body: serde_json::to_vec(&event(seq).event)? })
    };
    let rows = (1..=EACH).flat_map(|seq| (0..WRITERS as i64).map(move |writer| row(seq, writer)));
    Ok((rate, rows.collect::<Result<_>>()?))
}

/// Messages per second that one society accepts from 64 senders, and what it wrote. Its agents are busy, so each message is one
/// event.
async fn society_rate() -> Result<(f64, Vec<Row>)> {
    let (log, _guard) = world::log(Kind::Durable)?;
    let society = world::society(log.clone(), Cast::new().with("busy", ProgrammedAgent), "busy").await?;
    for n in 0..WRITERS {
        society.spawn(format!("a{n}").into(), "bench".into(), AgentId::root()).await?;
        society.send(format!("a{n}").into(), r#"[{"approve":"wait"}]"#, None).await?;
    }
    let before = log.head(society.id()).await?;
    let start = Instant::now();
    let mut senders = tokio::task::JoinSet::new();
    for n in 0..WRITERS {
        let society = society.clone();
        senders.spawn(async move {
            for _ in 0..EACH {
                society.send(format!("a{n}").into(), "a message of a usual length, to an agent", None).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = senders.join_next().await {
        done??;
    }
    let rate = (WRITERS as u64 * EACH) as f64 / start.elapsed().as_secs_f64();
    society.stop(Duration::ZERO).await;
    let events = log.read(society.id(), before, (WRITERS as u64 * EACH) as usize).await?;
    let mut threads = HashMap::new();
    let mut row = |recorded: &Recorded| {
        let next = threads.len() as i64;
        let thread = *threads.entry(recorded.thread.clone()).or_insert(next);
        Ok(Row { id: recorded.seq.0 as i64, thread, body: serde_json::to_vec(&recorded.event)? })
    };
    Ok((rate, events.iter().map(&mut row).collect::<Result<_>>()?))
}

/// An event of a usual size.
fn event(seq: u64) -> Recorded {
    let agent = AgentId::from("0192f3c4-1111-7abc-8def-0123456789ab");
    let event = Event::AgentSpawned { agent, role: "worker".into(), parent: Some(AgentId::root()), by: None };
    Recorded { seq: Seq(seq), at: Timestamp(1), thread: Some("thread".into()), event }
}
