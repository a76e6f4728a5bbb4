//! Tools that the client runs itself, and its calls to them.

use std::sync::Arc;

use polis_domain::{AnswerRules, Call, EffectId, ToolCall, TurnId};
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

/// The tools in the shape that a task has them in its meta.
pub(super) fn read_tools(tools: Vec<ClientTool>) -> Result<Vec<Value>, ApiError> {
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
        if ToolCall::RESERVED.contains(&&*name) {
            let message = format!("`{name}` is a tool of Polis; give the function another name");
            return Err(ApiError::invalid("bad_tool", format!("{param}.name"), message));
        }
        let parameters = if parameters.is_object() { parameters } else { json!({ "type": "object", "properties": {} }) };
        Ok(json!({ "name": name, "description": description.unwrap_or_default(), "parameters": parameters }))
    };
    tools.into_iter().enumerate().map(one).collect()
}

/// What the client prescribes about calls of these tools, from `tool_choice` and `parallel_tool_calls` of either endpoint.
pub(super) fn read_choice(tools: &[Value], choice: &Value, parallel: Option<bool>) -> Result<AnswerRules, ApiError> {
    let invalid = |message: String| ApiError::invalid("unsupported_value", "tool_choice", message);
    let kind = choice.as_str().or_else(|| choice.get("type").and_then(Value::as_str)).unwrap_or("auto");
    let mut rules = AnswerRules { one_call: parallel == Some(false), ..AnswerRules::default() };
    match kind {
        _ if choice.is_null() => {}
        "auto" => {}
        "none" => rules.tools = Some(Vec::new()),
        "required" => rules.must_call = true,
        "function" => {
            rules.must_call = true;
            rules.tools = Some(vec![name_of(choice).ok_or_else(|| invalid("the function has no name".to_owned()))?]);
        }
        "allowed_tools" => {
            let allowed = choice.get("allowed_tools").unwrap_or(choice);
            rules.must_call = allowed.get("mode").is_some_and(|mode| mode == "required");
            let named = allowed.get("tools").and_then(Value::as_array).into_iter().flatten();
            let names: Option<Vec<_>> = named.map(name_of).collect();
            rules.tools = Some(names.ok_or_else(|| invalid("only functions can be allowed".to_owned()))?);
        }
        other => {
            let message = format!("unknown choice `{other}`; use auto, none, required, a function or allowed_tools");
            return Err(invalid(message));
        }
    }
    let is_known = |name: &Arc<str>| tools.iter().any(|tool| tool["name"] == **name);
    if let Some(unknown) = rules.tools.iter().flatten().find(|name| !is_known(name)) {
        return Err(invalid(format!("there is no function `{unknown}` in `tools`")));
    }
    if rules.must_call && (tools.is_empty() || rules.tools.as_ref().is_some_and(Vec::is_empty)) {
        return Err(invalid("a call is required, and there is no function in `tools` to call".to_owned()));
    }
    Ok(rules)
}

/// The name of a function, as chat completions write it or as responses do.
fn name_of(function: &Value) -> Option<Arc<str>> {
    function.get("function").unwrap_or(function).get("name")?.as_str().map(Into::into)
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

    fn read(tools: Value) -> Result<Vec<Value>, String> {
        read_tools(serde_json::from_value(tools).unwrap()).map_err(|error| error.code().to_owned())
    }

    type Tools = Option<Vec<Arc<str>>>;

    fn choose(choice: Value) -> Result<(bool, Tools), String> {
        let rules = read_choice(&[json!({ "name": "f" }), json!({ "name": "g" })], &choice, None);
        rules.map(|rules| (rules.must_call, rules.tools)).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn a_choice_of_either_shape_is_read_and_what_it_names_must_be_there() {
        let f: Tools = Some(vec!["f".into()]);
        assert_eq!(choose(Value::Null), Ok((false, None)));
        assert_eq!(choose(json!("auto")), Ok((false, None)));
        assert_eq!(choose(json!("none")), Ok((false, Some(Vec::new()))));
        assert_eq!(choose(json!("required")), Ok((true, None)));
        assert_eq!(choose(json!({ "type": "function", "function": { "name": "f" } })), Ok((true, f.clone())));
        assert_eq!(choose(json!({ "type": "function", "name": "f" })), Ok((true, f.clone())));
        let tools = json!([{ "type": "function", "name": "f" }]);
        assert_eq!(choose(json!({ "type": "allowed_tools", "mode": "auto", "tools": tools })), Ok((false, f.clone())));
        let allowed = json!({ "mode": "required", "tools": [{ "type": "function", "function": { "name": "f" } }] });
        assert_eq!(choose(json!({ "type": "allowed_tools", "allowed_tools": allowed })), Ok((true, f)));
        assert!(choose(json!({ "type": "function", "name": "h" })).unwrap_err().contains("no function `h`"));
        assert!(choose(json!({ "type": "allowed_tools", "mode": "required", "tools": [] })).unwrap_err().contains("required"));
        assert!(choose(json!({ "type": "web_search" })).unwrap_err().contains("unknown choice"));
        let without = read_choice(&[], &json!("required"), Some(false)).unwrap_err();
        assert!(without.message().contains("no function in `tools`"));
        assert!(read_choice(&[], &Value::Null, Some(false)).unwrap().one_call);
    }

    #[test]
    fn functions_of_both_shapes_are_taken_and_nothing_else() {
        let flat = json!({ "type": "function", "name": "f", "parameters": { "type": "object" } });
        let nested = json!({ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } });
        let want = json!({ "name": "f", "description": "", "parameters": { "type": "object" } });
        assert_eq!(read(json!([flat, nested])), Ok(vec![want.clone(), want]));
        assert_eq!(read(json!([{ "type": "web_search" }])), Err("unsupported_tool".to_owned()));
        assert_eq!(read(json!([{ "type": "function" }])), Err("bad_tool".to_owned()));
        assert_eq!(read(json!([{ "type": "function", "name": "a b" }])), Err("bad_tool".to_owned()));
        assert_eq!(read(json!([{ "type": "function", "name": "use_tool" }])), Err("bad_tool".to_owned()));
    }

    #[test]
    fn a_calls_name_tells_its_turn() {
        assert_eq!(turn_of("call_12_0_1"), Some(TurnId(polis_domain::Seq(12))));
        assert_eq!((turn_of("call_x"), turn_of("12")), (None, None));
    }
}
