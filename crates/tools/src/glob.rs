//! File patterns such as `*.md`, `src/**/*.rs`, `[a-c]*.txt` and `*.{csv,tsv}`, as regexes: matching takes time in proportion to
//! the path. (`globset` matches bytes, so that its `?` and `[…]` fit no Chinese character.)

use polis_ports::ToolError;
use regex::bytes::{Regex, RegexBuilder};

/// Longest pattern, in characters.
const MAX_CHARS: usize = 200;
/// Largest pattern, compiled.
const MAX_BYTES: usize = 1 << 20;

/// A pattern for paths. One without `/` looks at the name alone, wherever the file lies.
#[derive(Debug, Clone)]
pub(crate) struct Glob {
    regex: Regex,
}

impl Glob {
    /// Reads a pattern that a model wrote.
    pub(crate) fn new(pattern: &str) -> Result<Self, ToolError> {
        let bad = |why: &str| ToolError::BadArguments(format!("pattern {pattern:?} {why}"));
        if pattern.is_empty() || pattern.chars().count() > MAX_CHARS {
            return Err(bad("is empty or too long"));
        }
        let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
        let anywhere = if parts.len() == 1 && !pattern.starts_with('/') { "**/" } else { "" };
        let regex = regex_of(&format!("{anywhere}{}", parts.join("/")))
            .ok_or_else(|| bad("has braces or brackets that do not match"))?;
        let built = RegexBuilder::new(&regex).size_limit(MAX_BYTES).build();
        Ok(Self { regex: built.map_err(|_| bad("cannot be used"))? })
    }

    /// Whether a path, given from the folder that is looked through, fits.
    pub(crate) fn fits(&self, path: &str) -> bool {
        self.regex.is_match(path.as_bytes())
    }
}

/// The regex of a pattern, or none if its braces or brackets do not match.
fn regex_of(pattern: &str) -> Option<String> {
    let mut regex = r"\A".to_owned();
    let (mut rest, mut braces) = (pattern, 0_usize);
    while let Some(c) = rest.chars().next() {
        let is_at_part = rest.len() == pattern.len() || pattern[..pattern.len() - rest.len()].ends_with('/');
        if is_at_part && let Some(after) = rest.strip_prefix("**/") {
            regex.push_str("(?-u:[^/]+/)*");
            rest = after;
            continue;
        }
        if is_at_part && rest == "**" {
            regex.push_str("(?-u:.)+");
            break;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            // Over bytes, which fits the same texts and needs no tables of characters.
            '*' => regex.push_str("(?-u:[^/])*"),
            '?' => regex.push_str("[^/]"),
            '[' => {
                // A bracket that comes first stands for itself.
                let negated = rest.starts_with(['!', '^']);
                let inside = &rest[usize::from(negated)..];
                let end = inside.char_indices().skip(1).find(|(_, c)| *c == ']').map(|(end, _)| end)?;
                let class: String = inside[..end].chars().map(|c| if c == '-' { "-".to_owned() } else { literal(c) }).collect();
                regex.push_str(&if negated { format!("[^/{class}]") } else { format!("[[{class}]&&[^/]]") });
                rest = &inside[end + 1..];
            }
            '{' => {
                braces += 1;
                regex.push_str("(?:");
            }
            '}' => {
                braces = braces.checked_sub(1)?;
                regex.push(')');
            }
            ',' if braces > 0 => regex.push('|'),
            c => regex.push_str(&literal(c)),
        }
    }
    (braces == 0).then(|| regex + r"\z")
}

fn literal(c: char) -> String {
    regex::escape(c.encode_utf8(&mut [0; 4]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_people_expect() {
        for (pattern, fitting, other) in [
            ("*.md", &["a.md", "docs/b.md", ".md", "深/处/笔记.md"][..], &["a.mdx", "a.md/b"][..]),
            ("docs/*.md", &["docs/a.md"], &["docs/x/a.md", "a.md", "x/docs/a.md"]),
            ("src/**/*.rs", &["src/a.rs", "src/x/y/a.rs"], &["a.rs", "src/a.rsx"]),
            ("**/test", &["test", "a/test", "a/b/test"], &["tests", "test/a"]),
            ("*.{csv,tsv}", &["a.csv", "b/c.tsv"], &["a.txt", "a.{csv,tsv}"]),
            ("a{b,c{d,e}}", &["ab", "acd", "ace"], &["ac", "a"]),
            ("[a-c]?.txt", &["ax.txt", "x/c数.txt"], &["dx.txt", "a.txt"]),
            ("[!a-c数]]*", &["d]x", "据]"], &["a]x", "数]"]),
            ("x[+-9]y/**", &["x5y/a", "x5y/a/b"], &["x5y", "x/y/a"]),
            ("a.b+(c)|^$", &["a.b+(c)|^$"], &["axb+(c)|^$"]),
            ("?.txt", &["a.txt", "数.txt"], &["ab.txt", ".txt"]),
            ("*a*b*", &["ab", "xaxbx", "aab"], &["ba"]),
            ("/top.md", &["top.md"], &["x/top.md"]),
            ("*", &["a", "a/b"], &[]),
        ] {
            let glob = Glob::new(pattern).unwrap();
            assert!(fitting.iter().all(|path| glob.fits(path)), "{pattern} {fitting:?}");
            assert!(other.iter().all(|path| !glob.fits(path)), "{pattern} {other:?}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_used_is_refused() {
        for pattern in ["", "{a", "a}", "}{", "[a", "[z-a]", &"x".repeat(300)] {
            assert!(Glob::new(pattern).is_err(), "{pattern}");
        }
        assert!(!Glob::new(&"*a".repeat(100)).unwrap().fits(&"a".repeat(99)), "quickly");
    }
}
