//! Counting in a folder or a file: files by kind, lines, words, characters, and how often a word occurs. What was counted is
//! counted a second way.

use serde_json::json;

use super::conversation::{Conversation, Step, Stop};
use super::files::{self, Counts, Entry};
use super::folder::{called, capital, is_missing_file, kinds, listed};
use super::language::{Language, few, is_han, tell};

/// What is to be counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CountTarget {
    Files,
    Folders,
    Lines,
    Words,
    Chars,
    Occurrences(String),
}

/// Most rows of a table that are shown.
const MAX_ROWS: usize = 15;
/// Most hits that are shown.
const MAX_HITS: usize = 10;
/// Largest file that is counted again.
const MAX_AGAIN_BYTES: u64 = 40_000;

pub(super) fn plan(language: Language, place: &str) -> Vec<String> {
    let place = called(language, place);
    vec![
        tell!(language, "look through {place} with a tool", "用工具查看{place}"),
        tell!(language, "count what was found", "统计结果"),
        tell!(language, "check the count a second way", "换一种方法核对"),
    ]
}

pub(super) fn count(
    conversation: &mut Conversation<'_>,
    what: &CountTarget,
    place: &str,
    pattern: Option<&str>,
) -> Step<String> {
    let steps = plan(conversation.language, place);
    conversation.plan(steps);
    match what {
        CountTarget::Occurrences(word) => occurrences(conversation, word, place, pattern),
        CountTarget::Files | CountTarget::Folders => entries(conversation, what, place, pattern),
        CountTarget::Lines | CountTarget::Words | CountTarget::Chars => text(conversation, what, place, pattern),
    }
}

fn entries(conversation: &mut Conversation<'_>, what: &CountTarget, place: &str, pattern: Option<&str>) -> Step<String> {
    let language = conversation.language;
    let name = called(language, place);
    conversation.think(tell!(language, "I list {name} with everything below it.", "列出{name}以及其中的所有内容。"));
    let listing = listed(conversation, place, true, pattern, false)?;
    let folders = listing.entries.iter().filter(|entry| entry.path.ends_with('/')).count();
    let name = capital(&name);
    let fitting = pattern.map_or_else(String::new, |pattern| tell!(language, " that fit `{pattern}`", "（符合 `{pattern}`）"));
    if *what == CountTarget::Folders {
        return Ok(tell!(
            language,
            "{name} has {folders} folders in it, at any depth.",
            "{name}里共有 {folders} 个文件夹（含各级子文件夹）。"
        ));
    }
    let files = listing.files().count();
    let bytes: u64 = listing.files().filter_map(|entry| entry.bytes).sum();
    let kinds = kinds(listing.files());
    let mut rows = String::new();
    for (kind, count, bytes) in kinds.iter().take(MAX_ROWS) {
        let kind = if kind.is_empty() { tell!(language, "no ending", "无扩展名") } else { format!(".{kind}") };
        rows.push_str(&format!("| {kind} | {count} | {bytes} |\n"));
    }
    let more = kinds.len().saturating_sub(MAX_ROWS);
    if more > 0 {
        rows.push_str(&tell!(language, "\nand {more} more kinds\n", "\n还有 {more} 种\n"));
    }
    let (many_files, many_folders) = (few(files, "file"), few(folders, "folder"));
    let head = match pattern {
        Some(_) => tell!(
            language,
            "{name} holds {many_files}{fitting}, {bytes} bytes in all.",
            "{name}里共有 {files} 个文件{fitting}，合计 {bytes} 字节。"
        ),
        None => tell!(
            language,
            "{name} holds {many_files} and {many_folders}, {bytes} bytes in all.",
            "{name}里共有 {files} 个文件、{folders} 个文件夹，合计 {bytes} 字节。"
        ),
    };
    if files == 0 {
        return Ok(head);
    }
    let table =
        tell!(language, "| kind | files | bytes |\n|---|---|---|\n{rows}", "| 类型 | 文件数 | 字节 |\n|---|---|---|\n{rows}");
    let sum: usize = kinds.iter().map(|(_, count, _)| count).sum();
    let check = match listing.total_files() {
        Some(total) if total == sum => tell!(
            language,
            "Checked: the kinds add up to {sum}, and list_files counts {total}.",
            "核对：各类相加为 {sum}，list_files 统计也是 {total}。"
        ),
        total => tell!(
            language,
            "Careful: the kinds add up to {sum}, but list_files counts {}.",
            "注意：各类相加为 {sum}，但 list_files 统计为 {}。",
            total.unwrap_or_default()
        ),
    };
    Ok(format!("{head}\n\n{table}\n{check}{}", left_out(language, &listing)))
}

/// What the counts leave out.
fn left_out(language: Language, listing: &files::Listing) -> String {
    let ignored = match listing.ignored() {
        0 => String::new(),
        ignored => tell!(
            language,
            " What .gitignore leaves out ({ignored} entries) is not counted.",
            "被 .gitignore 排除的 {ignored} 项没有计入。"
        ),
    };
    let cut = match listing.is_cut() {
        true => tell!(
            language,
            " The folder is larger than one walk can see, so these are not all.",
            "文件夹太大，一次看不完，以上并非全部。"
        ),
        false => String::new(),
    };
    ignored + &cut
}

fn text(conversation: &mut Conversation<'_>, what: &CountTarget, place: &str, pattern: Option<&str>) -> Step<String> {
    let language = conversation.language;
    let name = called(language, place);
    conversation.think(tell!(
        language,
        "list_files can count the text of each file in {name}.",
        "list_files 能统计{name}中每个文件的文字。"
    ));
    let listing = listed(conversation, place, true, pattern, true)?;
    let counted: Vec<(&Entry, Counts)> = listing.files().filter_map(|entry| Some((entry, entry.counts?))).collect();
    let others = listing.files().count() - counted.len();
    let sum = counted.iter().fold(Counts::default(), |sum, (_, counts)| sum.plus(*counts));
    if counted.is_empty() {
        return Ok(tell!(language, "{} holds no text files.", "{}里没有文本文件。", capital(&name)));
    }
    let check = again(conversation, &counted)?;
    let pick = |counts: Counts| match what {
        CountTarget::Words => counts.words,
        CountTarget::Chars => counts.chars,
        _ => counts.lines,
    };
    let unit = match what {
        CountTarget::Words => tell!(language, "words", "个词"),
        CountTarget::Chars => tell!(language, "characters", "个字符"),
        _ => tell!(language, "lines", "行"),
    };
    let total = pick(sum);
    let many = match (language, what) {
        (Language::Chinese, _) => format!("{total} {unit}"),
        (Language::English, CountTarget::Words) => few(total, "word"),
        (Language::English, CountTarget::Chars) => few(total, "character"),
        (Language::English, _) => few(total, "line"),
    };
    let whole = sum.describe(language);
    let head = match &counted[..] {
        [(only, _)] if only.path == place => {
            tell!(language, "`{place}` has {many} ({whole}).", "`{place}` 有 {many}（{whole}）。")
        }
        _ => {
            let mut largest: Vec<_> = counted.iter().collect();
            largest.sort_by(|a, b| pick(b.1).cmp(&pick(a.1)).then_with(|| a.0.path.cmp(&b.0.path)));
            let rows: String = largest
                .iter()
                .take(MAX_ROWS)
                .map(|(entry, counts)| format!("| {} | {} |\n", entry.path, pick(*counts)))
                .collect();
            let more = counted.len().saturating_sub(MAX_ROWS);
            let more = if more == 0 {
                String::new()
            } else {
                tell!(language, "\nand {more} more files\n", "\n还有 {more} 个文件\n")
            };
            let files = counted.len();
            let many_files = few(files, "text file");
            let head = tell!(
                language,
                "{} has {many} in {many_files} ({whole}).",
                "{}的 {files} 个文本文件共有 {many}（{whole}）。",
                capital(&name)
            );
            let table =
                tell!(language, "| file | {unit} |\n|---|---|\n{rows}{more}", "| 文件 | {unit} |\n|---|---|\n{rows}{more}");
            format!("{head}\n\n{table}")
        }
    };
    let others = match others {
        0 => String::new(),
        1 => tell!(language, " One other file is no text.", "另有 1 个文件不是文本。"),
        others => tell!(language, " {others} other files are no text.", "另有 {others} 个文件不是文本。"),
    };
    Ok(format!("{head}\n{check}{others}{}", left_out(language, &listing)))
}

/// Reads one of the files and counts for itself.
fn again(conversation: &mut Conversation<'_>, counted: &[(&Entry, Counts)]) -> Step<String> {
    let language = conversation.language;
    let small = counted.iter().filter(|(entry, _)| entry.bytes.is_some_and(|bytes| bytes <= MAX_AGAIN_BYTES));
    let Some((entry, counts)) = small.max_by_key(|(entry, _)| entry.bytes) else { return Ok(String::new()) };
    if conversation.tool("read_file").is_none() {
        return Ok(String::new());
    }
    let path = &entry.path;
    conversation.think(tell!(
        language,
        "To check, I read `{path}` and count it myself.",
        "为了核对，我读一遍 `{path}` 自己数。"
    ));
    Ok(match files::read(conversation, path)? {
        Ok(text) if Counts::of(&text.text) == *counts => tell!(
            language,
            "Checked: I read `{path}` and counted the same: {}.",
            "核对：我读了 `{path}`，自己数出来也是 {}。",
            counts.describe(language)
        ),
        Ok(text) => tell!(
            language,
            "Careful: `{path}` has {} lines when I read it, not {}; it may have changed meanwhile.",
            "注意：我读 `{path}` 时是 {} 行，不是 {} 行，它可能刚被改过。",
            Counts::of(&text.text).lines,
            counts.lines
        ),
        Err(refusal) => tell!(language, "I could not check it: {refusal}.", "没能核对：{refusal}。"),
    })
}

fn occurrences(conversation: &mut Conversation<'_>, word: &str, place: &str, pattern: Option<&str>) -> Step<String> {
    let language = conversation.language;
    let name = called(language, place);
    conversation.think(tell!(
        language,
        "search_files finds “{word}” in {name} and counts it.",
        "用 search_files 在{name}里查找“{word}”并计数。"
    ));
    let found = run_search(conversation, word, place, pattern, true)?;
    let SearchResult { times, lines, files, .. } = found;
    let (many_times, many_lines, many_files) = (few(times, "time"), few(lines, "line"), few(files, "file"));
    let mut answer = tell!(
        language,
        "“{word}” occurs {many_times} as a word in {name}, on {many_lines} of {many_files}; capitals do not matter.",
        "“{word}”在{name}里出现了 {times} 次，分布在 {lines} 行、{files} 个文件中（不分大小写）。"
    );
    if found.times == 0 {
        let inside = run_search(conversation, word, place, pattern, false)?;
        if inside.times > 0 {
            answer.push_str(&tell!(
                language,
                " Inside longer words it occurs {} times.",
                "作为更长词的一部分出现了 {} 次。",
                inside.times
            ));
        }
        return Ok(answer);
    }
    if found.per_file.len() > 1 {
        let rows: String =
            found.per_file.iter().take(MAX_ROWS).map(|(path, times)| format!("| {path} | {times} |\n")).collect();
        answer.push_str(&tell!(language, "\n\n| file | times |\n|---|---|\n{rows}", "\n\n| 文件 | 次数 |\n|---|---|\n{rows}"));
        let sum: usize = found.per_file.iter().map(|(_, times)| times).sum();
        if sum == found.times {
            answer.push_str(&tell!(language, "\nChecked: the files add up to {sum}.", "\n核对：各文件相加为 {sum}。"));
        }
    } else if let Some((path, _)) = found.hits.first().and_then(|hit| hit.split_once(':')) {
        let check = recount(conversation, path, word, found.times)?;
        answer.push_str(&check);
    }
    Ok(answer)
}

/// Reads the one file that has the word and counts there.
fn recount(conversation: &mut Conversation<'_>, path: &str, word: &str, times: usize) -> Step<String> {
    let language = conversation.language;
    if conversation.tool("read_file").is_none() {
        return Ok(String::new());
    }
    let Ok(text) = files::read(conversation, path)? else { return Ok(String::new()) };
    let counted = text.text.lines().map(|line| times_in(line, word)).sum::<usize>();
    Ok(match counted == times && text.of_lines.is_none() {
        true => tell!(
            language,
            "\nChecked: I read `{path}` and counted {counted} myself.",
            "\n核对：我读了 `{path}`，自己数出来也是 {counted} 次。"
        ),
        false => String::new(),
    })
}

/// How often a line has a word, not counting longer ones that hold it.
fn times_in(line: &str, word: &str) -> usize {
    let (line, word) = (line.to_lowercase(), word.to_lowercase());
    let joins = |c: Option<char>| c.is_some_and(|c| (c.is_alphanumeric() || c == '_') && !is_han(c));
    let ends = |c: Option<char>| joins(c);
    let mut at = 0;
    let mut times = 0;
    while let Some(found) = line[at..].find(&word).map(|found| at + found) {
        let end = found + word.len();
        let inside = (joins(line[..found].chars().next_back()) && ends(word.chars().next()))
            || (joins(line[end..].chars().next()) && ends(word.chars().next_back()));
        times += usize::from(!inside);
        at = if inside { found + line[found..].chars().next().map_or(1, char::len_utf8) } else { end };
    }
    times
}

pub(super) fn search(conversation: &mut Conversation<'_>, word: &str, place: &str) -> Step<String> {
    let language = conversation.language;
    let name = called(language, place);
    conversation.think(tell!(
        language,
        "search_files looks for “{word}” in {name}.",
        "用 search_files 在{name}里查找“{word}”。"
    ));
    let found = run_search(conversation, word, place, None, false)?;
    let SearchResult { times, lines, files, .. } = found;
    let (many_times, many_lines, many_files) = (few(times, "time"), few(lines, "line"), few(files, "file"));
    let head = tell!(
        language,
        "“{word}” stands on {many_lines} of {many_files} in {name}, {many_times} in all",
        "“{word}”在{name}的 {files} 个文件、{lines} 行中出现，共 {times} 次"
    );
    if found.hits.is_empty() {
        return Ok(tell!(language, "I find “{word}” nowhere in {name}.", "在{name}里没有找到“{word}”。"));
    }
    let hits: String = found.hits.iter().take(MAX_HITS).map(|hit| format!("- {hit}\n")).collect();
    let more = found.lines.saturating_sub(MAX_HITS);
    let more = if more == 0 { String::new() } else { tell!(language, "and {more} more lines", "还有 {more} 行") };
    Ok(format!("{head}{}\n{hits}{more}", tell!(language, ":", "：")).trim_end().to_owned())
}

/// What a search came to.
struct SearchResult {
    hits: Vec<String>,
    per_file: Vec<(String, usize)>,
    times: usize,
    lines: usize,
    files: usize,
}

fn run_search(
    conversation: &mut Conversation<'_>,
    word: &str,
    place: &str,
    pattern: Option<&str>,
    whole_word: bool,
) -> Step<SearchResult> {
    let language = conversation.language;
    let mut arguments = json!({ "text": word, "path": place, "ignore_case": true });
    if whole_word {
        arguments["whole_word"] = json!(true);
    }
    if let Some(pattern) = pattern {
        arguments["pattern"] = json!(pattern);
    }
    let given = conversation.call("search_files", arguments)?;
    let refusal = files::reason(given.content);
    if given.is_error && is_missing_file(place, refusal) {
        let found = files::find(conversation, place)?.path;
        if found != place {
            return run_search(conversation, word, &found, pattern, whole_word);
        }
    }
    if given.is_error {
        return Err(Stop::Say(tell!(language, "I cannot search `{place}`: {refusal}.", "无法搜索 `{place}`：{refusal}。")));
    }
    let mut found = SearchResult { hits: Vec::new(), per_file: Vec::new(), times: 0, lines: 0, files: 0 };
    for line in given.content.lines() {
        if let Some(totals) = line.strip_prefix("[total: ") {
            let numbers: Vec<usize> = totals.split([' ', ';', ']']).filter_map(|word| word.parse().ok()).collect();
            if let [times, lines, files, ..] = numbers[..] {
                (found.times, found.lines, found.files) = (times, lines, files);
            }
        } else if let Some((path, times)) = line.strip_suffix(" times").and_then(|line| line.rsplit_once(": "))
            && let Ok(times) = times.parse()
            && path.rsplit_once(':').is_none_or(|(_, number)| number.parse::<usize>().is_err())
        {
            found.per_file.push((path.to_owned(), times));
        } else if !line.starts_with("[cut: ") {
            found.hits.push(line.to_owned());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_not_counted_inside_another() {
        assert_eq!(times_in("Milk, milk; buttermilk milkman MILK", "milk"), 3);
        assert_eq!(times_in("买苹果和苹果汁", "苹果"), 2);
        assert_eq!(times_in("", "x"), 0);
    }
}
