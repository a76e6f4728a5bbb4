//! A model for people without a key: it asks nobody, invents nothing and says what it is.
//!
//! It understands `read FILE` and `write FILE: text` (`读 FILE`, `写 FILE: 文字`), asks for the real tool and answers from what
//! the tool returned. To everything else it answers how to set a real model.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream;
use polis_domain::{Finish, ToolCall, Usage};
use polis_ports::{ChatMessage, Delta, DeltaStream, Model, ModelError, ModelRequest};
use serde_json::{Value, json};

use polis_ports::estimate_tokens;

/// The model that needs no network. The same request always gets the same reply.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offline;

#[async_trait]
impl Model for Offline {
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError> {
        let deltas = match reply(&request) {
            Reply::Say(text) => said(&request, &text),
            Reply::Call(call) => called(&request, call),
        };
        Ok(Box::pin(stream::iter(deltas.into_iter().map(Ok))))
    }
}

enum Reply {
    Say(String),
    Call(ToolCall),
}

/// What a person wants, as far as this model understands it.
#[derive(Debug, PartialEq, Eq)]
enum Wish<'a> {
    Read { path: &'a str },
    Write { path: &'a str, text: &'a str },
    Other,
}

#[derive(Clone, Copy)]
enum Language {
    English,
    Chinese,
}

fn reply(request: &ModelRequest) -> Reply {
    let asked = request.messages.iter().rev().find_map(|message| match message {
        ChatMessage::User { text, .. } => Some(&**text),
        ChatMessage::Assistant { .. } | ChatMessage::Tool { .. } => None,
    });
    let asked = asked.unwrap_or_default();
    let language = language(asked);
    if let Some(ChatMessage::Tool { call_id, name, content, .. }) = request.messages.last() {
        return Reply::Say(answer(language, name, &path_of(request, call_id), content));
    }
    let (tool, arguments) = match wish(asked) {
        Wish::Read { path } => ("read_file", json!({ "path": path })),
        Wish::Write { path, text } => ("write_file", json!({ "path": path, "content": text })),
        Wish::Other => return Reply::Say(introduction(language)),
    };
    if !request.tools.iter().any(|offered| &*offered.name == tool) {
        return Reply::Say(without_tool(language, tool));
    }
    // The place in the conversation makes the id unique within it, and the same each time.
    let id = format!("offline_{}", request.messages.len());
    Reply::Call(ToolCall { id: id.into(), name: tool.into(), arguments: arguments.to_string().into() })
}

fn wish(asked: &str) -> Wish<'_> {
    let asked = asked.trim();
    let after = |words: &[&str]| {
        words.iter().find_map(|word| {
            let head = asked.get(..word.len())?;
            head.eq_ignore_ascii_case(word).then(|| asked[word.len()..].trim_start())
        })
    };
    if let Some(rest) = after(&["read ", "读取", "读"]) {
        let path = unquoted(rest);
        return if is_path(path) { Wish::Read { path } } else { Wish::Other };
    }
    if let Some(rest) = after(&["write ", "写入", "写"])
        && let Some((path, text)) = rest.split_once([':', '：'])
        && is_path(unquoted(path))
    {
        return Wish::Write { path: unquoted(path), text: text.strip_prefix(' ').unwrap_or(text) };
    }
    Wish::Other
}

fn unquoted(path: &str) -> &str {
    path.trim().trim_end_matches(['。', '？', '！', '?', '!']).trim_matches(['`', '"', '\'', '“', '”', '「', '」', '《', '》'])
}

fn is_path(path: &str) -> bool {
    !path.is_empty() && !path.contains(char::is_whitespace)
}

fn path_of(request: &ModelRequest, call_id: &str) -> String {
    let calls = request.messages.iter().rev().filter_map(|message| match message {
        ChatMessage::Assistant { tool_calls, .. } => Some(tool_calls),
        ChatMessage::User { .. } | ChatMessage::Tool { .. } => None,
    });
    let call = calls.flatten().find(|call| &*call.id == call_id);
    let arguments = call.and_then(|call| serde_json::from_str::<Value>(&call.arguments).ok());
    let path = arguments.as_ref().and_then(|arguments| arguments.get("path")?.as_str());
    path.unwrap_or("?").to_owned()
}

fn answer(language: Language, tool: &str, path: &str, content: &str) -> String {
    let failed = content.trim_start().starts_with("error");
    let (lines, words, letters) = (content.lines().count(), content.split_whitespace().count(), content.chars().count());
    let first = content.lines().next().unwrap_or_default();
    match language {
        Language::English if tool == "read_file" && !failed => format!(
            "(offline model) I asked the tool read_file for `{path}`. It returned {lines} lines with {words} words. \
             The first line is: {first}"
        ),
        Language::Chinese if tool == "read_file" && !failed => {
            format!("（离线模型）我用工具 read_file 读了 `{path}`，它返回了 {lines} 行、{letters} 个字符。第一行是：{first}")
        }
        Language::English => format!("(offline model) For `{path}` the tool {tool} says: {content}"),
        Language::Chinese => format!("（离线模型）对 `{path}`，工具 {tool} 的回答是：{content}"),
    }
}

fn introduction(language: Language) -> String {
    match language {
        Language::English => "This is the offline model of Polis: no language model is set, so I cannot answer that. I \
             only understand `read FILE` and `write FILE: text`. For real answers set the key of a vendor, for example \
             OPENAI_API_KEY, or write model = \"vendor/name\" into polis.toml."
            .to_owned(),
        Language::Chinese => {
            "这里是 Polis 的离线模型：没有设置语言模型，所以我回答不了这个问题。我只懂“读 文件名”和“写 文件名: 文字”。\
             想要真正的回答，请设置某个厂商的密钥，例如 OPENAI_API_KEY，或者在 polis.toml 里写 model = \"厂商/模型名\"。"
                .to_owned()
        }
    }
}

fn without_tool(language: Language, tool: &str) -> String {
    match language {
        Language::English => format!("(offline model) That needs the tool {tool}, which I am not offered here."),
        Language::Chinese => format!("（离线模型）这需要工具 {tool}，但这里没有提供。"),
    }
}

fn language(text: &str) -> Language {
    let is_chinese = |c| matches!(c, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}');
    if text.contains(is_chinese) { Language::Chinese } else { Language::English }
}

fn said(request: &ModelRequest, text: &str) -> Vec<Delta> {
    let mut deltas: Vec<_> = pieces(text).map(Delta::Content).collect();
    deltas.extend([usage(request, text), Delta::Done(Finish::Stop)]);
    deltas
}

fn called(request: &ModelRequest, call: ToolCall) -> Vec<Delta> {
    let more = |arguments| Delta::ToolCall { index: 0, id: None, name: None, arguments };
    let name: Arc<str> = call.name;
    let mut deltas = vec![Delta::ToolCall { index: 0, id: Some(call.id), name: Some(name), arguments: String::new() }];
    deltas.extend(pieces(&call.arguments).map(more));
    deltas.extend([usage(request, &call.arguments), Delta::Done(Finish::ToolCalls)]);
    deltas
}

/// The text in pieces of a few words each, as a model would stream it.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    const PIECE_CHARS: usize = 12;
    let chars: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = chars.chunks(PIECE_CHARS).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}

fn usage(request: &ModelRequest, written: &str) -> Delta {
    let of_message = |message: &ChatMessage| match message {
        ChatMessage::User { text, .. } => estimate_tokens(text),
        ChatMessage::Assistant { text, tool_calls, .. } => {
            estimate_tokens(text) + tool_calls.iter().map(|call| estimate_tokens(&call.arguments)).sum::<u64>()
        }
        ChatMessage::Tool { content, .. } => estimate_tokens(content),
    };
    let input_tokens = estimate_tokens(&request.system) + request.messages.iter().map(of_message).sum::<u64>();
    Delta::Usage(Usage { input_tokens, output_tokens: estimate_tokens(written), ..Usage::default() })
}
