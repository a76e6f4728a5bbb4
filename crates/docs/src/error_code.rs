//! The error codes: which the pages explain, and what they say about one.

use crate::page::{Language, Page};

/// An error code, and where the pages explain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode {
    /// The code, such as `unknown_agent`.
    pub code: &'static str,
    /// The page with the explanation.
    pub page: Page,
    section: &'static str,
}

impl ErrorCode {
    /// All codes, some of them several times: first those with a section of their own, then those in a table.
    pub fn all() -> impl Iterator<Item = Self> {
        let pages = || Page::all().filter(|page| page.language() == Language::English && page.name().starts_with("errors/"));
        let within = |codes: fn(&'static str) -> Vec<&'static str>| {
            pages().flat_map(move |page| {
                let named = move |section| codes(section).into_iter().map(move |code| Self { code, page, section });
                sections(page.text).into_iter().flat_map(named)
            })
        };
        within(in_heading).chain(within(in_tables))
    }

    /// The code with this name.
    #[must_use]
    pub fn find(code: &str) -> Option<Self> {
        Self::all().find(|known| known.code == code)
    }

    /// What the page says about it, for a reader at a terminal: its section, of whose tables only the row of the code.
    #[must_use]
    pub fn explanation(&self) -> String {
        let is_heading = in_heading(self.section).contains(&self.code);
        let is_other = |line: &&str| {
            let codes = in_row(line);
            !is_heading && !codes.is_empty() && !codes.contains(&self.code)
        };
        let lines: Vec<_> = self.section.lines().filter(|line| !is_other(line)).collect();
        lines.join("\n").trim_end().to_owned() + "\n"
    }
}

/// The parts of a page that begin with a heading of the second level.
fn sections(text: &'static str) -> Vec<&'static str> {
    let starts: Vec<usize> = text.match_indices("\n## ").map(|(at, _)| at + 1).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(start, end)| &text[*start..end]).collect()
}

/// The codes that a section is about. A heading in words has none.
fn in_heading(section: &'static str) -> Vec<&'static str> {
    let heading = section.lines().next().unwrap_or_default().trim_start_matches("## ");
    let codes: Vec<_> = heading.split(", ").collect();
    if codes.iter().all(|code| is_code(code)) { codes } else { Vec::new() }
}

fn in_tables(section: &'static str) -> Vec<&'static str> {
    section.lines().flat_map(in_row).collect()
}

/// The codes in the first cell of a table's row.
fn in_row(line: &str) -> Vec<&str> {
    let cell = line.strip_prefix("| ").and_then(|line| line.split(" |").next()).unwrap_or_default();
    let code = |word: &'_ str| -> bool { is_code(word.trim_matches('`')) && word.starts_with('`') };
    cell.split(", ").filter(|word| code(word)).map(|word| word.trim_matches('`')).collect()
}

fn is_code(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_list_is_explained_and_no_page_has_its_name() {
        let list = Page::find("errors/index", Language::English).unwrap();
        let codes: Vec<_> = list.text.lines().flat_map(in_row).collect();
        assert!(codes.len() > 200, "{}", codes.len());
        for code in codes {
            let found = ErrorCode::find(code).unwrap_or_else(|| panic!("{code} has no section"));
            let explanation = found.explanation();
            assert!(found.page.name() != "errors/index" && explanation.contains(code), "{code}: {explanation}");
            assert!(Page::find(code, Language::English).is_none(), "{code} is the name of a page too");
        }
    }

    #[test]
    fn a_code_in_a_table_is_shown_with_its_row_alone() {
        let explanation = ErrorCode::find("root_stays").unwrap().explanation();
        assert!(
            explanation.starts_with("## Who is there\n\n| code | means | do |\n|---|---|---|\n| `root_stays` |"),
            "{explanation}"
        );
        assert_eq!(explanation.lines().count(), 5);
    }
}
