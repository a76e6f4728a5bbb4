//! The events of an answer: ids, names and data, read from a stream of bytes.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;

use futures_util::{Stream, StreamExt};
use polis_http::Bytes;
use polis_http::sse::{Event, SseReader};

use crate::ClientError;

pub(crate) type Body = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// Largest event that is taken, in bytes. A server that sends more is not believed to stop.
const MAX_EVENT_BYTES: usize = 128 << 20;

/// A stream of events.
pub struct Sse {
    body: Body,
    reader: SseReader,
    ready: VecDeque<SseEvent>,
}

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Its place in the log, if it has one.
    pub id: Option<u64>,
    /// Its name.
    pub name: String,
    /// Its data.
    pub data: String,
}

impl Sse {
    /// The events of an answer's body.
    pub fn new(body: Body) -> Self {
        Self { body, reader: SseReader::with_limits(MAX_EVENT_BYTES, MAX_EVENT_BYTES), ready: VecDeque::new() }
    }

    /// The next event; none when the stream has ended. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<SseEvent>, ClientError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let Some(bytes) = self.body.next().await else { return Ok(None) };
            let ready = &mut self.ready;
            let take = |event: Event<'_>| ready.extend((!event.data.is_empty()).then(|| event.into()));
            let too_long = |error| ClientError::Gone(io::Error::new(io::ErrorKind::InvalidData, error));
            self.reader.push(&bytes.map_err(ClientError::Gone)?, take).map_err(too_long)?;
        }
    }
}

impl From<Event<'_>> for SseEvent {
    fn from(event: Event<'_>) -> Self {
        // The rest of an id names the history that the position belongs to.
        let id = event.id.split('.').next().and_then(|place| place.parse().ok());
        Self { id, name: event.name.into_owned(), data: event.data.into_owned() }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    #[tokio::test]
    async fn events_are_whole_however_the_bytes_come() {
        let text = ": alive\n\nid: 1.5f3c9a01\nevent: a\ndata: {\"x\":1}\n\nevent: b\ndata: 一\ndata: 2\n\ndata: cut";
        for size in 1..text.len() {
            let chunks: Vec<_> = text.as_bytes().chunks(size).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
            let mut sse = Sse::new(Box::pin(stream::iter(chunks)));
            let event = |id, name: &str, data: &str| Some(SseEvent { id, name: name.into(), data: data.into() });
            assert_eq!(sse.next().await.unwrap(), event(Some(1), "a", "{\"x\":1}"));
            assert_eq!(sse.next().await.unwrap(), event(None, "b", "一\n2"));
            assert_eq!(sse.next().await.unwrap(), None);
        }
    }
}
