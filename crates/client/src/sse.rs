//! Server-sent events, read from a stream of bytes: ids, names and data, nothing else is needed here. An event has a largest size.

use std::io;
use std::pin::Pin;

use futures_util::{Stream, StreamExt};
use hyper::body::Bytes;

use crate::ClientError;

type Body = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// Largest event that is taken, in bytes. Whoever sends more is not believed to stop.
const MAX_EVENT_BYTES: usize = 128 << 20;

/// A stream of events.
pub struct Sse {
    body: Body,
    unread: Vec<u8>,
    /// How much of `unread` holds no end of a line.
    searched: usize,
    event: SseEvent,
    has_data: bool,
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
        Self { body, unread: Vec::new(), searched: 0, event: SseEvent::default(), has_data: false }
    }

    /// The next event; none when the stream has ended. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<SseEvent>, ClientError> {
        loop {
            while let Some(line) = self.take_line() {
                self.read(&line);
                if line.is_empty() {
                    self.has_data = false;
                    let event = std::mem::take(&mut self.event);
                    if !event.data.is_empty() {
                        return Ok(Some(event));
                    }
                }
            }
            if self.unread.len() + self.event.data.len() > MAX_EVENT_BYTES {
                let error = format!("an event is larger than {MAX_EVENT_BYTES} bytes");
                return Err(ClientError::Gone(io::Error::new(io::ErrorKind::InvalidData, error)));
            }
            match self.body.next().await {
                Some(bytes) => self.unread.extend_from_slice(&bytes.map_err(ClientError::Gone)?),
                None => return Ok(None),
            }
        }
    }

    /// The next line, without its end: LF or CRLF.
    fn take_line(&mut self) -> Option<String> {
        let Some(end) = self.unread[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.unread.len();
            return None;
        };
        let line: Vec<u8> = self.unread.drain(..=self.searched + end).collect();
        self.searched = 0;
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        Some(String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned())
    }

    fn read(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            // What stands behind the place says of which history it is.
            "id" => self.event.id = value.split('.').next().and_then(|place| place.parse().ok()),
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            _ => {}
        }
    }
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
