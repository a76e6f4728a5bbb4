//! What all [`Documents`] must do, whatever they are made of.

use std::sync::Arc;

use polis_ports::{DocumentError, Documents};

/// Runs every case, each on a fresh store that `make` gives; panics where the store breaks the contract.
pub async fn check(make: impl Fn() -> Arc<dyn Documents>) {
    a_document_is_read_back_replaced_and_removed(&*make()).await;
    what_was_not_read_is_not_replaced(&*make()).await;
    of_many_that_replace_the_same_one_does(make()).await;
    the_documents_of_a_folder_are_listed(&*make()).await;
}

const NAME: &str = "tokens.json";

async fn a_document_is_read_back_replaced_and_removed(store: &dyn Documents) {
    assert_eq!(store.read(NAME).await, Ok(None));
    let bodies: [&[u8]; 3] = [b"one\n", b"", "二 \0".as_bytes()];
    let mut old = None;
    for body in bodies {
        assert_eq!(store.replace(NAME, old, Some(body)).await, Ok(()));
        assert_eq!(store.read(NAME).await, Ok(Some(body.to_vec())));
        old = Some(body);
    }
    assert_eq!(store.read("other.json").await, Ok(None));
    assert_eq!(store.replace(NAME, old, None).await, Ok(()));
    assert_eq!(store.read(NAME).await, Ok(None));
    assert_eq!(store.replace(NAME, None, None).await, Ok(()));
}

async fn what_was_not_read_is_not_replaced(store: &dyn Documents) {
    let changed = Err(DocumentError::Changed(NAME.to_owned()));
    assert_eq!(store.replace(NAME, Some(b"old"), Some(b"new")).await, changed);
    store.replace(NAME, None, Some(b"one")).await.expect("the store writes");
    assert_eq!(store.replace(NAME, None, Some(b"two")).await, changed);
    assert_eq!(store.replace(NAME, Some(b"old"), Some(b"two")).await, changed);
    assert_eq!(store.replace(NAME, Some(b"old"), None).await, changed);
    assert_eq!(store.read(NAME).await, Ok(Some(b"one".to_vec())));
}

async fn of_many_that_replace_the_same_one_does(store: Arc<dyn Documents>) {
    let replace = |n: u8| {
        let store = store.clone();
        tokio::spawn(async move { store.replace(NAME, None, Some(&[n])).await })
    };
    let tried: Vec<_> = (0..16).map(replace).collect();
    let mut done = 0;
    for tried in tried {
        done += usize::from(tried.await.expect("the store answers").is_ok());
    }
    assert_eq!(done, 1);
}

async fn the_documents_of_a_folder_are_listed(store: &dyn Documents) {
    assert_eq!(store.names("logins/").await, Ok(Vec::new()));
    for name in ["logins/b_%.json", "logins/a.json", NAME, "login", "loginsX/c.json"] {
        store.replace(name, None, Some(b"{}")).await.expect("the store writes");
    }
    assert_eq!(store.names("logins/").await, Ok(vec!["logins/a.json".to_owned(), "logins/b_%.json".to_owned()]));
    assert_eq!(store.names("_ogins/").await, Ok(Vec::new()));
}
