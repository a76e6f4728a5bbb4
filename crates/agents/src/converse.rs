//! A plain conversing agent: asks the model, does the calls that it asks for, until it answers.

use polis_domain::{Artifact, CallResult, Failure, Finish, Reply, Response, Text, ToolCall, ToolChoice};
use polis_engine::{Agent, Operation, Turn};
use polis_ports::{ChatMessage, ModelRequest};
use serde_json::json;

use crate::answer_check::{AnswerCheck, answer_of_calls};
use crate::conversation::{ContextLimits, View, compress, conversation, language};
use crate::environment::Environment;
use crate::workflow::Language;

/// The tool after which the conversation is shown anew.
const COMPRESS: &str = "compress_context";

/// So many rounds before the last one, the model is told how many are left.
const WARN_ROUNDS: usize = 3;

/// How many empty replies in a row are asked for again, with tools. After one more the model must answer without tools.
const MAX_EMPTY_REPLIES: usize = 2;

/// Calls that are listed where an agent came to no answer, and characters of each text in that list.
const SHOWN_CALLS: usize = 20;
const SHOWN_CHARS: usize = 120;

/// The key of an answer's meta that says why it is not finished.
const UNFINISHED: &str = "unfinished";

/// Talks, and uses tools while it does.
#[derive(Debug, Clone)]
pub struct Converse {
    /// How much of the conversation the model is shown.
    pub context: ContextLimits,
    /// Rounds of tool use before it must answer.
    pub max_rounds: usize,
    /// What it is told about where it works.
    pub environment: Environment,
}

impl Default for Converse {
    fn default() -> Self {
        Self { context: ContextLimits::default(), max_rounds: 25, environment: Environment::default() }
    }
}

impl Agent for Converse {
    fn operations(&self) -> Vec<Operation> {
        vec![compress_operation()]
    }

    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        let view = View::of(turn, self.context, self.max_rounds, &self.environment);
        if turn.task().wants_compression() {
            return compress_now(turn, &view.limits).await;
        }
        let (system, messages) = (system_prompt(turn).await, conversation(turn, &view).await?);
        let request = ModelRequest { system, messages, ..ModelRequest::default() };
        work(turn, request, view.rounds, Some(&view)).await
    }
}

/// Has the conversation compressed at a person's wish.
pub(crate) fn compress_operation() -> Operation {
    let compress = Operation::new("compress", "Compress the conversation", "[compress]");
    compress.with_meta("_ui_action", "compress").translated("zh", "压缩对话", "[compress]")
}

/// Asks the model and does the calls that it asks for, until it answers. A request that is the turn's conversation is shown anew
/// when that was compressed.
pub(crate) async fn work(
    turn: &mut Turn,
    mut request: ModelRequest,
    rounds: usize,
    conversed: Option<&View<'_>>,
) -> Result<Response, Failure> {
    let mut shown = request.messages.len();
    let mut made: Vec<Artifact> = Vec::new();
    let mut check = AnswerCheck::default();
    let mut empty_replies = 0;
    let too_many = || {
        let message = format!("no answer after {rounds} rounds of tool use; ask it to go on, or for less at once");
        Failure::new("too_many_rounds", message)
    };
    let mut why_unfinished = None;
    for round in 0..rounds {
        let left = rounds - round;
        if left == WARN_ROUNDS && rounds > 2 * WARN_ROUNDS {
            request.messages.push(ChatMessage::user(format!(
                "[polis] Tools can be used in {left} more rounds of this turn. Do what matters most first."
            )));
        }
        let reply = match turn.model(check.request(turn, &request)).await {
            Err(failure) if is_loop(&failure) => {
                why_unfinished = Some(failure);
                break;
            }
            reply => reply?,
        };
        if is_empty(&reply) {
            empty_replies += 1;
            if empty_replies > MAX_EMPTY_REPLIES {
                why_unfinished = Some(empty_reply());
                break;
            }
            request.messages.push(ChatMessage::user("[polis] Your reply was empty. Answer, or call a tool."));
            continue;
        }
        empty_replies = 0;
        if reply.tool_calls.is_empty() {
            let Some(reply) = check.answer(turn, &mut request, reply)? else { continue };
            let mut response = conclude(reply)?;
            Artifact::attach(&mut response.meta, &made);
            return Ok(response);
        }
        let results = check.call_tools(turn, &reply.tool_calls).await;
        if turn.is_left_by_client() {
            return Ok(Response::new(answer_of_calls(turn, &reply.tool_calls, &results)));
        }
        for artifact in results.iter().flat_map(|result| &result.artifacts) {
            if !made.contains(artifact) {
                made.push(artifact.clone());
            }
        }
        request.messages.push(ChatMessage::said(&reply));
        request.messages.extend(reply.tool_calls.iter().zip(&results).map(|(call, result)| ChatMessage::result(call, result)));
        let is_shorter = |(call, result): (&ToolCall, &CallResult)| &*call.meant().name == COMPRESS && !result.is_error;
        if let (Some(view), true) = (conversed, reply.tool_calls.iter().zip(&results).any(is_shorter)) {
            let messages = conversation(turn, view).await?;
            let own = request.messages.split_off(shown);
            shown = messages.len();
            request.messages = messages;
            request.messages.extend(own);
        }
    }
    let mut response = answer_unfinished(turn, request, why_unfinished.unwrap_or_else(too_many)).await?;
    Artifact::attach(&mut response.meta, &made);
    Ok(response)
}

/// Has the model answer with what there is, without tools. If it does not, the turn fails for the reason that is given.
async fn answer_unfinished(turn: &mut Turn, mut request: ModelRequest, why: Failure) -> Result<Response, Failure> {
    // A program that prescribes the answer cannot use one that is not finished.
    if turn.answer_rules().is_some_and(|rules| rules.are_binding()) {
        return Err(why);
    }
    request.messages.push(ChatMessage::user(
        "[polis] No more tools can be used in this turn. Answer now with what you have: what is done, what you found, and what \
         is still to do. The person can ask you to go on.",
    ));
    request.tools = turn.tools();
    request.tool_choice = ToolChoice::None;
    let reply = turn.model(request.clone()).await?;
    let done = describe_calls(&request.messages);
    let mut response = match conclude(Reply { tool_calls: Vec::new(), ..reply }) {
        Ok(response) => response,
        // Some models call tools although they cannot. What was done is told for them.
        Err(_) if !done.is_empty() => Response::new(format!("[polis] The agent came to no answer: {}.\n\n{done}", why.message)),
        Err(_) => return Err(why),
    };
    response.meta.insert(UNFINISHED.to_owned(), json!(why));
    Ok(response)
}

/// The newest calls of a turn with the beginnings of their results, for a person.
fn describe_calls(messages: &[ChatMessage]) -> String {
    let own =
        messages.iter().rposition(|message| matches!(message, ChatMessage::User { text, .. } if !text.starts_with("[polis]")));
    let own = &messages[own.unwrap_or_default()..];
    let calls = own.iter().filter_map(|message| match message {
        ChatMessage::Assistant { tool_calls, .. } => Some(tool_calls),
        ChatMessage::User { .. } | ChatMessage::Tool { .. } => None,
    });
    let results = own.iter().filter_map(|message| match message {
        ChatMessage::Tool { content, .. } => Some(content),
        ChatMessage::User { .. } | ChatMessage::Assistant { .. } => None,
    });
    let short = |text: &str| text.lines().next().unwrap_or_default().chars().take(SHOWN_CHARS).collect::<String>();
    let lines: Vec<String> = calls
        .flatten()
        .zip(results)
        .map(|(call, result)| format!("- {} {}: {}", call.name, short(&call.arguments), short(result)))
        .collect();
    let skipped = lines.len().saturating_sub(SHOWN_CALLS);
    match (lines.is_empty(), skipped) {
        (true, _) => String::new(),
        (false, 0) => format!("What it did:\n{}", lines.join("\n")),
        (false, skipped) => format!("What it did ({skipped} calls before these):\n{}", lines[skipped..].join("\n")),
    }
}

/// Whether the turn is stopped because it goes round in circles.
fn is_loop(failure: &Failure) -> bool {
    &*failure.code == "call_loop"
}

/// Whether a model said nothing, for no reason that it tells.
fn is_empty(reply: &Reply) -> bool {
    reply.tool_calls.is_empty() && reply.text.trim().is_empty() && reply.finish == Finish::Stop
}

fn empty_reply() -> Failure {
    Failure::new("empty_reply", "the model gave no answer; ask again, or ask another model")
}

/// Does what the person asks for with `polis compress`.
async fn compress_now(turn: &mut Turn, limits: &ContextLimits) -> Result<Response, Failure> {
    let context = turn.context(usize::MAX).await?;
    let count = compress(turn, &context, limits).await?;
    Ok(Response::new(match count {
        0 => format!("Nothing was compressed: there are no more than {} messages to keep.", limits.keep_recent_count),
        count => format!("{count} messages are compressed to a summary; `polis compress {} --undo` undoes it.", turn.agent()),
    }))
}

/// What an agent is told about itself: its role's prompt, and its own name where it is not the only one of its kind. It is the same
/// in all turns of a thread, so that a vendor can cache it.
pub(crate) async fn system_prompt(turn: &mut Turn) -> Text {
    let language = language(turn).await;
    let prompt = turn.role().map(|role| role.prompt_in(language.name()).clone()).unwrap_or_default();
    if turn.is_conversation() {
        return prompt.to_string().into();
    }
    let gap = if prompt.is_empty() { "" } else { "\n\n" };
    let name = match language {
        Language::En => format!("Your name here is `{}`.", turn.agent()),
        Language::Zh => format!("你在这里的名字是 `{}`。", turn.agent()),
    };
    format!("{prompt}{gap}{name}").into()
}

/// What a reply without calls comes to. One that was stopped is not handed over as if it were whole.
fn conclude(reply: Reply) -> Result<Response, Failure> {
    let stopped = match &reply.finish {
        Finish::Stop | Finish::ToolCalls | Finish::Refusal => None,
        Finish::Length => Some("it reached the limit of tokens".to_owned()),
        Finish::ContentFilter => Some("the vendor held the rest back".to_owned()),
        Finish::Other(word) => Some(format!("the vendor says `{word}`")),
    };
    match (reply.text.trim().is_empty(), stopped) {
        (false, None) => Ok(Response::new(reply.text)),
        (false, Some(why)) => Ok(Response::new(format!("{}\n\n[The reply ends here: {why}.]", reply.text.trim_end()))),
        (true, None) if reply.finish == Finish::Refusal => Err(Failure::new("model_refused", "the model will not do this")),
        (true, None) => Err(empty_reply()),
        (true, Some(why)) => Err(Failure::new("reply_stopped", format!("the model gave no answer: {why}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn concluded(text: &str, finish: Finish) -> Result<String, String> {
        let reply = Reply { text: text.to_owned(), finish, ..Reply::default() };
        conclude(reply).map(|response| response.full_message().to_owned()).map_err(|failure| failure.code.to_string())
    }

    #[test]
    fn a_reply_that_was_stopped_is_not_handed_over_as_whole() {
        let held = Finish::Other("odd".to_owned());
        assert_eq!(concluded("all", Finish::Stop).unwrap(), "all");
        assert_eq!(concluded("no", Finish::Refusal).unwrap(), "no");
        assert_eq!(
            concluded("half", Finish::Length).unwrap(),
            "half\n\n[The reply ends here: it reached the limit of tokens.]"
        );
        assert!(concluded("half", Finish::ContentFilter).unwrap().contains("held the rest back"));
        assert!(concluded("half", held.clone()).unwrap().contains("`odd`"));
        let codes = [Finish::Stop, Finish::Length, Finish::Refusal, held].map(|finish| concluded(" ", finish).unwrap_err());
        assert_eq!(codes, ["empty_reply", "reply_stopped", "model_refused", "reply_stopped"]);
    }
}
