//! Server-sent events, read from a stream of bytes: ids, names and data, nothing else is needed here.

use std::io;
use std::pin::Pin;

use futures_util::{Stream, StreamExt};
use hyper::body::Bytes;

use crate::ClientError;

type Body = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// A stream of events.
pub struct Sse {
    body: Body,
    unread: Vec<u8>,
}

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Its place in the log, if it has one.
    pub id: Option<u64>,
    /// Its name.
    pub name: String,
    /// What it says.
    pub data: String,
}

impl Sse {
    /// The events of an answer's body.
    pub fn new(body: Body) -> Self {
        Self { body, unread: Vec::new() }
    }

    /// The next event; none when the stream has ended. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<SseEvent>, ClientError> {
        loop {
            while let Some(block) = self.take_block() {
                let event = parse(&block);
                if !event.data.is_empty() {
                    return Ok(Some(event));
                }
            }
            match self.body.next().await {
                Some(bytes) => self.unread.extend_from_slice(&bytes.map_err(ClientError::Gone)?),
                None => return Ok(None),
            }
        }
    }

    /// Everything up to the next empty line.
    fn take_block(&mut self) -> Option<String> {
        let end = self.unread.windows(2).position(|two| two == b"\n\n")?;
        let block: Vec<u8> = self.unread.drain(..end + 2).collect();
        Some(String::from_utf8_lossy(&block).into_owned())
    }
}

fn parse(block: &str) -> SseEvent {
    let mut event = SseEvent::default();
    for line in block.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            // What stands behind the place says of which history it is.
            "id" => event.id = value.split('.').next().and_then(|place| place.parse().ok()),
            "event" => value.clone_into(&mut event.name),
            "data" if event.data.is_empty() => value.clone_into(&mut event.data),
            "data" => event.data = format!("{}\n{value}", event.data),
            _ => {}
        }
    }
    event
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    #[tokio::test]
    async fn events_are_whole_however_the_bytes_come() {
        let text = ": alive\n\nid: 1.5f3c9a01\nevent: a\ndata: {\"x\":1}\n\nevent: b\ndata: 一\ndata: 2\n\n";
        for size in 1..text.len() {
            let pieces: Vec<_> = text.as_bytes().chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
            let mut sse = Sse::new(Box::pin(stream::iter(pieces)));
            let event = |id, name: &str, data: &str| Some(SseEvent { id, name: name.into(), data: data.into() });
            assert_eq!(sse.next().await.unwrap(), event(Some(1), "a", "{\"x\":1}"));
            assert_eq!(sse.next().await.unwrap(), event(None, "b", "一\n2"));
            assert_eq!(sse.next().await.unwrap(), None);
        }
    }
}
