//! Amazon's event stream: messages with headers, a payload and two checksums. Knows nothing of what the events mean.
//!
//! ```text
//! total length (4)  length of the headers (4)  CRC-32 of these eight bytes (4)
//! headers           payload                    CRC-32 of everything before it (4)
//! ```

use polis_http::sse::{Event, MAX_EVENT_BYTES};

use super::frames::FrameError;

/// The two lengths and their checksum.
const PRELUDE: usize = 12;

/// The checksum at the end.
const CHECKSUM: usize = 4;

/// Takes chunks, gives messages as events: `:event-type` is the name, or `:exception-type` where the service reports one. An
/// error without a type has the name `error`, and its code and message as data.
#[derive(Debug, Default)]
pub(super) struct MessageReader {
    held: Vec<u8>,
}

impl MessageReader {
    pub(super) fn push(&mut self, chunk: &[u8], mut take: impl FnMut(Event<'_>)) -> Result<(), FrameError> {
        self.held.extend_from_slice(chunk);
        let mut at = 0;
        while let Some(length) = total_length(&self.held[at..])? {
            let Some(message) = self.held.get(at..at + length) else { break };
            read(message, &mut take)?;
            at += length;
        }
        self.held.drain(..at);
        Ok(())
    }

    /// The stream is over: half a message is an error.
    pub(super) fn end(self) -> Result<(), FrameError> {
        if self.held.is_empty() { Ok(()) } else { Err(FrameError::Damaged("it ends inside a message")) }
    }
}

/// The length of the message that begins here; none until its prelude is there.
fn total_length(bytes: &[u8]) -> Result<Option<usize>, FrameError> {
    let Some(prelude) = bytes.get(..PRELUDE) else { return Ok(None) };
    if crc32fast::hash(&prelude[..8]) != number(&prelude[8..]) {
        return Err(FrameError::Damaged("the checksum of a length is wrong"));
    }
    let (total, headers) = (number(prelude) as usize, number(&prelude[4..]) as usize);
    if total > MAX_EVENT_BYTES {
        return Err(FrameError::TOO_LONG);
    }
    if total < PRELUDE + CHECKSUM || headers > total - PRELUDE - CHECKSUM {
        return Err(FrameError::Damaged("a length is wrong"));
    }
    Ok(Some(total))
}

/// The number in the first four bytes.
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn read(message: &[u8], take: &mut impl FnMut(Event<'_>)) -> Result<(), FrameError> {
    let (checked, checksum) = message.split_at(message.len() - CHECKSUM);
    if crc32fast::hash(checked) != number(checksum) {
        return Err(FrameError::Damaged("the checksum of a message is wrong"));
    }
    let (headers, payload) = checked[PRELUDE..].split_at(number(&message[4..]) as usize);
    let headers = texts(headers).ok_or(FrameError::Damaged("a header is wrong"))?;
    let header = |name: &[u8]| {
        let found = headers.iter().find(|(own, _)| *own == name)?;
        Some(String::from_utf8_lossy(found.1))
    };
    let data = String::from_utf8_lossy(payload);
    if header(b":message-type").as_deref() == Some("error") {
        let (code, text) = (header(b":error-code").unwrap_or_default(), header(b":error-message").unwrap_or_default());
        take(Event { name: "error".into(), data: format!("{code}: {text}").into(), ..Event::default() });
    } else {
        let name = header(b":event-type").or_else(|| header(b":exception-type")).unwrap_or_default();
        take(Event { name, data, ..Event::default() });
    }
    Ok(())
}

/// The headers whose values are text; none if they cannot be read.
fn texts(mut bytes: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let mut texts = Vec::new();
    while let Some((&length, rest)) = bytes.split_first() {
        let (name, rest) = rest.split_at_checked(length.into())?;
        let (&kind, rest) = rest.split_first()?;
        let (value, rest) = match kind {
            // Truth values have no bytes; then come integers of 1, 2, 4 and 8 bytes.
            0 | 1 => rest.split_at_checked(0)?,
            2..=5 => rest.split_at_checked(1 << (kind - 2))?,
            // Bytes and text begin with their length.
            6 | 7 => {
                let (length, rest) = rest.split_at_checked(2)?;
                rest.split_at_checked(usize::from(length[0]) << 8 | usize::from(length[1]))?
            }
            // A time, and an id.
            8 => rest.split_at_checked(8)?,
            9 => rest.split_at_checked(16)?,
            _ => return None,
        };
        if kind == 7 {
            texts.push((name, value));
        }
        bytes = rest;
    }
    Some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message with these headers, whose values are bytes with their kind in front.
    fn message(headers: &[(&str, &[u8])], payload: &str) -> Vec<u8> {
        let mut written = Vec::new();
        for (name, value) in headers {
            written.push(u8::try_from(name.len()).unwrap());
            written.extend_from_slice(name.as_bytes());
            written.extend_from_slice(value);
        }
        let total = u32::try_from(PRELUDE + written.len() + payload.len() + CHECKSUM).unwrap();
        let mut bytes = [total.to_be_bytes(), u32::try_from(written.len()).unwrap().to_be_bytes()].concat();
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
        bytes.extend_from_slice(&written);
        bytes.extend_from_slice(payload.as_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
        bytes
    }

    fn text(value: &str) -> Vec<u8> {
        [&[7, 0, u8::try_from(value.len()).unwrap()], value.as_bytes()].concat()
    }

    fn read_all(chunks: &[&[u8]]) -> Result<Vec<(String, String)>, FrameError> {
        let (mut reader, mut events) = (MessageReader::default(), Vec::new());
        for chunk in chunks {
            reader.push(chunk, |event| events.push((event.name.into_owned(), event.data.into_owned())))?;
        }
        reader.end()?;
        Ok(events)
    }

    /// The bytes of a message of Amazon's own test data: one header, an integer, and a payload.
    #[test]
    fn a_published_message_is_read() {
        let hex = "0000003d0000002007fd839 60c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1";
        let hex: String = hex.chars().filter(char::is_ascii_hexdigit).collect();
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
        assert_eq!(read_all(&[&bytes]).unwrap(), [(String::new(), "{'foo':'bar'}".to_owned())]);
        let made = message(&[("content-type", &text("application/json"))], "{'foo':'bar'}");
        assert_eq!(made, bytes);
    }

    #[test]
    fn messages_are_read_however_they_are_cut() {
        let kinds: &[(&str, &[u8])] =
            &[("a", &[0]), ("b", &[2, 1]), ("c", &[4, 1, 2, 3, 4]), ("d", &[6, 0, 1, 9]), ("e", &[8, 1, 2, 3, 4, 5, 6, 7, 8])];
        let (event, kind) = (text("event"), text("contentBlockDelta"));
        let first = message(&[kinds, &[(":message-type", &event), (":event-type", &kind)]].concat(), "{\"a\":\"é\"}");
        let (exception, kind) = (text("exception"), text("throttlingException"));
        let second = message(&[(":message-type", &exception), (":exception-type", &kind)], "{}");
        let (error, code, said) = (text("error"), text("InternalError"), text("sorry"));
        let third = message(&[(":message-type", &error), (":error-code", &code), (":error-message", &said)], "");
        let bytes = [first, second, third].concat();
        let pair = |name: &str, data: &str| (name.to_owned(), data.to_owned());
        let want = [
            pair("contentBlockDelta", "{\"a\":\"é\"}"),
            pair("throttlingException", "{}"),
            pair("error", "InternalError: sorry"),
        ];
        assert_eq!(read_all(&[&bytes]).unwrap(), want);
        assert_eq!(read_all(&bytes.chunks(1).collect::<Vec<_>>()).unwrap(), want);
        for cut in 0..bytes.len() {
            assert_eq!(read_all(&[&bytes[..cut], &bytes[cut..]]).unwrap(), want, "cut at {cut}");
        }
    }

    #[test]
    fn a_changed_or_missing_byte_is_noticed() {
        let kind = text("messageStop");
        let bytes = message(&[(":event-type", &kind)], "{\"stopReason\":\"end_turn\"}");
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert!(read_all(&[&changed]).is_err(), "changed at {at}");
            assert_eq!(read_all(&[&bytes[..at]]).is_err(), at > 0, "ends at {at}");
        }
        let huge = [&0x0100_0000_u32.to_be_bytes()[..], &[0; 4]].concat();
        let huge = [&huge[..], &crc32fast::hash(&huge).to_be_bytes()].concat();
        assert_eq!(read_all(&[&huge]), Err(FrameError::TOO_LONG));
        let odd = message(&[("a", &[99])], "");
        assert_eq!(read_all(&[&odd]), Err(FrameError::Damaged("a header is wrong")));
    }
}
