//! Server-sent events out of byte chunks, however they are cut. Knows nothing of what the events mean.
//!
//! Lines end in LF, CRLF or CR; a byte order mark, comments and unknown fields are passed over; a last event without its
//! blank line counts when the stream ends, because providers forget it.

use std::borrow::Cow;

use memchr::memchr2;

/// Longest line that is taken, in bytes.
pub(crate) const MAX_LINE_BYTES: usize = 4 << 20;

/// Longest event that is taken, in bytes: its `data` may have several lines.
pub(crate) const MAX_EVENT_BYTES: usize = 8 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Takes chunks, gives events.
#[derive(Debug, Default)]
pub(crate) struct SseReader {
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_cr: bool,
    begun: bool,
}

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    /// Its `event` field; empty if it has none.
    pub name: Cow<'a, str>,
    /// Its `data` lines, joined.
    pub data: Cow<'a, str>,
}

/// A line or an event is longer than anything honest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the provider sent an event of more than {MAX_LINE_BYTES} bytes")]
pub(crate) struct TooLong;

impl SseReader {
    /// Takes the next chunk and gives each event that it completes to `take`.
    pub(crate) fn push(&mut self, mut chunk: &[u8], mut take: impl FnMut(Event<'_>)) -> Result<(), TooLong> {
        while !chunk.is_empty() {
            if std::mem::take(&mut self.after_cr) && chunk[0] == b'\n' {
                chunk = &chunk[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', chunk) else {
                return self.keep(chunk);
            };
            self.after_cr = chunk[end] == b'\r';
            let (piece, rest) = (&chunk[..end], &chunk[end + 1..]);
            if self.line.is_empty() {
                self.line(piece, &mut take)?;
            } else {
                self.keep(piece)?;
                let mut line = std::mem::take(&mut self.line);
                self.line(&line, &mut take)?;
                line.clear();
                self.line = line;
            }
            chunk = rest;
        }
        Ok(())
    }

    /// The stream is over: gives the event that was never closed, if there is one.
    pub(crate) fn end(mut self, mut take: impl FnMut(Event<'_>)) -> Result<(), TooLong> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.line(&line, &mut take)?;
        }
        self.dispatch(&mut take);
        Ok(())
    }

    fn keep(&mut self, piece: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + piece.len() > MAX_LINE_BYTES {
            return Err(TooLong);
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn line(&mut self, mut line: &[u8], take: &mut impl FnMut(Event<'_>)) -> Result<(), TooLong> {
        if line.len() > MAX_LINE_BYTES {
            return Err(TooLong);
        }
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(take);
            return Ok(());
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.data.len() + value.len() > MAX_EVENT_BYTES {
                    return Err(TooLong);
                }
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, take: &mut impl FnMut(Event<'_>)) {
        if std::mem::take(&mut self.has_data) {
            take(Event { name: readable(&self.name), data: readable(&self.data) });
        }
        self.name.clear();
        self.data.clear();
    }
}

/// Text as it is; where it is none, with replacement characters.
fn readable(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANT: &[(&str, &str)] = &[("", "one"), ("error", "二 and 🦀"), ("", "a\n\nb"), ("", ""), ("", "[DONE]")];
    const TEXT: &str = "\u{FEFF}data: one\n: keep-alive\nid: 7\nretry: x\nnonsense\n\nevent: error\ndata:二 and 🦀\n\n\n\
                        data: a\ndata\ndata: b\n\nevent: dropped\n\ndata:\n\ndata: [DONE]";

    fn read(chunks: &[&[u8]]) -> Result<Vec<(String, String)>, TooLong> {
        let (mut reader, mut events) = (SseReader::default(), Vec::new());
        let mut take = |event: Event<'_>| events.push((event.name.into_owned(), event.data.into_owned()));
        for chunk in chunks {
            reader.push(chunk, &mut take)?;
        }
        reader.end(&mut take)?;
        Ok(events)
    }

    fn check(bytes: &[u8]) {
        let want: Vec<_> = WANT.iter().map(|(name, data)| (name.to_string(), data.to_string())).collect();
        assert_eq!(read(&[bytes]).unwrap(), want, "whole");
        assert_eq!(read(&bytes.chunks(1).collect::<Vec<_>>()).unwrap(), want, "in single bytes");
        for cut in 0..=bytes.len() {
            assert_eq!(read(&[&bytes[..cut], &bytes[cut..]]).unwrap(), want, "cut at {cut}");
        }
    }

    #[test]
    fn events_are_the_same_however_the_bytes_are_cut_and_lines_end() {
        check(TEXT.as_bytes());
        check(TEXT.replace('\n', "\r\n").as_bytes());
        check(TEXT.replace('\n', "\r").as_bytes());
        check(format!("{TEXT}\n").as_bytes());
        check(format!("{TEXT}\n\n").as_bytes());
    }

    #[test]
    fn bytes_that_are_no_text_become_replacement_characters() {
        assert_eq!(read(&[b"data: a\xFFb\n\n"]).unwrap(), [(String::new(), "a\u{FFFD}b".to_owned())]);
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_memory() {
        let long = vec![b'x'; MAX_LINE_BYTES + 1];
        assert_eq!(read(&[&long]), Err(TooLong));
        assert_eq!(read(&long.chunks(1000).collect::<Vec<_>>()), Err(TooLong));
        assert_eq!(read(&[&[&long[..], b"\n"].concat()]), Err(TooLong));
        assert_eq!(read(&[&long[1..]]), Ok(vec![]));
    }

    #[test]
    fn an_event_of_very_many_lines_is_refused() {
        let line = format!("data: {}\n", "x".repeat(1000));
        assert_eq!(read(&vec![line.as_bytes(); 10_000]), Err(TooLong));
    }
}
