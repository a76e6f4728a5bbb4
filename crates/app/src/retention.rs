//! Keeps the rules of `[retention]` while a server runs: archives old events, erases old conversations, and takes no new requests
//! while the log is too long.

use std::time::Duration;

use polis_api::ApiError;
use polis_api::local::Registry;
use polis_domain::{Failure, FailureCode, Timestamp};
use polis_engine::{Society, SystemClock};
use polis_ports::LogError;
use polis_server::Societies;
use polis_store_local::LocalLog;
use tokio::time::{Interval, MissedTickBehavior};

use crate::config::Config;
use crate::store::Store;

/// How often a server looks for what has become old.
const EVERY: Duration = Duration::from_secs(3_600);

/// How often it looks how long the log is.
const QUOTA_EVERY: Duration = Duration::from_secs(5);

/// What a run came to.
pub(crate) struct Archived {
    pub(crate) events: u64,
    /// What `polis.db` is shorter by.
    pub(crate) bytes: u64,
}

/// Seals the events that are older than `age` and gives the room that they leave back.
pub(crate) async fn archive(log: &LocalLog, age: Duration) -> Result<Archived, LogError> {
    let events = log.seal(ago(age)).await?;
    Ok(Archived { events, bytes: log.vacuum().await? })
}

/// Keeps the rules of `[retention]` for as long as it is polled. What fails is tried again with the next run.
pub(crate) async fn keep_up(config: &Config, store: &Store, societies: &Societies) {
    let (archiving, erasing) = (keep_archived(config, store), keep_erased(config, societies));
    tokio::join!(archiving, erasing, keep_quota(config, societies), follow_erasures(config, store, societies));
}

/// Has the societies of a process that is none of several nodes lose the texts that other processes have erased. A node opens such a society
/// again where it belongs.
async fn follow_erasures(config: &Config, store: &Store, societies: &Societies) {
    let (None, Some(placement)) = (&config.node, store.placement()) else { return std::future::pending().await };
    let mut ticks = ticks(placement.period());
    loop {
        ticks.tick().await;
        let outdated = placement.outdated().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "what other processes have erased could not be looked up; trying again");
            Vec::new()
        });
        for outdated in outdated {
            let working = societies.working();
            let Some(state) = working.iter().find(|state| *state.society().id() == outdated.society) else { continue };
            match state.society().forget_redacted().await {
                Ok(()) => placement.follow(&outdated),
                Err(error) => tracing::warn!(society = %outdated.society, %error, "erased texts stay in memory; trying again"),
            }
        }
    }
}

async fn keep_archived(config: &Config, store: &Store) {
    let (Some(age), Some(log)) = (config.retention.archive_after, store.local()) else { return std::future::pending().await };
    let mut ticks = ticks(EVERY);
    loop {
        ticks.tick().await;
        match archive(log, age).await {
            Ok(Archived { events, bytes }) => tracing::info!(events, bytes, "archived"),
            Err(error) => tracing::warn!(%error, "old events could not be archived"),
        }
    }
}

async fn keep_erased(config: &Config, societies: &Societies) {
    let Some(age) = config.retention.delete_after else { return std::future::pending().await };
    let mut ticks = ticks(EVERY);
    loop {
        ticks.tick().await;
        for state in societies.working() {
            let society = state.society();
            match erase_old(society, societies, age).await {
                Ok(0) => {}
                Ok(conversations) => tracing::info!(society = %society.id(), conversations, "old conversations were erased"),
                Err(error) => tracing::warn!(society = %society.id(), %error, "old conversations could not be erased"),
            }
        }
    }
}

/// Erases the conversations that are older than `age`.
async fn erase_old(society: &Society, societies: &Societies, age: Duration) -> Result<usize, ApiError> {
    let erased = society.erase_older(ago(age)).await?;
    if erased > 0 {
        // Forks that share the events have the texts in their states too.
        societies.forget_redacted(society.id()).await?;
    }
    Ok(erased)
}

async fn keep_quota(config: &Config, societies: &Societies) {
    if max_log_bytes(config).is_none() {
        return std::future::pending().await;
    }
    let mut ticks = ticks(QUOTA_EVERY);
    loop {
        ticks.tick().await;
        let beyond = beyond_quota(config);
        for state in societies.working() {
            state.society().take_requests(beyond.clone());
        }
    }
}

/// Why no new request is taken, if the log is longer than the settings allow.
pub(crate) fn beyond_quota(config: &Config) -> Option<Failure> {
    let (bytes, most) = (log_bytes(config), max_log_bytes(config)?);
    let message = format!(
        "the log has {} MB and max_log_mb below [retention] allows {}; open requests go on. Archive old events with `polis archive`, \
         erase conversations with `polis delete`, or allow more",
        bytes >> 20,
        most >> 20
    );
    (bytes > most).then(|| Failure::new(FailureCode::QuotaExceeded, message))
}

/// How many bytes the files of a log in the data directory may have.
pub(crate) fn max_log_bytes(config: &Config) -> Option<u64> {
    config.retention.max_log_bytes().filter(|_| config.store.is_none())
}

/// The length of the files of the log.
pub(crate) fn log_bytes(config: &Config) -> u64 {
    let length = |name| std::fs::metadata(config.data.join(name)).map_or(0, |file| file.len());
    length("polis.db") + length("polis.db-wal")
}

fn ticks(every: Duration) -> Interval {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// The time that is so long ago.
fn ago(age: Duration) -> Timestamp {
    let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    Timestamp(SystemClock::earliest().0.saturating_sub(age))
}
