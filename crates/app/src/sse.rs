//! Server-sent events, read from a stream of bytes: names and data, nothing else is needed here.

use std::io;
use std::pin::Pin;

use futures_util::{Stream, StreamExt};
use hyper::body::Bytes;

type Body = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// A stream of events.
pub(crate) struct Sse {
    body: Body,
    unread: Vec<u8>,
}

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SseEvent {
    pub(crate) name: String,
    pub(crate) data: String,
}

impl Sse {
    pub(crate) fn new(body: Body) -> Self {
        Self { body, unread: Vec::new() }
    }

    /// The next event; none when the stream has ended. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> io::Result<Option<SseEvent>> {
        loop {
            while let Some(block) = self.take_block() {
                let event = parse(&block);
                if !event.data.is_empty() {
                    return Ok(Some(event));
                }
            }
            match self.body.next().await {
                Some(bytes) => self.unread.extend_from_slice(&bytes?),
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
        let text = ": alive\n\nid: 1\nevent: a\ndata: {\"x\":1}\n\nevent: b\ndata: 一\ndata: 2\n\n";
        for size in 1..text.len() {
            let pieces: Vec<_> = text.as_bytes().chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
            let mut sse = Sse::new(Box::pin(stream::iter(pieces)));
            let event = |name: &str, data: &str| Some(SseEvent { name: name.into(), data: data.into() });
            assert_eq!(sse.next().await.unwrap(), event("a", "{\"x\":1}"));
            assert_eq!(sse.next().await.unwrap(), event("b", "一\n2"));
            assert_eq!(sse.next().await.unwrap(), None);
        }
    }
}
