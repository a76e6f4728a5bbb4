//! Cuts the change of a text file down to the lines that change, for a person who decides about it.

use polis_ports::TextChange;
use tokio::sync::Semaphore;

use crate::FileChange;

/// How many unchanged lines are shown on either side.
const AROUND: usize = 3;

/// Longest text of one side, in bytes.
const MAX_BYTES: usize = 32 << 10;

/// Most lines of one side.
const MAX_LINES: usize = 1_000;

/// Most bytes of unchanged lines before the change.
const MAX_LEAD_BYTES: usize = 4 << 10;

/// Most bytes before the first difference within a line that is too long.
const MAX_MARGIN_BYTES: usize = 512;

/// Stands for what is left out at an end of a line.
const LEFT_OUT: &str = "…";

/// One comparison at a time: each holds whole texts, and every person with the right to read can ask for one.
pub(super) static COMPARING: Semaphore = Semaphore::const_new(1);

/// The change as it is shown, or why it is not. Blocks while it compares.
pub(super) fn shown(change: Result<TextChange, String>) -> FileChange {
    let TextChange { path, before, after } = match change {
        Ok(change) => change,
        Err(reason) => return FileChange::Hidden { reason },
    };
    let is_new = before.is_none();
    let before = before.unwrap_or_default();
    if before.len().max(after.len()) > TextChange::MAX_BYTES {
        let reason = format!("`{path}` is larger than {} bytes, before or afterwards", TextChange::MAX_BYTES);
        return FileChange::Hidden { reason };
    }
    if before == after {
        return FileChange::Shown { path, is_new, line: 1, before: String::new(), after: String::new(), is_cut: false };
    }
    let start = same_start(&before, &after);
    let (old, new) = (&before[start..], &after[start..]);
    let end = same_end(old, new);
    let lead = lead(&before[..start]);
    let line = before[..start - lead.len()].matches('\n').count() + 1;
    let (old, rest) = old.split_at(old.len() - end);
    let (before, after, is_cut) = sides(lead, old, &new[..new.len() - end], rest);
    FileChange::Shown { path, is_new, line, before, after, is_cut }
}

/// Both sides as they are shown, and whether something is left out: the lines before the change, what differs, and of the rest,
/// which is the same, the lines that there is room for.
fn sides(lead: &str, old: &str, new: &str, rest: &str) -> (String, String, bool) {
    let room = MAX_BYTES - lead.len() - 2 * (LEFT_OUT.len() + 1);
    if first_line(old).len().max(first_line(new).len()) > room {
        // Both from the same place on, so that they differ where the lines do.
        let from = old.floor_char_boundary(same_bytes(old, new).saturating_sub(MAX_MARGIN_BYTES));
        let side = |text| format!("{lead}{}", part_of_line(first_line(text), from, room));
        return (side(old), side(new), true);
    }
    let (old_fits, new_fits) = (fitting(old, room, MAX_LINES - 2 * AROUND), fitting(new, room, MAX_LINES - 2 * AROUND));
    let is_cut = old_fits < old.len() || new_fits < new.len();
    let trail = if is_cut { 0 } else { fitting(rest, room - old.len().max(new.len()), AROUND) };
    let side = |text: &str| [lead, text, &rest[..trail]].concat();
    (side(&old[..old_fits]), side(&new[..new_fits]), is_cut)
}

/// How many bytes two texts have in common at their beginnings.
fn same_bytes(old: &str, new: &str) -> usize {
    old.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count()
}

/// How many bytes of whole lines two texts have in common at their beginnings. They are not the same.
fn same_start(old: &str, new: &str) -> usize {
    let same = &old.as_bytes()[..same_bytes(old, new)];
    same.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

/// How many bytes of whole lines two texts have in common at their ends.
fn same_end(old: &str, new: &str) -> usize {
    let same = old.bytes().rev().zip(new.bytes().rev()).take_while(|(old, new)| old == new).count();
    let is_line = |text: &str| same == text.len() || text.as_bytes()[text.len() - same - 1] == b'\n';
    if is_line(old) && is_line(new) {
        return same;
    }
    let same = &old.as_bytes()[old.len() - same..];
    same.iter().position(|byte| *byte == b'\n').map_or(0, |at| same.len() - at - 1)
}

/// The last lines of what comes before the change, as far as they are short.
fn lead(text: &str) -> &str {
    let mut from = text.len();
    for _ in 0..AROUND {
        let Some(before) = text[..from].strip_suffix('\n') else { break };
        let line = before.rfind('\n').map_or(0, |at| at + 1);
        if text.len() - line > MAX_LEAD_BYTES {
            break;
        }
        from = line;
    }
    &text[from..]
}

/// The first line, with its end.
fn first_line(text: &str) -> &str {
    text.split_inclusive('\n').next().unwrap_or_default()
}

/// A line from this byte on, as far as there is room.
fn part_of_line(line: &str, from: usize, room: usize) -> String {
    let to = line.floor_char_boundary(from + room);
    let (begin, end) = (if from > 0 { LEFT_OUT } else { "" }, if to < line.len() { LEFT_OUT } else { "" });
    let new_line = if end.is_empty() { "" } else { "\n" };
    format!("{begin}{}{end}{new_line}", &line[from..to])
}

/// How many bytes of a text are whole lines that stay within both limits.
fn fitting(text: &str, bytes: usize, lines: usize) -> usize {
    let ends = text.split_inclusive('\n').take(lines).scan(0, |end, line| {
        *end += line.len();
        Some(*end)
    });
    ends.take_while(|end| *end <= bytes).last().unwrap_or(0)
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
            (Some("a\nb"), "b".to_owned(), (false, 1, "a\nb", "b")),
            (Some("ab"), "ab\nab".to_owned(), (false, 1, "ab", "ab\nab")),
            (Some("x\n"), "ax\n".to_owned(), (false, 1, "x\n", "ax\n")),
            (Some("x\nx\nx\n"), "x\nx\n".to_owned(), (false, 1, "x\nx\nx\n", "x\nx\n")),
            (Some("a\nb"), "a\nb".to_owned(), (false, 1, "", "")),
            (Some("a\n"), String::new(), (false, 1, "a\n", "")),
            (Some(""), "数\n".to_owned(), (false, 1, "", "数\n")),
            (Some("a\n数据\nb\n"), "a\n敱据\nb\n".to_owned(), (false, 1, "a\n数据\nb\n", "a\n敱据\nb\n")),
            (None, "new\n".to_owned(), (true, 1, "", "new\n")),
            (None, String::new(), (true, 1, "", "")),
        ] {
            let (is_new, line, old, new, is_cut) = of(before, &after);
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
            assert!([&old, &new].iter().all(|side| side.is_empty() || side.ends_with('\n')));
        }
        let (_, _, old, new, is_cut) = of(Some("a\nb\n"), &format!("a\n{many}b\n"));
        assert!(is_cut && old == "a\n" && new.ends_with("a line\n"), "what follows is not shown as if it stood next to it");
    }

    #[test]
    fn the_first_difference_is_shown_however_long_the_lines_are() {
        let long = "数据".repeat(8_000);
        let lines = |first: &str, last: &str| format!("{first}\n{long}\n{long}\n{long}\n{last}\n");
        for (before, after, line, old, new) in [
            // Within a line that is too long, at its end and after it.
            (format!("{long}A{long}"), format!("{long}B{long}"), 1, "据A数", "据B数"),
            (long.clone(), format!("{long}\n"), 1, "数据", "数据\n"),
            (format!("a\n{long}A\n"), format!("a\n{long}\n"), 1, "据A\n", "据\n"),
            // After lines that would fill what is shown.
            (lines("a", "one"), lines("a", "two"), 5, "one\n", "two\n"),
            (lines("a", "one"), format!("{}two\n", lines("a", "one")), 5, "one\n", "one\ntwo\n"),
            // A line that is too long is new, or gone.
            ("a\nb\n".to_owned(), format!("a\n{long}\nb\n"), 1, "a\n", "a\n数据数"),
            (format!("a\n{long}\nb\n"), "a\nb\n".to_owned(), 1, "a\n数据数", "a\n"),
        ] {
            let (_, at, shown_old, shown_new, _) = of(Some(&before), &after);
            assert!(shown_old.len() <= MAX_BYTES && shown_new.len() <= MAX_BYTES);
            assert_ne!(shown_old, shown_new);
            assert_eq!(at, line);
            assert!(shown_old.contains(old) && shown_new.contains(new), "{old} {new}");
        }
        let (_, _, old, new, is_cut) = of(Some(&format!("{long}A{long}")), &format!("{long}B{long}"));
        let margin = |text: &str| text.find(['A', 'B']).unwrap();
        assert!(is_cut && [&old, &new].iter().all(|text| text.starts_with('…') && text.ends_with("…\n")));
        assert!(margin(&old) == margin(&new) && margin(&old) <= MAX_MARGIN_BYTES + LEFT_OUT.len() + 3);
    }

    #[test]
    fn texts_that_are_too_large_are_not_compared() {
        let text = |bytes: usize| "\n".repeat(bytes);
        let hidden = |before: usize, after: usize| {
            let change = TextChange { path: "a.md".to_owned(), before: Some(text(before)), after: text(after) };
            matches!(shown(Ok(change)), FileChange::Hidden { reason } if reason.contains("`a.md` is larger than 1048576 bytes"))
        };
        let most = TextChange::MAX_BYTES;
        assert_eq!([hidden(most, most), hidden(most, most - 1), hidden(most - 1, most)], [false; 3]);
        assert_eq!([hidden(most + 1, 1), hidden(1, most + 1), hidden(16 << 20, 16 << 20)], [true; 3]);
    }

    #[test]
    fn a_line_that_is_put_before_or_after_others_is_the_only_one_that_changes() {
        let file: String = (1..=20_000).map(|n| format!("line {n}\n")).collect();
        for (after, line, new) in [
            (format!("first\n{file}"), 1, "first\nline 1\nline 2\nline 3\n"),
            (format!("{file}last\n"), 19_998, "line 19998\nline 19999\nline 20000\nlast\n"),
        ] {
            let (_, at, _, shown_new, is_cut) = of(Some(&file), &after);
            assert_eq!((at, &*shown_new, is_cut), (line, new, false));
        }
    }
}
