//! Names inside a request: quoted words, files, folders. Says where they stand; knows nothing of what is there.

use std::ops::Range;

use super::language::is_han;

/// A name, and where it stands in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mention {
    pub(super) at: Range<usize>,
    pub(super) name: String,
}

const QUOTES: &[(char, char)] =
    &[('`', '`'), ('"', '"'), ('“', '”'), ('「', '」'), ('『', '』'), ('《', '》'), ('‘', '’'), ('\'', '\'')];

/// What stands between quotation marks.
pub(super) fn quoted(text: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let after = at + c.len_utf8();
        let is_apostrophe = c == '\'' && text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        let close = QUOTES.iter().find(|(open, _)| *open == c).filter(|_| !is_apostrophe).map(|(_, close)| *close);
        let end = close.and_then(|close| Some((text[after..].find(close)? + after, close)));
        match end {
            Some((end, close)) if end > after && !text[after..end].contains('\n') => {
                found.push(Mention { at: at..end + close.len_utf8(), name: text[after..end].trim().to_owned() });
                at = end + close.len_utf8();
            }
            _ => at = after,
        }
    }
    found
}

/// Files and paths that the text names: quoted ones, and words that end like a file or hold a `/`.
pub(super) fn paths(text: &str) -> Vec<Mention> {
    let quoted = quoted(text);
    let mut found: Vec<Mention> = quoted.iter().filter(|mention| looks_like_path(&mention.name)).cloned().collect();
    for (at, token) in tokens(text) {
        let inside = |mention: &Mention| mention.at.start < at + token.len() && at < mention.at.end;
        if !quoted.iter().any(inside) {
            found.extend(path_in(token).map(|(from, name)| {
                let start = at + from;
                Mention { at: start..start + name.len(), name: name.to_owned() }
            }));
        }
    }
    found.sort_by_key(|mention| mention.at.start);
    found
}

/// The text with every name taken out.
pub(super) fn without_names(text: &str) -> String {
    let mut names = paths(text);
    names.extend(quoted(text));
    blank(text, names.iter().map(|mention| mention.at.clone()))
}

/// The text with spaces in place of some of it; what stays keeps its place.
pub(super) fn blank(text: &str, ranges: impl Iterator<Item = Range<usize>>) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for range in ranges {
        bytes[range].fill(b' ');
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// The folder that the text names; `.` where it says here, or names none.
pub(super) fn folder(text: &str) -> Option<String> {
    chinese_folder(text).or_else(|| english_folder(text))
}

const ENDS: &[char] =
    &['，', '。', '；', '：', '！', '？', '、', '（', '）', ',', ';', '!', '?', '(', ')', '[', ']', '{', '}', '<', '>', '|'];

fn tokens(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_end = |c: char| c.is_whitespace() || ENDS.contains(&c) || QUOTES.iter().any(|(a, b)| c == *a || c == *b);
    let start = text.as_ptr() as usize;
    let tokens = text.split(is_end).filter(|token| !token.is_empty());
    tokens.map(move |token| (token.as_ptr() as usize - start, token))
}

fn is_path_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '~' | '+' | '@')
}

fn looks_like_path(name: &str) -> bool {
    !name.is_empty() && (has_ending(name) || (name.contains('/') && name.contains(char::is_alphabetic)))
}

/// `name.ext` with letters and digits after the last dot.
fn has_ending(name: &str) -> bool {
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    let is_abbreviation = ["e.g", "i.e", "a.m", "p.m", "u.s"].contains(&name.to_ascii_lowercase().as_str());
    let is_ending = (1..=8).contains(&ending.len())
        && ending.starts_with(|c: char| c.is_ascii_alphabetic())
        && ending.chars().all(|c| c.is_ascii_alphanumeric());
    is_ending && !stem.is_empty() && !is_abbreviation
}

/// The path in a run of characters without spaces, which in Chinese may be a whole sentence.
fn path_in(token: &str) -> Option<(usize, &str)> {
    let trimmed = token.trim_end_matches(['.', ':']);
    if !trimmed.contains(is_han) {
        return looks_like_path(trimmed).then_some((0, trimmed));
    }
    // Behind a file's ending no letter or digit follows.
    let mut ends = trimmed.match_indices('.').filter_map(|(dot, _)| {
        let rest = &trimmed[dot + 1..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        has_ending(&trimmed[..dot + 1 + end]).then_some(dot + 1 + end)
    });
    if let Some(end) = ends.next_back() {
        let left = &trimmed[..end];
        let dot = left.rfind('.')?;
        let ascii = left[..dot]
            .rfind(|c: char| !is_path_char(c))
            .map_or(0, |at| at + left[at..].chars().next().map_or(1, char::len_utf8));
        let start = if ascii < dot { ascii } else { dot - without_verbs(&left[..dot]).len() };
        return (start < dot).then(|| (start, &left[start..]));
    }
    // A folder between Chinese words.
    let slash = trimmed.find('/')?;
    let start = trimmed[..slash]
        .rfind(|c: char| !is_path_char(c))
        .map_or(0, |at| at + trimmed[at..].chars().next().map_or(1, char::len_utf8));
    let end = trimmed[slash..].find(|c: char| !is_path_char(c)).map_or(trimmed.len(), |at| slash + at);
    looks_like_path(&trimmed[start..end]).then(|| (start, &trimmed[start..end]))
}

/// Words that stand before a name in Chinese and are not part of it.
const VERBS: &[&str] = &[
    "请",
    "帮我",
    "帮忙",
    "给我",
    "一下",
    "分析",
    "读取",
    "读出",
    "读",
    "总结",
    "概括",
    "概述",
    "摘要",
    "统计",
    "计算",
    "看看",
    "看一下",
    "查看",
    "打开",
    "文件夹",
    "文件",
    "目录",
    "里面",
    "里",
    "中",
    "在",
    "的",
    "把",
    "对",
    "从",
    "数一数",
    "数",
    "列出",
    "一个",
    "这个",
    "那个",
    "求",
    "下",
    "到",
    "于",
    "当前",
    "本",
    "此",
    "该",
    "我的",
    "有",
    "写入",
    "写",
    "搜索",
    "查找",
    "找",
];

fn without_verbs(mut name: &str) -> &str {
    while let Some(rest) = VERBS.iter().find_map(|verb| name.strip_prefix(verb)) {
        name = rest;
    }
    name
}

fn chinese_folder(text: &str) -> Option<String> {
    let at = ["文件夹", "目录"].iter().filter_map(|word| text.find(word)).min();
    let before = match at {
        Some(at) => text[..at].trim_end(),
        // 在 docs 里
        None => {
            let at = text.match_indices(['里', '下', '中', '有', '一']).map(|(at, _)| at).find(|&at| {
                let before = text[..at].trim_end();
                before.ends_with(is_path_char) && !has_ending(last_run(before, is_path_char))
            })?;
            text[..at].trim_end()
        }
    };
    let before = before.trim_end_matches(['”', '"', '`', '」', '》']);
    let ascii = last_run(before, is_path_char).trim_end_matches('/');
    if !ascii.is_empty() {
        return Some(ascii.to_owned());
    }
    let han = without_verbs(last_run(before, |c| is_han(c) || is_path_char(c)));
    let is_here = han.is_empty() || ["这", "当前", "工作"].contains(&han);
    Some(if is_here { ".".to_owned() } else { han.to_owned() })
}

fn last_run(text: &str, belongs: impl Fn(char) -> bool) -> &str {
    let start = text.char_indices().rev().take_while(|(_, c)| belongs(*c)).last().map_or(text.len(), |(at, _)| at);
    &text[start..]
}

/// Words that follow `in` without naming a folder.
const NO_FOLDERS: &[&str] = &[
    "total", "all", "it", "them", "english", "chinese", "each", "every", "general", "detail", "short", "order", "my", "a",
    "an", "file", "files", "them", "there", "lines", "words", "text", "markdown", "python", "rust", "code",
];

fn english_folder(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let words: Vec<(usize, &str)> = lower
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '?' | '!' | ';' | '"' | '`' | '“' | '”'))
        .filter(|word| !word.is_empty())
        .map(|word| (word.as_ptr() as usize - lower.as_ptr() as usize, word))
        .collect();
    let name = |n: usize| {
        let (at, word) = words.get(n)?;
        let word = text[*at..at + word.len()].trim_end_matches(['.', ':']).trim_end_matches('/');
        (!word.is_empty() && !has_ending(word)).then(|| word.to_owned())
    };
    let is_folder_word = |word: &str| ["folder", "directory", "dir", "folders"].contains(&word.trim_end_matches('.'));
    let is_article =
        |word: &str| ["the", "this", "my", "current", "a", "our", "named", "called", "subfolder", "working"].contains(&word);
    for (n, (_, word)) in words.iter().enumerate() {
        if is_folder_word(word) {
            let next = words.get(n + 1).map(|(_, word)| *word);
            if next.is_some_and(|next| ["named", "called"].contains(&next)) {
                return name(n + 2);
            }
            if let Some((_, before)) = n.checked_sub(1).and_then(|n| words.get(n)) {
                if !is_article(before) {
                    return name(n - 1);
                }
                let names_next = *before == "the"
                    && next.is_some_and(|next| {
                        !["and", "by", "do", "does", "is", "are", "contain", "have", "please"].contains(&next)
                    });
                return if names_next { name(n + 1) } else { Some(".".to_owned()) };
            }
        }
    }
    let here = ["here", "workspace"];
    if words.iter().any(|(_, word)| here.contains(&word.trim_end_matches('.'))) {
        return Some(".".to_owned());
    }
    for (n, (_, word)) in words.iter().enumerate() {
        if ["in", "under", "inside", "within", "of"].contains(word) {
            let n = if words.get(n + 1).is_some_and(|(_, word)| is_article(word)) { n + 2 } else { n + 1 };
            let next = words.get(n).map(|(_, word)| word.trim_end_matches('.'));
            if next.is_some_and(|next| !NO_FOLDERS.contains(&next)) && (*word != "of" || words.len() == n + 1) {
                return name(n);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_in_both_languages() {
        for (text, want) in [
            ("read NOTES.md", &["NOTES.md"][..]),
            ("what is in a/b.txt?", &["a/b.txt"]),
            ("analyse `my sales.csv` please", &["my sales.csv"]),
            ("compare a.csv and b.csv.", &["a.csv", "b.csv"]),
            ("分析sales.csv的平均价格", &["sales.csv"]),
            ("总结一下报告.txt", &["报告.txt"]),
            ("请分析2024年销售.csv，按城市", &["2024年销售.csv"]),
            ("读取“笔记.md”。", &["笔记.md"]),
            ("统计docs/里的文件", &["docs/"]),
            ("e.g. 3.5 and 1/2 and 10/11/2024", &[]),
            ("price is 3.50", &[]),
        ] {
            let found: Vec<_> = paths(text).into_iter().map(|mention| mention.name).collect();
            assert_eq!(found, want, "{text}");
        }
    }

    #[test]
    fn folders_are_found_in_both_languages() {
        for (text, want) in [
            ("how many files are in docs?", Some("docs")),
            ("count the lines in the folder src by kind", Some("src")),
            ("what is in the notes folder", Some("notes")),
            ("summarise this folder", Some(".")),
            ("how many files are here", Some(".")),
            ("how many files are there in total", None),
            ("count files in Docs/API.", Some("Docs/API")),
            ("docs 目录下有多少文件", Some("docs")),
            ("统计资料文件夹的文件", Some("资料")),
            ("这个文件夹里有多少文件", Some(".")),
            ("当前目录有哪些文件", Some(".")),
            ("在 src 里有多少行", Some("src")),
            ("src 有多少行", Some("src")),
            ("src一共有多少行", Some("src")),
            ("notes.txt 有多少行", None),
            ("有多少个文件", None),
        ] {
            assert_eq!(folder(text).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn what_is_quoted_is_found_and_apostrophes_are_not_quotes() {
        let names = |text| quoted(text).into_iter().map(|mention| mention.name).collect::<Vec<_>>();
        assert_eq!(names("count \"milk\" and “苹果” in it's 'big file'"), ["milk", "苹果", "big file"]);
        assert!(names("what's the time, what's it").is_empty());
    }
}
