//! Summaries without understanding: of a file its headings, its weightiest sentences and its frequent words; of a folder what
//! kinds of files it has and what its own description says.

use std::collections::{BTreeMap, HashSet};

use super::conversation::{Conversation, Step};
use super::count::plan as counting_plan;
use super::files::{self, Counts, Text};
use super::folder::{called, capital, kinds, listed};
use super::language::{Language, few, is_han, tell};
use super::read_write;

const MAX_HEADINGS: usize = 8;
const MAX_SENTENCES: usize = 3;
const MAX_WORDS: usize = 6;
const MAX_SENTENCE_CHARS: usize = 220;

/// Words that say nothing of what a text is about.
const COMMON: &[&str] = &[
    "the", "and", "that", "this", "with", "from", "have", "has", "had", "are", "was", "were", "for", "not", "but", "you",
    "your", "its", "they", "them", "their", "there", "then", "than", "which", "what", "when", "where", "who", "will", "would",
    "can", "could", "should", "into", "over", "only", "also", "one", "all", "any", "our", "out", "his", "her", "she", "him",
    "been", "being", "does", "did", "each", "more", "most", "some", "such", "very", "just", "about", "after", "before",
    "because", "while", "other", "these", "those", "how", "may",
];

/// A place that is to be summed up: a file if it ends like one.
pub(super) fn plan(language: Language, place: &str) -> Vec<String> {
    match is_file(place) {
        true => vec![
            tell!(language, "find `{place}`", "找到 `{place}`"),
            tell!(language, "read all of it", "读完全文"),
            tell!(language, "weigh its sentences and words", "给句子和词语加权"),
            tell!(language, "check the size against the list", "与文件列表核对大小"),
        ],
        false => counting_plan(language, place),
    }
}

fn is_file(place: &str) -> bool {
    place.rsplit('/').next().is_some_and(|name| name.contains('.') && name != ".")
}

pub(super) fn summarise(conversation: &mut Conversation<'_>, place: &str) -> Step<String> {
    let steps = plan(conversation.language, place);
    conversation.plan(steps);
    if is_file(place) { file(conversation, place) } else { folder(conversation, place) }
}

fn file(conversation: &mut Conversation<'_>, requested: &str) -> Step<String> {
    let language = conversation.language;
    conversation.think(tell!(
        language,
        "First I see whether `{requested}` is there and how large it is.",
        "先看看 `{requested}` 在不在、有多大。"
    ));
    let entry = files::find(conversation, requested)?;
    let path = &entry.path;
    conversation.think(tell!(language, "Now I read `{path}`.", "现在读 `{path}`。"));
    let text = match files::read(conversation, path)? {
        Ok(text) => text,
        Err(refusal) => return Err(read_write::refused(language, path, &refusal)),
    };
    let Counts { lines, words, chars } = Counts::of(&text.text);
    let (many_lines, many_words) = (few(lines, "line"), few(words, "word"));
    let mut answer = tell!(
        language,
        "`{path}` has {many_lines}, {many_words} and {chars} characters.",
        "`{path}` 有 {lines} 行、{words} 个词、{chars} 个字符。"
    );
    answer.push_str(&gist(language, &text.text));
    answer.push('\n');
    answer.push_str(&check(language, &text, entry.bytes));
    Ok(answer)
}

/// Whether what was read is as large as the list says.
pub(super) fn check(language: Language, text: &Text, listed: Option<u64>) -> String {
    let read = text.text.len() as u64;
    match (text.of_lines, listed) {
        (Some(total), _) => tell!(
            language,
            "\nCareful: I read only {} of its {total} lines; what I say is about those.",
            "\n注意：我只读了 {} 行（全文 {total} 行），以上只针对这些行。",
            text.text.lines().count()
        ),
        (None, Some(listed)) if listed == read => tell!(
            language,
            "\nChecked: I read {read} bytes, as many as list_files says that it has.",
            "\n核对：读到 {read} 字节，与 list_files 给出的大小一致。"
        ),
        (None, Some(listed)) => tell!(
            language,
            "\nCareful: I read {read} bytes, but list_files says {listed}; it may have changed meanwhile.",
            "\n注意：读到 {read} 字节，但 list_files 说是 {listed} 字节，它可能刚被改过。"
        ),
        (None, None) => String::new(),
    }
}

/// Headings, weighty sentences and frequent words.
fn gist(language: Language, text: &str) -> String {
    let mut gist = String::new();
    let headings: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim())
        .filter(|line| !line.is_empty())
        .collect();
    if !headings.is_empty() {
        let items: Vec<_> = headings.iter().take(MAX_HEADINGS).copied().collect();
        let more = if headings.len() > MAX_HEADINGS { " …" } else { "" };
        gist.push_str(&tell!(language, "\n\nIts headings: {}{more}", "\n\n标题：{}{more}", items.join(" · ")));
    }
    let weights = weights(text);
    let sentences = weighty(text, &weights);
    if !sentences.is_empty() {
        gist.push_str(&tell!(language, "\n\nIts weightiest sentences:\n", "\n\n最有分量的句子：\n"));
        gist.extend(sentences.iter().map(|sentence| format!("> {sentence}\n")));
    }
    let mut frequent: Vec<(&String, &usize)> = weights.iter().filter(|(_, count)| **count > 1).collect();
    frequent.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    if !frequent.is_empty() {
        let items: Vec<_> = frequent.iter().take(MAX_WORDS).map(|(word, count)| format!("{word} ({count})")).collect();
        let gap = if gist.ends_with('\n') { "\n" } else { "\n\n" };
        gist.push_str(gap);
        gist.push_str(&tell!(language, "Frequent words: {}", "常见词：{}", items.join(", ")));
    }
    gist
}

/// How often each word occurs; of Chinese, each pair of characters.
fn weights(text: &str) -> BTreeMap<String, usize> {
    let mut weights = BTreeMap::new();
    for word in terms(text) {
        *weights.entry(word).or_default() += 1;
    }
    weights
}

fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric()) {
        if run.contains(is_han) {
            let chars: Vec<char> = run.chars().filter(|&c| is_han(c)).collect();
            let empty = |c: &char| "的了是在和有不也就都而及与着或一个这那我你他们为以于".contains(*c);
            terms.extend(chars.windows(2).filter(|pair| !pair.iter().any(empty)).map(|pair| pair.iter().collect()));
        } else {
            let word = run.to_lowercase();
            let is_telling =
                word.chars().count() > 2 && !word.starts_with(|c: char| c.is_ascii_digit()) && !COMMON.contains(&word.as_str());
            if is_telling {
                terms.push(word);
            }
        }
    }
    terms
}

/// The sentences whose words occur most in the whole text, in the order in which they stand there.
fn weighty(text: &str, weights: &BTreeMap<String, usize>) -> Vec<String> {
    let prose: String = text
        .lines()
        .map(str::trim)
        .map(|line| if line.is_empty() || line.starts_with(['#', '|', '`', '<']) { "\u{0}" } else { line })
        .collect::<Vec<_>>()
        .join(" ");
    let mut seen = HashSet::new();
    let mut sentences: Vec<(usize, &str)> = sentences(&prose)
        .into_iter()
        .map(|sentence| sentence.trim_start_matches(['-', '*', ' ']).trim())
        .filter(|sentence| terms(sentence).len() >= 3 && seen.insert(*sentence))
        .enumerate()
        .collect();
    let weight = |sentence: &str| {
        let terms: HashSet<String> = terms(sentence).into_iter().collect();
        let sum: usize = terms.iter().filter_map(|term| weights.get(term)).sum();
        // The average, so that long sentences do not win by their length.
        sum * 1000 / (terms.len() + 3)
    };
    sentences.sort_by_key(|(n, sentence)| (usize::MAX - weight(sentence), *n));
    sentences.truncate(MAX_SENTENCES);
    sentences.sort_by_key(|(n, _)| *n);
    sentences.into_iter().map(|(_, sentence)| cut(sentence)).collect()
}

fn sentences(prose: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    let mut chars = prose.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        let ends =
            matches!(c, '。' | '！' | '？' | '\0') || (matches!(c, '.' | '!' | '?') && next.is_none_or(char::is_whitespace));
        if ends {
            let end = if c == '\0' { at } else { at + c.len_utf8() };
            sentences.push(prose[start..end].trim());
            start = at + c.len_utf8();
        }
    }
    sentences.push(prose[start..].trim());
    sentences
}

fn cut(sentence: &str) -> String {
    match sentence.char_indices().nth(MAX_SENTENCE_CHARS) {
        Some((end, _)) => format!("{}…", &sentence[..end]),
        None => sentence.to_owned(),
    }
}

fn folder(conversation: &mut Conversation<'_>, place: &str) -> Step<String> {
    let language = conversation.language;
    let name = called(language, place);
    conversation.think(tell!(
        language,
        "I list {name} with everything below it and count the text.",
        "列出{name}里的所有内容并统计文字。"
    ));
    let listing = listed(conversation, place, true, None, true)?;
    let files: Vec<_> = listing.files().collect();
    let folders = listing.entries.iter().filter(|entry| entry.path.ends_with('/')).count();
    let bytes: u64 = files.iter().filter_map(|entry| entry.bytes).sum();
    let sum = files.iter().filter_map(|entry| entry.counts).fold(Counts::default(), Counts::plus);
    let count = files.len();
    let (many_files, many_folders) = (few(count, "file"), few(folders, "folder"));
    let Counts { lines, words, .. } = sum;
    let (many_lines, many_words) = (few(lines, "line"), few(words, "word"));
    let mut answer = tell!(
        language,
        "{} holds {many_files} and {many_folders}: {bytes} bytes, {many_lines} of text, {many_words}.",
        "{}里有 {count} 个文件、{folders} 个文件夹：{bytes} 字节，文本共 {lines} 行、{words} 个词。",
        capital(&name)
    );
    let kinds = kinds(files.iter().copied());
    let items = kinds.iter().take(MAX_HEADINGS).map(|(kind, count, _)| {
        let kind = if kind.is_empty() { tell!(language, "no ending", "无扩展名") } else { format!(".{kind}") };
        format!("{count} {kind}")
    });
    let items: Vec<_> = items.collect();
    if !items.is_empty() {
        answer.push_str(&tell!(language, "\n- kinds: {}", "\n- 类型：{}", items.join(", ")));
    }
    let mut largest = files.clone();
    largest.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.path.cmp(&b.path)));
    let items: Vec<_> =
        largest.iter().take(3).map(|entry| format!("`{}` ({})", entry.path, entry.bytes.unwrap_or_default())).collect();
    if !items.is_empty() {
        answer.push_str(&tell!(language, "\n- largest, in bytes: {}", "\n- 最大的文件（字节）：{}", items.join(", ")));
    }
    let about = files.iter().filter(|entry| entry.counts.is_some()).find(|entry| {
        let name = entry.path.rsplit('/').next().unwrap_or_default().to_lowercase();
        name.starts_with("readme") || name.starts_with("index.md")
    });
    if let Some(about) = about.filter(|_| conversation.tool("read_file").is_some()) {
        let path = &about.path;
        conversation.think(tell!(
            language,
            "`{path}` may say what it is about, so I read it.",
            "`{path}` 可能说明了内容，我读一下。"
        ));
        if let Ok(text) = files::read(conversation, path)? {
            let weights = weights(&text.text);
            let first = weighty(&text.text, &weights).into_iter().next();
            if let Some(first) = first {
                answer.push_str(&tell!(language, "\n- `{path}` says: {first}", "\n- `{path}` 写道：{first}"));
            }
        }
    }
    let sum: usize = kinds.iter().map(|(_, count, _)| count).sum();
    if listing.total_files() == Some(sum) {
        answer.push_str(&tell!(
            language,
            "\n\nChecked: the kinds add up to {sum} files, as many as list_files counts.",
            "\n\n核对：各类相加为 {sum} 个文件，与 list_files 的统计一致。"
        ));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weightiest_sentences_are_those_with_the_frequent_words() {
        let text = "# Bees\n\nBees make honey. The weather was nice. Honey from bees feeds bees in winter.\nI went home.\n";
        let weights = weights(text);
        assert_eq!(weights["bees"], 4);
        assert_eq!(weighty(text, &weights)[0], "Bees make honey.");
        assert!(!weighty(text, &weights).iter().any(|sentence| sentence.contains("home")));
        let gist = gist(Language::English, text);
        assert!(gist.contains("Its headings: Bees") && gist.contains("Frequent words: bees (4), honey (2)"), "{gist}");
    }

    #[test]
    fn chinese_is_cut_at_its_own_full_stops() {
        let text = "蜜蜂酿蜂蜜。天气很好。蜂蜜是蜜蜂冬天的食物！";
        assert_eq!(sentences(text), ["蜜蜂酿蜂蜜。", "天气很好。", "蜂蜜是蜜蜂冬天的食物！", ""]);
        assert_eq!(weighty(text, &weights(text))[0], "蜜蜂酿蜂蜜。");
    }
}
