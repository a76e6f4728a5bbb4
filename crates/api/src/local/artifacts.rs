//! Reading and storing artifacts.

use std::io;
use std::ops::Range;

use futures_util::{Stream, StreamExt, stream};
use polis_domain::{Artifact, ArtifactId, Spine, Visibility};
use polis_engine::Society;
use polis_ports::ArtifactError;
use tokio::sync::{mpsc, oneshot};

use super::Local;
use crate::{ApiError, ArtifactName, ArtifactPaging, Artifacts, Content, NumberedArtifact, Scope};

const MAX_PAGE: usize = 1_000;

/// Bytes that are read at once.
const CHUNK: usize = 256 << 10;

/// Chunks that wait to be written.
const QUEUED: usize = 4;

/// How many chunks of a content that cannot be stored are read and discarded, so that its sender receives the error.
const MAX_DRAINED_CHUNKS: usize = 256;

impl Local {
    /// The artifacts that the log names, oldest first.
    pub async fn artifacts(&self, paging: ArtifactPaging) -> Result<Artifacts, ApiError> {
        self.caller.needs(Scope::Read)?;
        let visibility = self.society.visibility().clone();
        let list = move |spine: &Spine| {
            let entries = spine.artifacts.entries();
            let rest = entries.iter().enumerate().skip(paging.after).filter(|(_, listed)| visibility.artifact(listed));
            let page = rest.take(paging.limit.clamp(1, MAX_PAGE));
            let artifacts: Vec<_> = page.map(|(n, listed)| NumberedArtifact { n: n + 1, listed: listed.clone() }).collect();
            let last = entries.iter().rposition(|listed| visibility.artifact(listed)).map_or(0, |n| n + 1);
            let next = artifacts.last().map(|artifact| artifact.n).filter(|n| *n < last);
            Artifacts { artifacts, last, next }
        };
        Ok(self.society.look(list).await?)
    }

    /// The metadata of an artifact: its name and media type where the log has them, and its length.
    pub async fn artifact(&self, id: &ArtifactId) -> Result<Artifact, ApiError> {
        self.caller.needs(Scope::Read)?;
        let total = self.stored_bytes(id).await?;
        let listed = self.society.listing().find(id).await;
        let artifact = listed.unwrap_or_else(|| Artifact::new(*id, &id.to_string(), "", total));
        Ok(Artifact { bytes: total, ..artifact })
    }

    /// A part of a content, chunk by chunk. Each chunk is verified; when that fails the content ends with an error.
    pub async fn content(&self, id: &ArtifactId, range: Range<u64>) -> Result<Content, ApiError> {
        self.caller.needs(Scope::Read)?;
        self.stored_bytes(id).await?;
        Ok(Box::pin(chunks(self.society.clone(), *id, range)))
    }

    /// The length of a content that the caller may see: one that the log names for them, or that they have just stored.
    pub(super) async fn stored_bytes(&self, id: &ArtifactId) -> Result<u64, ApiError> {
        let is_listed = self.society.listing().find(id).await.is_some();
        let is_limited = *self.society.visibility() != Visibility::Everything;
        if is_limited && !is_listed && !self.uploads.has(self.caller.person(), *id) {
            return Err(ArtifactError::Unknown(*id).into());
        }
        Ok(self.society.artifacts().read(id, 0, 0).await?.total)
    }

    /// Stores a content. The log names it when a message does; until then a sweep spares it for a while.
    ///
    /// An error in `content` ends it: nothing is stored then.
    pub async fn store_artifact(
        &self,
        ArtifactName { name }: ArtifactName,
        media_type: &str,
        mut content: impl Stream<Item = Result<impl AsRef<[u8]> + Send + 'static, ApiError>> + Unpin,
    ) -> Result<Artifact, ApiError> {
        self.caller.needs(Scope::Send)?;
        let mut draft = self.society.artifacts().draft()?;
        let (send, mut queue) = mpsc::channel(QUEUED);
        let (whole, is_whole) = oneshot::channel::<()>();
        let written = tokio::task::spawn_blocking(move || {
            while let Some(chunk) = queue.blocking_recv() {
                draft.write(AsRef::<[u8]>::as_ref(&chunk))?;
            }
            match is_whole.blocking_recv() {
                Ok(()) => draft.keep(),
                Err(_) => Err(ArtifactError::Failed("the content broke off".to_owned())),
            }
        });
        let mut left = MAX_DRAINED_CHUNKS;
        while let Some(chunk) = content.next().await {
            left = if send.send(chunk?).await.is_ok() { MAX_DRAINED_CHUNKS } else { left - 1 };
            if left == 0 {
                break;
            }
        }
        drop(send);
        let _ = whole.send(());
        let stored = written.await.unwrap_or_else(|stopped| Err(ArtifactError::Failed(stopped.to_string())));
        let (id, bytes) = stored?;
        self.uploads.note(self.caller.person().clone(), id);
        Ok(Artifact::new(id, &name, media_type, bytes))
    }
}

/// A content, chunk by chunk. When one cannot be verified the stream ends with an error, so that nobody takes it for whole.
fn chunks(society: Society, id: ArtifactId, range: Range<u64>) -> impl Stream<Item = io::Result<Vec<u8>>> {
    stream::try_unfold((society, range), move |(society, range)| async move {
        if range.is_empty() {
            return Ok(None);
        }
        let limit = usize::try_from(range.end - range.start).unwrap_or(CHUNK).min(CHUNK);
        let window = society.artifacts().read(&id, range.start, limit).await.map_err(io::Error::other)?;
        if window.bytes.is_empty() {
            return Err(io::Error::other("the artifact became shorter"));
        }
        let next = range.start + window.bytes.len() as u64..range.end;
        Ok(Some((window.bytes, (society, next))))
    })
}
