//! How a body is divided: server-sent events, JSON values one after the other, or messages of Amazon's event stream. The first
//! byte tells; what the head says about it is often wrong. Knows nothing of what the events mean.

use memchr::memchr2;
use polis_http::sse::{Event, MAX_EVENT_BYTES, SseReader, TooLong};

use super::messages::MessageReader;

/// Longest beginning without anything in it.
const MAX_BLANK_BYTES: usize = 64 << 10;

/// Why a body cannot be divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum FrameError {
    #[error(transparent)]
    TooLong(#[from] TooLong),
    #[error("the stream is damaged: {0}")]
    Damaged(&'static str),
}

impl FrameError {
    pub(super) const TOO_LONG: Self = Self::TooLong(TooLong { max_bytes: MAX_EVENT_BYTES });
}

/// Takes chunks, gives events.
#[derive(Debug)]
pub(super) enum Frames {
    /// Nothing but blanks has come.
    Unknown(Vec<u8>),
    /// Server-sent events.
    Events(SseReader),
    /// JSON values: lines, an array, or a single one from a server that does not stream.
    Values(ValueReader),
    /// Amazon's event stream. Its first byte is that of a length.
    Messages(MessageReader),
    /// A web page: whoever answers there is no model.
    Page,
}

impl Default for Frames {
    fn default() -> Self {
        Self::Unknown(Vec::new())
    }
}

impl Frames {
    /// Takes the next chunk and gives each event that it completes to `take`.
    pub(super) fn push(&mut self, chunk: &[u8], take: impl FnMut(Event<'_>)) -> Result<(), FrameError> {
        match self {
            Self::Unknown(held) => {
                let blank = |byte: &u8| byte.is_ascii_whitespace() || b"\xEF\xBB\xBF".contains(byte);
                let Some(first) = chunk.iter().find(|byte| !blank(byte)) else {
                    held.extend_from_slice(chunk);
                    let too_long = TooLong { max_bytes: MAX_BLANK_BYTES };
                    return if held.len() > MAX_BLANK_BYTES { Err(too_long.into()) } else { Ok(()) };
                };
                let frames = match first {
                    // A comment, or one of the fields `data`, `event`, `id` and `retry`.
                    b':' | b'd' | b'e' | b'i' | b'r' => Self::Events(SseReader::default()),
                    b'<' => Self::Page,
                    0 => Self::Messages(MessageReader::default()),
                    _ => Self::Values(ValueReader::default()),
                };
                let mut held = std::mem::take(held);
                *self = frames;
                if held.is_empty() {
                    return self.push(chunk, take);
                }
                held.extend_from_slice(chunk);
                self.push(&held, take)
            }
            Self::Events(reader) => Ok(reader.push(chunk, take)?),
            Self::Values(reader) => Ok(reader.push(chunk, take)?),
            Self::Messages(reader) => reader.push(chunk, take),
            Self::Page => Ok(()),
        }
    }

    /// The stream is over: gives the event that was never closed, if there is one.
    pub(super) fn end(self, take: impl FnMut(Event<'_>)) -> Result<(), FrameError> {
        match self {
            Self::Unknown(_) | Self::Page => Ok(()),
            Self::Messages(reader) => reader.end(),
            Self::Events(reader) => Ok(reader.end(take)?),
            Self::Values(reader) => {
                reader.end(take);
                Ok(())
            }
        }
    }
}

/// Finds the objects in a sequence of JSON values; an array around them and commas between them are passed over.
#[derive(Debug, Default)]
pub(super) struct ValueReader {
    value: Vec<u8>,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl ValueReader {
    fn push(&mut self, chunk: &[u8], mut take: impl FnMut(Event<'_>)) -> Result<(), TooLong> {
        let (mut begin, mut at) = (0, 0);
        while at < chunk.len() {
            if self.in_string && !self.escaped {
                // Most of a stream is inside strings.
                at += memchr2(b'"', b'\\', &chunk[at..]).unwrap_or(chunk.len() - at);
            }
            let Some(&byte) = chunk.get(at) else { break };
            let is_between = self.depth == 0 && self.value.is_empty() && begin == at;
            at += 1;
            if is_between && (byte.is_ascii_whitespace() || b",[]\xEF\xBB\xBF".contains(&byte)) {
                begin = at;
            } else if self.closes(byte) {
                self.keep(&chunk[begin..at])?;
                begin = at;
                self.give(&mut take);
            }
        }
        self.keep(&chunk[begin..])
    }

    /// Whether a value ends with this byte.
    fn closes(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' if self.depth > 0 => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            // What is no object ends with its line.
            b'\n' => return self.depth == 0,
            _ => {}
        }
        false
    }

    fn keep(&mut self, chunk: &[u8]) -> Result<(), TooLong> {
        if self.value.len() + chunk.len() > MAX_EVENT_BYTES {
            return Err(TooLong { max_bytes: MAX_EVENT_BYTES });
        }
        self.value.extend_from_slice(chunk);
        Ok(())
    }

    fn give(&mut self, take: &mut impl FnMut(Event<'_>)) {
        take(Event { data: String::from_utf8_lossy(&self.value), ..Event::default() });
        self.value.clear();
    }

    fn end(mut self, mut take: impl FnMut(Event<'_>)) {
        if !self.value.is_empty() {
            self.give(&mut take);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]]) -> Result<Vec<String>, FrameError> {
        let (mut frames, mut events) = (Frames::default(), Vec::new());
        let mut take = |event: Event<'_>| events.push(event.data.into_owned());
        for chunk in chunks {
            frames.push(chunk, &mut take)?;
        }
        frames.end(&mut take)?;
        Ok(events)
    }

    fn check(text: &str, want: &[&str]) {
        let bytes = text.as_bytes();
        assert_eq!(read(&[bytes]).unwrap(), want, "{text} whole");
        assert_eq!(read(&bytes.chunks(1).collect::<Vec<_>>()).unwrap(), want, "{text} in single bytes");
        for cut in 0..=bytes.len() {
            assert_eq!(read(&[&bytes[..cut], &bytes[cut..]]).unwrap(), want, "{text} cut at {cut}");
        }
    }

    #[test]
    fn the_first_byte_tells_events_from_values() {
        check("data: {\"a\":1}\n\ndata: 2\n\n", &["{\"a\":1}", "2"]);
        check("\n\u{FEFF}\n: hello\ndata: x", &["x"]);
        check("{\"a\":1}", &["{\"a\":1}"]);
        check("\u{FEFF} {\"a\":1}\r\n{\"b\":\"é}\\\"{\"}\r\n", &["{\"a\":1}", "{\"b\":\"é}\\\"{\"}"]);
        check("[{\"a\":[1,2]}\n,\n{\"b\":{}}]\n", &["{\"a\":[1,2]}", "{\"b\":{}}"]);
        check("{\n  \"a\": {\n    \"b\": \"\\\\\"\n  }\n}\n", &["{\n  \"a\": {\n    \"b\": \"\\\\\"\n  }\n}"]);
        check("{\"a\":1}\nnonsense \"\n{\"b\":2}{\"c\":", &["{\"a\":1}", "nonsense \"\n", "{\"b\":2}", "{\"c\":"]);
        check("null\n{\"a\":1}", &["null\n", "{\"a\":1}"]);
        check("retry: 1\n\ndata: x\n\n", &["x"]);
        check("<html>data: x\n\n", &[]);
        check("  \r\n ", &[]);
    }

    #[test]
    fn what_never_ends_is_refused_before_it_fills_memory() {
        let long = vec![b' '; MAX_BLANK_BYTES + 1];
        assert_eq!(read(&[&long]), Err(TooLong { max_bytes: MAX_BLANK_BYTES }.into()));
        let long = [b"{\"a\":\"", vec![b'x'; MAX_EVENT_BYTES].as_slice()].concat();
        let too_long = Err(FrameError::TOO_LONG);
        assert_eq!(read(&[&long]), too_long);
        assert_eq!(read(&long.chunks(1000).collect::<Vec<_>>()), too_long);
    }
}
