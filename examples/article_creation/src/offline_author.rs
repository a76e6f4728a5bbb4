//! What answers when no model is set: rules that quote the files and add nothing.
//!
//! They know nothing of the world. An article of theirs says so, and is what the files say about the topic, file by file.

use std::collections::BTreeSet;

use async_trait::async_trait;
use futures_util::stream;
use polis::ports::{ChatMessage, Delta, DeltaStream, ModelError};
use polis::prelude::*;
use polis::{Model, domain::Finish};

use crate::sources::is_chinese;
use crate::tagged::part;

/// Most files that an article is made of.
const MAX_FILES: usize = 3;

/// Most lines that are quoted for one file.
const MAX_QUOTES: usize = 5;

/// What it says where there is nothing to quote.
const NOTHING: Said = Said { en: "The files say nothing about this.", zh: "文件中没有关于它的内容。" };

/// What it says about itself.
const ABOUT: Said = Said {
    en: "(offline model) No model was set, so this is what {} lines of the files say, word for word. Nothing is added, and nothing is explained.",
    zh: "（离线模型）没有设置模型，所以这里是文件中的 {} 行原文，没有添加，也没有解释。",
};

/// One sentence in both languages.
struct Said {
    en: &'static str,
    zh: &'static str,
}

impl Said {
    /// In the language of what was asked.
    fn to(&self, asked: &str) -> &'static str {
        if asked.contains(is_chinese) { self.zh } else { self.en }
    }
}

/// Rules in place of a model.
#[derive(Debug, Clone, Copy, Default)]
pub struct OfflineAuthor;

#[async_trait]
impl Model for OfflineAuthor {
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError> {
        let asked = match request.messages.last() {
            Some(ChatMessage::User { text, .. }) => &**text,
            _ => "",
        };
        let Some(rule) = RULES.iter().find(|(prompt, _)| **prompt == *request.system).map(|(_, rule)| rule) else {
            let reason =
                "the offline author writes articles and nothing else; set a vendor's key, or choose a model".to_owned();
            return Err(ModelError::Rejected { reason });
        };
        let deltas = [Delta::Content(rule(asked)), Delta::Done(Finish::Stop)];
        Ok(Box::pin(stream::iter(deltas.map(Ok))))
    }
}

macro_rules! prompt {
    ($phase:literal) => {
        include_str!(concat!("article_creation/prompt/", $phase, "_system_prompt.md"))
    };
}

/// What is done with a prompt, by the phase that it comes from.
type Rule = fn(&str) -> String;

const RULES: &[(&str, Rule)] = &[
    (prompt!("topic_outline"), outline),
    (prompt!("source_search"), searches),
    (prompt!("finding_summary"), findings),
    (prompt!("draft_writing"), draft),
    (prompt!("claim_comparison"), comparison),
    (prompt!("verdict_forming"), verdict),
];

/// One aspect for each file that mentions the topic, the best first.
fn outline(asked: &str) -> String {
    let mut files: Vec<&str> = Vec::new();
    for file in part(asked, "passages").lines().filter_map(|passage| passage.split(':').next()) {
        if !files.contains(&file) {
            files.push(file);
        }
    }
    files.truncate(MAX_FILES);
    if files.is_empty() { part(asked, "topic").to_owned() } else { files.join("\n") }
}

/// The words of the topic, in the file that the aspect is.
fn searches(asked: &str) -> String {
    let (topic, aspect) = (part(asked, "topic"), part(asked, "aspect"));
    let topic = topic.replace('\n', " ");
    if topic == aspect { topic } else { format!("{topic} @ {aspect}") }
}

/// The lines themselves, with their places.
fn findings(asked: &str) -> String {
    let quotes: Vec<_> = part(asked, "passages").lines().filter_map(quote).take(MAX_QUOTES).collect();
    if quotes.is_empty() { NOTHING.to(part(asked, "topic")).to_owned() } else { quotes.join("\n") }
}

/// `path:line: text` as an entry of a list.
fn quote(passage: &str) -> Option<String> {
    let (path, rest) = passage.split_once(':')?;
    let (line, text) = rest.split_once(": ")?;
    line.parse::<usize>().ok()?;
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || "#-*|>/!".contains(c)).trim_end();
    Some(format!("- “{text}” ({path}:{line})"))
}

/// The findings below a title, and a line that says what this is.
fn draft(asked: &str) -> String {
    let (topic, findings) = (part(asked, "topic"), part(asked, "findings"));
    let count = findings.lines().filter(|line| line.starts_with("- “")).count();
    let about = ABOUT.to(topic).replace("{}", &count.to_string());
    format!("# {topic}\n\n{about}\n\n{findings}")
}

/// Whether every quotation of the draft stands in the findings.
fn comparison(asked: &str) -> String {
    let strange = strange(asked);
    match strange.len() {
        0 => "Every quotation of the draft stands in the findings.".to_owned(),
        _ => format!("These stand in the draft but not in the findings:\n{}", strange.join("\n")),
    }
}

fn verdict(asked: &str) -> String {
    match &strange(asked)[..] {
        [] => "accept".to_owned(),
        strange => format!("revise: leave out what the findings do not say:\n{}", strange.join("\n")),
    }
}

fn strange(asked: &str) -> Vec<&str> {
    let known: BTreeSet<&str> = part(asked, "findings").lines().collect();
    part(asked, "draft").lines().filter(|line| line.starts_with("- “") && !known.contains(line)).collect()
}
