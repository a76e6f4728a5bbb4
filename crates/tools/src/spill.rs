//! Long results: the model reads the beginning and the end, and an artifact holds all of it.

use std::sync::Arc;

use polis_domain::Artifact;
use polis_ports::{ArtifactError, Artifacts, Draft};

use crate::results::{HeadTail, MAX_RESULT_BYTES};

/// The media type of what programs print and pages say.
pub(crate) const PLAIN: &str = "text/plain; charset=utf-8";

/// Something that comes chunk by chunk and may have any length. Writing blocks as soon as it is long.
pub(crate) struct Spill {
    most: usize,
    /// Most bytes of it that are kept.
    limit: u64,
    excerpt: HeadTail,
    store: Arc<dyn Artifacts>,
    state: SpillState,
}

/// Where the whole text is.
enum SpillState {
    /// In what is shown.
    InMemory,
    /// On its way to an artifact.
    Spilling(Box<dyn Draft>),
    /// It became longer than an artifact may be, or than what is kept of it.
    Truncated(Box<dyn Draft>),
    /// Nowhere.
    Lost(ArtifactError),
}

impl Spill {
    /// Shows `most` bytes.
    pub(crate) fn new(most: usize, store: Arc<dyn Artifacts>) -> Self {
        Self { most: most / 2 * 2, limit: u64::MAX, excerpt: HeadTail::new(most), store, state: SpillState::InMemory }
    }

    /// Keeps no more than the first `limit` bytes, but always as much as is shown.
    pub(crate) fn with_limit(self, limit: u64) -> Self {
        Self { limit: limit.max(self.most as u64), ..self }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if matches!(self.state, SpillState::InMemory) && self.excerpt.total() + bytes.len() as u64 > self.most as u64 {
            self.state = match self.begin() {
                Ok(draft) => SpillState::Spilling(draft),
                Err(error) => SpillState::Lost(error),
            };
        }
        self.state = match std::mem::replace(&mut self.state, SpillState::InMemory) {
            SpillState::Spilling(draft) => write_chunk(draft, bytes, self.excerpt.total(), self.limit),
            state => state,
        };
        self.excerpt.push(bytes);
    }

    /// Writes what was only shown so far.
    fn begin(&mut self) -> Result<Box<dyn Draft>, ArtifactError> {
        let mut draft = self.store.draft()?;
        let (head, tail) = self.excerpt.parts();
        draft.write(head)?;
        draft.write(tail)?;
        Ok(draft)
    }

    /// How many bytes there were.
    pub(crate) fn total(&self) -> u64 {
        self.excerpt.total()
    }

    /// What the model reads, and the artifact with all of it if it is long. Blocks.
    pub(crate) fn finish(self, name: &str) -> (String, Option<Artifact>) {
        let keep = |draft: Box<dyn Draft>| draft.keep().map(|(id, bytes)| Artifact::new(id, name, PLAIN, bytes));
        let (kept, is_all) = match self.state {
            SpillState::InMemory => return (self.excerpt.text(), None),
            SpillState::Spilling(draft) => (keep(draft), true),
            SpillState::Truncated(draft) => (keep(draft), false),
            SpillState::Lost(error) => (Err(error), false),
        };
        (self.excerpt.text_noting(&note(&kept, is_all)), kept.ok())
    }
}

/// Writes more of it, or as much as an artifact may have.
fn write_chunk(mut draft: Box<dyn Draft>, bytes: &[u8], so_far: u64, limit: u64) -> SpillState {
    let room = usize::try_from(limit.saturating_sub(so_far)).unwrap_or(usize::MAX);
    let kept = &bytes[..room.min(bytes.len())];
    match draft.write(kept) {
        Ok(()) if kept.len() < bytes.len() => SpillState::Truncated(draft),
        Ok(()) => SpillState::Spilling(draft),
        Err(ArtifactError::TooLarge { limit }) => {
            let room = usize::try_from(limit.saturating_sub(so_far)).unwrap_or_default().min(kept.len());
            match draft.write(&kept[..room]) {
                Ok(()) => SpillState::Truncated(draft),
                Err(error) => SpillState::Lost(error),
            }
        }
        Err(error) => SpillState::Lost(error),
    }
}

/// Where the rest is.
fn note(kept: &Result<Artifact, ArtifactError>, is_all: bool) -> String {
    match kept {
        Ok(artifact) if is_all => format!("; all of it is {artifact}, which get_artifact reads"),
        Ok(artifact) => format!("; the first {} bytes are {artifact}, which get_artifact reads", artifact.bytes),
        Err(ArtifactError::None) => String::new(),
        Err(error) => format!("; it could not be kept: {error}"),
    }
}

/// A text as long as a result may be, and the artifact with all of it if it is longer.
pub(crate) async fn fitted(text: String, name: &str, store: &dyn Artifacts) -> (String, Option<Artifact>) {
    if text.len() <= MAX_RESULT_BYTES {
        return (text, None);
    }
    let kept = store.put(text.as_bytes().into()).await.map(|id| Artifact::new(id, name, PLAIN, text.len() as u64));
    let mut excerpt = HeadTail::new(MAX_RESULT_BYTES);
    excerpt.push(text.as_bytes());
    (excerpt.text_noting(&note(&kept, true)), kept.ok())
}

#[cfg(test)]
mod tests {
    use polis_ports::{Hasher, NoArtifacts};
    use polis_testkit::MemoryArtifacts;

    use super::*;

    fn spilled(store: &MemoryArtifacts, pieces: &[&str]) -> (String, Option<Artifact>) {
        let mut spill = Spill::new(8, Arc::new(store.clone()));
        pieces.iter().for_each(|piece| spill.push(piece.as_bytes()));
        spill.finish("out.txt")
    }

    #[tokio::test]
    async fn what_is_short_is_told_and_what_is_long_is_kept_whole_however_it_comes() {
        let store = MemoryArtifacts::new();
        assert_eq!(spilled(&store, &["1234", "5678"]), ("12345678".to_owned(), None));
        let id = Hasher::id_of(b"123456789");
        for pieces in [&["123456789"][..], &["12345678", "9"], &["1", "2", "345", "67", "8", "", "9"]] {
            let (text, artifact) = spilled(&store, pieces);
            let want = format!(
                "1234\n[cut: 1 bytes are left out here; all of it is artifact {id} (out.txt, {PLAIN}, 9 bytes), which get_artifact reads]\n6789"
            );
            assert_eq!((text, artifact.map(|artifact| artifact.id)), (want, Some(id)), "{pieces:?}");
            assert_eq!(store.read(&id, 0, 99).await.unwrap().bytes, b"123456789");
        }
    }

    #[test]
    fn no_more_is_kept_than_the_limit_says() {
        let store = MemoryArtifacts::new();
        for (pieces, want) in
            [(&["12345678", "9", "0 and more", "and more"][..], 10), (&["123456789", "0"], 10), (&["123456789"], 9)]
        {
            let mut spill = Spill::new(8, Arc::new(store.clone())).with_limit(10);
            pieces.iter().for_each(|piece| spill.push(piece.as_bytes()));
            let (text, artifact) = spill.finish("out.txt");
            assert_eq!(artifact.unwrap().id, Hasher::id_of(&b"1234567890"[..want]), "{pieces:?}");
            assert_eq!(text.contains("the first 10 bytes are"), pieces.len() > 2, "{text}");
        }
    }

    #[test]
    fn what_is_longer_than_an_artifact_may_be_is_kept_as_far_as_it_goes() {
        let (text, artifact) = spilled(&MemoryArtifacts::limited(10), &["12345678", "9", "0 and more", "and more"]);
        let artifact = artifact.unwrap();
        assert_eq!((artifact.id, artifact.bytes), (Hasher::id_of(b"1234567890"), 10));
        assert!(text.contains("the first 10 bytes are artifact"), "{text}");
        assert_eq!(spilled(&MemoryArtifacts::limited(3), &["123456789"]).1.unwrap().id, Hasher::id_of(b"123"));
    }

    #[test]
    fn where_nothing_is_kept_it_is_cut() {
        let mut spill = Spill::new(4, Arc::new(NoArtifacts));
        spill.push(b"123456");
        assert_eq!(spill.finish("out.txt"), ("12\n[cut: 2 bytes are left out here]\n56".to_owned(), None));
        let (text, artifact) = spilled(&MemoryArtifacts::limited(3), &["12345678", "9"]);
        assert!(artifact.is_none() && text.contains("it could not be kept: an artifact may have 3 bytes at most"), "{text}");
    }
}
