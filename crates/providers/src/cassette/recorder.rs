//! A model that records the requests to another model and its replies.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_util::{Stream, StreamExt};
use polis_domain::Usage;
use polis_ports::{Delta, DeltaStream, Model, ModelDescription, ModelError, ModelRequest};

use super::format::{End, Header, Interaction, RecordedDelta, RecordedRequest};
use super::{CassetteError, VERSION, read};

/// Passes everything on to another model and records it. The file is its owner's alone.
pub struct Recorder {
    model: Arc<dyn Model>,
    output: Arc<CassetteFile>,
}

impl Recorder {
    /// Records `model` to `file`; a cassette that is there already goes on.
    pub fn open(model: Arc<dyn Model>, file: &Path) -> Result<Self, CassetteError> {
        let broken = |error| CassetteError::Io { file: file.to_owned(), error };
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut output = options.open(file).map_err(broken)?;
        output.try_lock().map_err(|_| broken(io::Error::other("another process is recording to it")))?;
        let (_, whole) = read(file)?;
        output.set_len(whole as u64).map_err(broken)?;
        if whole == 0 {
            output.write_all(&line(&Header { cassette: VERSION })).map_err(broken)?;
        }
        Ok(Self { model, output: Arc::new(CassetteFile { file: Mutex::new(Ok(output)) }) })
    }
}

#[async_trait]
impl Model for Recorder {
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError> {
        self.output.check().map_err(|reason| ModelError::Rejected { reason })?;
        let interaction = Interaction { request: RecordedRequest::from(&request), deltas: Vec::new(), end: End::Dropped };
        let mut writer = InteractionWriter { interaction, output: self.output.clone() };
        match self.model.stream(request).await {
            Ok(deltas) => Ok(Box::pin(RecordingStream { deltas, writer: Some(writer) })),
            Err(error) => {
                writer.interaction.end = End::Error((&error).into());
                Err(error)
            }
        }
    }

    fn estimate(&self, request: &ModelRequest) -> Usage {
        self.model.estimate(request)
    }

    fn refuses(&self, model: &str) -> Option<String> {
        self.model.refuses(model)
    }

    fn description(&self, model: &str) -> ModelDescription {
        self.model.description(model)
    }
}

/// The open file, or why nothing can be written to it any more.
struct CassetteFile {
    file: Mutex<Result<File, String>>,
}

impl CassetteFile {
    fn check(&self) -> Result<(), String> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(drop).map_err(Clone::clone)
    }

    fn write(&self, interaction: &Interaction) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(open) = &mut *file
            && let Err(error) = open.write_all(&line(interaction)).and_then(|()| open.flush())
        {
            *file = Err(format!("the cassette can no longer be written: {error}"));
        }
    }
}

fn line<T: serde::Serialize>(it: &T) -> Vec<u8> {
    let mut line = serde_json::to_vec(it).expect("strings and finite numbers can always be written");
    line.push(b'\n');
    line
}

/// An interaction that is being recorded. It is written to the file when this is dropped.
struct InteractionWriter {
    interaction: Interaction,
    output: Arc<CassetteFile>,
}

impl Drop for InteractionWriter {
    fn drop(&mut self) {
        self.output.write(&self.interaction);
    }
}

struct RecordingStream {
    deltas: DeltaStream,
    writer: Option<InteractionWriter>,
}

impl Stream for RecordingStream {
    type Item = Result<Delta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.deltas.poll_next_unpin(context);
        if let (Poll::Ready(next), Some(writer)) = (&next, &mut self.writer) {
            let interaction = &mut writer.interaction;
            if let Some(Ok(delta)) = next {
                interaction.deltas.extend(RecordedDelta::of(delta));
            }
            interaction.end = match next {
                Some(Ok(Delta::Done(_))) => End::Done,
                Some(Ok(_)) => End::Dropped,
                Some(Err(error)) => End::Error(error.into()),
                None => End::Cut,
            };
            if interaction.end != End::Dropped {
                self.writer = None;
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Offline;

    #[tokio::test]
    async fn after_a_write_that_failed_nothing_is_asked_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tape.jsonl");
        drop(Recorder::open(Arc::new(Offline::default()), &file).unwrap());
        let read_only = File::open(&file).unwrap();
        let output = Arc::new(CassetteFile { file: Mutex::new(Ok(read_only)) });
        let recorder = Recorder { model: Arc::new(Offline::default()), output };
        drop(recorder.stream(ModelRequest::default()).await.unwrap());
        let refused = recorder.stream(ModelRequest::default()).await.err().unwrap();
        assert!(
            matches!(&refused, ModelError::Rejected { reason } if reason.starts_with("the cassette can no longer be written"))
        );
    }
}
