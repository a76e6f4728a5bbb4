//! The files and types that the map (`ARCHITECTURE.md`) names in backticks exist, so that a rename changes it too.

use std::collections::BTreeSet;

use super::Violation;
use super::crates::MAP;

/// Endings of the files that the map names.
const ENDINGS: &[&str] = &[".rs", ".md", ".toml", ".csv", ".ts"];

/// The words of all Rust sources, to look names up in.
pub(super) fn words<'text>(sources: impl IntoIterator<Item = &'text str>) -> BTreeSet<&'text str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    sources.into_iter().flat_map(|text| text.split(move |c| !is_word(c))).filter(|word| !word.is_empty()).collect()
}

/// Names of files and types in the map that are not in the tree.
pub(super) fn check(map: &str, files: &[String], words: &BTreeSet<&str>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut is_code = false;
    for (number, line) in map.lines().enumerate() {
        if line.starts_with("```") {
            is_code = !is_code;
            continue;
        }
        let quoted = line.split('`').skip(1).step_by(2).filter(|_| !is_code);
        for name in quoted.filter(|name| !exists(name, files, words)) {
            violations.push(Violation {
                place: format!("{MAP}:{}", number + 1),
                wrong: format!("names `{name}`, which is not in the tree"),
                remedy: "use its present name".to_owned(),
            });
        }
    }
    violations
}

/// True of whatever is neither a path nor a type, too.
fn exists(name: &str, files: &[String], words: &BTreeSet<&str>) -> bool {
    if is_path(name) {
        let path = name.trim_end_matches('/');
        let (end, inside, within) = (format!("/{path}"), format!("{path}/"), format!("/{path}/"));
        return files
            .iter()
            .any(|file| file == path || file.ends_with(&end) || file.starts_with(&inside) || file.contains(&within));
    }
    let plain = name.split(['(', '<', ' ', '{']).next().unwrap_or(name);
    let is_type = plain.starts_with(|c: char| c.is_ascii_uppercase()) && plain.contains(|c: char| c.is_ascii_lowercase());
    !is_type || plain.split("::").all(|part| words.contains(part))
}

fn is_path(name: &str) -> bool {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'));
    is_plain && !name.starts_with('/') && (name.contains('/') || ENDINGS.iter().any(|end| name.ends_with(end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrongs(map: &str) -> Vec<String> {
        let files = ["crates/domain/src/decide/mod.rs".to_owned(), "docs/acceptance.csv".to_owned()];
        let words = words(["pub enum Outcome { Kept }\nfn act_ahead() {}"]);
        check(map, &files, &words).into_iter().map(|violation| format!("{}: {}", violation.place, violation.wrong)).collect()
    }

    #[test]
    fn what_is_there_may_be_named() {
        for map in [
            "`crates/domain`, `decide/`, `domain/src/decide/mod.rs`, `docs/acceptance.csv`",
            "`Outcome::Kept`, `Outcome(..)`, `Outcome<T>`",
            "`/openapi.json`, `POST /api/submit`, `turnCrashed`, `SPINE_VERSION`, `roles/*.md`, `sub_<main>_<unique>`",
            "```\n`gone.rs`\n```",
        ] {
            assert_eq!(wrongs(map), [""; 0], "{map}");
        }
    }

    #[test]
    fn what_is_gone_is_reported() {
        for name in ["gone.rs", "decide/gone.rs", "gone/", "Gone", "Outcome::Gone", "Gone(..)"] {
            let expected = format!("ARCHITECTURE.md:2: names `{name}`, which is not in the tree");
            assert_eq!(wrongs(&format!("First.\nSee `{name}`.")), [expected]);
        }
    }
}
