//! Truncates texts, so that messages and lists stay within bounds however long replies and results are.

use std::borrow::Cow;

/// Most bytes of a text in a message of a thread. The log takes a little more; what is longer stands in it as a reply, a result
/// or an order.
pub(super) const MOST_MESSAGE_BYTES: usize = 192 * 1024;

/// The most bytes that each of some texts may have so that together they have no more than `total`. What short ones leave is for
/// the long ones.
pub(super) fn share(lengths: impl Iterator<Item = usize>, total: usize) -> usize {
    let mut lengths: Vec<usize> = lengths.collect();
    lengths.sort_unstable();
    let (mut left, count) = (total, lengths.len());
    for (n, length) in lengths.into_iter().enumerate() {
        let share = left / (count - n);
        if length > share {
            return share;
        }
        left -= length;
    }
    usize::MAX
}

/// The beginning of a text of `bytes` bytes, of which this much is at hand; and how much is left out, and where it is found.
pub(super) fn head<'a>(text: &'a str, bytes: usize, most: usize, place: &str) -> Cow<'a, str> {
    let kept = &text[..text.floor_char_boundary(most)];
    if kept.len() >= bytes {
        return Cow::Borrowed(kept);
    }
    let whole = if place.is_empty() { String::new() } else { format!("; the whole is {place}") };
    Cow::Owned(format!("{kept} … ({} more bytes{whole})", bytes - kept.len()))
}

/// Beginning and end of a text that is longer than `most` bytes. What comes out is not longer.
pub(super) fn clipped(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    // The words between have at most 47 bytes.
    let room = most.saturating_sub(48);
    let begin = text.floor_char_boundary(room - room / 3);
    let end = text.ceil_char_boundary(text.len() - room / 3);
    Cow::Owned(format!("{} … ({} bytes left out) … {}", &text[..begin], end - begin, &text[end..]))
}

/// Whether a character ends a line, for whoever reads it.
fn breaks(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// A text of others in one of our lists: in its own line if it has only one, else below it with a mark before each line, so that
/// none of its lines can be taken for one of ours.
pub(super) fn quoted(text: &str) -> String {
    let text = text.trim_end_matches(breaks);
    if !text.contains(breaks) {
        return format!(" {text}");
    }
    text.replace("\r\n", "\n").split(breaks).map(|line| format!("\n  | {line}")).collect()
}

/// A text in one line.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains(|c| breaks(c) || c.is_control()) {
        Cow::Owned(text.chars().map(|c| if breaks(c) || c.is_control() { ' ' } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_short_texts_leave_is_for_the_long_ones() {
        for (lengths, total, most) in [
            (&[10, 20][..], 30, usize::MAX),
            (&[10, 20], 29, 19),
            (&[100, 1, 100], 101, 50),
            (&[100, 100, 100], 30, 10),
            (&[], 0, usize::MAX),
        ] {
            let cut = share(lengths.iter().copied(), total);
            assert_eq!(cut, most, "{lengths:?}");
            assert!(lengths.iter().map(|&length| length.min(cut)).sum::<usize>() <= total, "{lengths:?}");
        }
    }

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        let long = format!("begin{}end", "字".repeat(1_000));
        let cut = clipped(&long, 300);
        assert!(cut.len() <= 300 && cut.starts_with("begin字") && cut.ends_with("字end"), "{cut}");
        assert!(cut.contains(" bytes left out) … "), "{cut}");
        assert_eq!(clipped("short", 5), "short");
        assert_eq!(head("字字", 6, 4, "x"), "字 … (3 more bytes; the whole is x)");
        assert_eq!(head("字字", 6, 6, "x"), "字字");
    }

    #[test]
    fn no_line_of_another_can_pass_for_ours() {
        assert_eq!(quoted("3 lines\n"), " 3 lines");
        assert_eq!(quoted("a\r\n[c2] b\u{2028}## Heading\u{85}c"), "\n  | a\n  | [c2] b\n  | ## Heading\n  | c");
        assert_eq!(one_line("{\"a\":\n1}"), "{\"a\": 1}");
    }
}
