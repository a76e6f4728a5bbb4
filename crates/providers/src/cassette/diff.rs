//! Requests in lines that people can read, and what differs between two of them.

use std::collections::HashMap;

use polis_ports::{ChatMessage, Media, ModelSettings, ToolChoice};
use serde_json::Value;

use super::format::{RecordedRequest, RecordedTool};

/// Longer lines go on in the next one, so that a change in a long text shows where it is.
const LINE_CHARS: usize = 110;

/// Lines of a difference that are shown.
const SHOWN_LINES: usize = 60;

/// Unchanged lines that are shown around a change.
const CONTEXT_LINES: usize = 2;

/// Above this many pairs of lines, the changed parts are shown whole instead of compared.
const MOST_PAIRS: usize = 4_000_000;

impl RecordedRequest {
    /// The end of the conversation in a few words.
    pub(super) fn last_message(&self) -> String {
        let mut lines = Vec::new();
        if let Some(message) = self.messages.last() {
            write_message(&mut lines, message);
        }
        lines.into_iter().next().unwrap_or_else(|| "no message".to_owned())
    }
}

/// The request, part by part.
pub(super) fn render(recorded: &RecordedRequest) -> Vec<String> {
    let mut lines = Vec::new();
    write(&mut lines, "model", &recorded.model);
    write(&mut lines, "system", &recorded.system);
    for message in &recorded.messages {
        write_message(&mut lines, message);
    }
    for RecordedTool { name, description, parameters } in &recorded.tools {
        write(&mut lines, &format!("offers {name}"), description);
        write_json(&mut lines, "parameters", parameters);
    }
    if let Some(format) = &recorded.format {
        write_json(&mut lines, &format!("format {}", format.name), &format.schema);
    }
    let choice = Some(&recorded.tool_choice).filter(|choice| **choice != ToolChoice::Auto);
    let ModelSettings { effort, thinking_budget, temperature, top_p, stop, seed, max_tokens, .. } = &recorded.settings;
    let ModelSettings { tool_choice: _, parallel_calls, cache, service_tier, .. } = &recorded.settings;
    for (name, value) in [
        ("tool_choice", choice.map(ToString::to_string)),
        ("one_call", recorded.one_call.then(|| "true".to_owned())),
        ("effort", effort.map(|effort| effort.as_str().to_owned())),
        ("thinking_budget", thinking_budget.map(|number| number.to_string())),
        ("temperature", temperature.map(|number| number.to_string())),
        ("top_p", top_p.map(|number| number.to_string())),
        ("stop", (!stop.is_empty()).then(|| stop.join(" | "))),
        ("seed", seed.map(|number| number.to_string())),
        ("max_tokens", max_tokens.map(|number| number.to_string())),
        ("parallel_calls", parallel_calls.map(|may| may.to_string())),
        ("cache", cache.map(|cache| format!("{cache:?}").to_lowercase())),
        ("service_tier", service_tier.as_deref().map(str::to_owned)),
    ] {
        write(&mut lines, name, &value.unwrap_or_default());
    }
    lines
}

fn write_message(lines: &mut Vec<String>, message: &ChatMessage) {
    match message {
        ChatMessage::User { text, .. } => write(lines, "user", text),
        ChatMessage::Assistant { text, reasoning, tool_calls, echo } => {
            write(lines, "assistant", text);
            write(lines, "  reasoning", reasoning);
            for call in tool_calls {
                write(lines, &format!("  calls {} ({})", call.name, call.id), &call.arguments);
            }
            if let Some(echo) = echo {
                write_json(lines, "  echo", echo);
            }
        }
        ChatMessage::Tool { call_id, name, content, is_error, .. } => {
            let what = if *is_error { "error" } else { "result" };
            write(lines, &format!("{what} of {name} ({call_id})"), content);
        }
    }
    for media in message.media() {
        match media {
            Media::Inline { media_type, data, .. } => write(lines, "  media", &format!("{media_type} {data}")),
            Media::Url(url) => write(lines, "  media", url),
            Media::Stored(artifact) => write(lines, "  media", &artifact.to_string()),
        }
    }
}

fn write_json(lines: &mut Vec<String>, name: &str, value: &Value) {
    write(lines, name, &serde_json::to_string_pretty(value).unwrap_or_default());
}

/// Nothing for what is not there, but a message without words is there.
fn write(lines: &mut Vec<String>, name: &str, text: &str) {
    let is_message = matches!(name, "user" | "assistant") || name.contains(" of ");
    if text.is_empty() && !is_message {
        return;
    }
    let mut head = format!("{name}: ");
    for line in text.split('\n') {
        let mut chars = line.chars();
        loop {
            let part: String = chars.by_ref().take(LINE_CHARS).collect();
            lines.push(format!("{head}{part}").trim_end().to_owned());
            head = "    ".to_owned();
            if chars.as_str().is_empty() {
                break;
            }
        }
    }
}

/// How much of two texts is the same, from 0 to 1, whatever the order of their lines.
pub(super) fn similarity(a: &[String], b: &[String]) -> f64 {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for line in a {
        *counts.entry(line).or_default() += 1;
    }
    let common = b.iter().filter(|line| match counts.get_mut(line.as_str()) {
        Some(left) if *left > 0 => {
            *left -= 1;
            true
        }
        Some(_) | None => false,
    });
    2.0 * common.count() as f64 / (a.len() + b.len()).max(1) as f64
}

/// What became of the lines, `-` before what is only in `old` and `+` before what is only in `new`, with a little around it.
pub(super) fn difference(old: &[String], new: &[String]) -> String {
    let marked = marked(old, new);
    let is_near = |at: usize| {
        let around = &marked[at.saturating_sub(CONTEXT_LINES)..(at + CONTEXT_LINES + 1).min(marked.len())];
        around.iter().any(|(mark, _)| *mark != ' ')
    };
    let mut shown: Vec<String> = Vec::new();
    let mut skipping = false;
    for (at, (mark, line)) in marked.iter().enumerate() {
        if is_near(at) {
            shown.push(format!("{mark} {line}"));
        } else if !skipping {
            shown.push("  …".to_owned());
        }
        skipping = !is_near(at);
    }
    if shown.len() > SHOWN_LINES {
        let more = shown.len() - SHOWN_LINES;
        shown.truncate(SHOWN_LINES);
        shown.push(format!("  … and {more} lines more"));
    }
    shown.join("\n")
}

fn marked<'a>(old: &'a [String], new: &'a [String]) -> Vec<(char, &'a str)> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (left, right) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut lines: Vec<(char, &str)> = old[..head].iter().map(|line| (' ', line.as_str())).collect();
    if left.len().saturating_mul(right.len()) > MOST_PAIRS {
        lines.extend(left.iter().map(|line| ('-', line.as_str())));
        lines.extend(right.iter().map(|line| ('+', line.as_str())));
    } else {
        compare(left, right, &mut lines);
    }
    lines.extend(old[old.len() - tail..].iter().map(|line| (' ', line.as_str())));
    lines
}

/// By the longest common subsequence: `common[i][j]` is its length for what follows `i` and `j`.
fn compare<'a>(old: &'a [String], new: &'a [String], lines: &mut Vec<(char, &'a str)>) {
    let width = new.len() + 1;
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = if old[i] == new[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push((' ', &old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[(i + 1) * width + j] >= common[i * width + j + 1]) {
            lines.push(('-', &old[i]));
            i += 1;
        } else {
            lines.push(('+', &new[j]));
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn check(old: &str, new: &str, want: &[&str]) {
        assert_eq!(difference(&lines(old), &lines(new)).lines().collect::<Vec<_>>(), want);
    }

    #[test]
    fn a_difference_shows_what_changed_and_a_little_around_it() {
        check("a b c d e f g", "a b c x e f g", &["  …", "  b", "  c", "- d", "+ x", "  e", "  f", "  …"]);
        check("a b", "a b c", &["  a", "  b", "+ c"]);
        check("a b c", "b c", &["- a", "  b", "  c"]);
        check("a b c d", "b x d y", &["- a", "  b", "- c", "+ x", "  d", "+ y"]);
    }

    #[test]
    fn a_long_difference_is_cut_and_says_so() {
        let new: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        assert_eq!(difference(&[], &new).lines().last(), Some("  … and 40 lines more"));
    }

    #[test]
    fn likeness_counts_each_line_once() {
        assert_eq!(similarity(&lines("a b c d"), &lines("d c x a")), 0.75);
        assert_eq!(similarity(&lines("a a"), &lines("a b")), 0.5);
        assert_eq!(similarity(&[], &[]), 0.0);
    }
}
