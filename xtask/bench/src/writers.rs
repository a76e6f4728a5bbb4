//! Durable appends by 64 writers at once, against a bare loop over SQLite that commits 64 rows at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use polis_domain::{AgentId, Event, Recorded, Seq, SocietyId, Timestamp};
use polis_engine::Cast;
use polis_testkit::Programmed;

use crate::figures::{Figures, Goal};
use crate::world::{self, Kind};

const WRITERS: usize = 64;
const EACH: u64 = 100;

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    // Alternating, so that a slow moment of the disk hits both.
    let (mut floors, mut logs, mut societies) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..3 {
        floors.push(floor()?);
        logs.push(world::runtime()?.block_on(log_rate())?);
        societies.push(world::runtime()?.block_on(society_rate())?);
    }
    let (floor, log, society) = (world::median(floors), world::median(logs), world::median(societies));
    let detail = format!("{log:.0} appends/s against {floor:.0} rows/s in groups of 64, one society each");
    figures.add("64 writers: log against floor", log / floor, Goal::AtLeast(0.6), detail);
    let detail = format!("{society:.0} letters/s accepted into one society against {floor:.0} rows/s in groups of 64");
    figures.add("64 writers: society against floor", society / floor, Goal::AtLeast(0.6), detail);
    Ok(())
}

/// Rows per second of a bare loop that writes rows as the log must have them: with a time, a check sum and an index by thread.
fn floor() -> Result<f64> {
    let dir = world::folder()?;
    let db = rusqlite::Connection::open(dir.path().join("floor.db"))?;
    db.execute_batch(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
         CREATE TABLE event(id INTEGER PRIMARY KEY, at INTEGER, thread INTEGER, version INTEGER, crc INTEGER, body BLOB);
         CREATE INDEX by_thread ON event(thread) WHERE thread IS NOT NULL;",
    )?;
    let body = serde_json::to_vec(&event(1))?;
    let start = Instant::now();
    for group in 0..EACH {
        db.execute_batch("BEGIN IMMEDIATE")?;
        let mut insert = db.prepare_cached("INSERT INTO event VALUES (?1, 1, ?2, 1, 1, ?3)")?;
        for row in 0..WRITERS as u64 {
            insert.execute(((group * WRITERS as u64 + row) as i64, row as i64, &body))?;
        }
        db.execute_batch("COMMIT")?;
    }
    Ok((WRITERS as u64 * EACH) as f64 / start.elapsed().as_secs_f64())
}

/// Appends per second of 64 writers, each to a society of its own.
async fn log_rate() -> Result<f64> {
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
    Ok((WRITERS as u64 * EACH) as f64 / start.elapsed().as_secs_f64())
}

/// Letters per second that one society accepts from 64 senders. Its agents are busy, so each letter is one event.
async fn society_rate() -> Result<f64> {
    let (log, _guard) = world::log(Kind::Durable)?;
    let society = world::society(log, Cast::new().with("busy", Programmed), "busy").await?;
    for n in 0..WRITERS {
        society.spawn(format!("a{n}").into(), "bench".into(), AgentId::root()).await?;
        society.send(format!("a{n}").into(), r#"[{"approve":"wait"}]"#, None).await?;
    }
    let start = Instant::now();
    let mut senders = tokio::task::JoinSet::new();
    for n in 0..WRITERS {
        let society = society.clone();
        senders.spawn(async move {
            for _ in 0..EACH {
                society.send(format!("a{n}").into(), "a letter of a usual length, to somebody", None).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = senders.join_next().await {
        done??;
    }
    let rate = (WRITERS as u64 * EACH) as f64 / start.elapsed().as_secs_f64();
    society.stop(Duration::ZERO).await;
    Ok(rate)
}

/// An event of a usual size.
fn event(seq: u64) -> Recorded {
    let agent = AgentId::from("0192f3c4-1111-7abc-8def-0123456789ab");
    let event = Event::AgentSpawned { agent, role: "worker".into(), parent: Some(AgentId::root()), by: None };
    Recorded { seq: Seq(seq), at: Timestamp(1), thread: Some("thread".into()), event }
}
