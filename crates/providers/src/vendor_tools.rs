//! Tools that vendors run themselves: what the dialects share in asking for them and in reading what they did.

use polis_ports::{Citation, Delta, ModelRequest, VendorCall, VendorTool};
use serde_json::Value;

use crate::wire::shortened;

/// Most uses of one tool for a reply, where a vendor can be told. Reservations assume as many.
pub(crate) const MAX_USES: u32 = 10;

/// Most results of one use that are kept.
const MAX_FOUND: usize = 20;

/// Longest query, code or title that is kept, in bytes.
const MAX_BYTES: usize = 16 << 10;

/// Whether a tool of the vendor can be sent beside the tools of a request: vendors refuse two of one name.
pub(crate) fn is_sendable(request: &ModelRequest, tool: VendorTool) -> bool {
    !request.tools.iter().any(|own| &*own.name == tool.word())
}

/// A use as it is kept.
pub(crate) fn used(tool: VendorTool, input: &str, output: &str, found: Vec<Citation>, uses: u32) -> Delta {
    let cut = |text: &str| text[..text.floor_char_boundary(MAX_BYTES)].to_owned();
    let found = found.into_iter().take(MAX_FOUND).collect();
    Delta::VendorCall(VendorCall { tool, input: cut(input), output: cut(output), found, uses })
}

/// A page or a file of which a value has the title and the address in these fields; none without either.
pub(crate) fn citation(value: &Value, title: &str, url: &str) -> Option<Citation> {
    let text = |key: &str| value[key].as_str().map(|text| shortened(text.trim())).unwrap_or_default();
    let (title, url) = (text(title), text(url));
    (!title.is_empty() || !url.is_empty()).then(|| Citation::new(title, url))
}

/// All pages or files in a list.
pub(crate) fn citations(list: &Value, title: &str, url: &str) -> Vec<Citation> {
    list.as_array().into_iter().flatten().filter_map(|value| citation(value, title, url)).collect()
}

/// The text of the first of these fields that has one.
pub(crate) fn first_text<'a>(value: &'a Value, keys: &[&str]) -> &'a str {
    keys.iter().find_map(|key| value[*key].as_str()).unwrap_or_default()
}
