//! Questions about a table in a file: found and read with tools, reckoned exactly, and checked.

mod answer;
mod columns;
mod conditions;
mod csv;
mod names;
mod question;
mod unknown_words;
mod words;

use serde_json::json;

use super::conversation::{Conversation, Step, Stop};
use super::files;
use super::language::{Language, tell};
use super::read_write;
use super::summary::check;
use columns::Table;
use csv::Sheet;
use question::Misunderstanding;

/// Most files that are named where somebody must choose.
const MAX_CHOICES: usize = 10;

pub(super) fn plan(language: Language, path: Option<&str>) -> Vec<String> {
    let find = match path {
        Some(path) => tell!(language, "find `{path}` and see how large it is", "找到 `{path}`，看看有多大"),
        None => tell!(language, "find the CSV file that is meant", "找到所指的 CSV 文件"),
    };
    vec![
        find,
        tell!(language, "read all of it", "把它读完"),
        tell!(language, "work out its columns and what is asked of them", "弄清各列以及要算什么"),
        tell!(language, "check the figures against each other and answer", "互相核对数字，然后回答"),
    ]
}

/// Whether a request without a file is about a table; easier to believe after one was talked about.
pub(super) fn is_question(lower: &str, was_named: bool) -> bool {
    let figures = words::AGGREGATES.iter().any(|(word, _)| words::has(lower, &[word]));
    let groups = words::has(lower, &["by", "per", "for each", "of each", "grouped", "按", "每个", "各", "每"]);
    let tops = words::has(lower, &["top", "bottom", "前", "排名", "排序", "sorted"]);
    let tables = words::has(
        lower,
        &["csv", "tsv", "table", "column", "columns", "rows", "spreadsheet", "表格", "列", "这张表", "数据表"],
    );
    let filters = words::has(lower, &["where", "大于", "小于", "超过"]) || lower.contains(['<', '>']);
    if was_named {
        return figures || groups || tops || tables || filters;
    }
    let kinds = [figures, groups, tops, filters, tables];
    kinds.iter().filter(|is_so| **is_so).count() >= 2 || words::has(lower, &["csv", "tsv"])
}

/// The answer to a request that has only a hint of a question about a table, such as `average price`: if there is one table in
/// the folder and it has everything that is asked for.
pub(super) fn guess(conversation: &mut Conversation<'_>) -> Step<Option<String>> {
    let asked = conversation.asked;
    let has_tools = ["list_files", "read_file"].iter().all(|tool| conversation.tool(tool).is_some());
    if !has_tools || !is_question(&asked.to_lowercase(), true) {
        return Ok(None);
    }
    let [only] = &tables(conversation)?[..] else { return Ok(None) };
    match about(conversation, only, asked) {
        Ok(answer) => Ok(Some(answer)),
        Err(Stop::Say(_)) => Ok(None),
        Err(calls) => Err(calls),
    }
}

/// Where a word stands in a text that is in lower case, as a word of its own.
pub(super) fn place_of(lower: &str, word: &str) -> Option<std::ops::Range<usize>> {
    words::places(lower, word).into_iter().next()
}

pub(super) fn analyse(conversation: &mut Conversation<'_>, path: Option<&str>, asked: &str) -> Step<String> {
    let language = conversation.language;
    let steps = plan(language, path);
    conversation.plan(steps);
    let named = match path {
        Some(path) => path.to_owned(),
        None => only_table(conversation)?,
    };
    about(conversation, &named, asked)
}

fn about(conversation: &mut Conversation<'_>, named: &str, asked: &str) -> Step<String> {
    let language = conversation.language;
    conversation.think(tell!(
        language,
        "First I see whether `{named}` is there and how large it is.",
        "先看看 `{named}` 在不在、有多大。"
    ));
    let entry = files::find(conversation, named)?;
    let path = &entry.path;
    // Words that run into the name of the file belong to the question: 按地区统计销售.csv的平均金额.
    let before = named.strip_suffix(path.as_str()).filter(|words| !words.is_ascii()).unwrap_or_default();
    let asked = &format!("{before}{asked}");
    conversation.think(tell!(language, "Now I read `{path}`.", "现在读 `{path}`。"));
    let text = match files::read(conversation, path)? {
        Ok(text) => text,
        Err(refusal) => return Err(read_write::refused(language, path, &refusal)),
    };
    let sheet = csv::parse(&text.text);
    if sheet.header.is_empty() {
        return Ok(tell!(language, "`{path}` is empty: there is nothing to analyse.", "`{path}` 是空的，没有可分析的内容。"));
    }
    let notes = notes(language, &sheet);
    let table = Table::new(sheet);
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    conversation.think(tell!(
        language,
        "It has {} rows and the columns {}.",
        "共有 {} 行，列有：{}。",
        table.rows,
        names.join(&tell!(language, ", ", "、"))
    ));
    let question = match question::parse(asked, &table) {
        Ok(question) => question,
        Err(puzzle) => return Err(Stop::Say(puzzled(language, path, &table, &puzzle))),
    };
    conversation.think(answer::understood(language, &table, &question));
    let answer = answer::answer(language, path, &table, &question).map_err(Stop::Say)?;
    // A line right under a table would become one of its rows.
    let gap = if answer.ends_with('|') { "\n" } else { "" };
    Ok(format!("{answer}{gap}{notes}{}", check(language, &text, entry.bytes)))
}

/// All tables of the folder and those below it.
fn tables(conversation: &mut Conversation<'_>) -> Step<Vec<String>> {
    let arguments = json!({ "recursive": true, "pattern": "*.{csv,tsv,tab}" });
    let listing = files::list(conversation, &arguments)?.unwrap_or_default();
    Ok(listing.files().map(|entry| entry.path.clone()).collect())
}

/// The one table that there is; a person must say which where there are several.
fn only_table(conversation: &mut Conversation<'_>) -> Step<String> {
    let language = conversation.language;
    conversation.think(tell!(language, "No file is named, so I look for tables.", "没有说是哪个文件，我找找有哪些表格。"));
    let mut found = tables(conversation)?;
    match &found[..] {
        [_] => Ok(found.remove(0)),
        [] => Err(Stop::Say(tell!(
            language,
            "That sounds like a question about a table, but I find no CSV file here. Name one, as in `average price by city in sales.csv`.",
            "这像是关于表格的问题，但这里没有 CSV 文件。请说明文件名，例如“sales.csv 里按城市的平均价格”。"
        ))),
        _ => {
            let names: Vec<_> = found.iter().take(MAX_CHOICES).map(|path| format!("`{path}`")).collect();
            Err(Stop::Say(tell!(
                language,
                "Which table do you mean? I find {}.",
                "您指的是哪个表格？我找到了 {}。",
                names.join(&tell!(language, ", ", "、"))
            )))
        }
    }
}

/// What should be known about the file itself.
fn notes(language: Language, sheet: &Sheet) -> String {
    let mut notes = String::new();
    if sheet.is_nameless {
        notes.push_str(&tell!(
            language,
            "\nNote: the first row holds numbers only, so I named the columns myself.",
            "\n说明：第一行全是数字，列名是我起的。"
        ));
    }
    if sheet.ragged > 0 {
        let ragged = sheet.ragged;
        notes.push_str(&tell!(
            language,
            "\nNote: {ragged} rows have more or fewer fields than the header; missing ones count as empty.",
            "\n说明：有 {ragged} 行的字段数与表头不同，缺的按空值处理。"
        ));
    }
    if sheet.is_open {
        notes.push_str(&tell!(
            language,
            "\nNote: a quotation mark is never closed, so the last rows may be wrong.",
            "\n说明：有一个引号没有闭合，最后几行可能有误。"
        ));
    }
    notes
}

fn puzzled(language: Language, path: &str, table: &Table, puzzle: &Misunderstanding) -> String {
    let names: Vec<_> = table.columns.iter().map(|column| format!("`{}`", column.name)).collect();
    let names = names.join(&tell!(language, ", ", "、"));
    match puzzle {
        Misunderstanding::NoColumn(word) => tell!(
            language,
            "I find no column `{word}` in `{path}`. Its columns are {names}.",
            "`{path}` 里没有“{word}”这一列。它的列有：{names}。"
        ),
        Misunderstanding::Compared(words) => tell!(
            language,
            "Which column do you mean with “{words}”? The columns of `{path}` are {names}.",
            "“{words}”指的是哪一列？`{path}` 的列有：{names}。"
        ),
        Misunderstanding::Words(words) => tell!(
            language,
            "I did not understand the part “{words}”, so I reckon nothing rather than something else. The columns of `{path}` are \
             {names}. I understand figures, groups, an order, and conditions such as `COLUMN > 5`, `COLUMN is VALUE` or \
             `excluding VALUE` with values that occur in the table.",
            "我没有听懂“{words}”这部分，所以不去算别的东西。`{path}` 的列有：{names}。我听得懂指标、分组、排序，以及“列 大于 5”、\
             “列 是 值”、“除了 值”这样的条件（值要在表里出现）。"
        ),
        Misunderstanding::Or => tell!(
            language,
            "I can only take conditions that all hold: write `and`, or ask one after the other.",
            "我只会处理同时成立的条件：请用“且”，或者分开提问。"
        ),
    }
}

#[cfg(test)]
mod tests;
