//! What of an answer is left to show after the reply that it was made of was streamed.

/// The part of an answer that was not streamed. An answer that was cut says so at its end, and a very long one is its beginning with
/// a note; any other text is another answer.
pub fn unshown<'a>(answer: &'a str, streamed: &str) -> &'a str {
    let (whole, streamed) = (answer.trim(), streamed.trim());
    let common = whole.bytes().zip(streamed.bytes()).take_while(|(a, b)| a == b).count();
    let common = whole.floor_char_boundary(common);
    let left = &whole[common..];
    let is_begun = common == streamed.len() || common * 2 >= whole.len();
    let is_note = left.is_empty() || left.starts_with("\n\n[");
    if common > 0 && is_begun && is_note { left.trim_start() } else { answer }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_not_streamed_is_left() {
        assert_eq!(unshown("all of it", "all of it\n"), "");
        assert_eq!(unshown("half\n\n[The reply ends here.]", "half"), "[The reply ends here.]");
        let (long, note) = ("a long text, word by word ".repeat(9), "[the rest is artifact 7]");
        assert_eq!(unshown(&format!("{}\n\n{note}", &long[..120]), &long), note);
        assert_eq!(unshown("half [half]", "half"), "half [half]");
        assert_eq!(unshown("half of it", "half"), "half of it", "an agent may answer with more than a reply");
        assert_eq!(unshown("another", "an answer that was not taken"), "another");
        assert_eq!(unshown("全部内容。", "全部内容。"), "");
        assert_eq!(unshown("text", ""), "text");
    }
}
