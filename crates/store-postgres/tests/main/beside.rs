//! What is stored beside the log: artifacts, the texts of memories, documents.

use std::sync::Arc;

use polis_domain::{ArtifactId, Timestamp};
use polis_ports::{ArtifactError, ArtifactLimits, Artifacts, Documents, Hasher, MemoryTexts};
use polis_store_postgres::{PostgresArtifacts, PostgresLog};
use polis_testkit::{artifact_conformance, document_conformance, memory_conformance};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use crate::server::{Logs as _, Server};

/// A log of a fresh schema, which the stores beside it need as long as they are used.
fn fresh(server: &Server) -> &'static PostgresLog {
    let schema = server.fresh_schema();
    Box::leak(Box::new(block_in_place(|| Handle::current().block_on(server.log(&schema)))))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stores_beside_the_log_keep_their_contracts() {
    let Some(server) = Server::own("beside::the_stores_beside_the_log_keep_their_contracts") else { return };
    let limits = ArtifactLimits { max_bytes: 1_000, ..ArtifactLimits::default() };
    artifact_conformance::check(|| -> Arc<dyn Artifacts> { Arc::new(fresh(&server).artifacts(limits)) }).await;
    memory_conformance::check(|| -> Arc<dyn MemoryTexts> { Arc::new(fresh(&server).memory_texts()) }).await;
    document_conformance::check(|| -> Arc<dyn Documents> { Arc::new(fresh(&server).documents()) }).await;
}

/// No two chunks of it are alike.
fn long(bytes: usize) -> Vec<u8> {
    (0..bytes.div_ceil(4)).flat_map(|n| (n as u32).to_le_bytes()).take(bytes).collect()
}

async fn part(store: &PostgresArtifacts, id: &ArtifactId, offset: u64, limit: usize) -> Result<Vec<u8>, ArtifactError> {
    store.read(id, offset, limit).await.map(|window| window.bytes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_content_is_stored_in_chunks_and_read_in_parts() {
    let Some(server) = Server::shared("beside::a_long_content_is_stored_in_chunks_and_read_in_parts") else { return };
    let schema = server.fresh_schema();
    let count = |what: &str| block_in_place(|| server.psql(&format!("SELECT count(*) FROM {schema}.{what}")));
    let log = server.log(&schema).await;
    let store = log.artifacts(ArtifactLimits::default());
    const MIB: usize = 1 << 20;
    for (bytes, chunks) in [(3 * MIB + 7, "4"), (2 * MIB, "2"), (MIB, "1"), (MIB + 1, "2")] {
        let content = long(bytes);
        let id = store.put(content.clone().into()).await.unwrap();
        // Another node sees it, and one that has seen it to be whole reads only what is asked for.
        let another = log.artifacts(ArtifactLimits::default());
        for store in [&store, &another, &another] {
            for (offset, limit) in [(0, 9), (MIB - 3, 6), (MIB / 2, bytes), (bytes - 1, 9), (bytes, 9), (0, usize::MAX)] {
                let end = bytes.min(offset.saturating_add(limit));
                assert!(part(store, &id, offset as u64, limit).await.unwrap() == content[offset..end], "{limit} from {offset}");
            }
        }
        assert_eq!(count("artifact_chunks"), chunks);
        // In pieces as they come, and again: the chunks of before are gone.
        let mut draft = store.draft().unwrap();
        content.chunks(300_001).for_each(|piece| draft.write(piece).unwrap());
        assert_eq!(draft.keep().unwrap(), (id, bytes as u64));
        assert_eq!(count("artifact_chunks"), chunks);
        assert!(part(&store, &id, 0, usize::MAX).await.unwrap() == content);
        assert_eq!(store.remove(vec![id], Timestamp(1 << 45)).await, Ok(vec![id]));
        assert_eq!((count("artifacts"), count("artifact_chunks")), ("0".to_owned(), "0".to_owned()));
    }
    let mut dropped = store.draft().unwrap();
    dropped.write(&long(MIB + 1)).unwrap();
    assert_eq!(count("artifact_chunks"), "1");
    drop(dropped);
    while count("artifact_chunks") != "0" {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_content_is_reported_not_given_and_healed_by_storing_it_again() {
    let test = "beside::a_damaged_content_is_reported_not_given_and_healed_by_storing_it_again";
    let Some(server) = Server::shared(test) else { return };
    let schema = server.fresh_schema();
    let (log, contents) = (server.log(&schema).await, [b"short".to_vec(), long(2_500_000)]);
    for content in contents {
        for damage in [
            "UPDATE artifact_chunks SET body = set_byte(body, 2, get_byte(body, 2) # 1)",
            "UPDATE artifact_chunks SET body = substring(body FROM 2)",
            "DELETE FROM artifact_chunks WHERE number = 0",
            "UPDATE artifact_chunks SET number = number + 1 WHERE number = (SELECT max(number) FROM artifact_chunks)",
            "UPDATE artifacts SET bytes = bytes - 1",
        ] {
            let id = log.artifacts(ArtifactLimits::default()).put(content.clone().into()).await.unwrap();
            block_in_place(|| server.psql(&format!("SET search_path = {schema}; {damage}")));
            let store = log.artifacts(ArtifactLimits::default());
            assert_eq!(part(&store, &id, 1, 1).await, Err(ArtifactError::Damaged(id)), "{damage}");
            assert_eq!(store.put(content.clone().into()).await, Ok(id));
            assert!(part(&store, &id, 0, usize::MAX).await.unwrap() == content);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_are_limits_on_how_many_and_how_much_for_all_nodes_together() {
    let test = "beside::there_are_limits_on_how_many_and_how_much_for_all_nodes_together";
    let Some(server) = Server::shared(test) else { return };
    let log = server.log(&server.fresh_schema()).await;
    let put = async |limits, content: &[u8]| log.artifacts(limits).put(content.into()).await;
    let few = ArtifactLimits { max_count: 2, ..ArtifactLimits::default() };
    for content in [b"one", b"two", b"one"] {
        put(few, content).await.unwrap();
    }
    assert_eq!(put(few, b"three").await, Err(ArtifactError::NoRoom("there are 2 already".to_owned())));
    let tight = ArtifactLimits { max_total_bytes: 10, ..ArtifactLimits::default() };
    put(tight, b"1234").await.unwrap();
    assert_eq!(put(tight, b"5").await, Err(ArtifactError::NoRoom("10 of 10 bytes are used".to_owned())));
    put(tight, b"1234").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drafts_of_a_process_that_died_are_removed_when_they_are_old() {
    let test = "beside::drafts_of_a_process_that_died_are_removed_when_they_are_old";
    let Some(server) = Server::shared(test) else { return };
    let schema = server.fresh_schema();
    let log = server.log(&schema).await;
    let kept = log.artifacts(ArtifactLimits::default()).put(long(1_500_000).into()).await.unwrap();
    let [old, young] = [(); 2].map(|()| {
        let mut draft = log.artifacts(ArtifactLimits::default()).draft().unwrap();
        draft.write(&long(1_500_000)).unwrap();
        draft
    });
    // Those of the content and of the first draft.
    block_in_place(|| server.psql(&format!("UPDATE {schema}.artifact_chunks SET at = 0 WHERE content < 3")));
    let store = log.artifacts(ArtifactLimits::default());
    store.put(long(1_200_000).into()).await.unwrap();
    let left =
        block_in_place(|| server.psql(&format!("SELECT DISTINCT content FROM {schema}.artifact_chunks ORDER BY content")));
    assert_eq!(left, "1\n3\n4");
    assert!(part(&store, &kept, 0, usize::MAX).await.unwrap() == long(1_500_000));
    // One that took so long does not become a content without its beginning.
    let lost = old.keep().unwrap_err();
    assert!(matches!(&lost, ArtifactError::Failed(why) if why.contains("took too long")), "{lost}");
    assert_eq!(young.keep().unwrap(), (kept, 1_500_000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_stored_outlives_a_kill_of_the_server_and_what_was_not_is_stored_afterwards() {
    let test = "beside::what_was_stored_outlives_a_kill_of_the_server_and_what_was_not_is_stored_afterwards";
    let Some(server) = Server::own(test) else { return };
    let schema = server.fresh_schema();
    let log = server.log(&schema).await;
    let (store, texts, documents) = (log.artifacts(ArtifactLimits::default()), log.memory_texts(), log.documents());
    let id = store.put(b"one".as_slice().into()).await.unwrap();
    texts.put(&"a".into(), "tea").await.unwrap();
    documents.replace("d", None, Some(b"1")).await.unwrap();
    block_in_place(|| server.kill());
    let failed = store.put(b"two".as_slice().into()).await.unwrap_err();
    assert_eq!(failed.code(), "artifacts_failed");
    assert_eq!(texts.put(&"b".into(), "tea").await.unwrap_err().code(), "memory_failed");
    assert!(documents.read("d").await.is_err());
    block_in_place(|| server.start());
    assert_eq!(part(&store, &id, 0, 9).await.unwrap(), b"one");
    assert_eq!(store.put(b"two".as_slice().into()).await, Ok(Hasher::id_of(b"two")));
    assert_eq!(&*texts.read(vec!["a".into()]).await.unwrap()[&"a".into()].text, "tea");
    documents.replace("d", Some(b"1"), Some(b"2")).await.unwrap();
    // Rows that were removed are not in the tables, also not as dead ones.
    texts.remove(vec!["a".into()]).await.unwrap();
    store.remove(vec![id, Hasher::id_of(b"two")], Timestamp(1 << 45)).await.unwrap();
    for table in ["memory_texts", "artifacts", "artifact_chunks"] {
        let left = format!("SELECT pg_relation_size('{schema}.{table}')");
        assert_eq!(block_in_place(|| server.psql(&left)), "0", "{table}");
    }
}
