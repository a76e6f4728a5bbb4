//! Cuts the change of a text file down to the lines that change, for a person who decides about it.

use polis_ports::TextChange;

use crate::FileChange;

/// How many unchanged lines are shown on either side.
const AROUND: usize = 3;

/// Longest text of one side, in bytes.
const MAX_BYTES: usize = 32 << 10;

/// Most lines of one side.
const MAX_LINES: usize = 1_000;

/// The change as it is shown, or why it is not.
pub(super) fn shown(change: Result<TextChange, String>) -> FileChange {
    let TextChange { path, before, after } = match change {
        Ok(change) => change,
        Err(reason) => return FileChange::Hidden { reason },
    };
    let is_new = before.is_none();
    let before = before.unwrap_or_default();
    let (old, new) = (lines(&before), lines(&after));
    let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let shortest = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(shortest).take_while(|(old, new)| old == new).count();
    let is_same = start == old.len() && start == new.len();
    let first = start.saturating_sub(AROUND);
    let part = |lines: &[&str]| match is_same {
        true => (String::new(), false),
        false => cut(&lines[first..lines.len() - end.saturating_sub(AROUND)]),
    };
    let ((before, is_old_cut), (after, is_new_cut)) = (part(&old), part(&new));
    FileChange::Shown { path, is_new, line: first + 1, before, after, is_cut: is_old_cut || is_new_cut }
}

/// The lines of a text, each with its end; the last of them may have none.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Whole lines up to the limit, or the beginning of the first, and whether something is left out.
fn cut(lines: &[&str]) -> (String, bool) {
    let mut text = String::new();
    for (n, line) in lines.iter().enumerate() {
        if n == MAX_LINES || text.len() + line.len() > MAX_BYTES {
            if text.is_empty() {
                text.push_str(&line[..line.floor_char_boundary(MAX_BYTES)]);
            }
            return (text, true);
        }
        text.push_str(line);
    }
    (text, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(before: Option<&str>, after: &str) -> (bool, usize, String, String, bool) {
        let change = TextChange { path: "a.md".to_owned(), before: before.map(str::to_owned), after: after.to_owned() };
        match shown(Ok(change)) {
            FileChange::Shown { is_new, line, before, after, is_cut, .. } => (is_new, line, before, after, is_cut),
            FileChange::Hidden { reason } => panic!("{reason}"),
        }
    }

    #[test]
    fn the_lines_that_change_are_shown_with_three_around_them() {
        let file: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        for (before, after, want) in [
            (
                Some(&*file),
                file.replace("line 10\n", "ten\n"),
                (
                    false,
                    7,
                    "line 7\nline 8\nline 9\nline 10\nline 11\nline 12\nline 13\n",
                    "line 7\nline 8\nline 9\nten\nline 11\nline 12\nline 13\n",
                ),
            ),
            (Some("a\n"), "a\nb\n".to_owned(), (false, 1, "a\n", "a\nb\n")),
            (Some("a"), "a\n".to_owned(), (false, 1, "a", "a\n")),
            (Some("x\nx\nx\n"), "x\nx\n".to_owned(), (false, 1, "x\nx\nx\n", "x\nx\n")),
            (Some("a\nb"), "a\nb".to_owned(), (false, 1, "", "")),
            (Some("a\n"), String::new(), (false, 1, "a\n", "")),
            (Some(""), "数\n".to_owned(), (false, 1, "", "数\n")),
            (None, "new\n".to_owned(), (true, 1, "", "new\n")),
        ] {
            let (is_new, line, old, new, is_cut) = of(before, &after);
            let line = if (&*old, &*new) == ("", "") { 1 } else { line };
            assert_eq!((is_new, line, &*old, &*new), want);
            assert!(!is_cut);
        }
    }

    #[test]
    fn what_is_shown_is_bounded() {
        let long = "数".repeat(MAX_BYTES);
        let many = "a line\n".repeat(MAX_LINES + 1);
        for (before, after) in [(Some(&*long), &*many), (Some(&*many), &*long), (None, &*many), (Some(""), &*long)] {
            let (_, _, old, new, is_cut) = of(before, after);
            assert!(is_cut && old.len() <= MAX_BYTES && new.len() <= MAX_BYTES);
            assert!(old.lines().count() <= MAX_LINES && new.lines().count() <= MAX_LINES);
            assert!(old.is_empty() || old == long[..MAX_BYTES / 3 * 3] || old.ends_with("a line\n"));
        }
    }
}
