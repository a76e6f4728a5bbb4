//! When a procedure applies: words of the task, with `*` for anything and `{name}` for what is to be kept.

/// The texts at the places of a pattern, by their names.
pub(super) type Captures = Vec<(String, String)>;

/// A pattern, such as `monthly report for {month}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// These words, in lower case.
    Words(String),
    /// Anything; kept under this name, if it has one.
    Anything(Option<String>),
}

impl Pattern {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text.trim();
        while let Some(place) = rest.find(['*', '{']) {
            let (words, after) = rest.split_at(place);
            push_words(&mut parts, words);
            let (name, after) = match after.strip_prefix('{') {
                Some(after) => {
                    let (name, after) = after.split_once('}').ok_or_else(|| format!("`{{` has no `}}` in `{text}`"))?;
                    if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
                        return Err(format!("`{{{name}}}` is no name; use letters, digits and `_`"));
                    }
                    (Some(name.to_owned()), after)
                }
                None => (None, &after[1..]),
            };
            if matches!(parts.last(), Some(Part::Anything(_))) {
                return Err(format!("two places stand side by side in `{text}`; put a word between them"));
            }
            parts.push(Part::Anything(name));
            rest = after;
        }
        push_words(&mut parts, rest);
        if !parts.iter().any(|part| matches!(part, Part::Words(_))) {
            return Err(format!("`{text}` would fit every task; write words that such a task has"));
        }
        Ok(Self { text: text.trim().to_owned(), parts })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// How many characters of a task it names.
    pub(super) fn weight(&self) -> usize {
        let words = self.parts.iter().map(|part| match part {
            Part::Words(words) => words.chars().count(),
            Part::Anything(_) => 0,
        });
        words.sum()
    }

    /// The names of its places.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Anything(name) => name.as_deref(),
            Part::Words(_) => None,
        })
    }

    /// What stands at its places in a task that it fits.
    pub(super) fn matches(&self, task: &str) -> Option<Vec<(String, String)>> {
        let task = spaced(task);
        // Lower case may change the length of a text; then a place in one is no place in the other.
        let lower =
            Some(task.to_lowercase()).filter(|lower| lower.len() == task.len()).unwrap_or_else(|| task.to_ascii_lowercase());
        let mut kept = Vec::new();
        let mut at = 0;
        let mut open: Option<(&Option<String>, usize)> = None;
        for part in &self.parts {
            match part {
                Part::Anything(name) => open = Some((name, at)),
                Part::Words(words) => {
                    // What is kept is not empty.
                    let from = open.map_or(at, |(_, from)| from + task[from..].chars().next().map_or(0, char::len_utf8));
                    let found = find(&lower, from, words)?;
                    if let Some((name, from)) = open.take() {
                        keep(&mut kept, name, &task[from..found])?;
                    }
                    at = found + words.len();
                }
            }
        }
        if let Some((name, from)) = open {
            let rest = &task[from..];
            let end = rest.find(['\n', '.', '。', '!', '！', '?', '？', ';', '；']).unwrap_or(rest.len());
            // A point inside a name, such as sales.csv, ends nothing.
            let end = if rest[end..].starts_with('.') && rest[end + 1..].starts_with(char::is_alphanumeric) {
                rest.len()
            } else {
                end
            };
            keep(&mut kept, name, rest[..end].trim_end_matches(['.', '。', '!', '！', '?', '？']))?;
        }
        Some(kept)
    }
}

fn keep(kept: &mut Vec<(String, String)>, name: &Option<String>, found: &str) -> Option<()> {
    let found = found.trim();
    if found.is_empty() {
        return None;
    }
    kept.extend(name.clone().map(|name| (name, found.to_owned())));
    Some(())
}

fn push_words(parts: &mut Vec<Part>, words: &str) {
    let words = spaced(words.trim()).to_lowercase();
    if !words.is_empty() {
        parts.push(Part::Words(words));
    }
}

/// One space where there is room.
fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Where these words stand, as whole words where they are written with spaces.
fn find(text: &str, from: usize, words: &str) -> Option<usize> {
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let mut at = from;
    while let Some(found) = text.get(at..)?.find(words).map(|place| place + at) {
        let end = found + words.len();
        let before = is_letter(text[..found].chars().next_back()) && is_letter(words.chars().next());
        let after = is_letter(text[end..].chars().next()) && is_letter(words.chars().next_back());
        if !before && !after {
            return Some(found);
        }
        at = found + words.chars().next().map_or(1, char::len_utf8);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(pattern: &str, task: &str) -> Option<String> {
        let kept = Pattern::read(pattern).unwrap().matches(task)?;
        Some(kept.into_iter().map(|(name, word)| format!("{name}={word}")).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_pattern_fits_whole_words_and_keeps_what_stands_at_its_places() {
        for (pattern, task, expected) in [
            ("monthly report", "Please write the Monthly  Report now", Some("")),
            ("report", "the reporter came", None),
            ("report", "reports", None),
            ("monthly report for {month}", "the monthly report for March, please.", Some("month=March, please")),
            ("report for {month} in {city}", "Report for May in Ulm!", Some("month=May city=Ulm")),
            ("report for {month}", "a report for", None),
            ("report for {month}", "a report for   ", None),
            ("check * in {file}", "check the sums in sales.csv", Some("file=sales.csv")),
            ("月报", "请写三月的月报", Some("")),
            ("写{month}的月报", "请写三月的月报。", Some("month=三月")),
            ("{who} asks for a refund", "Ada asks for a refund", Some("who=Ada")),
            ("refund", "İstanbul wants a refund", Some("")),
        ] {
            assert_eq!(kept(pattern, task).as_deref(), expected, "{pattern} / {task}");
        }
    }

    #[test]
    fn a_pattern_that_says_nothing_is_refused() {
        for bad in ["*", "{task}", "", "{a}{b} x", "{a x", "{a b} x"] {
            assert!(Pattern::read(bad).is_err(), "{bad}");
        }
    }
}
