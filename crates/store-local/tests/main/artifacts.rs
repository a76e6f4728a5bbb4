//! Contents in files: the contract, limits, damage, and what a process that dies leaves behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use polis_domain::{ArtifactId, Timestamp};
use polis_ports::{ArtifactError, Artifacts, Hasher, StoredArtifact};
use polis_store_local::{ArtifactLimits, LocalArtifacts};
use polis_testkit::artifact_conformance;

use crate::support::{fresh_dir, wait};

fn limits() -> ArtifactLimits {
    ArtifactLimits { max_bytes: 1_000, ..ArtifactLimits::default() }
}

fn file_of(dir: &Path, id: &ArtifactId) -> PathBuf {
    let name = id.to_string();
    dir.join("artifacts").join(&name[..2]).join(&name[2..])
}

fn put(store: &LocalArtifacts, content: &[u8]) -> Result<ArtifactId, ArtifactError> {
    wait(store.put(content.into()))
}

fn read(store: &LocalArtifacts, id: &ArtifactId) -> Result<Vec<u8>, ArtifactError> {
    wait(store.read(id, 0, usize::MAX)).map(|window| window.bytes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_local_artifacts_keep_the_contract_of_artifacts() {
    let dirs = Mutex::new(Vec::new());
    let fresh = || {
        let dir = fresh_dir();
        let store: Arc<dyn Artifacts> = Arc::new(LocalArtifacts::open(dir.path(), limits()).unwrap());
        dirs.lock().unwrap().push(dir);
        store
    };
    artifact_conformance::check(fresh).await;
}

#[test]
fn a_content_lies_under_its_digest_and_is_there_after_a_restart() {
    let dir = fresh_dir();
    let id = put(&LocalArtifacts::open(dir.path(), limits()).unwrap(), b"abc").unwrap();
    let file = dir.path().join("artifacts/ba/7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(fs::read(&file).unwrap(), b"abc");
    assert_eq!(read(&LocalArtifacts::open(dir.path(), limits()).unwrap(), &id).unwrap(), b"abc");
}

#[test]
fn a_damaged_content_is_reported_not_given_and_healed_by_keeping_it_again() {
    let dir = fresh_dir();
    let large = ArtifactLimits::default();
    let store = LocalArtifacts::open(dir.path(), large).unwrap();
    for content in [b"short".to_vec(), vec![7; 3 << 20]] {
        let id = put(&store, &content).unwrap();
        assert_eq!(read(&store, &id).unwrap().len(), content.len());
        let mut bad = content.clone();
        bad[2] ^= 1;
        for damage in [bad, content[1..].to_vec(), Vec::new(), [&content[..], b"!"].concat()] {
            fs::write(file_of(dir.path(), &id), damage).unwrap();
            assert_eq!(wait(store.read(&id, 0, 1)), Err(ArtifactError::Damaged(id)), "also the part that is as it was");
        }
        assert_eq!(put(&store, &content).unwrap(), id);
        assert_eq!(read(&store, &id).unwrap().len(), content.len());
    }
}

#[test]
fn there_are_limits_on_how_many_and_how_much_and_what_is_there_takes_no_more_room() {
    let dir = fresh_dir();
    let few = ArtifactLimits { max_count: 2, ..limits() };
    let store = LocalArtifacts::open(dir.path(), few).unwrap();
    put(&store, b"one").unwrap();
    put(&store, b"two").unwrap();
    put(&store, b"one").unwrap();
    let full = put(&store, b"three").unwrap_err();
    assert_eq!(full, ArtifactError::NoRoom("there are 2 already".to_owned()));
    assert_eq!(full.code(), "artifacts_full");
    // Counted anew from the files.
    let again = LocalArtifacts::open(dir.path(), few).unwrap();
    assert!(put(&again, b"three").is_err());
    let tight = ArtifactLimits { max_total_bytes: 10, ..limits() };
    let store = LocalArtifacts::open(dir.path(), tight).unwrap();
    put(&store, b"1234").unwrap();
    assert_eq!(put(&store, b"5").unwrap_err(), ArtifactError::NoRoom("10 of 10 bytes are used".to_owned()));
    let none: Vec<_> = fs::read_dir(dir.path().join("artifacts/drafts")).unwrap().collect();
    assert!(none.is_empty(), "a draft that came to nothing is gone: {none:?}");
}

#[test]
fn files_that_are_no_contents_are_not_listed_and_stay() {
    let dir = fresh_dir();
    let store = LocalArtifacts::open(dir.path(), limits()).unwrap();
    let id = put(&store, b"ours").unwrap();
    let others = [dir.path().join("artifacts/README"), file_of(dir.path(), &id).with_file_name("strange")];
    others.iter().for_each(|file| fs::write(file, "not ours").unwrap());
    let modified = fs::metadata(file_of(dir.path(), &id)).unwrap().modified().unwrap();
    let listed = wait(store.list(None, 9)).unwrap();
    let at = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64;
    assert_eq!(listed, [StoredArtifact { id, bytes: 4, at: Timestamp(at) }]);
    assert_eq!(wait(store.remove(vec![id], Timestamp(at - 60_000))).unwrap(), []);
    assert_eq!(wait(store.remove(vec![id], Timestamp(at + 1))).unwrap(), [id]);
    assert!(others.iter().all(|file| file.exists()));
}

#[test]
fn drafts_of_a_process_that_died_are_removed_and_its_contents_stay() {
    let dir = fresh_dir();
    let store = LocalArtifacts::open(dir.path(), limits()).unwrap();
    let id = put(&store, b"kept").unwrap();
    let mut draft = store.draft().unwrap();
    draft.write(b"half").unwrap();
    // As a kill leaves it: nobody cleans up.
    std::mem::forget(draft);
    assert_eq!(fs::read_dir(dir.path().join("artifacts/drafts")).unwrap().count(), 1);
    let store = LocalArtifacts::open(dir.path(), limits()).unwrap();
    assert!(!dir.path().join("artifacts/drafts").exists());
    assert_eq!(read(&store, &id).unwrap(), b"kept");
    assert_eq!(read(&store, &Hasher::id_of(b"half")), Err(ArtifactError::Unknown(Hasher::id_of(b"half"))));
}
