//! Texts of memories in files.

use std::sync::Arc;

use polis_ports::{Embedding, MemoryTexts};
use polis_store_local::LocalMemoryTexts;
use polis_testkit::{InMemoryTexts, memory_conformance};

#[tokio::test]
async fn both_stores_keep_the_contract() {
    memory_conformance::check(|| Arc::new(InMemoryTexts::default())).await;
    let folders = std::cell::RefCell::new(Vec::new());
    memory_conformance::check(|| {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalMemoryTexts::new(dir.path());
        folders.borrow_mut().push(dir);
        Arc::new(store)
    })
    .await;
}

/// The bytes of all files of a folder.
fn bytes_of(dir: &std::path::Path) -> Vec<u8> {
    std::fs::read_dir(dir).unwrap().flat_map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect()
}

fn has(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

#[tokio::test]
async fn a_removed_text_is_in_no_file_any_more() {
    let dir = tempfile::tempdir().unwrap();
    let store = LocalMemoryTexts::new(dir.path());
    // Longer than a page, so that overflow pages are among what is freed.
    let secret = format!("begin-of-secret {} end-of-secret", "x".repeat(4_000));
    for n in 0..50 {
        let text = if n == 25 { secret.clone() } else { format!("memory number {n} stays") };
        store.put(&format!("t{n}").into(), &text).await.unwrap();
    }
    let embedding = Embedding { model: "secret-model-of-25".into(), vector: vec![1.0; 900] };
    store.set_embeddings(vec![("t25".into(), embedding)]).await.unwrap();
    for word in ["begin-of-secret", "end-of-secret", "secret-model-of-25"] {
        assert!(has(&bytes_of(dir.path()), word), "{word} is not found where it should be");
    }
    store.remove(vec!["t25".into()]).await.unwrap();
    for word in ["begin-of-secret", "end-of-secret", "secret-model-of-25", "xxxxxxxx"] {
        assert!(!has(&bytes_of(dir.path()), word), "{word} is still in a file");
    }
    assert!(has(&bytes_of(dir.path()), "memory number 26 stays"));
}

#[tokio::test]
async fn a_store_without_texts_makes_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = LocalMemoryTexts::new(dir.path());
    assert!(store.read(vec!["a".into()]).await.unwrap().is_empty());
    store.remove(vec!["a".into()]).await.unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn texts_outlive_the_process_and_a_newer_store_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    LocalMemoryTexts::new(dir.path()).put(&"a".into(), "tea").await.unwrap();
    let read = LocalMemoryTexts::new(dir.path()).read(vec!["a".into()]).await.unwrap();
    assert_eq!(&*read[&"a".into()].text, "tea");
    let connection = rusqlite::Connection::open(dir.path().join("memory.db")).unwrap();
    connection.pragma_update(None, "user_version", 2).unwrap();
    let refused = LocalMemoryTexts::new(dir.path()).read(vec!["a".into()]).await.unwrap_err();
    assert!(refused.to_string().contains("newer polis"), "{refused}");
}
