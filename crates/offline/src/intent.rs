//! What a person wants, as far as this model understands it. Looks at words only; what is there is seen later.

use super::arithmetic::{self, Expression};
use super::count::CountTarget;
use super::mentions::{self, Mention};
use super::table;
use super::time::{self, Place};

/// One of the kinds of request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Intent {
    Read {
        path: String,
    },
    Write {
        path: String,
        text: String,
    },
    List {
        place: String,
        pattern: Option<String>,
    },
    Count {
        what: CountTarget,
        place: String,
        pattern: Option<String>,
    },
    Search {
        text: String,
        place: String,
    },
    Summarise {
        place: String,
    },
    Table {
        path: Option<String>,
        question: String,
    },
    Arithmetic {
        expression: Expression,
    },
    Time {
        places: Vec<Place>,
    },
    /// The time at another moment than now, which this word asks for.
    OtherTime {
        word: String,
    },
    Chat,
}

/// What `asked` wants; `earlier` requests say which table is talked about.
pub(super) fn of(asked: &str, earlier: &[&str]) -> Intent {
    let asked = without_join(asked.trim());
    if let Some(intent) = plain_file(asked) {
        return intent;
    }
    let paths = mentions::paths(asked);
    let table = paths.iter().find(|mention| is_table(&mention.name));
    if table.is_none()
        && let Some(places) = time::places(asked)
    {
        if let Some(word) = time::other_moment(asked) {
            return Intent::OtherTime { word: word.to_owned() };
        }
        return Intent::Time { places };
    }
    if let Some(expression) = arithmetic::expression(asked) {
        return Intent::Arithmetic { expression };
    }
    let lower = mentions::without_names(asked).to_lowercase();
    let has = |words: &str| words.split('|').any(|word| contains_word(&lower, word));
    let counts = has("how many|count|number of|how often|how long is|多少|几个|几次|几行|统计|数一数|数一下|字数|行数");
    let summarises = has("summarise|summarize|summary|overview|tl;dr|describe|总结|概括|概述|摘要|概要|主要内容\
        |讲了什么|说了什么");
    if let Some(table) = table {
        let lines = has("lines|words|characters|字符|times|how often|occur|出现");
        if !(counts && lines) {
            return Intent::Table { path: Some(table.name.clone()), question: question(asked, table) };
        }
    }
    let file = paths.iter().find(|mention| !mention.name.ends_with('/'));
    let place = || match file {
        Some(file) => file.name.trim_end_matches('/').to_owned(),
        None => folder(asked, &paths),
    };
    if let Some(word) = occurrences(asked, &lower, &paths) {
        return Intent::Count { what: CountTarget::Occurrences(word), place: place(), pattern: pattern(asked, &lower) };
    }
    let is_about_files =
        has("file|files|folder|folders|directory|directories|lines|words|characters|文件|文件夹|目录|行|字|单词|字符|图片");
    if counts && (is_about_files || file.is_some()) {
        let what = counted(&lower, file);
        return Intent::Count { what, place: place(), pattern: pattern(asked, &lower) };
    }
    if summarises && (file.is_some() || mentions::folder(asked).is_some() || is_about_files) {
        return Intent::Summarise { place: place() };
    }
    let lists = has("list|ls|show|what is in|what's in|which files|what files|are there|列出|有哪些|有什么|看看");
    if lists && file.is_none() && (is_about_files || mentions::folder(asked).is_some()) {
        return Intent::List { place: folder(asked, &paths), pattern: pattern(asked, &lower) };
    }
    if has("is there|are there|where is|exist|exists|有没有|在哪|存在")
        && let Some(file) = file
    {
        let name = file.name.rsplit('/').next().unwrap_or(&file.name);
        return Intent::List { place: ".".to_owned(), pattern: Some(name.to_owned()) };
    }
    if let Some(text) = searched(asked, &lower, &paths) {
        return Intent::Search { text, place: place() };
    }
    if has("analyse|analyze|analysis|explain|about|分析|解释|介绍")
        && let Some(file) = file
    {
        return Intent::Summarise { place: file.name.clone() };
    }
    if has("read|open|cat|print|display|show|content|what is in|what's in|读|打开|显示|内容|查看")
        && let Some(file) = file
    {
        return Intent::Read { path: file.name.clone() };
    }
    let earlier = earlier.iter().flat_map(|said| mentions::paths(said)).find(|mention| is_table(&mention.name));
    if table::is_question(&lower, earlier.is_some()) {
        return Intent::Table { path: earlier.map(|mention| mention.name), question: asked.to_owned() };
    }
    match file {
        Some(file) if file.name.len() == asked.len() => Intent::Summarise { place: file.name.clone() },
        _ => Intent::Chat,
    }
}

/// A request without the word that joins it to the one before, as in `and what is 7 times 6?`.
fn without_join(asked: &str) -> &str {
    let joins = ["and ", "then ", "also "];
    let rest = joins
        .iter()
        .find_map(|join| asked.get(..join.len()).filter(|head| head.eq_ignore_ascii_case(join)).map(|_| &asked[join.len()..]));
    rest.unwrap_or(asked).trim_start()
}

/// `read FILE` and `write FILE: text`, word for word.
fn plain_file(asked: &str) -> Option<Intent> {
    let after = |words: &[&str]| {
        words.iter().find_map(|word| {
            let head = asked.get(..word.len())?;
            head.eq_ignore_ascii_case(word).then(|| asked[word.len()..].trim_start())
        })
    };
    if let Some(rest) = after(&["write ", "写入", "写"])
        && let Some((path, text)) = rest.split_once([':', '：'])
        && is_path(unquoted(path))
    {
        let text = text.strip_prefix(' ').unwrap_or(text).to_owned();
        return Some(Intent::Write { path: unquoted(path).to_owned(), text });
    }
    let path = unquoted(after(&["read ", "cat ", "读取", "读一下", "读"])?);
    let is_one = is_path(path) && !path.contains(['的', '，', '里']);
    is_one.then(|| Intent::Read { path: path.to_owned() })
}

fn unquoted(path: &str) -> &str {
    let path = path.trim().trim_end_matches(['。', '？', '！', '?', '!']);
    path.trim_matches(['`', '"', '\'', '“', '”', '「', '」', '《', '》'])
}

fn is_path(path: &str) -> bool {
    !path.is_empty() && !path.contains(char::is_whitespace)
}

fn is_table(name: &str) -> bool {
    let name = name.to_lowercase();
    [".csv", ".tsv", ".tab"].iter().any(|ending| name.ends_with(ending))
}

/// The request without the file that it is about, however often it is named.
fn question(asked: &str, table: &Mention) -> String {
    let same = mentions::paths(asked).into_iter().filter(|mention| mention.name == table.name);
    mentions::blank(asked, same.map(|mention| mention.at))
}

fn folder(asked: &str, paths: &[Mention]) -> String {
    let named =
        paths.iter().find(|mention| mention.name.contains('/')).map(|mention| mention.name.trim_end_matches('/').to_owned());
    named.or_else(|| mentions::folder(asked)).unwrap_or_else(|| ".".to_owned())
}

fn counted(lower: &str, file: Option<&Mention>) -> CountTarget {
    let has = |words: &str| words.split('|').any(|word| contains_word(lower, word));
    if has("words|word|单词|词") {
        CountTarget::Words
    } else if has("characters|chars|字符|字数|个字|多少字") {
        CountTarget::Chars
    } else if has("lines|line|行") {
        CountTarget::Lines
    } else if has("folders|directories|子目录|多少文件夹|多少个文件夹|几个文件夹|多少个目录|多少目录")
        && !has("files|个文件，|文件和")
    {
        CountTarget::Folders
    } else if file.is_some() {
        CountTarget::Lines
    } else {
        CountTarget::Files
    }
}

/// The word whose occurrences are asked for.
fn occurrences(asked: &str, lower: &str, paths: &[Mention]) -> Option<String> {
    let asks = [
        "how often",
        "how many times",
        "occurrence",
        "occurrences",
        "occur",
        "occurs",
        "appear",
        "appears",
        "the word",
        "出现",
        "多少次",
        "几次",
        "这个词",
    ];
    if !asks.iter().any(|word| contains_word(lower, word)) {
        return None;
    }
    quoted_word(asked, paths).or_else(|| {
        let after = [
            "occurrences of the word ",
            "occurrences of ",
            "the word ",
            "times does ",
            "often does ",
            "times is ",
            "often is ",
            "times ",
        ];
        let english = after.iter().find_map(|words| {
            let at = lower.find(words)? + words.len();
            let word = asked.get(at..)?.split_whitespace().find(|word| !["the", "word"].contains(word))?;
            Some(word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned())
        });
        english.or_else(|| chinese_word(asked)).filter(|word| !word.is_empty())
    })
}

/// The word before 出现 or behind 单词.
fn chinese_word(asked: &str) -> Option<String> {
    let asked = mentions::without_names(asked);
    let before = asked[..asked.find("出现")?].trim_end();
    // 苹果在笔记里出现
    let before = before.split_once('在').map_or(before, |(word, _)| word).trim_end();
    let before =
        before.trim_end_matches("一共").trim_end_matches("总共").trim_end_matches("中").trim_end_matches("里").trim_end();
    let start = before
        .rfind(|c: char| c.is_whitespace() || "，。里中内下的统计数词".contains(c))
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let word = before[start..].trim_start_matches("单词").trim_start_matches("这个");
    (!word.is_empty()).then(|| word.to_owned())
}

fn quoted_word(asked: &str, paths: &[Mention]) -> Option<String> {
    let words = mentions::quoted(asked).into_iter().filter(|word| !paths.iter().any(|path| path.at == word.at));
    words.map(|word| word.name).find(|word| !word.is_empty())
}

/// The text that is to be found.
fn searched(asked: &str, lower: &str, paths: &[Mention]) -> Option<String> {
    let words = [
        "search for ",
        "search ",
        "look for ",
        "find ",
        "grep ",
        "where is ",
        "which files contain ",
        "搜索",
        "查找",
        "寻找",
        "找到",
        "找",
        "哪些文件包含",
        "哪里提到",
    ];
    let at = words.iter().find_map(|word| Some(lower.find(word)? + word.len()))?;
    if let Some(word) = quoted_word(asked, paths) {
        return Some(word);
    }
    let rest = asked.get(at..)?;
    let end = [" in ", " inside ", "?", "？", "。", "，"].iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
    let mut text = rest[..end].trim();
    for word in ["all ", "every ", "any ", "the ", "word ", "一下", "出", "所有的", "所有", "全部"] {
        text = text.strip_prefix(word).unwrap_or(text).trim_start();
    }
    // `TODOs` means each TODO; words that are not marks keep their plural.
    let singular = text.strip_suffix('s').filter(|mark| mark.len() > 1 && mark.bytes().all(|byte| byte.is_ascii_uppercase()));
    let text = singular.unwrap_or(text);
    let is_short = !text.is_empty() && text.split_whitespace().count() <= 3;
    is_short.then(|| text.to_owned())
}

/// The kind of files that is meant, as a pattern.
fn pattern(asked: &str, lower: &str) -> Option<String> {
    let star =
        asked.split_whitespace().map(|word| word.trim_matches(['`', '"', '“', '”', '?', ','])).find(|word| word.contains('*'));
    if let Some(star) = star {
        return Some(star.to_owned());
    }
    let dotted = lower.split_whitespace().find_map(|word| {
        let word = word.split("文件").next().unwrap_or(word);
        let ending = word.strip_prefix('.')?.trim_end_matches(['?', ',']);
        (!ending.is_empty() && ending.chars().all(|c| c.is_ascii_alphanumeric())).then(|| format!("*.{ending}"))
    });
    if dotted.is_some() {
        return dotted;
    }
    let kinds = [
        ("markdown", "*.md"),
        ("python", "*.py"),
        ("rust", "*.rs"),
        ("javascript", "*.{js,jsx,mjs}"),
        ("typescript", "*.{ts,tsx}"),
        ("csv", "*.csv"),
        ("tsv", "*.tsv"),
        ("json", "*.json"),
        ("yaml", "*.{yaml,yml}"),
        ("toml", "*.toml"),
        ("html", "*.{html,htm}"),
        ("css", "*.css"),
        ("pdf", "*.pdf"),
        ("txt", "*.txt"),
        ("java", "*.java"),
        ("go files", "*.go"),
        ("log files", "*.log"),
        ("images", "*.{png,jpg,jpeg,gif,svg,webp}"),
        ("pictures", "*.{png,jpg,jpeg,gif,svg,webp}"),
        ("图片", "*.{png,jpg,jpeg,gif,svg,webp}"),
        ("md files", "*.md"),
        ("rs files", "*.rs"),
        ("py files", "*.py"),
        ("md 文件", "*.md"),
        ("日志", "*.log"),
    ];
    kinds.iter().find(|(word, _)| contains_word(lower, word)).map(|(_, pattern)| (*pattern).to_owned())
}

/// Whether a text has a word that is not part of a longer one; Chinese words have no such borders.
pub(super) fn contains_word(lower: &str, word: &str) -> bool {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    lower.match_indices(word).any(|(at, _)| {
        let apart = |outside: Option<char>, inside: Option<char>| !(joins(outside) && joins(inside));
        apart(lower[..at].chars().next_back(), word.chars().next())
            && apart(lower[at + word.len()..].chars().next(), word.chars().next_back())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(what: CountTarget, place: &str, pattern: Option<&str>) -> Intent {
        Intent::Count { what, place: place.to_owned(), pattern: pattern.map(str::to_owned) }
    }

    fn occurring(word: &str, place: &str) -> Intent {
        counting(CountTarget::Occurrences(word.to_owned()), place, None)
    }

    #[test]
    fn requests_are_known_by_their_words() {
        let read = |path: &str| Intent::Read { path: path.to_owned() };
        let sum = |place: &str| Intent::Summarise { place: place.to_owned() };
        let list =
            |place: &str, pattern: Option<&str>| Intent::List { place: place.to_owned(), pattern: pattern.map(str::to_owned) };
        let find = |text: &str, place: &str| Intent::Search { text: text.to_owned(), place: place.to_owned() };
        for (asked, want) in [
            ("read NOTES.md", read("NOTES.md")),
            ("读取“笔记.md”。", read("笔记.md")),
            ("show me the content of a.txt", read("a.txt")),
            ("打开 a.txt 看看", read("a.txt")),
            ("summarise README.md", sum("README.md")),
            ("give me a summary of docs/plan.md please", sum("docs/plan.md")),
            ("总结一下报告.txt", sum("报告.txt")),
            ("summarize this folder", sum(".")),
            ("概括 docs 目录", sum("docs")),
            ("how many files are in docs?", counting(CountTarget::Files, "docs", None)),
            ("count the files here by kind", counting(CountTarget::Files, ".", None)),
            ("how many markdown files are there", counting(CountTarget::Files, ".", Some("*.md"))),
            ("how many .rs files are in src", counting(CountTarget::Files, "src", Some("*.rs"))),
            ("count the lines in src", counting(CountTarget::Lines, "src", None)),
            ("how many words are in notes.txt", counting(CountTarget::Words, "notes.txt", None)),
            ("当前目录有多少个文件", counting(CountTarget::Files, ".", None)),
            ("src 目录里一共有多少行代码", counting(CountTarget::Lines, "src", None)),
            ("notes.txt有多少字", counting(CountTarget::Chars, "notes.txt", None)),
            ("how often does \"milk\" occur in notes", occurring("milk", "notes")),
            ("how many times does milk appear in notes.txt?", occurring("milk", "notes.txt")),
            ("count occurrences of Milk in this folder", occurring("Milk", ".")),
            ("“苹果”在这个文件夹里出现了几次", occurring("苹果", ".")),
            ("苹果在 notes.txt 里出现了多少次", occurring("苹果", "notes.txt")),
            ("list the files in docs", list("docs", None)),
            ("列出当前目录的文件", list(".", None)),
            ("what files are here?", list(".", None)),
            ("is there a file called plan.md?", list(".", Some("plan.md"))),
            ("what is in docs", list("docs", None)),
            ("what's in docs/a.txt", read("docs/a.txt")),
            ("search for milk in notes", find("milk", "notes")),
            ("查找“牛奶”", find("牛奶", ".")),
            ("what time is it", Intent::Time { places: Vec::new() }),
            ("what is the capital of France?", Intent::Chat),
            ("法国的首都是哪里？", Intent::Chat),
            ("read between the lines", Intent::Chat),
            ("how many people live in France?", Intent::Chat),
            ("", Intent::Chat),
        ] {
            assert_eq!(of(asked, &[]), want, "{asked}");
        }
        assert_eq!(of("写 a.txt：你好\n再见", &[]), Intent::Write { path: "a.txt".to_owned(), text: "你好\n再见".to_owned() });
        for asked in ["2+2", "and what is 7 times 6?", "Then 2 + 2", "also 15% of 240"] {
            assert!(matches!(of(asked, &[]), Intent::Arithmetic { .. }), "{asked}");
        }
    }

    #[test]
    fn questions_about_a_table_are_known_by_the_file_or_by_what_was_said_before() {
        let path = |asked: &str, earlier: &[&str]| match of(asked, earlier) {
            Intent::Table { path, .. } => Ok(path),
            other => Err(other),
        };
        let sales = Ok(Some("sales.csv".to_owned()));
        for asked in [
            "analyse sales.csv",
            "average price by city in sales.csv",
            "sales.csv",
            "how many rows are in sales.csv?",
            "sales.csv里按地区的总销售额",
            "分析sales.csv",
        ] {
            assert_eq!(path(asked, &[]), sales, "{asked}");
        }
        for asked in
            ["and the median price?", "top 3 by price", "average price by city", "总销售额按地区", "每个城市的平均价格"]
        {
            assert_eq!(path(asked, &["hello", "analyse sales.csv"]), sales, "{asked}");
        }
        assert_eq!(path("average price by city", &[]), Ok(None));
        assert_eq!(path("总销售额按地区", &[]), Ok(None));
        assert!(path("what is the average rainfall", &[]).is_err());
    }
}
