//! Tools that the client runs itself, and its calls to them.

use std::sync::Arc;

use polis_domain::{Call, EffectId, TurnId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::ApiError;

/// Most tools that are taken.
const MAX_TOOLS: usize = 128;

/// A function as chat completions describe it (under `function`) or as responses do (flat).
#[derive(Debug, Deserialize)]
pub(super) struct ClientTool {
    #[serde(rename = "type")]
    kind: String,
    function: Option<Function>,
    #[serde(flatten)]
    flat: Value,
}

#[derive(Debug, Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Value,
}

/// The tools in the shape that a task has them in its meta; none where the client forbids their use.
pub(super) fn read_tools(tools: Vec<ClientTool>, choice: &Value) -> Result<Vec<Value>, ApiError> {
    match choice {
        Value::Null => {}
        Value::String(choice) if choice == "auto" => {}
        Value::String(choice) if choice == "none" => return Ok(Vec::new()),
        _ => {
            let message = "agents choose their tools themselves; remove tool_choice, or use auto or none";
            return Err(ApiError::invalid("unsupported_value", "tool_choice", message));
        }
    }
    if tools.len() > MAX_TOOLS {
        return Err(ApiError::invalid("too_many_tools", "tools", format!("at most {MAX_TOOLS} tools are allowed")));
    }
    let one = |(place, tool): (usize, ClientTool)| {
        let param = format!("tools[{place}]");
        if tool.kind != "function" {
            let message = format!("tools of the kind `{}` are not supported; only functions are", tool.kind);
            return Err(ApiError::invalid("unsupported_tool", param, message));
        }
        let function = match tool.function {
            Some(function) => function,
            None => Function::deserialize(&tool.flat)
                .map_err(|error| ApiError::invalid("bad_tool", param.clone(), format!("this is not a function: {error}")))?,
        };
        let Function { name, description, parameters } = function;
        if name.is_empty() || name.len() > 64 || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
            let message = "a function's name has 1 to 64 letters, digits, _ and -";
            return Err(ApiError::invalid("bad_tool", format!("{param}.name"), message));
        }
        let parameters = if parameters.is_object() { parameters } else { json!({ "type": "object", "properties": {} }) };
        Ok(json!({ "name": name, "description": description.unwrap_or_default(), "parameters": parameters }))
    };
    tools.into_iter().enumerate().map(one).collect()
}

/// A call of a client's tool that waits for it.
#[derive(Debug, Clone)]
pub(super) struct ClientToolCall {
    pub(super) id: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) arguments: Arc<str>,
}

impl ClientToolCall {
    pub(super) fn new((_, id, call): (EffectId, Arc<str>, Call)) -> Self {
        Self { id, name: call.tool, arguments: call.arguments }
    }
}

/// The turn that a call belongs to, from its id.
pub(super) fn turn_of(call: &str) -> Option<TurnId> {
    let turn = call.strip_prefix("call_")?.split('_').next()?;
    turn.parse().ok().map(|seq| TurnId(polis_domain::Seq(seq)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tools: Value, choice: Value) -> Result<Vec<Value>, String> {
        read_tools(serde_json::from_value(tools).unwrap(), &choice).map_err(|error| error.code().to_owned())
    }

    #[test]
    fn functions_of_both_shapes_are_taken_and_nothing_else() {
        let flat = json!({ "type": "function", "name": "f", "parameters": { "type": "object" } });
        let nested = json!({ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } });
        let want = json!({ "name": "f", "description": "", "parameters": { "type": "object" } });
        assert_eq!(read(json!([flat, nested]), Value::Null), Ok(vec![want.clone(), want]));
        assert_eq!(read(json!([{ "type": "function", "name": "f" }]), json!("none")), Ok(Vec::new()));
        assert_eq!(read(json!([]), json!("required")), Err("unsupported_value".to_owned()));
        assert_eq!(read(json!([{ "type": "web_search" }]), Value::Null), Err("unsupported_tool".to_owned()));
        assert_eq!(read(json!([{ "type": "function" }]), Value::Null), Err("bad_tool".to_owned()));
        assert_eq!(read(json!([{ "type": "function", "name": "a b" }]), Value::Null), Err("bad_tool".to_owned()));
    }

    #[test]
    fn a_calls_name_tells_its_turn() {
        assert_eq!(turn_of("call_12_0_1"), Some(TurnId(polis_domain::Seq(12))));
        assert_eq!((turn_of("call_x"), turn_of("12")), (None, None));
    }
}
