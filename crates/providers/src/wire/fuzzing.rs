//! Reads a whole body as a stream would, without the connection: frames, then the dialect's reader, then the collected reply.

use std::collections::VecDeque;

use polis_domain::Reply;
use polis_http::sse::Event;
use polis_ports::{Collector, Delta};

use super::frames::Frames;
use super::{ChunkError, Ending, Progress, Reader, read_event};

pub(crate) fn reply(mut reader: Box<dyn Reader>, chunks: &[&[u8]]) -> Result<Reply, String> {
    let (mut frames, mut deltas) = (Frames::default(), VecDeque::new());
    let (mut failed, mut is_last, mut is_torn) = (None, false, false);
    let mut take = |event: Event<'_>, is_open: bool| {
        if is_last || failed.is_some() || matches!(event.data.trim(), "" | "null") {
            return;
        }
        match read_event(&mut *reader, &event, &mut deltas) {
            Ok(Progress::More) => {}
            Ok(Progress::Last) => is_last = true,
            Err(ChunkError::Reported(error)) => failed = Some(error.to_string()),
            Err(ChunkError::Unreadable(error)) if is_open => failed = Some(error),
            Err(ChunkError::Unreadable(_)) => is_torn = true,
        }
    };
    for chunk in chunks {
        frames.push(chunk, |event| take(event, true)).map_err(|error| error.to_string())?;
    }
    frames.end(|event| take(event, false)).map_err(|error| error.to_string())?;
    if let Some(failed) = failed {
        return Err(failed);
    }
    let ending = match (is_last, is_torn) {
        (true, _) => Ending::Marked,
        (false, true) => Ending::Cut,
        (false, false) => Ending::Closed,
    };
    let finish = reader.end(ending, &mut deltas).ok_or("the reply was cut")?;
    let mut collector = Collector::default();
    deltas.into_iter().chain([Delta::Done(finish)]).for_each(|delta| collector.push(delta));
    collector.finish().map_err(|error| error.to_string())
}
