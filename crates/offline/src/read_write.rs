//! Reading a file out, and writing one; what was written is read again.

use serde_json::json;

use super::conversation::{Conversation, Step, Stop};
use super::files::{self, Counts, reason};
use super::language::{Language, tell};

/// Most lines that are read out.
const MAX_LINES: usize = 30;
const MAX_CHARS: usize = 3_000;

pub(super) fn reading_plan(language: Language, path: &str) -> Vec<String> {
    vec![tell!(language, "read `{path}`", "读取 `{path}`")]
}

pub(super) fn writing_plan(language: Language, path: &str) -> Vec<String> {
    vec![
        tell!(language, "write `{path}` with write_file", "用 write_file 写入 `{path}`"),
        tell!(language, "read it again and compare", "再读一遍，核对内容"),
    ]
}

pub(super) fn read(conversation: &mut Conversation<'_>, path: &str) -> Step<String> {
    let language = conversation.language;
    conversation.think(tell!(
        language,
        "I am to read `{path}`: that is a call of read_file.",
        "要读 `{path}`：调用 read_file。"
    ));
    let (path, text) = match files::read(conversation, path)? {
        Ok(text) => (path.to_owned(), text),
        Err(refusal) if refusal.contains("does not exist") => {
            let found = files::find(conversation, path)?.path;
            match files::read(conversation, &found)? {
                Ok(text) => (found, text),
                Err(refusal) => return Err(refused(language, &found, &refusal)),
            }
        }
        Err(refusal) => return Err(refused(language, path, &refusal)),
    };
    let counts = Counts::of(&text.text).describe(language);
    let excerpt: String = text.text.lines().take(MAX_LINES).flat_map(|line| [line, "\n"]).collect::<String>();
    let excerpt: String = excerpt.chars().take(MAX_CHARS).collect();
    let is_all = excerpt.trim_end() == text.text.trim_end().replace("\r\n", "\n");
    let fence = if excerpt.contains("```") { "````" } else { "```" };
    let head = tell!(language, "I read `{path}` with read_file: {counts}.", "我用 read_file 读了 `{path}`：{counts}。");
    if text.text.trim().is_empty() {
        return Ok(head);
    }
    let body = match is_all {
        true => String::new(),
        false => tell!(language, " It begins:", "开头是："),
    };
    Ok(format!("{head}{body}\n{fence}\n{}\n{fence}", excerpt.trim_end()))
}

/// That a file cannot be read.
pub(super) fn refused(language: Language, path: &str, refusal: &str) -> Stop {
    Stop::Say(tell!(language, "I cannot read `{path}`: {refusal}.", "无法读取 `{path}`：{refusal}。"))
}

pub(super) fn write(conversation: &mut Conversation<'_>, path: &str, text: &str) -> Step<String> {
    let language = conversation.language;
    let plan = writing_plan(language, path);
    if conversation.tool("read_file").is_some() {
        conversation.plan(plan);
    }
    conversation.think(tell!(
        language,
        "I am to write `{path}`, and I will look at it afterwards.",
        "要写 `{path}`，写完再看一遍。"
    ));
    let written = conversation.call("write_file", json!({ "path": path, "content": text }))?;
    if written.is_error {
        let refusal = reason(written.content);
        return Err(Stop::Say(tell!(language, "I could not write `{path}`: {refusal}.", "没能写入 `{path}`：{refusal}。")));
    }
    let result = written.content;
    if conversation.tool("read_file").is_none() {
        return Ok(tell!(language, "The tool write_file says: {result}.", "工具 write_file 的回答是：{result}。"));
    }
    match files::read(conversation, path)? {
        Ok(read) if read.text == text => Ok(tell!(
            language,
            "Done: {result}. I read it again, and it holds exactly that.",
            "完成：{result}。我又读了一遍，内容完全一致。"
        )),
        Ok(read) if read.of_lines.is_some() => {
            Ok(tell!(language, "Done: {result}. It is too long for me to compare.", "完成：{result}。内容太长，没有逐字核对。"))
        }
        Ok(_) => Err(Stop::Say(tell!(
            language,
            "The tool says: {result}. But when I read `{path}` again it held something else.",
            "工具说：{result}。但再读 `{path}` 时，内容不一样。"
        ))),
        Err(refusal) => Err(Stop::Say(tell!(
            language,
            "The tool says: {result}. I could not read it again: {refusal}.",
            "工具说：{result}。但没能再读一遍：{refusal}。"
        ))),
    }
}
