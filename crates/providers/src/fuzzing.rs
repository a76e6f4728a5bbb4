//! What vendors send, read without a network, for the fuzz targets. It is no part of the interface and may change at any time.

use polis_domain::Reply;
use polis_http::sse::SseReader;

use crate::{Dialect, wire};

/// The name and data of each server-sent event, or nothing where a limit was exceeded.
pub fn events(chunks: &[&[u8]]) -> Option<Vec<(String, String)>> {
    let (mut reader, mut events) = (SseReader::default(), Vec::new());
    for chunk in chunks {
        reader.push(chunk, |event| events.push((event.name.into_owned(), event.data.into_owned()))).ok()?;
    }
    reader.end(|event| events.push((event.name.into_owned(), event.data.into_owned()))).ok()?;
    Some(events)
}

/// The reply that the body of a response gives in a dialect, or why it gives none.
pub fn reply(dialect: Dialect, chunks: &[&[u8]]) -> Result<Reply, String> {
    wire::fuzzing::reply(dialect.reader(), chunks)
}
