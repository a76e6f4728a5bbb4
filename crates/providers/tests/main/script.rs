//! A model that says what the test wrote, and remembers what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use polis_domain::Finish;
use polis_ports::{Delta, DeltaStream, Model, ModelDescription, ModelError, ModelRequest};

/// What the model does with one request.
pub(crate) enum Part {
    /// Streams these.
    Say(Vec<Delta>),
    /// Refuses before it begins.
    Refuse(ModelError),
    /// Streams these and breaks.
    Break(Vec<Delta>, ModelError),
    /// Streams these and says no more.
    Hang(Vec<Delta>),
}

#[derive(Default)]
pub(crate) struct Script {
    parts: Mutex<VecDeque<Part>>,
    pub(crate) asked: Mutex<Vec<ModelRequest>>,
}

impl Script {
    pub(crate) fn new(parts: impl IntoIterator<Item = Part>) -> Arc<Self> {
        Arc::new(Self { parts: Mutex::new(parts.into_iter().collect()), asked: Mutex::default() })
    }
}

#[async_trait]
impl Model for Script {
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError> {
        self.asked.lock().unwrap().push(request);
        let deltas = |deltas: Vec<Delta>| stream::iter(deltas.into_iter().map(Ok));
        match self.parts.lock().unwrap().pop_front().expect("nothing more is written in the script") {
            Part::Say(said) => Ok(Box::pin(deltas(said))),
            Part::Refuse(error) => Err(error),
            Part::Break(said, error) => Ok(Box::pin(deltas(said).chain(stream::iter([Err(error)])))),
            Part::Hang(said) => Ok(Box::pin(deltas(said).chain(stream::pending()))),
        }
    }

    fn description(&self, _model: &str) -> ModelDescription {
        ModelDescription::of_window(Some(2_048))
    }
}

/// A reply of these chunks of text.
pub(crate) fn saying(pieces: &[&str]) -> Part {
    let content = pieces.iter().map(|piece| Delta::Content((*piece).to_owned()));
    Part::Say(content.chain([Delta::Done(Finish::Stop)]).collect())
}

/// Everything that a stream yields, with errors in words.
pub(crate) async fn all(model: &dyn Model, request: ModelRequest) -> Result<Vec<Result<Delta, String>>, String> {
    let stream = model.stream(request).await.map_err(|error| error.to_string())?;
    Ok(stream.map(|delta| delta.map_err(|error| error.to_string())).collect().await)
}
