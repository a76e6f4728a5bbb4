//! The log in PostgreSQL, on a server of its own with fsync: against bare inserts into the same server, and beside SQLite.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use polis_domain::{AgentId, Event, Failure, Recorded, Response, Seq, SocietyId, Timestamp};
use polis_engine::{Agent, Cast, Turn};
use polis_ports::Log;
use polis_store_local::LocalLog;
use polis_store_postgres::{Options, PostgresLog};
use polis_testkit::postgres::Server;
use tokio_postgres::NoTls;

use crate::figures::{Figures, Goal};
use crate::world;

const WRITERS: usize = 64;
const EACH: u64 = 100;
const ALONE: u64 = 300;
const MESSAGES: u64 = 100;
const ROUNDS: usize = 5;

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let Some(server) = Server::own("bench postgres") else { return Ok(()) };
    let runtime = world::runtime()?;
    let mut sides: [Vec<f64>; 7] = Default::default();
    for _ in 0..ROUNDS {
        // In turns, so that a slow moment of the disk hits all.
        let round = runtime.block_on(async {
            let (postgres, sqlite) = (fresh(&server).await?, Local::open()?);
            let alone = (floor_alone(&server).await?, alone(&*postgres).await?, alone(&*sqlite.log).await?);
            let (floor, many) = (floor_many(&server).await?, many(fresh(&server).await?).await?);
            let messages = (messages(fresh(&server).await?).await?, messages(Local::open()?.log).await?);
            anyhow::Ok([alone.0, alone.1, alone.2, floor, many, messages.0, messages.1])
        })?;
        sides.iter_mut().zip(round).for_each(|(side, value)| side.push(value));
    }
    let [floor, ours, sqlite, floor_rate, rate, message, local] = sides.map(world::median);
    let detail = format!("{ours:.2} ms against {floor:.2} ms of a bare INSERT; SQLite {sqlite:.2} ms");
    figures.add("PostgreSQL, one writer: append against INSERT", ours / floor, Goal::AtMost(1.5), detail);
    let detail = format!("{rate:.0} appends/s against {floor_rate:.0} rows/s in groups of {WRITERS}");
    figures.add("PostgreSQL, 64 writers, a society each: log against floor", rate / floor_rate, Goal::AtLeast(0.5), detail);
    let detail = format!("{message:.2} ms against {local:.2} ms: a request to an agent and its answer");
    figures.add("a message on PostgreSQL against SQLite", message / local, Goal::AtMost(4.0), detail);
    Ok(())
}

async fn fresh(server: &Server) -> Result<Arc<dyn Log>> {
    Ok(Arc::new(PostgresLog::open(Options::parse(&server.url(&server.fresh_schema()))?).await?))
}

/// A log in SQLite, in a folder that goes with it.
struct Local {
    log: Arc<dyn Log>,
    _dir: Option<tempfile::TempDir>,
}

impl Local {
    fn open() -> Result<Self> {
        let dir = world::folder()?;
        Ok(Self { log: Arc::new(LocalLog::open(dir.path())?), _dir: Some(dir) })
    }
}

/// Milliseconds of an append, one after another.
async fn alone(log: &dyn Log) -> Result<f64> {
    let society = SocietyId::from("alone");
    let start = Instant::now();
    for seq in 1..=ALONE {
        log.append(&society, Seq(seq - 1), &[Arc::new(event(seq))]).await?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e3 / ALONE as f64)
}

/// Appends per second of many writers, each to a society of its own.
async fn many(log: Arc<dyn Log>) -> Result<f64> {
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

/// The table of events as the log has it, with its indexes: whoever reads a society or a thread of it needs them.
const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS floor(
        society bigint, seq bigint, at bigint NOT NULL, thread uuid, version int NOT NULL, crc int NOT NULL, body bytea NOT NULL,
        PRIMARY KEY (society, seq)
    );
    CREATE INDEX IF NOT EXISTS floor_by_thread ON floor (society, thread, seq) WHERE thread IS NOT NULL;
    TRUNCATE floor";

const ROW: &str = "INSERT INTO floor VALUES ($1, $2, 1, '0192f3c4-1111-7abc-8def-0123456789ab', 1, 1, $3)";

const ROWS: &str = "INSERT INTO floor SELECT s, q, 1, '0192f3c4-1111-7abc-8def-0123456789ab', 1, 1, b
    FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS r (s, q, b)";

async fn bare(server: &Server) -> Result<tokio_postgres::Client> {
    let url = format!("postgres://polis@127.0.0.1:{}/postgres", server.port());
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute(TABLE).await?;
    Ok(client)
}

/// Milliseconds of a prepared INSERT of the same row, each committed by itself.
async fn floor_alone(server: &Server) -> Result<f64> {
    let client = bare(server).await?;
    let insert = client.prepare(ROW).await?;
    let start = Instant::now();
    for seq in 1..=ALONE {
        client.execute(&insert, &[&1_i64, &(seq as i64), &body(seq)?]).await?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e3 / ALONE as f64)
}

/// Rows per second of prepared INSERTs of as many rows as there are writers.
async fn floor_many(server: &Server) -> Result<f64> {
    let client = bare(server).await?;
    let insert = client.prepare(ROWS).await?;
    let societies: Vec<i64> = (0..WRITERS as i64).collect();
    let start = Instant::now();
    for seq in 1..=EACH {
        let (seqs, bodies) = (vec![seq as i64; WRITERS], vec![body(seq)?; WRITERS]);
        client.execute(&insert, &[&societies, &seqs, &bodies]).await?;
    }
    Ok((WRITERS as u64 * EACH) as f64 / start.elapsed().as_secs_f64())
}

/// Answers at once.
struct Answers;

impl Agent for Answers {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        turn.say("a message of a usual length, to an agent").await?;
        Ok(Response::new("done"))
    }
}

/// Milliseconds of a request and its answer, one after another.
async fn messages(log: Arc<dyn Log>) -> Result<f64> {
    let society = world::society(log, Cast::new().with("answers", Answers), "answers").await?;
    let start = Instant::now();
    for _ in 0..MESSAGES {
        let sent = society.submit("a message").await?;
        society.answer(&sent).await?;
    }
    let elapsed = start.elapsed().as_secs_f64() * 1e3 / MESSAGES as f64;
    society.stop(std::time::Duration::ZERO).await;
    Ok(elapsed)
}

/// The body of an event as a store has it.
fn body(seq: u64) -> Result<Vec<u8>> {
    let body = serde_json::to_vec(&event(seq).event).context("an event is JSON")?;
    Ok(polis_stored_event::body::pack(&body).into_owned())
}

/// An event of a usual size.
fn event(seq: u64) -> Recorded {
    let agent = AgentId::from("0192f3c4-1111-7abc-8def-0123456789ab");
    let event = Event::AgentSpawned { agent, role: "worker".into(), parent: Some(AgentId::root()), by: None };
    Recorded { seq: Seq(seq), at: Timestamp(1), thread: Some("thread".into()), event }
}
