//! What every [`MemoryTexts`] must do, whatever it is made of.

use std::sync::Arc;

use polis_domain::MemoryTextId;
use polis_ports::{Embedding, MemoryTexts, StoredText};

/// Runs every case, each on a fresh store that `make` gives; panics where the store breaks the contract.
pub async fn check(make: impl Fn() -> Arc<dyn MemoryTexts>) {
    a_text_is_read_back_and_a_key_keeps_its_text(&*make()).await;
    an_embedding_stands_next_to_its_text_and_is_replaced(&*make()).await;
    what_is_removed_is_gone_with_its_embedding(&*make()).await;
    keys_are_listed_in_order(&*make()).await;
}

fn id(name: &str) -> MemoryTextId {
    name.into()
}

async fn texts(store: &dyn MemoryTexts, ids: &[&str]) -> Vec<(String, String)> {
    let read = store.read(ids.iter().map(|name| id(name)).collect()).await.expect("the store reads");
    read.into_iter().map(|(id, stored)| (id.to_string(), stored.text.to_string())).collect()
}

async fn a_text_is_read_back_and_a_key_keeps_its_text(store: &dyn MemoryTexts) {
    store.put(&id("a"), "喜欢喝茶\n\0 \"and\" more").await.expect("the store writes");
    store.put(&id("a"), "another").await.expect("the store writes");
    store.put(&id("b"), "").await.expect("the store writes");
    let expected = vec![("a".to_owned(), "喜欢喝茶\n\0 \"and\" more".to_owned()), ("b".to_owned(), String::new())];
    assert_eq!(texts(store, &["b", "c", "a"]).await, expected);
}

async fn an_embedding_stands_next_to_its_text_and_is_replaced(store: &dyn MemoryTexts) {
    store.put(&id("a"), "one").await.expect("the store writes");
    for (model, vector) in [("first", vec![0.5, -1.25]), ("second", vec![3.0, f32::MIN_POSITIVE, 0.0])] {
        let embedding = Embedding { model: model.into(), vector };
        let embeddings = vec![(id("a"), embedding.clone()), (id("unknown"), embedding.clone())];
        store.set_embeddings(embeddings).await.expect("the store writes");
        let read = store.read(vec![id("a"), id("unknown")]).await.expect("the store reads");
        let expected = StoredText { text: "one".into(), embedding: Some(embedding) };
        assert_eq!(read.into_iter().collect::<Vec<_>>(), [(id("a"), expected)]);
    }
}

async fn what_is_removed_is_gone_with_its_embedding(store: &dyn MemoryTexts) {
    for name in ["a", "b"] {
        store.put(&id(name), name).await.expect("the store writes");
    }
    let embedding = Embedding { model: "m".into(), vector: vec![1.0] };
    store.set_embeddings(vec![(id("a"), embedding)]).await.expect("the store writes");
    store.remove(vec![id("a"), id("unknown")]).await.expect("the store removes");
    assert_eq!(texts(store, &["a", "b"]).await, [("b".to_owned(), "b".to_owned())]);
    store.put(&id("a"), "new").await.expect("the store writes");
    let read = store.read(vec![id("a")]).await.expect("the store reads");
    assert_eq!(read[&id("a")], StoredText { text: "new".into(), embedding: None });
}

async fn keys_are_listed_in_order(store: &dyn MemoryTexts) {
    assert_eq!(store.ids(None, 9).await, Ok(Vec::new()));
    for name in ["b", "茶", "a", "B", "aa"] {
        store.put(&id(name), name).await.expect("the store writes");
    }
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = store.ids(after, 2).await.expect("the store reads");
        after = page.last().cloned();
        if after.is_none() {
            break;
        }
        listed.extend(page);
    }
    assert_eq!(listed, ["B", "a", "aa", "b", "茶"].map(id));
}
