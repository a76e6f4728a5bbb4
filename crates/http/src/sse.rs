//! Server-sent events out of byte chunks, however they are cut. Knows nothing of what the events mean.
//!
//! Lines end in LF, CRLF or CR; a byte order mark, comments and unknown fields are skipped. A field `error` is an event of that name. A last event without its blank line
//! is given only by [`SseReader::end`].

use std::borrow::Cow;

use memchr::memchr2;

/// Longest line that a reader takes by default, in bytes.
pub const MAX_LINE_BYTES: usize = 4 << 20;

/// Longest event that a reader takes by default, in bytes: its `data` may have several lines.
pub const MAX_EVENT_BYTES: usize = 8 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Parses events from chunks.
#[derive(Debug)]
pub struct SseReader {
    max_line_bytes: usize,
    max_event_bytes: usize,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    id: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_cr: bool,
    started: bool,
}

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its `id` field; empty if it has none of its own.
    pub id: Cow<'a, str>,
    /// Its `event` field; empty if it has none.
    pub name: Cow<'a, str>,
    /// Its `data` lines, joined.
    pub data: Cow<'a, str>,
}

/// A line or an event is longer than anything honest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server sent an event of more than {max_bytes} bytes")]
pub struct TooLong {
    /// The limit.
    pub max_bytes: usize,
}

impl Default for SseReader {
    fn default() -> Self {
        Self::with_limits(MAX_LINE_BYTES, MAX_EVENT_BYTES)
    }
}

impl SseReader {
    /// A reader that takes longer or only shorter lines and events, in bytes.
    pub fn with_limits(max_line_bytes: usize, max_event_bytes: usize) -> Self {
        Self {
            max_line_bytes,
            max_event_bytes,
            line: Vec::new(),
            id: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_cr: false,
            started: false,
        }
    }

    /// Parses the next chunk and passes each completed event to `take`.
    pub fn push(&mut self, mut chunk: &[u8], mut take: impl FnMut(Event<'_>)) -> Result<(), TooLong> {
        while !chunk.is_empty() {
            if std::mem::take(&mut self.after_cr) && chunk[0] == b'\n' {
                chunk = &chunk[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', chunk) else {
                return self.keep(chunk);
            };
            self.after_cr = chunk[end] == b'\r';
            let (part, rest) = (&chunk[..end], &chunk[end + 1..]);
            if self.line.is_empty() {
                self.line(part, &mut take)?;
            } else {
                self.keep(part)?;
                let mut line = std::mem::take(&mut self.line);
                self.line(&line, &mut take)?;
                line.clear();
                self.line = line;
            }
            chunk = rest;
        }
        Ok(())
    }

    /// The stream is over: gives the event that was never closed, if there is one. Model providers forget the blank line.
    pub fn end(mut self, mut take: impl FnMut(Event<'_>)) -> Result<(), TooLong> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.line(&line, &mut take)?;
        }
        self.dispatch(&mut take);
        Ok(())
    }

    fn keep(&mut self, chunk: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + chunk.len() > self.max_line_bytes {
            return Err(TooLong { max_bytes: self.max_line_bytes });
        }
        self.line.extend_from_slice(chunk);
        Ok(())
    }

    fn line(&mut self, mut line: &[u8], take: &mut impl FnMut(Event<'_>)) -> Result<(), TooLong> {
        if line.len() > self.max_line_bytes {
            return Err(TooLong { max_bytes: self.max_line_bytes });
        }
        if !std::mem::replace(&mut self.started, true) {
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
                if self.data.len() + value.len() > self.max_event_bytes {
                    return Err(TooLong { max_bytes: self.max_event_bytes });
                }
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"id" => {
                self.id.clear();
                self.id.extend_from_slice(value);
            }
            // llama.cpp reports errors in a field of its own.
            b"error" => {
                self.name = b"error".to_vec();
                return self.line(&[b"data:", value].concat(), take);
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
            take(Event { id: readable(&self.id), name: readable(&self.name), data: readable(&self.data) });
        }
        self.id.clear();
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
    fn a_field_for_errors_is_an_event() {
        let want = [("error".to_owned(), "{\"code\":1}".to_owned()), (String::new(), "x".to_owned())];
        assert_eq!(read(&[b"error: {\"code\":1}\n\ndata: x\n\n"]).unwrap(), want);
    }

    #[test]
    fn bytes_that_are_no_text_become_replacement_characters() {
        assert_eq!(read(&[b"data: a\xFFb\n\n"]).unwrap(), [(String::new(), "a\u{FFFD}b".to_owned())]);
    }

    #[test]
    fn an_event_has_its_own_id_and_no_other() {
        let (mut reader, mut ids) = (SseReader::default(), Vec::new());
        let take = |event: Event<'_>| ids.push(event.id.into_owned());
        reader.push(b"id: 7.ab\ndata: a\n\ndata: b\n\nid:8\n\ndata: c\n\n", take).unwrap();
        assert_eq!(ids, ["7.ab", "", ""]);
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_memory() {
        let long = vec![b'x'; MAX_LINE_BYTES + 1];
        let too_long = Err(TooLong { max_bytes: MAX_LINE_BYTES });
        assert_eq!(read(&[&long]), too_long);
        assert_eq!(read(&long.chunks(1000).collect::<Vec<_>>()), too_long);
        assert_eq!(read(&[&[&long[..], b"\n"].concat()]), too_long);
        assert_eq!(read(&[&long[1..]]), Ok(vec![]));
    }

    #[test]
    fn an_event_of_very_many_lines_is_refused() {
        let line = format!("data: {}\n", "x".repeat(1000));
        assert_eq!(read(&vec![line.as_bytes(); 10_000]), Err(TooLong { max_bytes: MAX_EVENT_BYTES }));
    }
}
