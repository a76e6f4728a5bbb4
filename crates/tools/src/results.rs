//! How arguments come in and results go out, the same for every tool.

use std::collections::VecDeque;

use polis_domain::CallResult;
use polis_ports::ToolError;
use serde::de::DeserializeOwned;

/// Longest text of a parser that is passed on to the model, in characters.
const MAX_COMPLAINT_CHARS: usize = 300;

/// Longest result, in bytes; about as much as a model can use at once.
pub(crate) const MAX_RESULT_BYTES: usize = 48 << 10;

/// Reads the arguments as the model wrote them. What cannot be read is never guessed (D22).
pub(crate) fn arguments<T: DeserializeOwned>(text: &str) -> Result<T, ToolError> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    // Fields by their places instead of their names would pass by the rules, which see names.
    if !text.trim_start().starts_with('{') {
        return Err(ToolError::BadArguments("they must be a JSON object".to_owned()));
    }
    serde_json::from_str(text).map_err(|error| {
        let complaint: String = error.to_string().chars().take(MAX_COMPLAINT_CHARS).collect();
        ToolError::BadArguments(complaint)
    })
}

/// A good result.
pub(crate) fn good(content: String) -> CallResult {
    CallResult::good(content)
}

/// A failure that the model reads; the first word tells it even where the flag is lost on the way.
pub(crate) fn failed(reason: impl std::fmt::Display) -> CallResult {
    CallResult::failed(format!("error: {reason}"))
}

/// A name as it can stand on a line of a result.
pub(crate) fn on_one_line(name: &str) -> std::borrow::Cow<'_, str> {
    if name.contains(char::is_control) { name.escape_debug().to_string().into() } else { name.into() }
}

/// The beginning and the end of something of any length, in little memory.
#[derive(Debug, Clone)]
pub(crate) struct HeadTail {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl HeadTail {
    /// Keeps `most` bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self { half: most / 2, head: Vec::new(), tail: VecDeque::new(), total: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// How many bytes there were.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// All of it, as long as nothing is left out.
    pub(crate) fn parts(&mut self) -> (&[u8], &[u8]) {
        (&self.head, self.tail.make_contiguous())
    }

    /// What the model reads.
    pub(crate) fn text(self) -> String {
        self.text_noting("")
    }

    /// The same with a word about what is left out.
    pub(crate) fn text_noting(mut self, note: &str) -> String {
        let left_out = self.total - (self.head.len() + self.tail.len()) as u64;
        if left_out == 0 {
            self.head.extend(self.tail);
            return String::from_utf8_lossy(&self.head).into_owned();
        }
        // Characters that were cut in two.
        let (head, tail) = (String::from_utf8_lossy(&self.head), self.tail.make_contiguous());
        let (head, tail) = (head.trim_end_matches('\u{fffd}'), String::from_utf8_lossy(tail));
        let tail = tail.trim_start_matches('\u{fffd}');
        let (short_head, short_tail) = whole_lines(head, tail);
        let left_out = left_out + (head.len() - short_head.len() + tail.len() - short_tail.len()) as u64;
        let end = if short_head.ends_with('\n') { "" } else { "\n" };
        format!("{short_head}{end}[cut: {left_out} bytes are left out here{note}]\n{short_tail}")
    }
}

/// The whole lines of a beginning and an end: part of a line would be read as another one. Where lines are long, most of them stays.
fn whole_lines<'a>(head: &'a str, tail: &'a str) -> (&'a str, &'a str) {
    let last = head.rfind('\n').filter(|end| *end >= head.len() / 2);
    let first = tail.find('\n').filter(|end| *end < tail.len() / 2);
    (last.map_or(head, |end| &head[..=end]), first.map_or(tail, |end| &tail[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_cut_between_lines() {
        let mut kept = HeadTail::new(20);
        kept.push(b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n");
        assert_eq!(kept.text(), "one\ntwo\n[cut: 20 bytes are left out here]\nseven\n");
    }

    #[test]
    fn the_beginning_and_the_end_are_kept_however_it_comes() {
        let whole: Vec<u8> = (0..=255).collect::<Vec<u8>>().iter().map(|n| b'a' + n % 26).collect();
        for (most, pieces) in [(8, 1), (8, 3), (8, 256), (300, 7), (256, 256), (255, 5)] {
            let mut kept = HeadTail::new(most);
            whole.chunks(whole.len().div_ceil(pieces)).for_each(|piece| kept.push(piece));
            let text = std::str::from_utf8(&whole).unwrap();
            let half = most / 2;
            let want = match whole.len() <= 2 * half {
                true => text.to_owned(),
                false => {
                    let (head, tail) = (&text[..half], &text[text.len() - half..]);
                    format!("{head}\n[cut: {} bytes are left out here]\n{tail}", text.len() - 2 * half)
                }
            };
            assert_eq!((kept.total(), kept.text()), (256, want), "{most} in {pieces} chunks");
        }
    }
}
