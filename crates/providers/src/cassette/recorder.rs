//! A model that writes down what another one is asked and answers.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_util::{Stream, StreamExt};
use polis_domain::Usage;
use polis_ports::{Delta, DeltaStream, Model, ModelError, ModelRequest};

use super::wire::{Asked, End, Header, Interaction, Piece};
use super::{CassetteError, VERSION, read};

/// Passes everything on to another model and records it. The file is its owner's alone.
pub struct Recorder {
    model: Arc<dyn Model>,
    tape: Arc<Tape>,
}

impl Recorder {
    /// Records `model` to `file`; a cassette that is there already goes on.
    pub fn open(model: Arc<dyn Model>, file: &Path) -> Result<Self, CassetteError> {
        let broken = |error| CassetteError::Io { file: file.to_owned(), error };
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut tape = options.open(file).map_err(broken)?;
        tape.try_lock().map_err(|_| broken(io::Error::other("another process is recording to it")))?;
        let (_, whole) = read(file)?;
        tape.set_len(whole as u64).map_err(broken)?;
        if whole == 0 {
            tape.write_all(&line(&Header { cassette: VERSION })).map_err(broken)?;
        }
        Ok(Self { model, tape: Arc::new(Tape { file: Mutex::new(Ok(tape)) }) })
    }
}

#[async_trait]
impl Model for Recorder {
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError> {
        self.tape.works().map_err(|reason| ModelError::Rejected { reason })?;
        let interaction = Interaction { request: Asked::from(&request), deltas: Vec::new(), end: End::Dropped };
        let mut take = Take { interaction, tape: self.tape.clone() };
        match self.model.stream(request).await {
            Ok(deltas) => Ok(Box::pin(Recording { deltas, take: Some(take) })),
            Err(error) => {
                take.interaction.end = End::Error((&error).into());
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

    fn window(&self, model: &str) -> Option<u64> {
        self.model.window(model)
    }
}

/// The open file, or why nothing can be written to it any more.
struct Tape {
    file: Mutex<Result<File, String>>,
}

impl Tape {
    fn works(&self) -> Result<(), String> {
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

/// An interaction under way. It is written when it is let go of.
struct Take {
    interaction: Interaction,
    tape: Arc<Tape>,
}

impl Drop for Take {
    fn drop(&mut self) {
        self.tape.write(&self.interaction);
    }
}

struct Recording {
    deltas: DeltaStream,
    take: Option<Take>,
}

impl Stream for Recording {
    type Item = Result<Delta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.deltas.poll_next_unpin(context);
        if let (Poll::Ready(next), Some(take)) = (&next, &mut self.take) {
            let interaction = &mut take.interaction;
            if let Some(Ok(delta)) = next {
                interaction.deltas.extend(Piece::of(delta));
            }
            interaction.end = match next {
                Some(Ok(Delta::Done(_))) => End::Done,
                Some(Ok(_)) => End::Dropped,
                Some(Err(error)) => End::Error(error.into()),
                None => End::Cut,
            };
            if interaction.end != End::Dropped {
                self.take = None;
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
        let tape = Arc::new(Tape { file: Mutex::new(Ok(read_only)) });
        let recorder = Recorder { model: Arc::new(Offline::default()), tape };
        drop(recorder.stream(ModelRequest::default()).await.unwrap());
        let refused = recorder.stream(ModelRequest::default()).await.err().unwrap();
        assert!(
            matches!(&refused, ModelError::Rejected { reason } if reason.starts_with("the cassette can no longer be written"))
        );
    }
}
