//! Files through the tools: lists and texts are put together from as many calls as they take; a name that is not there leads
//! to the nearest that is.

use serde_json::{Value, json};

use super::conversation::{Conversation, Step, Stop};
use super::language::{Language, few, tell};

/// Most pages of a file that are read; about three megabytes.
const MAX_PAGES: usize = 60;
/// Most pages of a list.
const MAX_LISTS: usize = 20;

/// What is in a folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    pub(super) entries: Vec<Entry>,
    /// What the tool says about all of it.
    pub(super) totals: String,
}

/// One entry of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) path: String,
    /// None for what is no file.
    pub(super) bytes: Option<u64>,
    pub(super) counts: Option<Counts>,
}

/// How much text a file holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) lines: u64,
    pub(super) words: u64,
    pub(super) chars: u64,
}

impl Counts {
    pub(super) fn of(text: &str) -> Self {
        let count = |count: usize| count as u64;
        Self {
            lines: count(text.lines().count()),
            words: count(text.split_whitespace().count()),
            chars: count(text.chars().count()),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { lines: self.lines + other.lines, words: self.words + other.words, chars: self.chars + other.chars }
    }

    /// All three, for a person to read.
    pub(super) fn describe(self, language: Language) -> String {
        let Self { lines, words, chars } = self;
        match language {
            Language::English => format!("{}, {}, {}", few(lines, "line"), few(words, "word"), few(chars, "character")),
            Language::Chinese => format!("{lines} 行、{words} 个词、{chars} 个字符"),
        }
    }
}

impl Listing {
    pub(super) fn files(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.bytes.is_some())
    }

    /// How many files there are by what the tool says, beside what its lines say.
    pub(super) fn total_files(&self) -> Option<usize> {
        self.totals.strip_prefix("[total: ")?.split(' ').next()?.parse().ok()
    }

    /// Whether the tool could not go through all of it.
    pub(super) fn is_cut(&self) -> bool {
        self.totals.contains("there is more than can be walked through")
    }

    /// How many entries `.gitignore` files leave out.
    pub(super) fn ignored(&self) -> usize {
        let before = self.totals.split(" entries are left out by .gitignore").next().filter(|before| *before != self.totals);
        before.and_then(|before| before.rsplit(' ').next()?.parse().ok()).unwrap_or_default()
    }
}

/// A file's text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) text: String,
    /// How many lines the file has, where not all of them were read.
    pub(super) of_lines: Option<usize>,
}

/// Lists a folder to its end, or says what the tool said.
pub(super) fn list(conversation: &mut Conversation<'_>, arguments: &Value) -> Step<Result<Listing, String>> {
    let mut listing = Listing::default();
    for _ in 0..MAX_LISTS {
        let mut arguments = arguments.clone();
        if !listing.entries.is_empty() {
            arguments["offset"] = json!(listing.entries.len());
        }
        let given = conversation.call("list_files", arguments)?;
        if given.is_error {
            return Ok(Err(reason(given.content).to_owned()));
        }
        let mut goes_on = false;
        for line in given.content.lines() {
            if line.starts_with("[total: ") && line.ends_with(']') {
                listing.totals = line.to_owned();
            } else if line.starts_with("[cut: ") && line.ends_with(']') {
                goes_on = line.contains("; go on with offset ");
            } else {
                listing.entries.push(entry(line));
            }
        }
        if !goes_on {
            break;
        }
    }
    Ok(Ok(listing))
}

fn entry(line: &str) -> Entry {
    let parsed = line.strip_suffix(')').and_then(|line| line.rsplit_once(" ("));
    let Some((path, details)) = parsed else { return Entry { path: line.to_owned(), bytes: None, counts: None } };
    let numbers: Vec<u64> = details.split(", ").filter_map(|part| part.split(' ').next()?.parse().ok()).collect();
    let counts = match numbers[..] {
        [_, lines, words, chars] => Some(Counts { lines, words, chars }),
        _ => None,
    };
    Entry { path: path.to_owned(), bytes: numbers.first().copied(), counts }
}

/// Reads a file to its end, or as far as it may; or says what the tool said.
pub(super) fn read(conversation: &mut Conversation<'_>, path: &str) -> Step<Result<Text, String>> {
    let first = conversation.call("read_file", json!({ "path": path }))?;
    if first.is_error {
        return Ok(Err(reason(first.content).to_owned()));
    }
    let Some(cut) = FilePart::of(first.content) else {
        let text = if first.content == "[the file is empty]" { "" } else { first.content };
        return Ok(Ok(Text { text: text.to_owned(), of_lines: None }));
    };
    let Some(last) = cut.last else {
        return Ok(Ok(Text { text: cut.text.to_owned(), of_lines: Some(cut.total) }));
    };
    let language = conversation.language;
    conversation.think(tell!(
        language,
        "The file has {} lines and came only up to line {last}, so I read on in several parts.",
        "文件有 {} 行，只给到第 {last} 行，所以我分几次读下去。",
        cut.total
    ));
    // A little less than what came at once, so that most parts come whole.
    let step = (last * 9 / 10).max(1);
    let mut parts: Vec<(usize, usize)> = Vec::new();
    let mut start = last + 1;
    while start <= cut.total && parts.len() < MAX_PAGES {
        let end = (start + step - 1).min(cut.total);
        parts.push((start, end));
        start = end + 1;
    }
    let mut is_whole = start > cut.total;
    let mut texts = vec![(1, cut.text)];
    while !parts.is_empty() {
        let arguments = parts.iter().map(|(start, end)| json!({ "path": path, "start_line": start, "end_line": end }));
        let given = conversation.call_all("read_file", arguments.collect())?;
        let mut left = Vec::new();
        for ((start, end), given) in parts.iter().zip(given) {
            if given.is_error {
                return Ok(Err(reason(given.content).to_owned()));
            }
            match FilePart::of(given.content) {
                None => texts.push((*start, given.content)),
                Some(FilePart { text, last: Some(last), .. }) => {
                    texts.push((*start, text));
                    left.push((last + 1, *end));
                }
                Some(FilePart { text, last: None, .. }) => {
                    texts.push((*start, text));
                    is_whole = false;
                }
            }
        }
        parts = left;
        if !parts.is_empty() {
            conversation.think(tell!(
                language,
                "Some parts were cut again, so I ask for the rest of them.",
                "有几段又被截断了，我把剩下的补读完。"
            ));
        }
    }
    texts.sort_unstable_by_key(|(start, _)| *start);
    let text = texts.iter().map(|(_, text)| *text).collect();
    Ok(Ok(Text { text, of_lines: (!is_whole).then_some(cut.total) }))
}

/// A part of a file with the tool's note that it is one.
struct FilePart<'a> {
    text: &'a str,
    /// The last line of the part; none where one line alone is too long.
    last: Option<usize>,
    total: usize,
}

impl<'a> FilePart<'a> {
    fn of(content: &'a str) -> Option<Self> {
        let note = content.rsplit('\n').next()?.strip_suffix(']')?;
        let text = &content[..content.len() - note.len() - 1];
        let number = |text: &str| text.split([' ', ';']).next()?.parse().ok();
        if let Some(rest) = note.strip_prefix("[cut: these are lines ") {
            let (_, rest) = rest.split_once(" to ")?;
            let (last, rest) = rest.split_once(" of ")?;
            rest.contains("; go on with start_line ").then_some(())?;
            return Some(Self { text, last: Some(last.parse().ok()?), total: number(rest)? });
        }
        let (_, rest) = note.strip_prefix("[cut: line ")?.split_once(" of ")?;
        rest.ends_with(" bytes").then_some(())?;
        Some(Self { text, last: None, total: number(rest)? })
    }
}

/// The file that a name means: itself, or the one that is called nearly so. Says so if there is none.
pub(super) fn find(conversation: &mut Conversation<'_>, requested: &str) -> Step<Entry> {
    let language = conversation.language;
    if conversation.tool("list_files").is_none() {
        return Ok(Entry { path: requested.to_owned(), bytes: None, counts: None });
    }
    let refusal = match list(conversation, &json!({ "path": requested }))? {
        Ok(listing) => match &listing.entries[..] {
            [only] if only.path == requested.trim_start_matches("./") => return Ok(only.clone()),
            _ => return Ok(Entry { path: requested.to_owned(), bytes: None, counts: None }),
        },
        Err(refusal) => refusal,
    };
    if !refusal.contains("does not exist") && !refusal.contains("no folder") {
        return Err(Stop::Say(tell!(
            language,
            "I cannot use `{requested}`: {refusal}.",
            "无法使用 `{requested}`：{refusal}。"
        )));
    }
    conversation.think(tell!(
        language,
        "`{requested}` is not there, so I look for what is called nearly so.",
        "`{requested}` 不存在，我看看有没有名字相近的。"
    ));
    let listing = list(conversation, &json!({ "recursive": true }))?.unwrap_or_default();
    let files: Vec<&Entry> = listing.files().collect();
    let same: Vec<&&Entry> = files.iter().filter(|entry| is_same(requested, &entry.path)).collect();
    if let [only] = same[..] {
        let path = &only.path;
        conversation.think(tell!(language, "`{path}` must be meant.", "指的应该是 `{path}`。"));
        return Ok((**only).clone());
    }
    Err(Stop::Say(missing(language, requested, &files)))
}

/// Whether a path is the wanted one, written a little differently: another case, another folder, words run into it.
fn is_same(requested: &str, path: &str) -> bool {
    let (requested, path) = (requested.to_lowercase(), path.to_lowercase());
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    requested == path
        || name(&requested) == name(&path)
        || (requested.ends_with(&path) && !requested.is_ascii())
        || path.ends_with(&requested) && !path.is_ascii()
}

fn missing(language: Language, requested: &str, files: &[&Entry]) -> String {
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let stem = |name: &str| name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned();
    let far = |entry: &&&Entry| match (name(requested), name(&entry.path)) {
        (requested, name) if stem(&requested) == stem(&name) => 1,
        (requested, name) => distance(&requested, &name),
    };
    // One slip in three messages.
    let allowed = stem(&name(requested)).chars().count().div_ceil(3).min(3);
    let is_near = |entry: &&&Entry| {
        let slips = far(entry);
        slips <= allowed && slips < stem(&name(requested)).chars().count().max(2)
    };
    let near: Vec<_> = {
        let mut near: Vec<_> = files.iter().filter(is_near).collect();
        near.sort_by_key(far);
        near.into_iter().take(3).map(|entry| format!("`{}`", entry.path)).collect()
    };
    match near.is_empty() {
        true => tell!(
            language,
            "There is no file `{requested}`. I looked through {} files and none is called nearly so.",
            "没有文件 `{requested}`。我看了 {} 个文件，没有名字相近的。",
            files.len()
        ),
        false => tell!(
            language,
            "There is no file `{requested}`. Did you mean {}?",
            "没有文件 `{requested}`。您是指 {} 吗？",
            near.join(&tell!(language, " or ", " 或 "))
        ),
    }
}

/// How many messages must change to make one of the other.
pub(super) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, c) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for j in 0..b.len() {
            let change = corner + usize::from(c != b[j]);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

/// What a tool said of a failure, without the word that it begins with.
pub(super) fn reason(content: &str) -> &str {
    content.strip_prefix("error: ").unwrap_or(content).trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_list_leaves_out_is_known() {
        for (totals, want) in [
            ("[total: 3 files with 3 bytes, 1 folders]", 0),
            ("[total: 3 files with 3 bytes, 1 folders; 14 entries are left out by .gitignore]", 14),
            ("[total: 3 files with 3 bytes, 1 folders; 2 entries cannot be read; 4 entries are left out by .gitignore]", 4),
        ] {
            assert_eq!(Listing { totals: totals.to_owned(), ..Listing::default() }.ignored(), want, "{totals}");
        }
    }

    #[test]
    fn a_reason_fits_into_a_sentence() {
        for (content, want) in [
            ("error: not made: ask what they want instead.", "not made: ask what they want instead"),
            ("`a` leads out of the workspace", "`a` leads out of the workspace"),
        ] {
            assert_eq!(reason(content), want);
        }
    }

    #[test]
    fn the_lines_of_a_list_are_understood() {
        let counts = Some(Counts { lines: 2, words: 3, chars: 4 });
        for (line, path, bytes, want) in [
            ("a/b (c).txt (12 bytes)", "a/b (c).txt", Some(12), None),
            ("a.txt (5 bytes, 2 lines, 3 words, 4 characters)", "a.txt", Some(5), counts),
            ("b.bin (5 bytes, not counted)", "b.bin", Some(5), None),
            ("docs/", "docs/", None, None),
            ("out (a link, not followed)", "out", None, None),
        ] {
            assert_eq!(entry(line), Entry { path: path.to_owned(), bytes, counts: want });
        }
    }

    #[test]
    fn names_that_differ_a_little_are_the_same_or_near() {
        assert!(
            is_same("Sales.CSV", "sales.csv") && is_same("sales.csv", "data/sales.csv") && is_same("看看销售.csv", "销售.csv")
        );
        assert!(!is_same("sale.csv", "sales.csv"));
        let near = |requested: &str, path: &str| {
            let entry = Entry { path: path.to_owned(), bytes: Some(1), counts: None };
            missing(Language::English, requested, &[&entry]).contains("Did you mean")
        };
        for (requested, path) in [("salse.csv", "data/sales.csv"), ("report.txt", "report.md"), ("sale.csv", "sales.csv")] {
            assert!(near(requested, path), "{requested} {path}");
        }
        for (requested, path) in
            [("missing.csv", "big.csv"), ("cn.csv", "big.csv"), ("notes.md", "sales.md"), ("orders.csv", "sales.csv")]
        {
            assert!(!near(requested, path), "{requested} {path}");
        }
        assert_eq!((distance("sale", "sales"), distance("", "ab"), distance("销售", "消售")), (1, 2, 1));
    }
}
