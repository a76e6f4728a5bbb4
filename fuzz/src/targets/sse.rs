//! Server-sent events, against the plain way of reading them: the whole text at once, line by line.

use polis_http::sse::{Event, SseReader};

use super::CUTS;
use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "sse",
    run,
    words: &["data:", "data: ", "event: ", "id: 1", "retry: 1", ": comment", "\n\n", "\r\n\r\n", "\r", "\u{feff}", "[DONE]"],
};

fn run(input: &[u8]) {
    let whole = events(&[input]);
    for size in CUTS {
        let chunks: Vec<&[u8]> = input.chunks(size).collect();
        assert_eq!(events(&chunks), whole, "in chunks of {size}");
    }
    assert_eq!(whole.as_ref(), Some(&plainly(input)));
}

fn events(chunks: &[&[u8]]) -> Option<Vec<(String, String)>> {
    let (mut reader, mut events) = (SseReader::default(), Vec::new());
    let mut take = |event: Event<'_>| events.push((event.name.into_owned(), event.data.into_owned()));
    for chunk in chunks {
        reader.push(chunk, &mut take).ok()?;
    }
    reader.end(&mut take).ok()?;
    Some(events)
}

/// The text with all its lines ended by LF, and no byte order mark.
pub(super) fn lines(input: &[u8]) -> Vec<u8> {
    let input = input.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(input);
    let mut text: Vec<u8> = Vec::new();
    for (at, byte) in input.iter().enumerate() {
        match byte {
            b'\n' if at > 0 && input[at - 1] == b'\r' => {}
            b'\r' => text.push(b'\n'),
            byte => text.push(*byte),
        }
    }
    text
}

fn plainly(input: &[u8]) -> Vec<(String, String)> {
    let text = lines(input);
    let (mut events, mut name, mut data) = (Vec::new(), Vec::new(), None::<Vec<u8>>);
    let mut dispatch = |name: &mut Vec<u8>, data: &mut Option<Vec<u8>>| {
        if let Some(data) = data.take() {
            events.push((lossy(name), lossy(&data)));
        }
        name.clear();
    };
    for line in text.split(|byte| *byte == b'\n') {
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = colon.map_or((line, &[][..]), |colon| (&line[..colon], &line[colon + 1..]));
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => match &mut data {
                Some(data) => data.extend_from_slice(&[b"\n", value].concat()),
                None => data = Some(value.to_vec()),
            },
            b"event" => name = value.to_vec(),
            b"" if colon.is_none() => dispatch(&mut name, &mut data),
            _ => {}
        }
    }
    dispatch(&mut name, &mut data);
    events
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
