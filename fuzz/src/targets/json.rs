//! JSON that arrives in pieces: the same however it is cut, never something that a strict reader reads otherwise, within its limits.

use polis_agents::workflow::{JsonError, JsonLimits, JsonReader};
use serde_json::Value;

use super::{CUTS, pieces, text};
use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "json",
    run,
    words: &["{", "}", "[", "]", "\"", ":", ",", "\\u00e9", "\\ud83d\\ude00", "\\ud800", "-0", "1e5", "true", "null", "[[[[["],
};

const LIMITS: JsonLimits = JsonLimits { depth: 16, bytes: 2_048 };

fn run(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let whole = read(&[text]);
    for size in CUTS {
        assert_eq!(read(&pieces(text, size)), whole, "in pieces of {size}: {text:?}");
    }
    let strict = serde_json::from_str::<Value>(text);
    match (&whole, &strict) {
        (Ok((value, taken)), Ok(read)) => {
            assert!(*taken <= LIMITS.bytes);
            assert_eq!(value, read, "{text:?}");
        }
        (Ok((value, taken)), Err(_)) => {
            assert!(*taken <= LIMITS.bytes && depth(value) <= LIMITS.depth);
        }
        (Err(JsonError::TooLong(_)), _) => assert!(text.len() > LIMITS.bytes),
        (Err(JsonError::TooDeep(_)), Ok(read)) => assert!(depth(read) > LIMITS.depth, "{text:?}"),
        (Err(JsonError::Broken(_)), Ok(_)) if has_long_number(text) => {}
        (Err(error), Ok(_)) => panic!("{error} where a strict reader finds nothing wrong: {text:?}"),
        (Err(_), Err(_)) => {}
    }
}

/// A number of more than 1,024 characters is not read.
fn has_long_number(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    text.split(|c| !is_part(c)).any(|part| part.len() > 1_024)
}

fn read(pieces: &[&str]) -> Result<(Value, usize), JsonError> {
    let mut reader = JsonReader::new(LIMITS);
    for chunk in pieces {
        if reader.is_whole() {
            break;
        }
        reader.push(chunk, &mut |_, _| {})?;
    }
    let taken = reader.taken();
    reader.finish(&mut |_, _| {}).map(|value| (value, taken))
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
