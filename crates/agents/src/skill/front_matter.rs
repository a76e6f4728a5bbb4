//! Reads the front matter of a `SKILL.md`: the part of YAML that the format uses. Keys stand at the beginning of a line; values are
//! plain, quoted, or blocks (`>`, `|`); what is indented below a key belongs to it.

use super::SkillFault;

/// The front matter of a file and what stands below it.
pub(super) struct FrontMatter<'a> {
    values: Vec<(usize, &'a str, String)>,
    /// The first line below the front matter, from 1.
    pub(super) end: usize,
    pub(super) body: &'a str,
}

impl FrontMatter<'_> {
    /// The line and the value of a key.
    pub(super) fn get(&self, key: &str) -> Option<(usize, &str)> {
        self.values.iter().find(|(_, known, _)| *known == key).map(|(line, _, value)| (*line, value.as_str()))
    }
}

pub(super) fn read(text: &str) -> Result<FrontMatter<'_>, SkillFault> {
    let mut lines = text.split_inclusive('\n');
    let Some(opening) = lines.next().filter(|line| line.trim_end() == "---") else {
        return Err(SkillFault::new(
            1,
            "it has no front matter",
            "begin the file with `---`, then name and description, then `---`",
        ));
    };
    let mut raw: Vec<(usize, &str, Vec<&str>)> = Vec::new();
    let mut read = opening.len();
    for (number, line) in (2..).zip(lines) {
        read += line.len();
        let line = line.trim_end();
        if line == "---" {
            let values = raw.into_iter().map(|(line, key, parts)| Ok((line, key, value(line, &parts)?)));
            let values = values.collect::<Result<_, SkillFault>>()?;
            return Ok(FrontMatter { values, end: number + 1, body: &text[read..] });
        }
        let is_indented = line.starts_with([' ', '\t']) || line.starts_with("- ");
        if is_indented || line.is_empty() {
            match raw.last_mut() {
                Some((_, _, parts)) => parts.push(line),
                None if line.is_empty() => {}
                None => {
                    let wrong = format!("`{}` is indented below nothing", line.trim());
                    return Err(SkillFault::new(number, wrong, "write keys at the beginning of the line"));
                }
            }
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        let Some((key, rest)) = line.split_once(':').filter(|(_, rest)| rest.is_empty() || rest.starts_with([' ', '\t']))
        else {
            return Err(SkillFault::new(
                number,
                format!("`{line}` is no `key: value`"),
                "write for example `name: monthly-report`",
            ));
        };
        let key = key.trim();
        if raw.iter().any(|(_, known, _)| *known == key) {
            return Err(SkillFault::new(number, format!("`{key}` stands there twice"), "keep one of them"));
        }
        raw.push((number, key, vec![rest.trim()]));
    }
    Err(SkillFault::new(1, "the front matter has no second `---`", "close it"))
}

/// A value on one line: the breaks of blocks and of long plain values become spaces.
fn value(line: usize, parts: &[&str]) -> Result<String, SkillFault> {
    let (first, below) = parts.split_first().map_or(("", &[][..]), |(first, below)| (*first, below));
    let is_block = first.starts_with(['>', '|']);
    let words = if is_block { below.to_vec() } else { parts.to_vec() };
    let joined = words.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    if is_block {
        return Ok(joined);
    }
    match joined.chars().next() {
        Some(mark @ ('"' | '\'')) => unquoted(&joined, mark)
            .ok_or_else(|| SkillFault::new(line, "the quotation mark is not closed", "end the value with the same mark")),
        _ => Ok(joined.split_once(" #").map_or(joined.as_str(), |(value, _)| value.trim_end()).to_owned()),
    }
}

/// The text between quotation marks. Double ones know `\"`, `\\` and `\n`; in single ones, two stand for one.
fn unquoted(text: &str, mark: char) -> Option<String> {
    let mut value = String::new();
    let mut chars = text.chars().skip(1).peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if mark == '"' => value.push(match chars.next()? {
                'n' | 't' => ' ',
                other => other,
            }),
            '\'' if mark == '\'' && chars.peek() == Some(&'\'') => {
                chars.next();
                value.push('\'');
            }
            c if c == mark => return Some(value),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_yaml_has_them() {
        for (yaml, expected) in [
            ("a: plain # a note", "plain"),
            ("a: \"with: \\\"marks\\\" and \\\\\" # note", "with: \"marks\" and \\"),
            ("a: 'it''s'", "it's"),
            ("a: >\n  folded\n  text\n", "folded text"),
            ("a: |-\n  two\n\n  lines", "two lines"),
            ("a: long plain\n  goes on", "long plain goes on"),
            ("a:\n  b: c\n  d: e", "b: c d: e"),
            ("a:\n- x\n- y", "- x - y"),
            ("a: 50%#1", "50%#1"),
            ("a: 中文：说明", "中文：说明"),
        ] {
            let text = format!("---\n{yaml}\n---\nbody");
            let front = read(&text).unwrap_or_else(|fault| panic!("{yaml}: {fault:?}"));
            assert_eq!((front.get("a").map(|(_, value)| value), front.body), (Some(expected), "body"), "{yaml}");
        }
    }
}
