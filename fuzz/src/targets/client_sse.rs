//! Server-sent events of a polis elsewhere: the same however they are cut, and no line is lost.

use futures_util::stream;
use polis_client::{Sse, SseEvent};
use polis_http::Bytes;

use super::sse::lines;
use super::{CUTS, now};
use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "client_sse",
    run,
    words: &["data:", "data: ", "event: ", "id: 7.5f3c", ": alive", "\n\n", "\r\n\r\n", "data:\ndata:x"],
};

fn run(input: &[u8]) {
    let whole = read(input, input.len());
    for size in CUTS {
        assert_eq!(read(input, size), whole, "in chunks of {size}");
    }
    assert_eq!(whole, plainly(input));
}

fn read(input: &[u8], size: usize) -> Vec<SseEvent> {
    let chunks: Vec<_> = input.chunks(size.max(1)).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
    let mut sse = Sse::new(Box::pin(stream::iter(chunks)));
    std::iter::from_fn(|| now(sse.next()).expect("nothing broke off")).collect()
}

/// An event that is not closed by an empty line was cut.
fn plainly(input: &[u8]) -> Vec<SseEvent> {
    let (mut events, mut event, mut data) = (Vec::new(), SseEvent::default(), Vec::<String>::new());
    let input = lines(input);
    let Some(end) = input.iter().rposition(|byte| *byte == b'\n') else { return events };
    for line in input[..end].split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line).into_owned();
        if line.is_empty() {
            event.data = std::mem::take(&mut data).join("\n");
            let event = std::mem::take(&mut event);
            events.extend((!event.data.is_empty()).then_some(event));
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => event.id = value.split('.').next().and_then(|place| place.parse().ok()),
            "event" => event.name = value.to_owned(),
            "data" => data.push(value.to_owned()),
            _ => {}
        }
    }
    events
}
