//! Where the table of a request is: a file of the workspace, or in the request itself.

use polis::Failure;

/// What parts the cells of a table.
const MARKS: [char; 4] = [',', ';', '\t', '|'];

/// How names of tables end.
const ENDINGS: [&str; 3] = [".csv", ".tsv", ".tab"];

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// A file, by its path from the workspace's root.
    File(String),
    /// Said in the request.
    Text(String),
}

impl Source {
    /// The table that a request is about.
    pub(super) fn of(request: &str) -> Result<Self, Failure> {
        let found = fenced(request).or_else(|| lines(request)).map(Self::Text);
        let none = "the request has no table; name a CSV file of the workspace, or write the table into the request";
        let source = found.or_else(|| file(request).map(Self::File)).ok_or_else(|| Failure::new("no_table", none))?;
        match &source {
            Self::File(path) if path.starts_with('/') || path.split('/').any(|part| part == "..") => {
                let message = format!("`{path}` is outside of the workspace; give a path from its root");
                Err(Failure::new("no_table", message))
            }
            _ => Ok(source),
        }
    }
}

/// What stands between two lines of backticks.
fn fenced(request: &str) -> Option<String> {
    let (_, rest) = request.split_once("```")?;
    let (_, rest) = rest.split_once('\n')?;
    let (text, _) = rest.split_once("\n```")?;
    Some(format!("{text}\n")).filter(|text| !text.trim().is_empty())
}

/// Everything from the first line on that is parted like the one after it.
fn lines(request: &str) -> Option<String> {
    let lines: Vec<&str> = request.lines().collect();
    let parted = |line: &str, mark| line.matches(mark).count();
    let alike = |pair: &&[&str]| {
        MARKS.iter().any(|mark| parted(pair[0], *mark) > 0 && parted(pair[0], *mark) == parted(pair[1], *mark))
    };
    let (first, _) = lines.windows(2).enumerate().find(|(_, pair)| alike(pair))?;
    Some(format!("{}\n", lines[first..].join("\n")))
}

/// A name in quotes, or a word.
fn file(request: &str) -> Option<String> {
    let is_table = |name: &str| ENDINGS.iter().any(|end| name.len() > end.len() && name.to_ascii_lowercase().ends_with(end));
    for (open, close) in [('`', '`'), ('"', '"'), ('“', '”'), ('《', '》'), ('\'', '\'')] {
        let parts: Vec<&str> = request.split([open, close]).collect();
        if let Some(name) = parts.iter().skip(1).step_by(2).map(|name| name.trim()).find(|name| is_table(name)) {
            return Some(name.to_owned());
        }
    }
    // A word ends where a table's name ends, also where Chinese goes on without a space.
    request.split(|c: char| c.is_whitespace() || matches!(c, '，' | '。' | '：' | '、' | '（' | '）')).find_map(|word| {
        let low = word.to_ascii_lowercase();
        let end = ENDINGS.iter().filter_map(|end| Some(low.find(end)? + end.len())).min()?;
        let name = &word[..end];
        let start = name.char_indices().rev().find(|(_, c)| !c.is_ascii() || matches!(c, '(' | ',' | ';' | '='));
        let name = start.map_or(name, |(at, c)| &name[at + c.len_utf8()..]);
        Some(name.to_owned()).filter(|name| is_table(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_found_in_what_was_asked() {
        let file = |path: &str| Ok(Source::File(path.to_owned()));
        let text = |text: &str| Ok(Source::Text(text.to_owned()));
        for (request, want) in [
            ("Analyse sales.csv, please.", file("sales.csv")),
            ("Look at tables/Sales.CSV", file("tables/Sales.CSV")),
            ("请分析sales.csv的数据", file("sales.csv")),
            ("Analyse `my sales; rm -rf x.csv`.", file("my sales; rm -rf x.csv")),
            ("分析《销售 数据.csv》", file("销售 数据.csv")),
            ("city,amount\nLisbon,3\n", text("city,amount\nLisbon,3\n")),
            ("Please, sum this up:\ncity;amount\nLisbon;3", text("city;amount\nLisbon;3\n")),
            ("Here:\n```csv\na,b\n1,2\n```\nthanks", text("a,b\n1,2\n")),
        ] {
            assert_eq!(Source::of(request), want, "{request}");
        }
        for (request, why) in [
            ("Hello!", "has no table"),
            ("Analyse /etc/passwd.csv", "outside of the workspace"),
            ("Analyse ../x.csv", "outside of the workspace"),
        ] {
            let failure = Source::of(request).unwrap_err();
            assert!(&*failure.code == "no_table" && failure.message.contains(why), "{request}: {failure}");
        }
    }
}
