//! A WAL that ends in the middle of a commit: nobody was told of that commit, so it is cut off; a commit that somebody was
//! told of must be there.

use polis_domain::{Recorded, Seq};
use polis_ports::Log;
use polis_store_local::LocalLog;

use crate::support::{Files, all, batch_after, damaged, files, fresh_dir, main_society, put, set_aside};

/// What a directory held right after a commit was acknowledged.
struct Moment {
    files: Files,
    events: Vec<Recorded>,
}

impl Moment {
    fn wal(&self) -> &[u8] {
        &self.files["polis.db-wal"]
    }

    /// The same with another WAL.
    fn files_with(&self, wal: &[u8]) -> Files {
        let mut files = self.files.clone();
        files["polis.db-wal"] = wal.to_vec();
        files
    }
}

/// A dozen commits, and the moments after each.
fn moments() -> Vec<Moment> {
    let dir = fresh_dir();
    let log = LocalLog::open(dir.path()).unwrap();
    let mut events = Vec::new();
    (0..12)
        .map(|_| {
            let batch = batch_after(events.len() as u64);
            crate::support::wait(log.append(&main_society(), Seq(events.len() as u64), &batch)).unwrap();
            events.extend(batch.iter().map(|recorded| Recorded::clone(recorded)));
            Moment { files: files(dir.path()), events: events.clone() }
        })
        .collect()
}

/// Both ends, their neighbours, and some places between.
fn cuts(from: usize, to: usize) -> Vec<usize> {
    let mut cuts: Vec<usize> = (0..6).map(|n| from + (to - from) * n / 6).collect();
    cuts.extend([from + 1, from + 23, from + 24, to - 1]);
    cuts.retain(|cut| *cut < to);
    cuts
}

#[test]
fn a_torn_commit_that_nobody_was_told_of_is_cut_off() {
    let moments = moments();
    for pair in moments.windows(2) {
        let [acknowledged, torn] = pair else { unreachable!("windows of two") };
        assert!(torn.wal().starts_with(acknowledged.wal()), "the WAL only grows here");
        for cut in cuts(acknowledged.wal().len(), torn.wal().len()) {
            let dir = fresh_dir();
            put(dir.path(), &acknowledged.files_with(&torn.wal()[..cut]));
            let log = LocalLog::open(dir.path()).unwrap();
            assert_eq!(all(&log, &main_society()).unwrap(), acknowledged.events, "cut at {cut}");
            let next = batch_after(acknowledged.events.len() as u64);
            crate::support::wait(log.append(&main_society(), Seq(acknowledged.events.len() as u64), &next)).unwrap();
        }
    }
}

#[test]
fn a_commit_that_is_whole_but_that_nobody_was_told_of_stays() {
    let moments = moments();
    for pair in moments.windows(2) {
        let [acknowledged, whole] = pair else { unreachable!("windows of two") };
        let dir = fresh_dir();
        put(dir.path(), &acknowledged.files_with(whole.wal()));
        let log = LocalLog::open(dir.path()).unwrap();
        assert_eq!(all(&log, &main_society()).unwrap(), whole.events);
    }
}

#[test]
fn the_loss_of_a_commit_that_somebody_was_told_of_is_noticed() {
    let moments = moments();
    let mut before = 0;
    for acknowledged in &moments {
        for cut in cuts(before, acknowledged.wal().len()) {
            let dir = fresh_dir();
            put(dir.path(), &acknowledged.files_with(&acknowledged.wal()[..cut]));
            let found = files(dir.path());
            let text = damaged(LocalLog::open(dir.path()));
            assert!(text.contains("acknowledged are missing"), "cut at {cut}: {text}");
            assert_eq!(files(&set_aside(dir.path())[0]), found, "cut at {cut}");
        }
        before = acknowledged.wal().len();
    }
}

#[test]
fn a_lost_wal_or_a_lost_database_is_noticed() {
    let acknowledged = moments().pop().unwrap();
    for lost in ["polis.db-wal", "polis.db"] {
        let mut found = acknowledged.files.clone();
        found.0.remove(lost);
        let dir = fresh_dir();
        put(dir.path(), &found);
        damaged(LocalLog::open(dir.path()));
        assert_eq!(files(&set_aside(dir.path())[0]), found, "{lost}");
    }
    let mut found = acknowledged.files.clone();
    found.0.retain(|name, _| name == "polis.db-wal");
    let dir = fresh_dir();
    put(dir.path(), &found);
    damaged(LocalLog::open(dir.path()));
    assert_eq!(files(&set_aside(dir.path())[0]), found, "only the WAL is left");
}
