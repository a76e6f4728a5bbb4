//! What every [`Artifacts`] must do, whatever it is made of.

use std::sync::Arc;

use polis_domain::{ArtifactId, Timestamp};
use polis_ports::{ArtifactError, Artifacts, Hasher};

/// Runs every case, each on a fresh store that `make` gives and that takes contents of at most 1,000 bytes; panics where the
/// store breaks the contract.
pub async fn check(make: impl Fn() -> Arc<dyn Artifacts>) {
    what_was_kept_is_read_back_by_its_digest(&*make()).await;
    a_part_is_read_alone(&*make()).await;
    a_draft_is_nothing_until_it_is_kept(&*make()).await;
    what_is_too_large_leaves_the_draft_as_it_was(&*make()).await;
    many_keep_the_same_at_once(make()).await;
    what_is_stored_is_listed_by_its_id(&*make()).await;
    what_is_removed_is_gone_and_may_be_stored_again(&*make()).await;
}

async fn what_was_kept_is_read_back_by_its_digest(store: &dyn Artifacts) {
    for content in [b"".as_slice(), b"one", b"two", b"one", &[0, 255, 10]] {
        let id = store.put(content.into()).await.expect("the store does it");
        assert_eq!(id, Hasher::id_of(content));
        assert_eq!(store.read(&id, 0, usize::MAX).await.expect("the store does it").bytes, content);
    }
    let unknown = Hasher::id_of(b"never kept");
    assert_eq!(store.read(&unknown, 0, 1).await, Err(ArtifactError::Unknown(unknown)));
}

async fn a_part_is_read_alone(store: &dyn Artifacts) {
    let id = store.put(b"0123456789".as_slice().into()).await.expect("the store does it");
    let parts = [(0, 3, "012"), (8, 99, "89"), (10, 1, ""), (u64::MAX, usize::MAX, ""), (5, 0, "")];
    for (offset, limit, want) in parts {
        let window = store.read(&id, offset, limit).await.expect("the store does it");
        assert_eq!((window.bytes.as_slice(), window.total), (want.as_bytes(), 10), "{limit} from {offset}");
    }
}

async fn a_draft_is_nothing_until_it_is_kept(store: &dyn Artifacts) {
    let id = Hasher::id_of(b"drafted");
    let mut draft = store.draft().expect("the store does it");
    draft.write(b"draf").expect("the store does it");
    draft.write(b"ted").expect("the store does it");
    assert_eq!(store.read(&id, 0, 1).await, Err(ArtifactError::Unknown(id)));
    drop(draft);
    assert_eq!(store.read(&id, 0, 1).await, Err(ArtifactError::Unknown(id)));
    let mut draft = store.draft().expect("the store does it");
    draft.write(b"drafted").expect("the store does it");
    assert_eq!(draft.keep(), Ok((id, 7)));
    assert_eq!(store.read(&id, 0, 99).await.expect("the store does it").bytes, b"drafted");
}

async fn what_is_too_large_leaves_the_draft_as_it_was(store: &dyn Artifacts) {
    let too_large = ArtifactError::TooLarge { limit: 1_000 };
    assert_eq!(store.put(vec![0; 1_001].into()).await, Err(too_large.clone()));
    let mut draft = store.draft().expect("the store does it");
    draft.write(&[7; 999]).expect("the store does it");
    assert_eq!(draft.write(&[7; 2]), Err(too_large));
    draft.write(&[7; 1]).expect("the store does it");
    assert_eq!(draft.keep(), Ok((Hasher::id_of(&[7; 1_000]), 1_000)));
}

async fn many_keep_the_same_at_once(store: Arc<dyn Artifacts>) {
    let keep = |_| {
        let store = store.clone();
        tokio::spawn(async move { store.put(b"the same".as_slice().into()).await.expect("the store does it") })
    };
    let kept: Vec<_> = (0..16).map(keep).collect();
    for kept in kept {
        let id = kept.await.expect("the store does it");
        assert_eq!(store.read(&id, 0, 99).await.expect("the store does it").bytes, b"the same");
    }
}

async fn what_is_stored_is_listed_by_its_id(store: &dyn Artifacts) {
    assert_eq!(store.list(None, 9).await, Ok(Vec::new()));
    let mut stored = Vec::new();
    for length in 0..20_u8 {
        stored.push((store.put(vec![length; length.into()].into()).await.expect("the store does it"), u64::from(length)));
    }
    stored.sort();
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = store.list(after, 7).await.expect("the store does it");
        assert!(page.len() <= 7);
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        listed.extend(page.iter().map(|it| (it.id, it.bytes)));
    }
    assert_eq!(listed, stored);
}

async fn what_is_removed_is_gone_and_may_be_stored_again(store: &dyn Artifacts) {
    let later = Timestamp(1 << 45);
    let [one, two] = [store.put(b"one".as_slice().into()).await, store.put(b"two".as_slice().into()).await]
        .map(|put| put.expect("the store does it"));
    let unknown = Hasher::id_of(b"never kept");
    let sorted = |mut ids: Vec<ArtifactId>| {
        ids.sort();
        ids
    };
    let removed = store.remove(vec![one, unknown], later).await.expect("the store does it");
    assert_eq!(sorted(removed), sorted(vec![one, unknown]));
    assert_eq!(store.read(&one, 0, 1).await, Err(ArtifactError::Unknown(one)));
    assert_eq!(store.read(&two, 0, 9).await.expect("the store does it").bytes, b"two");
    assert_eq!(store.put(b"one".as_slice().into()).await, Ok(one));
    assert_eq!(store.read(&one, 0, 9).await.expect("the store does it").bytes, b"one");
}
