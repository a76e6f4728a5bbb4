//! A request with tools as one without: the tools in words, earlier calls and results as plain messages, the reply in a form.

use std::fmt::Write;
use std::sync::Arc;

use polis_domain::ToolCall;
use polis_ports::{ChatMessage, Format, ModelRequest, ToolChoice, ToolSpec};
use serde_json::{Value, json};

use super::schema::{self, ANSWER, NAME, PARAMETERS};

/// Most tokens of a reply where nobody said: enough for the form, and an end for a model that finds none.
const REPLY_TOKENS: u32 = 2_048;

/// The request as a model without tools understands it.
pub(super) fn rewrite(request: &ModelRequest) -> ModelRequest {
    let has_tools = !request.tools.is_empty() && *request.choice() != ToolChoice::None;
    let mut messages = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        push(&mut messages, plain(message, has_tools));
    }
    if !has_tools {
        return ModelRequest { messages, tools: Arc::default(), ..request.clone() };
    }
    if matches!(request.messages.last(), Some(ChatMessage::Tool { .. })) {
        push(&mut messages, ChatMessage::user(format!("Reply with {{\"{ANSWER}\": …}}, or use another tool.")));
    }
    let schema = schema::reply(request);
    let mut settings = request.settings.clone();
    settings.max_tokens.get_or_insert(REPLY_TOKENS);
    // A text that ends the answer would cut the form.
    settings.stop.clear();
    ModelRequest {
        system: system(&request.system, &request.tools, request.format.as_deref()).into(),
        messages,
        tools: Arc::default(),
        format: Some(Arc::new(Format { name: "reply".to_owned(), schema })),
        settings,
        ..request.clone()
    }
}

/// Some models want the person and the model to take turns, so what the same side says is one message.
fn push(messages: &mut Vec<ChatMessage>, message: ChatMessage) {
    match (messages.last_mut(), message) {
        (Some(ChatMessage::User { text, media }), ChatMessage::User { text: more, media: more_media }) => {
            *text = format!("{text}\n\n{more}").into();
            media.extend(more_media);
        }
        (_, message) => messages.push(message),
    }
}

fn plain(message: &ChatMessage, has_tools: bool) -> ChatMessage {
    match message {
        ChatMessage::User { .. } => message.clone(),
        ChatMessage::Assistant { text, reasoning, tool_calls, echo } => {
            let mut lines: Vec<String> = Vec::new();
            if tool_calls.is_empty() && has_tools {
                lines.push(json!({ ANSWER: text }).to_string());
            } else if !text.is_empty() || tool_calls.is_empty() {
                lines.push(text.to_string());
            }
            lines.extend(tool_calls.iter().map(call));
            let text = lines.join("\n").into();
            ChatMessage::Assistant { text, reasoning: reasoning.clone(), tool_calls: Vec::new(), echo: echo.clone() }
        }
        ChatMessage::Tool { name, content, is_error, media, .. } => {
            let what = if *is_error { "failed" } else { "returned" };
            let text = format!("The tool {name} {what}:\n{content}").into();
            ChatMessage::User { text, media: media.clone() }
        }
    }
}

fn call(call: &ToolCall) -> String {
    let parameters = serde_json::from_str(&call.arguments).unwrap_or_else(|_| Value::from(&*call.arguments));
    json!({ NAME: call.name, PARAMETERS: parameters }).to_string()
}

fn system(own: &str, tools: &[ToolSpec], format: Option<&Format>) -> String {
    let mut text = String::from(own);
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    let answer = match format {
        Some(format) => format!("{{\"{ANSWER}\": …}} where … has the JSON schema {}", format.schema),
        None => format!("{{\"{ANSWER}\": \"…\"}}"),
    };
    let _ = write!(
        text,
        "You can use tools. Reply with one JSON object and nothing else: either {{\"{NAME}\": \"TOOL\", \"{PARAMETERS}\": {{…}}}} \
         to use a tool, or {answer} to answer. The result of a tool is told to you; then go on.\n\nTools:"
    );
    for tool in tools {
        let _ = write!(text, "\n- {}({}): {}", tool.name, signature(&tool.parameters), first_sentence(&tool.description));
        for (name, schema) in properties(&tool.parameters).filter(|(name, _)| is_required(&tool.parameters, name)) {
            if let Some(description) = schema.get("description").and_then(Value::as_str) {
                let _ = write!(text, "\n  {name}: {}", first_sentence(description));
            }
        }
    }
    text
}

/// `path: string, lines?: integer`
fn signature(parameters: &Value) -> String {
    let parts: Vec<String> = properties(parameters)
        .map(|(name, schema)| {
            let optional = if is_required(parameters, name) { "" } else { "?" };
            format!("{name}{optional}: {}", kind(schema))
        })
        .collect();
    parts.join(", ")
}

fn is_required(parameters: &Value, name: &str) -> bool {
    let required = parameters.get("required").and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|other| other == name))
}

/// A weak model has a small window, and loses its way in long descriptions.
fn first_sentence(description: &str) -> &str {
    let description = description.trim();
    let ends = [". ", ".\n", "\n", "。", "; "].into_iter().filter_map(|mark| Some((description.find(mark)?, mark)));
    let end = ends.min().map(|(at, mark)| at + mark.trim_end_matches([' ', '\n', ';']).len());
    &description[..end.unwrap_or(description.len())]
}

fn kind(schema: &Value) -> String {
    let alternatives = |values: &[Value], show: fn(&Value) -> String| values.iter().map(show).collect::<Vec<_>>().join("|");
    match (schema.get("enum"), schema.get("type")) {
        (Some(Value::Array(values)), _) => alternatives(values, Value::to_string),
        (_, Some(Value::String(kind))) => kind.clone(),
        (_, Some(Value::Array(kinds))) => alternatives(kinds, |kind| kind.as_str().unwrap_or("any").to_owned()),
        _ => "any".to_owned(),
    }
}

fn properties(parameters: &Value) -> impl Iterator<Item = (&String, &Value)> {
    parameters.get("properties").and_then(Value::as_object).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use polis_domain::EffectClass;

    use super::*;

    fn request(messages: Vec<ChatMessage>) -> ModelRequest {
        let parameters = json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "Where it is; relative to the folder." },
                "mode": { "enum": ["all", "head"], "description": "How much of it." },
                "line": { "type": ["integer", "null"] },
            },
            "required": ["path"],
        });
        let tool = ToolSpec {
            name: "read".into(),
            description: "Reads. Files of more than 1 MB are cut.\nThe rest is left out.".to_owned(),
            parameters,
            class: EffectClass::Read,
            volatile: false,
        };
        ModelRequest { system: "Be kind.".into(), messages, tools: Arc::new([tool]), ..ModelRequest::default() }
    }

    fn call_as_text(text: &str, arguments: &str) -> ChatMessage {
        let call = ToolCall { id: "1".into(), name: "read".into(), arguments: arguments.into() };
        ChatMessage::Assistant { text: text.into(), reasoning: "".into(), tool_calls: vec![call], echo: None }
    }

    fn result(content: &str, is_error: bool) -> ChatMessage {
        ChatMessage::Tool { call_id: "1".into(), name: "read".into(), content: content.into(), is_error, media: vec![] }
    }

    #[test]
    fn tools_are_described_in_a_few_words() {
        let rewritten = rewrite(&request(vec![ChatMessage::user("hi")]));
        let (own, tools) = rewritten.system.split_once("\n\nYou can use tools. ").unwrap();
        assert_eq!(own, "Be kind.");
        let described =
            "Tools:\n- read(line?: integer|null, mode?: \"all\"|\"head\", path: string): Reads.\n  path: Where it is";
        assert!(tools.ends_with(described), "{tools}");
        assert!(rewritten.tools.is_empty() && rewritten.format.is_some());
        assert_eq!((rewritten.settings.max_tokens, rewritten.messages), (Some(REPLY_TOKENS), vec![ChatMessage::user("hi")]));
    }

    #[test]
    fn earlier_calls_and_results_become_plain_messages_in_which_both_sides_take_turns() {
        let earlier = vec![
            ChatMessage::user("hi"),
            ChatMessage::assistant("Hello."),
            ChatMessage::user("read a and b"),
            call_as_text("I will.", "{\"path\":\"a\"}"),
            result("A", false),
            result("no b", true),
            call_as_text("", "{\"pa"),
            result("what?", true),
        ];
        let want = vec![
            ChatMessage::user("hi"),
            ChatMessage::assistant("{\"answer\":\"Hello.\"}"),
            ChatMessage::user("read a and b"),
            ChatMessage::assistant("I will.\n{\"name\":\"read\",\"parameters\":{\"path\":\"a\"}}"),
            ChatMessage::user("The tool read returned:\nA\n\nThe tool read failed:\nno b"),
            ChatMessage::assistant("{\"name\":\"read\",\"parameters\":\"{\\\"pa\"}"),
            ChatMessage::user("The tool read failed:\nwhat?\n\nReply with {\"answer\": …}, or use another tool."),
        ];
        assert_eq!(rewrite(&request(earlier)).messages, want);
    }

    #[test]
    fn without_tools_only_the_history_is_rewritten() {
        let messages =
            vec![ChatMessage::user("hi"), call_as_text("", "{}"), result("A", false), ChatMessage::assistant("It is A.")];
        let bare = ModelRequest { tools: Arc::default(), ..request(messages) };
        let want = vec![
            ChatMessage::user("hi"),
            ChatMessage::assistant("{\"name\":\"read\",\"parameters\":{}}"),
            ChatMessage::user("The tool read returned:\nA"),
            ChatMessage::assistant("It is A."),
        ];
        assert_eq!(rewrite(&bare), ModelRequest { messages: want, ..bare.clone() });
    }
}
