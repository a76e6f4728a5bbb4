//! The background check of a large database after its opening: first the indexes, which reads by thread wait for, then every
//! event, slowly.
//!
//! A large database that was closed cleanly is not checked completely before it is used. Each event is verified when it is
//! read; events that nobody reads, and entries that an index may have lost, are checked here.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use polis_domain::Seq;
use polis_ports::LogError;
use rusqlite::{Connection, params};
use tokio::sync::watch;

use crate::check::Walk;
use crate::error::{from_io, from_sqlite};
use crate::extent::Extent;
use crate::health::Health;
use crate::row::{self, damaged};
use crate::schema;
use crate::segment::Segment;
use crate::sums::Sums;

/// How many events are checked at a time.
const CHUNK: i64 = 500;

/// The check sleeps this many times as long as it works.
const REST: u32 = 4;

/// How far a check is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The indexes are being read.
    Started,
    /// The indexes are correct; the events are being read.
    Indexes,
    /// Everything is correct.
    Sound,
    /// Damage was found.
    Damaged(String),
}

/// A running check. Dropping it stops it.
pub(crate) struct Background {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The progress of a check that was completed during the opening.
pub(crate) fn sound() -> watch::Receiver<Progress> {
    watch::channel(Progress::Sound).1
}

impl Background {
    /// Starts a check of the present rows against the expected checksums. Rows that are written later are not part of it.
    pub(crate) fn start(
        dir: &Path,
        now: &Connection,
        version: u32,
        sums: Sums,
        health: &Arc<Health>,
    ) -> Result<(Self, watch::Receiver<Progress>), LogError> {
        let extent = Extent::of(now, version)?;
        let (progress_sender, progress) = watch::channel(Progress::Started);
        let stop = Arc::new(AtomicBool::new(false));
        let (dir, stopped) = (dir.to_owned(), stop.clone());
        let check = move |progress_sender: &watch::Sender<Progress>| {
            let connection = schema::connect_to_read(&dir)?;
            Checker { connection, extent, sums, stop: stopped }.check(progress_sender)
        };
        let health = health.clone();
        let work = move || match check(&progress_sender) {
            Err(LogError::Damaged(what)) => {
                health.damage_seen.store(true, Ordering::Relaxed);
                progress_sender.send_replace(Progress::Damaged(what.clone()));
                tracing::error!(
                    what,
                    "the history on the disk is damaged; nothing more is written, and intact data can be read"
                );
            }
            Err(error) => tracing::warn!(%error, "the history could not be checked in the background"),
            Ok(()) => {}
        };
        let thread = thread::Builder::new().name("polis-check".to_owned()).spawn(work).map_err(from_io)?;
        Ok((Self { stop, thread: Some(thread) }, progress))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A check that panicked has found nothing.
            let _ = thread.join();
        }
    }
}

/// Whether a check has reached a stage, and has found nothing.
pub(crate) fn has_reached(progress: &watch::Receiver<Progress>, far: Progress) -> bool {
    let now = progress.borrow();
    *now == Progress::Sound || *now == far
}

/// Waits until a check has reached a stage. Fails if it has found damage or could not run.
pub(crate) async fn reached(mut progress: watch::Receiver<Progress>, far: Progress) -> Result<(), LogError> {
    let is_there = |now: &Progress| matches!(now, Progress::Sound | Progress::Damaged(_)) || *now == far;
    let reached = match progress.wait_for(is_there).await {
        Ok(now) => now.clone(),
        Err(_) => return Err(LogError::Failed("the check of the history ended early; start polis again".into())),
    };
    match reached {
        Progress::Damaged(what) => Err(LogError::Damaged(what)),
        Progress::Started | Progress::Indexes | Progress::Sound => Ok(()),
    }
}

struct Checker {
    connection: Connection,
    extent: Extent,
    sums: Sums,
    stop: Arc<AtomicBool>,
}

impl Checker {
    fn check(self, progress_sender: &watch::Sender<Progress>) -> Result<(), LogError> {
        let Extent { heads, .. } = &self.extent;
        if Sums::of_indexes(&self.connection, Some(&self.extent))? != self.sums {
            return Err(LogError::Damaged("the indexes do not list what was written".to_owned()));
        }
        progress_sender.send_replace(Progress::Indexes);
        let Some(found) = self.events(heads)? else { return Ok(()) };
        if found != self.sums.events {
            return Err(LogError::Damaged("events do not belong to the threads that the index lists them under".to_owned()));
        }
        progress_sender.send_replace(Progress::Sound);
        Ok(())
    }

    /// Checks every event up to the heads. Returns the checksum over the events of threads; none if it was stopped.
    fn events(&self, heads: &HashMap<i64, Seq>) -> Result<Option<u64>, LogError> {
        let mut walk = Walk::default();
        let mut after = i64::MIN;
        loop {
            let began = Instant::now();
            let Some(segment) = Segment::after(&self.connection, after)? else { break };
            walk.check_segment(&self.connection, &self.extent.societies, &segment)?;
            after = segment.first;
            if self.rest(began) {
                return Ok(None);
            }
        }
        after = i64::MIN;
        loop {
            let began = Instant::now();
            let mut found = 0;
            {
                let sql = "SELECT id, at, thread, version, crc, body FROM events WHERE id > ?1 ORDER BY id LIMIT ?2";
                let mut statement = self.connection.prepare_cached(sql).map_err(from_sqlite)?;
                let mut rows = statement.query(params![after, CHUNK]).map_err(from_sqlite)?;
                // A page above the rows may lead to the wrong ones. Who reads them in order does not notice.
                let mut by_id = self.connection.prepare_cached("SELECT 1 FROM events WHERE id = ?1").map_err(from_sqlite)?;
                while let Some(row) = rows.next().map_err(from_sqlite)? {
                    found += 1;
                    let (stored, key, thread) = row::stored(row)?;
                    after = row::id(key, stored.seq);
                    // Events written after the opening are not part of this check.
                    if heads.get(&key).is_some_and(|head| stored.seq <= *head) {
                        if !by_id.exists([after]).map_err(from_sqlite)? {
                            return Err(damaged(&self.extent.societies[&key].checksum_name, stored.seq, "it is missing"));
                        }
                        walk.check_row(&self.connection, &self.extent.societies, after, &stored, thread)?;
                    }
                }
            }
            if found < CHUNK {
                break;
            }
            if self.rest(began) {
                return Ok(None);
            }
        }
        match heads.iter().find(|(key, head)| walk.ends.get(key) != Some(head)) {
            Some((key, head)) => Err(damaged(&self.extent.societies[key].checksum_name, *head, "it is missing")),
            None => Ok(Some(walk.sums.events)),
        }
    }

    /// Sleeps in proportion to the work since `began`. Returns whether the check is to stop.
    fn rest(&self, began: Instant) -> bool {
        thread::park_timeout((began.elapsed() * REST).min(Duration::from_secs(1)));
        self.stop.load(Ordering::Relaxed)
    }
}
