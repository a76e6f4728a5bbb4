//! Calls of tools in the documents' shape, as vendors have it too: `{id, type, function: {name, arguments}}`. Calls that were
//! written flat are read as well.

use std::sync::Arc;

use polis_domain::ToolCall;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
struct Shaped {
    id: Arc<str>,
    #[serde(rename = "type", default = "function")]
    kind: String,
    function: Function,
}

#[derive(Serialize, Deserialize)]
struct Function {
    name: Arc<str>,
    /// A JSON text.
    arguments: Arc<str>,
}

fn function() -> String {
    "function".to_owned()
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Either {
    Shaped(Shaped),
    Flat(ToolCall),
}

pub(super) fn serialize<S: Serializer>(calls: &[ToolCall], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(calls.iter().map(|ToolCall { id, name, arguments }| Shaped {
        id: id.clone(),
        kind: function(),
        function: Function { name: name.clone(), arguments: arguments.clone() },
    }))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ToolCall>, D::Error> {
    let calls = Vec::<Either>::deserialize(deserializer)?;
    let flat = |call| match call {
        Either::Shaped(Shaped { id, function: Function { name, arguments }, .. }) => ToolCall { id, name, arguments },
        Either::Flat(call) => call,
    };
    Ok(calls.into_iter().map(flat).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::workflow::AiMessage;

    #[test]
    fn a_message_has_the_documents_fields_and_its_calls_their_shape() {
        let message = json!({
            "id": "m1", "role": "assistant", "content": "", "timestamp": 1_000, "agentType": "executor",
            "tool_calls": [{ "id": "c1", "type": "function", "function": { "name": "look", "arguments": "{\"at\":1}" } }],
        });
        let read: AiMessage = serde_json::from_value(message.clone()).unwrap();
        assert_eq!((&*read.tool_calls[0].name, &*read.tool_calls[0].arguments), ("look", "{\"at\":1}"));
        assert_eq!(serde_json::to_value(&read).unwrap(), message);
        let result = json!({ "role": "tool", "content": "1", "tool_call_id": "c1", "name": "look" });
        let read: AiMessage = serde_json::from_value(result.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), result);
        let flat = json!({ "tool_calls": [{ "id": "c1", "name": "look", "arguments": "{}" }] });
        assert_eq!(&*serde_json::from_value::<AiMessage>(flat).unwrap().tool_calls[0].name, "look");
    }
}
