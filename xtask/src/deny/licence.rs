//! Licence expressions as packages write them (SPDX, and `/` for OR as it once was): which allowed licences make one good.

use std::collections::BTreeSet;

/// The allowed licences under which a package may be used; or why it may not.
pub(super) fn chosen<'a>(expression: &str, allowed: &BTreeSet<&'a str>) -> Result<BTreeSet<&'a str>, String> {
    if expression.trim().is_empty() {
        return Err("it names no licence".to_owned());
    }
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, at: 0, allowed };
    let chosen = reader.either().filter(|_| reader.at == words.len());
    match chosen {
        Some(Some(chosen)) => Ok(chosen),
        Some(None) => Err(format!("its licence `{expression}` is not allowed")),
        None => Err(format!("its licence `{expression}` cannot be read")),
    }
}

struct Reader<'w, 'a> {
    words: &'w [&'w str],
    at: usize,
    allowed: &'w BTreeSet<&'a str>,
}

/// The licences that are used; none where what was read is not allowed.
type Used<'a> = Option<BTreeSet<&'a str>>;

impl<'a> Reader<'_, 'a> {
    /// Terms with OR between them: every allowed one counts as used.
    fn either(&mut self) -> Option<Used<'a>> {
        let mut used = self.both()?;
        while self.eat("OR") {
            used = match (used, self.both()?) {
                (Some(one), Some(other)) => Some(one.into_iter().chain(other).collect()),
                (one, other) => one.or(other),
            };
        }
        Some(used)
    }

    /// Terms with AND between them: all have to be allowed.
    fn both(&mut self) -> Option<Used<'a>> {
        let mut used = self.term()?;
        while self.eat("AND") {
            used = match (used, self.term()?) {
                (Some(one), Some(other)) => Some(one.into_iter().chain(other).collect()),
                _ => None,
            };
        }
        Some(used)
    }

    fn term(&mut self) -> Option<Used<'a>> {
        if self.eat("(") {
            let inside = self.either()?;
            return self.eat(")").then_some(inside);
        }
        let mut name = self.next()?.to_owned();
        if self.eat("WITH") {
            name = format!("{name} WITH {}", self.next()?);
        }
        Some(self.allowed.get(name.as_str()).map(|allowed| BTreeSet::from([*allowed])))
    }

    fn eat(&mut self, word: &str) -> bool {
        let is_it = self.words.get(self.at) == Some(&word);
        self.at += usize::from(is_it);
        is_it
    }

    fn next(&mut self) -> Option<&str> {
        let word = self.words.get(self.at).copied().filter(|word| !["OR", "AND", "WITH", "(", ")"].contains(word))?;
        self.at += 1;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_good_if_what_it_asks_for_is_allowed() {
        let allowed = BTreeSet::from(["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]);
        for (expression, want) in [
            ("MIT", Some(vec!["MIT"])),
            ("MIT OR GPL-3.0", Some(vec!["MIT"])),
            ("MIT/Apache-2.0", Some(vec!["Apache-2.0", "MIT"])),
            ("MIT AND GPL-3.0", None),
            ("(MIT OR GPL-3.0) AND Apache-2.0", Some(vec!["Apache-2.0", "MIT"])),
            ("MIT OR GPL-3.0 AND Apache-2.0", Some(vec!["MIT"])),
            ("GPL-3.0 OR MIT AND GPL-3.0", None),
            ("Apache-2.0 WITH LLVM-exception", Some(vec!["Apache-2.0 WITH LLVM-exception"])),
            ("MIT WITH LLVM-exception", None),
            ("GPL-3.0", None),
            ("", None),
            ("MIT OR", None),
            ("(MIT", None),
            ("MIT MIT", None),
            ("MIT)", None),
        ] {
            let chosen = chosen(expression, &allowed).ok().map(|chosen| chosen.into_iter().collect::<Vec<_>>());
            assert_eq!(chosen, want, "{expression}");
        }
    }
}
