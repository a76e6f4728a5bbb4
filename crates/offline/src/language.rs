//! English and Chinese: which one a request is in, and how texts are cut into words and pieces.

/// The language of a request, in which it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    English,
    Chinese,
}

/// Says the same in the language that is wanted.
macro_rules! tell {
    ($language:expr, $english:literal, $chinese:literal $(, $argument:expr)* $(,)?) => {
        match $language {
            $crate::language::Language::English => format!($english $(, $argument)*),
            $crate::language::Language::Chinese => format!($chinese $(, $argument)*),
        }
    };
}
pub(super) use tell;

/// Words that only a request in English has.
const ENGLISH: &[&str] = &[
    "the",
    "a",
    "of",
    "in",
    "is",
    "are",
    "what",
    "how",
    "many",
    "much",
    "by",
    "per",
    "count",
    "read",
    "write",
    "list",
    "show",
    "average",
    "mean",
    "sum",
    "total",
    "top",
    "which",
    "where",
    "summarise",
    "summarize",
    "analyse",
    "analyze",
    "time",
    "find",
    "search",
    "for",
    "and",
    "each",
    "please",
    "tell",
    "me",
    "calculate",
    "files",
    "lines",
    "words",
];

/// Characters that only a request in Chinese has, for they name nothing.
const CHINESE: &[char] = &[
    '的', '是', '多', '少', '几', '请', '按', '每', '各', '总', '均', '读', '写', '里', '有', '在', '哪', '个', '现', '算',
    '统', '分', '析', '概', '结', '列', '出', '找', '搜', '查', '和', '前', '最', '把', '这', '什', '么', '吗', '我', '你',
    '下', '中', '看', '行', '大', '小', '加', '减', '乘', '除',
];

/// Which language a request is in. Names of files and quoted words do not count: they may be in the other one.
pub(super) fn of(asked: &str) -> Language {
    let plain = super::mentions::without_names(asked);
    let chinese = plain.chars().filter(|c| CHINESE.contains(c)).count();
    let words = plain.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    let english = words.filter(|word| ENGLISH.contains(&word.to_ascii_lowercase().as_str())).count();
    let is_chinese = match (chinese, english) {
        (0, 0) => plain.contains(is_han) || (!plain.contains(|c: char| c.is_ascii_alphabetic()) && asked.contains(is_han)),
        (chinese, english) => chinese >= english,
    };
    if is_chinese { Language::Chinese } else { Language::English }
}

/// Whether a character is Chinese.
pub(super) fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}')
}

/// An answer with the line that says who gave it.
pub(super) fn signed(language: Language, answer: &str) -> String {
    tell!(language, "(offline model) {answer}", "（离线模型）{answer}")
}

/// `1 file`, `2 files`.
pub(super) fn few<N: PartialEq + From<u8> + std::fmt::Display>(count: N, what: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// How many words a text has for somebody who reads along; two Chinese characters count as one.
pub(super) fn words(text: &str) -> u32 {
    let others = text.split(|c: char| c.is_whitespace() || is_han(c)).filter(|word| !word.is_empty()).count();
    let han = text.chars().filter(|&c| is_han(c)).count();
    u32::try_from(others + han.div_ceil(2)).unwrap_or(u32::MAX)
}

/// The text in pieces of about a word or two each, as a model would stream it.
pub(super) fn chunks(text: &str) -> impl Iterator<Item = String> {
    const PIECE_CHARS: usize = 12;
    let mut rest = text;
    std::iter::from_fn(move || {
        let longest = rest.char_indices().nth(PIECE_CHARS).map_or(rest.len(), |(end, _)| end);
        let end = match rest[..longest].rfind(' ') {
            Some(space) if longest < rest.len() => space + 1,
            _ => longest,
        };
        let (piece, left) = rest.split_at(end);
        rest = left;
        (!piece.is_empty()).then(|| piece.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_that_of_the_request_and_not_of_the_names_in_it() {
        for (asked, want) in [
            ("what is in a.txt?", Language::English),
            ("read 笔记.md", Language::English),
            ("how often does “苹果” occur in notes", Language::English),
            ("average 价格 by 城市", Language::English),
            ("sales.csv 里 price 的平均值是多少", Language::Chinese),
            ("读 NOTES.md", Language::Chinese),
            ("总销售额按地区", Language::Chinese),
            ("现在几点", Language::Chinese),
            ("你好", Language::Chinese),
            ("hello", Language::English),
            ("销售.csv", Language::Chinese),
            ("2+3", Language::English),
            ("", Language::English),
        ] {
            assert_eq!(of(asked), want, "{asked}");
        }
    }

    #[test]
    fn pieces_put_together_are_the_text() {
        for text in [
            "",
            "a",
            "hello there, this is a text of some length",
            "一二三四五六七八九十一二三四五六",
            "averyveryverylongword and on",
        ] {
            assert_eq!(chunks(text).collect::<String>(), text);
            assert!(chunks(text).all(|piece| piece.chars().count() <= 12));
        }
        assert_eq!(words("two words 四个汉字"), 4);
    }
}
