//! Replies of the workflow's roles, strict and repaired. What was read is read the same again once it is written down, and is within
//! the documented limits.

use std::collections::BTreeMap;

use polis_agents::workflow::{
    Chunk, MOST_TODOS, ReplyReader, parse_executor_response, parse_planner_response, parse_verifier_response,
};
use serde_json::Value;

use super::{CUTS, text};
use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "workflow",
    run,
    words: &[
        "\"type\":\"component\"",
        "\"component\":",
        "\"summary\":",
        "\"todos\":[",
        "\"taskCompleted\":true",
        "```json",
        "</think>",
        "<think>",
        "“",
        "”",
        "：",
        "True",
        "None",
        "'",
        "//",
        "/*",
        "\"tasks\":[{\"id\":\"1\",\"completed\":true}]",
        ",}",
    ],
};

/// Longest reply that is taken.
const MOST_BYTES: usize = 192 << 10;

fn run(input: &[u8]) {
    pieces_are_the_same(input);
    let Some(text) = text(input) else { return };
    if let Ok(parsed) = parse_planner_response(text) {
        assert!(text.len() <= MOST_BYTES && parsed.response.todos.len() <= MOST_TODOS);
        let written = serde_json::to_string(&parsed.response).expect("a reply is JSON");
        let again = parse_planner_response(&component("planner-response", &written));
        assert_eq!(again.map(|again| again.response).as_ref(), Ok(&parsed.response), "{text:?}");
    }
    if let Ok(parsed) = parse_executor_response(text, "1") {
        assert!(text.len() <= MOST_BYTES && parsed.response.summary.chars().count() <= 40_000);
    }
    if let Ok(parsed) = parse_verifier_response(text) {
        assert!(text.len() <= MOST_BYTES);
        // Nobody is satisfied by words alone: what is judged has a name.
        assert!(parsed.response.tasks.iter().all(|task| !task.id.is_empty()), "{text:?}");
    }
}

fn component(name: &str, fields: &str) -> String {
    format!("{{\"type\":\"component\",\"component\":\"{name}\",{}", fields.trim_start_matches('{'))
}

/// What stays of the pieces that listeners are told.
#[derive(Debug, Default, PartialEq)]
struct ContextState {
    texts: BTreeMap<String, String>,
    items: BTreeMap<String, Vec<Value>>,
    fields: BTreeMap<String, Value>,
    again: usize,
}

impl ContextState {
    fn put(&mut self, chunk: Chunk<'_>) {
        match chunk {
            Chunk::Again => *self = Self { again: self.again + 1, ..Self::default() },
            Chunk::Text { field, text } => self.texts.entry(field.to_owned()).or_default().push_str(text),
            Chunk::Item { field, index, value } => {
                let items = self.items.entry(field.to_owned()).or_default();
                // A name that stands there twice begins anew.
                items.truncate(index);
                assert_eq!(items.len(), index, "an element of `{field}` is left out");
                items.push(value.clone());
            }
            Chunk::Field { field, value } => drop(self.fields.insert(field.to_owned(), value.clone())),
        }
    }
}

/// What listeners are told does not depend on how the bytes come.
fn pieces_are_the_same(input: &[u8]) {
    let told = |size: usize| {
        let (mut reader, mut shown) = (ReplyReader::new("planner-response"), ContextState::default());
        for chunk in input.chunks(size.max(1)) {
            reader.push_bytes(chunk, &mut |chunk| shown.put(chunk));
        }
        // A text that broke off may have been told in part.
        shown.texts.retain(|field, _| shown.fields.contains_key(field));
        shown
    };
    let whole = told(input.len());
    for size in CUTS {
        assert_eq!(told(size), whole, "in pieces of {size}: {:?}", String::from_utf8_lossy(input));
    }
}
