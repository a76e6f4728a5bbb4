//! The targets, one file each, and what several of them need.

pub(crate) mod address;
pub(crate) mod charset;
pub(crate) mod client_sse;
pub(crate) mod emulated;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod mcp_frames;
pub(crate) mod mcp_tools;
pub(crate) mod org;
pub(crate) mod path;
pub(crate) mod pattern;
pub(crate) mod policy;
pub(crate) mod reply;
pub(crate) mod role_file;
pub(crate) mod sop;
pub(crate) mod sse;
pub(crate) mod url;
pub(crate) mod workflow;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// How a stream of bytes may be cut: the sizes of its chunks.
const CUTS: [usize; 3] = [1, 3, 64];

/// The input as text, where it is text.
fn text(input: &[u8]) -> Option<&str> {
    std::str::from_utf8(input).ok()
}

/// A text in pieces of about this many bytes.
fn pieces(text: &str, size: usize) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let end = (size.min(rest.len())..=rest.len()).find(|end| rest.is_char_boundary(*end)).unwrap_or(rest.len());
        let (chunk, after) = rest.split_at(end);
        pieces.push(chunk);
        rest = after;
    }
    pieces
}

/// Runs a future that waits for nothing.
fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a parser that has all its input waits for more"),
    }
}

/// Whether a text fits a pattern in which `*` stands for any text: the slow and plain way.
fn fits_plainly(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    // Which beginnings of the text fit the pattern read so far.
    let mut fits = vec![false; text.len() + 1];
    fits[0] = true;
    for c in pattern {
        let mut next = vec![false; text.len() + 1];
        for at in 0..=text.len() {
            next[at] = match c {
                '*' => fits[at] || (at > 0 && next[at - 1]),
                c => at > 0 && fits[at - 1] && text[at - 1] == c,
            };
        }
        fits = next;
    }
    fits[text.len()]
}
