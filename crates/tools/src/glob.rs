//! File patterns such as `*.md`, `src/**/*.rs` and `*.{csv,tsv}`. Matching takes no more than the product of the lengths.

use polis_ports::ToolError;

/// Longest pattern, in characters.
const MAX_CHARS: usize = 200;
/// Most patterns that the braces of one may stand for.
const MAX_CHOICES: usize = 64;

/// A pattern for paths. One without `/` looks at the name alone, wherever the file lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob {
    choices: Vec<Vec<String>>,
}

impl Glob {
    /// Reads a pattern that a model wrote.
    pub(crate) fn new(pattern: &str) -> Result<Self, ToolError> {
        let bad = |why: &str| ToolError::BadArguments(format!("pattern {pattern:?} {why}"));
        if pattern.is_empty() || pattern.chars().count() > MAX_CHARS {
            return Err(bad("is empty or too long"));
        }
        let spelled = spelled_out(pattern).ok_or_else(|| bad("has braces that do not match, or too many"))?;
        let parts = |choice: String| {
            let mut parts: Vec<String> = choice.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
            if parts.len() == 1 && !pattern.starts_with('/') {
                parts.insert(0, "**".to_owned());
            }
            parts
        };
        Ok(Self { choices: spelled.into_iter().map(parts).collect() })
    }

    /// Whether a path, given from the folder that is looked through, fits.
    pub(crate) fn fits(&self, path: &str) -> bool {
        let path: Vec<&str> = path.split('/').collect();
        self.choices.iter().any(|pattern| path_fits(pattern, &path))
    }
}

/// The pattern with each choice of its braces in turn.
fn spelled_out(pattern: &str) -> Option<Vec<String>> {
    let mut open = vec![pattern.to_owned()];
    let mut done = Vec::new();
    while let Some(next) = open.pop() {
        match (next.find('{'), next.find('}')) {
            (None, None) => done.push(next),
            (Some(start), Some(_)) => {
                // The innermost pair first, so that braces may stand in braces.
                let end = start + next[start..].find('}')?;
                let start = next[..end].rfind('{')?;
                let choices = next[start + 1..end].split(',').rev();
                open.extend(choices.map(|choice| format!("{}{choice}{}", &next[..start], &next[end + 1..])));
            }
            _ => return None,
        }
        if open.len() + done.len() > MAX_CHOICES {
            return None;
        }
    }
    Some(done)
}

fn path_fits(pattern: &[String], path: &[&str]) -> bool {
    // `fits[j]`: what is left of the pattern fits the path from its part `j` on.
    let mut fits = vec![false; path.len() + 1];
    fits[path.len()] = true;
    for part in pattern.iter().rev() {
        for j in 0..=path.len() {
            let j = if part == "**" { path.len() - j } else { j };
            fits[j] = match path.get(j) {
                Some(name) if part != "**" => name_fits(part, name) && fits[j + 1],
                None if part != "**" => false,
                Some(_) => fits[j] || fits[j + 1],
                None => fits[j],
            };
        }
    }
    fits[0]
}

/// `*` is any run of characters, `?` any one.
fn name_fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n, mut back) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                back = Some((p, n));
                p += 1;
            }
            Some(&c) if c == '?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((star, from)) = back else { return false };
                back = Some((star, from + 1));
                p = star + 1;
                n = from + 1;
            }
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
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
        for pattern in ["", "{a", "a}", "}{", &"x".repeat(300), &"{a,b}".repeat(7)] {
            assert!(Glob::new(pattern).is_err(), "{pattern}");
        }
        assert!(!Glob::new(&"*a".repeat(100)).unwrap().fits(&"a".repeat(99)), "quickly");
    }
}
