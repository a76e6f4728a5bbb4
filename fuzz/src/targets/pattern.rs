//! Patterns of rules and roles, against the plain way of matching them. The first line is the pattern, the rest the text.

use polis_domain::fits;

use super::{fits_plainly, text};
use crate::Target;

pub(crate) const TARGET: Target = Target { name: "pattern", run, words: &["*", "**", "a", "ab", "git__", "read_file", "\n"] };

fn run(input: &[u8]) {
    let Some((pattern, text)) = text(input).and_then(|text| text.split_once('\n')) else { return };
    assert_eq!(fits(pattern, text), fits_plainly(pattern, text), "{pattern:?} {text:?}");
    assert!(fits("*", text));
    assert!(!text.contains('*') || fits(text, text), "a text with stars fits itself");
}
