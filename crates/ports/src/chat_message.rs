//! The messages of a conversation with a model.

use std::sync::Arc;

use polis_domain::{Artifact, CallResult, Reply, ToolCall};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Media;

/// One message of a conversation with a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ChatMessage {
    /// A user message.
    User {
        /// What the person or the program says.
        text: Arc<str>,
        /// The pictures, PDFs and audio of the message.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        media: Vec<Media>,
    },
    /// An assistant message.
    Assistant {
        /// What the model says beside its calls.
        text: Arc<str>,
        /// The reasoning, if the vendor provides it.
        #[serde(default, skip_serializing_if = "str::is_empty")]
        reasoning: Arc<str>,
        /// The tool calls of the message.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
        /// Opaque data for the vendor, see [`Reply::echo`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        echo: Option<Arc<Value>>,
    },
    /// The result of a tool call.
    Tool {
        /// The id that the model gave the call.
        call_id: Arc<str>,
        /// The tool's name.
        name: Arc<str>,
        /// The result.
        content: Arc<str>,
        /// Whether the call failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        /// The pictures, PDFs and audio of the result.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        media: Vec<Media>,
    },
}

impl ChatMessage {
    /// A user message.
    pub fn user(text: impl Into<Arc<str>>) -> Self {
        Self::User { text: text.into(), media: Vec::new() }
    }

    /// A user message with those of the artifacts that models take.
    pub fn user_with(text: impl Into<Arc<str>>, artifacts: &[Artifact]) -> Self {
        Self::User { text: text.into(), media: artifacts.iter().filter_map(Media::stored).collect() }
    }

    /// An assistant message.
    pub fn assistant(text: impl Into<Arc<str>>) -> Self {
        Self::Assistant { text: text.into(), reasoning: Arc::default(), tool_calls: Vec::new(), echo: None }
    }

    /// A reply as a message of the further conversation.
    pub fn said(reply: &Reply) -> Self {
        Self::Assistant {
            text: shared(&reply.text),
            reasoning: shared(&reply.reasoning),
            tool_calls: reply.tool_calls.clone(),
            echo: reply.echo.clone(),
        }
    }

    /// A tool result as a message of the further conversation.
    pub fn result(call: &ToolCall, result: &CallResult) -> Self {
        let (call_id, name) = (call.id.clone(), call.name.clone());
        let media = result.media.iter().filter_map(Media::stored).collect();
        Self::Tool { call_id, name, content: result.for_model(), is_error: result.is_error, media }
    }

    /// Adds the result of a call to a conversation. A long result that the conversation shows already is not repeated: the message
    /// says where it is.
    pub fn push_result(conversation: &mut Vec<Self>, call: &ToolCall, result: &CallResult) {
        let mut message = Self::result(call, result);
        if let Self::Tool { name, content, is_error: false, media, .. } = &mut message
            && content.len() > MAX_REPEATED_BYTES
            && media.is_empty()
        {
            let has_it = |(earlier, text): &(&ToolCall, &str)| {
                earlier.name == *name && *text == &**content && earlier.arguments.len() <= MAX_NAMED_BYTES
            };
            let earlier = results(conversation).into_iter().rev().find(has_it).map(|(earlier, _)| earlier.arguments.clone());
            if let Some(arguments) = earlier {
                let (before, after) = SAME_RESULT;
                *content = format!("{before}{name} with {arguments}{after}").into();
            }
        }
        conversation.push(message);
    }

    /// The whole of a result: an earlier one, if its message only says which.
    pub fn whole_result<'a>(conversation: &'a [Self], content: &'a str) -> &'a str {
        let (before, after) = SAME_RESULT;
        let named = content.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)?.split_once(" with "));
        let Some((tool, arguments)) = named else { return content };
        let is_it = |(call, text): &(&ToolCall, &str)| {
            &*call.name == tool && &*call.arguments == arguments && !text.starts_with(before)
        };
        results(conversation).into_iter().rev().find(is_it).map_or(content, |(_, text)| text)
    }

    /// Adds the results of a reply's calls to a conversation, and one more message if there is anything to say about them. That is
    /// not part of a result, because models and tools read results as data.
    pub fn push_results(conversation: &mut Vec<Self>, calls: &[ToolCall], results: &[CallResult]) {
        for (call, result) in calls.iter().zip(results) {
            Self::push_result(conversation, call, result);
        }
        conversation.extend(Self::notes(calls, results).map(Self::user));
    }

    /// What a model is told about the calls of a reply beside their results.
    pub fn notes(calls: &[ToolCall], results: &[CallResult]) -> Option<String> {
        let noted = calls.iter().zip(results).filter_map(|(call, result)| Some((call, result.note.as_ref()?)));
        let lines: Vec<String> =
            noted.map(|(call, note)| format!("[polis] About {} ({}): {}", call.name, call.id, note.0)).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// The calls of a conversation with their results, oldest first. The results of a reply stand in the order of its calls; their ids
/// do not tell them apart, because some models number the calls of each reply anew.
fn results(conversation: &[ChatMessage]) -> Vec<(&ToolCall, &str)> {
    let (mut found, mut open) = (Vec::new(), [].iter());
    for message in conversation {
        match message {
            ChatMessage::Assistant { tool_calls, .. } => open = tool_calls.iter(),
            ChatMessage::Tool { content, .. } => found.extend(open.next().map(|call| (call, &**content))),
            ChatMessage::User { .. } => {}
        }
    }
    found
}

/// What a message says instead of a result that is shown already, before and after the call that has it.
const SAME_RESULT: (&str, &str) = ("[polis] The same result as that of ", " above. It is not repeated here.");

/// Longest arguments by which such a message names a call.
const MAX_NAMED_BYTES: usize = 200;

/// Results up to this length are repeated: what would stand in their place is hardly shorter.
const MAX_REPEATED_BYTES: usize = 400;

/// A shared text; an empty one allocates nothing.
fn shared(text: &str) -> Arc<str> {
    if text.is_empty() { Arc::default() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_result_that_is_shown_already_is_not_repeated() {
        let (long, other) = ("x".repeat(MAX_REPEATED_BYTES + 1), "y".repeat(MAX_REPEATED_BYTES + 1));
        let short = "x".repeat(MAX_REPEATED_BYTES);
        // Each reply has one call, and all of them have the same id.
        let shown = |results: &[(&str, CallResult)]| -> Vec<ChatMessage> {
            let mut conversation = Vec::new();
            for (arguments, result) in results {
                let call = ToolCall { id: "c".into(), name: "look".into(), arguments: (*arguments).into() };
                let reply = Reply { tool_calls: vec![call.clone()], ..Reply::default() };
                conversation.push(ChatMessage::said(&reply));
                ChatMessage::push_results(&mut conversation, &[call], std::slice::from_ref(result));
            }
            conversation
        };
        let texts = |conversation: &[ChatMessage]| -> Vec<String> {
            results(conversation).into_iter().map(|(_, text)| text.to_owned()).collect()
        };
        let good = |text: &str| CallResult::good(text);
        let there = "[polis] The same result as that of look with {\"at\":1} above. It is not repeated here.";
        let (first, second) = ("{\"at\":1}", "{\"at\":2}");
        let said = shown(&[(first, good(&long)), (second, good(&other)), (first, good(&long)), (first, good(&long))]);
        assert_eq!(texts(&said), [&*long, &*other, there, there]);
        assert_eq!(ChatMessage::whole_result(&said, there), long);
        assert_eq!(ChatMessage::whole_result(&said, "y"), "y");
        let said = shown(&[(first, good(&short)), (first, good(&short))]);
        assert_eq!(texts(&said), [&*short, &*short], "too short to be worth it");
        let failed = CallResult::failed(long.as_str());
        let said = shown(&[(first, failed.clone()), (first, failed)]);
        assert_eq!(texts(&said), [&*long, &*long], "what went wrong is told each time");
        let wide = "z".repeat(MAX_NAMED_BYTES + 1);
        let said = shown(&[(&wide, good(&long)), (&wide, good(&long))]);
        assert_eq!(texts(&said), [&*long, &*long], "a call that cannot be named in a few words");
    }
}
