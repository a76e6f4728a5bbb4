//! Filling a log, reading it back, and keeping the files of its directory to compare or to put elsewhere.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::ops::{Index, IndexMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polis_domain::{Recorded, Seq, SocietyId};
use polis_ports::{Log, LogError, NewSnapshot, Snapshot, StoredEntry};
use polis_store_local::LocalLog;
use polis_testkit::conformance::event;
use tempfile::TempDir;

/// The society of most tests.
pub(crate) fn main_society() -> SocietyId {
    SocietyId::from("main")
}

/// A directory of its own, in memory where that can be had: these tests look at what is written, not at how fast it lands.
pub(crate) fn fresh_dir() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Waits for a future, outside of any runtime.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// The batch that follows event `seq`: sizes and threads differ from batch to batch, some bodies span several pages.
pub(crate) fn batch_after(seq: u64) -> Vec<Arc<Recorded>> {
    let thread = |n: u64| if n.is_multiple_of(5) { None } else { Some(format!("thread-{}", n % 3)) };
    let text = |n: u64| if n.is_multiple_of(7) { noise(n, 10_000) } else { format!("message {n}") };
    (seq + 1..=seq + 1 + seq % 3).map(|n| event(n, thread(n).as_deref(), &text(n))).collect()
}

/// A text that cannot be packed well.
pub(crate) fn noise(seed: u64, bytes: usize) -> String {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b' ' + (state >> 33) as u8 % 94).to_string().replace(['"', '\\'], "x")
    };
    (0..bytes).map(|_| next()).collect()
}

/// Appends whole batches until the society has at least `count` events; gives back all that were appended.
pub(crate) fn fill(log: &LocalLog, count: u64) -> Vec<Recorded> {
    let mut written = Vec::new();
    while (written.len() as u64) < count {
        let seq = written.len() as u64;
        let batch = batch_after(seq);
        wait(log.append(&main_society(), Seq(seq), &batch)).unwrap();
        written.extend(batch.iter().map(|recorded| Recorded::clone(recorded)));
    }
    written
}

/// All events of a society.
pub(crate) fn all(log: &LocalLog, society: &SocietyId) -> Result<Vec<Recorded>, LogError> {
    wait(log.read(society, Seq(0), usize::MAX))
}

/// Files with their bytes, by name.
#[derive(Clone, PartialEq, Default)]
pub(crate) struct Files(pub(crate) BTreeMap<String, Vec<u8>>);

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sums = self.0.iter().map(|(name, bytes)| (name, format!("{} bytes, {:08x}", bytes.len(), crc32fast::hash(bytes))));
        f.debug_map().entries(sums).finish()
    }
}

impl Index<&str> for Files {
    type Output = Vec<u8>;

    fn index(&self, name: &str) -> &Vec<u8> {
        &self.0[name]
    }
}

impl IndexMut<&str> for Files {
    fn index_mut(&mut self, name: &str) -> &mut Vec<u8> {
        self.0.entry(name.to_owned()).or_default()
    }
}

/// The files of a directory, but for the lock and those without content that SQLite makes at each opening.
pub(crate) fn files(dir: &Path) -> Files {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    let named = files.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()));
    let empty_wal = |name: &str, bytes: &[u8]| name == "polis.db-wal" && bytes.is_empty();
    let kept = named.filter(|(name, bytes)| name != "polis.db-shm" && name != "lock" && !empty_wal(name, bytes));
    Files(kept.collect())
}

/// Puts files into a directory.
pub(crate) fn put(dir: &Path, files: &Files) {
    for (name, bytes) in &files.0 {
        fs::write(dir.join(name), bytes).unwrap();
    }
}

/// The text of a refusal as damaged.
#[track_caller]
pub(crate) fn damaged(result: Result<LocalLog, LogError>) -> String {
    match result {
        Err(LogError::Damaged(text)) => text,
        Err(other) => panic!("expected damage, got {other:?}"),
        Ok(_) => panic!("expected damage, but it opened"),
    }
}

/// The folders into which damaged files were moved.
pub(crate) fn set_aside(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let mut folders: Vec<_> =
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("damaged-")).map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

/// A snapshot that replaces all there is.
pub(crate) fn new_snapshot(snapshot: &Snapshot, entries: &[StoredEntry]) -> NewSnapshot {
    let (body, entries) = (snapshot.body.clone(), entries.to_vec());
    NewSnapshot { seq: snapshot.seq, version: snapshot.version, after: None, write: Box::new(move || (body, entries)) }
}
