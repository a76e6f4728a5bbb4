//! Items that a vendor wants back unchanged, marked with its dialect so that other dialects ignore them.

use std::sync::Arc;

use polis_ports::Delta;
use serde_json::{Value, json};

/// Keeps `items` for the next request in the same dialect.
pub(crate) fn echo(dialect: &str, items: Vec<Value>) -> Delta {
    Delta::Echo(Arc::new(json!({ "dialect": dialect, "items": items })))
}

/// What was kept in this dialect; nothing if it was another.
pub(crate) fn echoed_items<'a>(dialect: &str, echo: Option<&'a Arc<Value>>) -> Option<&'a Vec<Value>> {
    let echo = echo.filter(|echo| echo["dialect"] == dialect)?;
    echo["items"].as_array()
}
