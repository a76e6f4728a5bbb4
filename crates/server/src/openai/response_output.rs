//! The output of a response while it streams: reasoning, a message, client tool calls; and the events for it.

use serde_json::{Value, json};

use super::client_tools::ClientToolCall;

/// The output of a response so far.
#[derive(Default)]
pub(super) struct ResponseOutput {
    /// Items that are whole.
    items: Vec<Value>,
    open: Option<OpenItem>,
    /// What makes the names of its items its own.
    tail: String,
}

/// The item that grows.
struct OpenItem {
    kind: ItemKind,
    id: String,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    Message,
    Reasoning,
}

impl ResponseOutput {
    pub(super) fn new(tail: &str) -> Self {
        Self { tail: tail.to_owned(), ..Self::default() }
    }

    /// All items, the last one as far as it is.
    pub(super) fn items(&self) -> Vec<Value> {
        self.items.clone()
    }

    /// More of the answer.
    pub(super) fn content(&mut self, text: &str) -> Vec<Value> {
        self.grow(ItemKind::Message, text)
    }

    /// More of what was thought.
    pub(super) fn reasoning(&mut self, text: &str) -> Vec<Value> {
        self.grow(ItemKind::Reasoning, text)
    }

    fn grow(&mut self, kind: ItemKind, text: &str) -> Vec<Value> {
        let mut events = Vec::new();
        if self.open.as_ref().is_some_and(|open| open.kind != kind) {
            events.extend(self.close());
        }
        let index = self.items.len();
        let open = self.open.get_or_insert_with(|| {
            let prefix = if kind == ItemKind::Message { "msg" } else { "rs" };
            let open = OpenItem { kind, id: format!("{prefix}_{index}_{}", self.tail), text: String::new() };
            events.push(json!({ "type": "response.output_item.added", "output_index": index, "item": open.item(false) }));
            let part = json!({ "item_id": open.id, "output_index": index });
            events.push(match kind {
                ItemKind::Message => {
                    with(&part, "response.content_part.added", json!({ "content_index": 0, "part": text_part("") }))
                }
                ItemKind::Reasoning => {
                    let more = json!({ "summary_index": 0, "part": summary_part("") });
                    with(&part, "response.reasoning_summary_part.added", more)
                }
            });
            open
        });
        open.text.push_str(text);
        let part = json!({ "item_id": open.id, "output_index": index });
        events.push(match kind {
            ItemKind::Message => {
                let more = json!({ "content_index": 0, "delta": text, "logprobs": [] });
                with(&part, "response.output_text.delta", more)
            }
            ItemKind::Reasoning => {
                with(&part, "response.reasoning_summary_text.delta", json!({ "summary_index": 0, "delta": text }))
            }
        });
        events
    }

    /// Ends the item that grows.
    pub(super) fn close(&mut self) -> Vec<Value> {
        let Some(open) = self.open.take() else { return Vec::new() };
        let index = self.items.len();
        let part = json!({ "item_id": open.id, "output_index": index });
        let mut events = match open.kind {
            ItemKind::Message => vec![
                with(&part, "response.output_text.done", json!({ "content_index": 0, "text": open.text, "logprobs": [] })),
                with(&part, "response.content_part.done", json!({ "content_index": 0, "part": text_part(&open.text) })),
            ],
            ItemKind::Reasoning => vec![
                with(&part, "response.reasoning_summary_text.done", json!({ "summary_index": 0, "text": open.text })),
                with(
                    &part,
                    "response.reasoning_summary_part.done",
                    json!({ "summary_index": 0, "part": summary_part(&open.text) }),
                ),
            ],
        };
        let item = open.item(true);
        events.push(json!({ "type": "response.output_item.done", "output_index": index, "item": item }));
        self.items.push(item);
        events
    }

    /// A call of one of the client's tools, whole.
    pub(super) fn call(&mut self, call: &ClientToolCall) -> Vec<Value> {
        let mut events = self.close();
        let index = self.items.len();
        let id = format!("fc_{index}_{}", self.tail);
        let item = |arguments: &str, status: &str| {
            json!({
                "type": "function_call", "id": id, "call_id": call.id, "name": call.name, "arguments": arguments, "status": status
            })
        };
        let part = json!({ "item_id": id, "output_index": index });
        events.push(json!({ "type": "response.output_item.added", "output_index": index, "item": item("", "in_progress") }));
        events.push(with(&part, "response.function_call_arguments.delta", json!({ "delta": call.arguments })));
        let done = json!({ "arguments": call.arguments, "name": call.name });
        events.push(with(&part, "response.function_call_arguments.done", done));
        let item = item(&call.arguments, "completed");
        events.push(json!({ "type": "response.output_item.done", "output_index": index, "item": item }));
        self.items.push(item);
        events
    }
}

impl OpenItem {
    fn item(&self, is_done: bool) -> Value {
        let status = if is_done { "completed" } else { "in_progress" };
        match self.kind {
            ItemKind::Message => {
                let content = if is_done { vec![text_part(&self.text)] } else { Vec::new() };
                json!({ "type": "message", "id": self.id, "role": "assistant", "status": status, "content": content })
            }
            ItemKind::Reasoning => {
                let summary = if is_done { vec![summary_part(&self.text)] } else { Vec::new() };
                json!({ "type": "reasoning", "id": self.id, "summary": summary, "status": status })
            }
        }
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

fn summary_part(text: &str) -> Value {
    json!({ "type": "summary_text", "text": text })
}

/// The same object with a type and more fields.
fn with(part: &Value, kind: &str, more: Value) -> Value {
    let mut whole = part.as_object().cloned().unwrap_or_default();
    whole.insert("type".to_owned(), kind.into());
    if let Value::Object(more) = more {
        whole.extend(more);
    }
    Value::Object(whole)
}
