//! What is kept: put, listed, read in parts, from texts and from files of the workspace.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use polis_domain::{Artifact, ArtifactId, CallResult, ListedArtifact, Seq, Timestamp};
use polis_ports::{ArtifactStore, CallContext, Hasher, Listing, Toolbox};
use polis_testkit::MemoryArtifacts;
use polis_tools::{ToolRegistry, Workspace};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bench::{context, laid_out};

/// A society that names whatever its tools have made.
#[derive(Default)]
pub(crate) struct Named(Mutex<Vec<ListedArtifact>>);

impl Named {
    pub(crate) fn hear(&self, result: &CallResult) {
        let entry = |artifact: &Artifact| ListedArtifact {
            artifact: artifact.clone(),
            seq: Seq(1),
            at: Timestamp(1),
            agent: None,
            task: None,
            person: None,
        };
        self.0.lock().unwrap().extend(result.artifacts.iter().chain(&result.media).map(entry));
    }
}

#[async_trait]
impl Listing for Named {
    async fn list(&self, after: usize, limit: usize) -> (Vec<ListedArtifact>, usize) {
        let all = self.0.lock().unwrap();
        (all.iter().skip(after).take(limit).cloned().collect(), all.len())
    }

    async fn find(&self, id: &ArtifactId) -> Option<Artifact> {
        self.0.lock().unwrap().iter().map(|entry| &entry.artifact).find(|it| it.id == *id).cloned()
    }
}

struct Place {
    folder: TempDir,
    tool_registry: ToolRegistry,
    store: MemoryArtifacts,
    named: Arc<Named>,
}

impl Place {
    fn new(store: MemoryArtifacts) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tool_registry = laid_out(&Workspace::open(folder.path()).unwrap());
        Self { folder, tool_registry, store, named: Arc::default() }
    }

    async fn call(&self, tool: &str, arguments: Value) -> CallResult {
        let artifacts = ArtifactStore { store: Arc::new(self.store.clone()), listing: self.named.clone() };
        let context = CallContext { artifacts, ..context() };
        let result = self.tool_registry.call(tool, &arguments.to_string(), &context).await.unwrap();
        self.named.hear(&result);
        result
    }

    async fn read(&self, id: &str, offset: u64, limit: usize) -> String {
        let read = self.call("get_artifact", json!({ "id": id, "offset": offset, "limit": limit })).await;
        read.content.to_string()
    }
}

#[tokio::test]
async fn a_text_is_put_listed_and_read_in_parts_that_join() {
    let place = Place::new(MemoryArtifacts::new());
    let text = "长文\n".repeat(100);
    let put = place.call("put_artifact", json!({ "name": "notes.md", "content": text })).await;
    let artifact = &put.artifacts[0];
    assert_eq!(put.content.to_string(), format!("kept {artifact}"));
    assert_eq!((&*artifact.media_type, artifact.bytes), ("text/markdown; charset=utf-8", 700));
    let id = artifact.id.to_string();
    let listed = place.call("list_artifacts", json!({})).await.content;
    assert_eq!(*listed, *format!("{id} notes.md (text/markdown; charset=utf-8, 700 bytes)\n[these are 1 to 1 of 1]"));
    assert_eq!(place.read(&id, 0, 48 << 10).await, text);
    let (mut whole, mut offset) = (String::new(), 0);
    loop {
        let part = place.read(&id, offset, 100).await;
        let (text, note) = part.rsplit_once("\n[").unwrap();
        whole.push_str(text);
        match note.split_once("go on with offset ") {
            Some((_, next)) => offset = next.trim_end_matches(']').parse().unwrap(),
            None => break,
        }
    }
    assert_eq!(whole, text);
    assert!(place.read(&id, 700, 9).await.contains("ends before byte 700"));
}

#[tokio::test]
async fn a_picture_or_pdf_of_the_workspace_is_shown_to_the_model_and_other_bytes_are_only_described() {
    let place = Place::new(MemoryArtifacts::new());
    for (name, media_type) in [("a.png", "image/png"), ("b.pdf", "application/pdf"), ("c.mp3", "audio/mpeg")] {
        std::fs::write(place.folder.path().join(name), b"\x89PNG\0").unwrap();
        let read = place.call("read_file", json!({ "path": name })).await;
        let want = Artifact::new(Hasher::id_of(b"\x89PNG\0"), name, media_type, 5);
        assert_eq!((read.is_error, &*read.content, &*read.media), (false, &*format!("[{want}]"), &[want.clone()][..]));
        assert!(read.artifacts.is_empty(), "it was there before");
    }
    std::fs::write(place.folder.path().join("d.bin"), b"\x89\0").unwrap();
    let put = place.call("put_artifact", json!({ "path": "d.bin" })).await;
    let read = place.call("get_artifact", json!({ "id": put.artifacts[0].id })).await;
    assert!(read.is_error && read.content.contains("is not text") && read.media.is_empty(), "{}", read.content);
    assert!(place.call("read_file", json!({ "path": "d.bin" })).await.is_error);
}

#[tokio::test]
async fn a_file_of_any_kind_is_kept_as_it_is_now_and_a_picture_is_shown() {
    let place = Place::new(MemoryArtifacts::new());
    let bytes: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    std::fs::write(place.folder.path().join("picture.png"), &bytes).unwrap();
    let put = place.call("put_artifact", json!({ "path": "picture.png" })).await;
    std::fs::write(place.folder.path().join("picture.png"), "changed").unwrap();
    let artifact = &put.artifacts[0];
    assert_eq!((&*artifact.name, &*artifact.media_type, artifact.id), ("picture.png", "image/png", Hasher::id_of(&bytes)));
    let read = place.call("get_artifact", json!({ "id": artifact.id })).await;
    assert_eq!((read.is_error, &*read.content, &*read.media), (false, &*format!("[{artifact}]"), &[artifact.clone()][..]));
    let put =
        place.call("put_artifact", json!({ "path": "picture.png", "name": "x.bin", "mediaType": "application/zip" })).await;
    let read = place.call("get_artifact", json!({ "id": put.artifacts[0].id })).await;
    assert_eq!((read.is_error, read.media.len()), (false, 0), "it is text, whatever it is called");
    let gone = place.call("put_artifact", json!({ "path": "missing.txt", "name": "x" })).await;
    assert!(gone.is_error && gone.artifacts.is_empty());
}

#[tokio::test]
async fn what_nobody_names_or_what_is_damaged_is_not_given() {
    let place = Place::new(MemoryArtifacts::limited(100));
    let store: &dyn polis_ports::Artifacts = &place.store;
    let secret = store.put(b"of somebody else".as_slice().into()).await.unwrap();
    let read = place.call("get_artifact", json!({ "id": secret })).await;
    assert!(read.is_error && read.content.contains("there is no artifact"), "{}", read.content);
    let put = place.call("put_artifact", json!({ "name": "a", "content": "mine" })).await;
    place.store.spoil(put.artifacts[0].id);
    let read = place.call("get_artifact", json!({ "id": put.artifacts[0].id })).await;
    assert!(read.is_error && read.content.contains("is damaged"), "{}", read.content);
    let large = place.call("put_artifact", json!({ "name": "a", "content": "x".repeat(101) })).await;
    assert!(large.is_error && large.content.contains("100 bytes at most"), "{}", large.content);
}

#[tokio::test]
async fn a_long_list_goes_on_where_it_ended() {
    let place = Place::new(MemoryArtifacts::new());
    assert_eq!(&*place.call("list_artifacts", json!({})).await.content, "[there are 0 artifacts]");
    for n in 0..5 {
        place.call("put_artifact", json!({ "name": format!("{n}.txt"), "content": n.to_string() })).await;
    }
    let listed = place.call("list_artifacts", json!({ "after": 1, "limit": 2 })).await.content;
    assert!(listed.contains(" 1.txt (") && listed.contains(" 2.txt (") && !listed.contains(" 3.txt ("), "{listed}");
    assert!(listed.ends_with("[these are 2 to 3 of 5; go on with after 3]"), "{listed}");
}
