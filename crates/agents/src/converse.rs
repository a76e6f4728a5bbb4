//! A plain conversing agent: asks the model, does the calls that it asks for, until it answers.

use std::sync::Arc;

use polis_domain::{Artifact, CallResult, Failure, Finish, Reply, Response, Text, ToolCall, ToolChoice};
use polis_engine::{Agent, Operation, Turn};
use polis_ports::{ChatMessage, ModelRequest, ToolSpec};
use serde_json::json;

use crate::answer_check::{AnswerCheck, answer_of_calls};
use crate::conversation::{ContextLimits, View, compress, conversation, language};
use crate::cut_reply;
use crate::end_tools::{EndTools, HandOver};
use crate::environment::Environment;
use crate::long_turn::{halve, is_too_long, make_room};
use crate::sources;
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

/// The code of a turn whose budget is used up.
const BUDGET_EXHAUSTED: &str = "budget_exhausted";

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
    /// Whether the model may hand the request over to be planned. The turn then fails with the code `start_workflow`, which only a
    /// role knows what to do with.
    pub hands_over: HandOver,
}

impl Default for Converse {
    fn default() -> Self {
        Self {
            context: ContextLimits::default(),
            max_rounds: 25,
            environment: Environment::default(),
            hands_over: HandOver::default(),
        }
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
        let request = ModelRequest { system, messages, purpose: "answer".into(), ..ModelRequest::default() };
        let ends = EndTools { hands_over: self.hands_over, rejects: !turn.is_conversation() };
        work(turn, request, view.rounds, Some(&view), ends).await
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
    ends: EndTools,
) -> Result<Response, Failure> {
    let mut shown = request.messages.len();
    let mut made: Vec<Artifact> = Vec::new();
    let mut check = AnswerCheck::default();
    let mut empty_replies = 0;
    let too_many = || {
        let message = format!("no answer after {rounds} rounds of tool use; ask it to go on, or for less at once");
        Failure::new("too_many_rounds", message)
    };
    let (mut why_unfinished, mut sources) = (None, Vec::new());
    let language = language(turn).await;
    let is_prescribed = turn.answer_rules().is_some_and(|rules| rules.are_binding());
    for round in 0..rounds {
        let left = rounds - round;
        if left == WARN_ROUNDS && rounds > 2 * WARN_ROUNDS {
            request.messages.push(ChatMessage::user((language.notes().rounds_left)(left)));
        }
        let tools = offered(turn, ends);
        make_room(turn, &mut request, shown, &tools).await?;
        let mut asked = turn.model(check.request(turn, &request, tools.clone())).await;
        if asked.as_ref().is_err_and(is_too_long) && shorten(turn, &mut request, &mut shown, conversed, &tools).await? {
            asked = turn.model(check.request(turn, &request, tools)).await;
        }
        let reply = match asked {
            Err(failure) if is_loop(&failure) => {
                why_unfinished = Some(failure);
                break;
            }
            // Nobody grants more, so what was done is told for the model.
            Err(failure) if &*failure.code == BUDGET_EXHAUSTED => return tell_calls(&request.messages, failure, &made),
            reply => reply?,
        };
        sources::collect(&mut sources, &reply.citations);
        let is_cut = cut_reply::says_nothing(&reply);
        if reply.is_empty() || is_cut {
            empty_replies += 1;
            if empty_replies > MAX_EMPTY_REPLIES {
                why_unfinished = Some(if is_cut { cut_reply(CUT) } else { empty_reply() });
                break;
            }
            request.messages.extend(match is_cut {
                true => cut_reply::messages(&reply, language),
                false => vec![ChatMessage::user(language.notes().empty_reply)],
            });
            continue;
        }
        empty_replies = 0;
        if reply.tool_calls.is_empty() {
            let Some(reply) = check.answer(turn, &mut request, reply)? else { continue };
            let mut response = sources::attach(conclude(reply)?, &sources, is_prescribed);
            Artifact::attach(&mut response.meta, &made);
            if round > 0 && turn.ends_budget() {
                let why = Failure::new(BUDGET_EXHAUSTED, "the budget is used up; grant more, or ask it to go on");
                response.meta.insert(UNFINISHED.to_owned(), json!(why));
            }
            return Ok(response);
        }
        if let Some(end) = ends.end(turn, &reply.tool_calls).await {
            return Err(end);
        }
        let results = call_tools(turn, &mut check, ends, &reply.tool_calls).await;
        if turn.is_left_by_client() {
            return Ok(Response::new(answer_of_calls(turn, &reply.tool_calls, &results)));
        }
        for artifact in results.iter().flat_map(|result| &result.artifacts) {
            if !made.contains(artifact) {
                made.push(artifact.clone());
            }
        }
        request.messages.push(ChatMessage::said(&reply));
        ChatMessage::push_results(&mut request.messages, &reply.tool_calls, &results);
        request.messages.extend(cut_reply::note(&reply, language).map(ChatMessage::user));
        let is_shorter = |(call, result): (&ToolCall, &CallResult)| &*call.meant().name == COMPRESS && !result.is_error;
        if let (Some(view), true) = (conversed, reply.tool_calls.iter().zip(&results).any(is_shorter)) {
            show_anew(turn, &mut request, &mut shown, view).await?;
        }
    }
    let response = answer_unfinished(turn, request, why_unfinished.unwrap_or_else(too_many), ends).await?;
    let mut response = sources::attach(response, &sources, is_prescribed);
    Artifact::attach(&mut response.meta, &made);
    Ok(response)
}

/// Makes the calls of a reply that does not end the turn. A call that should have ended it gets the reason why it does not.
async fn call_tools(turn: &mut Turn, check: &mut AnswerCheck, ends: EndTools, calls: &[ToolCall]) -> Vec<CallResult> {
    let refusals: Vec<_> = calls.iter().map(|call| ends.refusal(turn, call)).collect();
    let others: Vec<_> =
        calls.iter().zip(&refusals).filter(|(_, refusal)| refusal.is_none()).map(|(call, _)| call.clone()).collect();
    let made = if others.is_empty() { Vec::new() } else { check.call_tools(turn, &others).await };
    let mut made = made.into_iter();
    let mut results = Vec::with_capacity(calls.len());
    for (call, refusal) in calls.iter().zip(refusals) {
        if let Some(refusal) = &refusal {
            turn.note_call(call, refusal.clone()).await;
        }
        results.extend(refusal.or_else(|| made.next()));
    }
    results
}

/// The tools of the turn, with those that end it.
fn offered(turn: &Turn, ends: EndTools) -> Arc<[ToolSpec]> {
    turn.tools_and(&ends.specs().collect::<Vec<_>>())
}

/// Shows the conversation of a turn anew, followed by the turn's own rounds, which begin at `shown`.
async fn show_anew(turn: &mut Turn, request: &mut ModelRequest, shown: &mut usize, view: &View<'_>) -> Result<(), Failure> {
    let messages = conversation(turn, view).await?;
    let own = request.messages.split_off(*shown);
    *shown = messages.len();
    request.messages = messages;
    request.messages.extend(own);
    Ok(())
}

/// Shortens a request that was longer than the model's window: the turn's own rounds, else the conversation before them. Gives
/// whether it is shorter now.
async fn shorten(
    turn: &mut Turn,
    request: &mut ModelRequest,
    shown: &mut usize,
    conversed: Option<&View<'_>>,
    tools: &Arc<[ToolSpec]>,
) -> Result<bool, Failure> {
    if halve(turn, request, *shown, tools).await? {
        return Ok(true);
    }
    let Some(view) = conversed.filter(|view| view.limits.compress && turn.may_compress()) else { return Ok(false) };
    let context = turn.context(usize::MAX).await?;
    let count = compress(turn, &context, &view.limits).await?;
    if count > 0 {
        show_anew(turn, request, shown, view).await?;
    }
    Ok(count > 0)
}

/// Has the model answer with what there is, without tools. If it does not, the turn fails for the reason that is given.
async fn answer_unfinished(
    turn: &mut Turn,
    mut request: ModelRequest,
    why: Failure,
    ends: EndTools,
) -> Result<Response, Failure> {
    // A program that prescribes the answer cannot use one that is not finished.
    if turn.answer_rules().is_some_and(|rules| rules.are_binding()) {
        return Err(why);
    }
    request.messages.push(ChatMessage::user(language(turn).await.notes().conclude));
    // The same tools as before, so that a vendor has them in its cache.
    request = AnswerCheck::default().request(turn, &request, offered(turn, ends));
    request.tool_choice = ToolChoice::None;
    request.purpose = "conclude".into();
    let reply = turn.model(request.clone()).await?;
    match conclude(Reply { tool_calls: Vec::new(), ..reply }) {
        Ok(mut response) => {
            response.meta.insert(UNFINISHED.to_owned(), json!(why));
            Ok(response)
        }
        // Some models call tools although they cannot. What was done is told for them.
        Err(_) => tell_calls(&request.messages, why, &[]),
    }
}

/// Answers with the calls of the turn, because the model does not. Without calls the turn fails for the reason that is given.
fn tell_calls(messages: &[ChatMessage], why: Failure, made: &[Artifact]) -> Result<Response, Failure> {
    let done = describe_calls(messages);
    if done.is_empty() {
        return Err(why);
    }
    let mut response = Response::new(format!("[polis] The agent came to no answer: {}.\n\n{done}", why.message));
    Artifact::attach(&mut response.meta, made);
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
        return prompt;
    }
    let gap = if prompt.is_empty() { "" } else { "\n\n" };
    let name = match language {
        Language::En => format!("Your name here is `{}`.", turn.agent()),
        Language::Zh => format!("你在这里的名字是 `{}`。", turn.agent()),
    };
    format!("{prompt}{gap}{name}").into()
}

/// Why a reply ends before it is whole.
const CUT: &str = "it reached the limit of tokens";

fn cut_reply(why: &str) -> Failure {
    Failure::new("reply_stopped", format!("the model gave no answer: {why}"))
}

/// What a reply without calls comes to. One that was stopped is not handed over as if it were whole.
fn conclude(reply: Reply) -> Result<Response, Failure> {
    let stopped = match &reply.finish {
        Finish::Stop | Finish::ToolCalls | Finish::Refusal => None,
        Finish::Length => Some(CUT.to_owned()),
        Finish::ContentFilter => Some("the vendor held the rest back".to_owned()),
        Finish::Paused => Some("the vendor paused it too often".to_owned()),
        Finish::Other(word) => Some(format!("the vendor says `{word}`")),
    };
    let told = |text: String| {
        let mut response = Response::new(text);
        if !matches!(reply.finish, Finish::Stop | Finish::ToolCalls) {
            response.meta.insert(Finish::META.to_owned(), json!(reply.finish));
        }
        Ok(response)
    };
    match (reply.text.trim().is_empty(), stopped) {
        (false, None) => told(reply.text),
        (false, Some(why)) => told(format!("{}\n\n[The reply ends here: {why}.]", reply.text.trim_end())),
        (true, None) if reply.finish == Finish::Refusal => Err(Failure::new("model_refused", "the model will not do this")),
        (true, None) => Err(empty_reply()),
        (true, Some(why)) => Err(cut_reply(&why)),
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
        let meta = |finish: Finish| {
            let reply = Reply { text: "half".to_owned(), finish, ..Reply::default() };
            conclude(reply).unwrap().meta.get(Finish::META).cloned()
        };
        assert_eq!(meta(Finish::Stop), None);
        assert_eq!(meta(Finish::Length), Some(json!("length")));
        assert_eq!(meta(Finish::ContentFilter), Some(json!("content_filter")));
        assert_eq!(meta(Finish::Refusal), Some(json!("refusal")));
        let codes = [Finish::Stop, Finish::Length, Finish::Refusal, held].map(|finish| concluded(" ", finish).unwrap_err());
        assert_eq!(codes, ["empty_reply", "reply_stopped", "model_refused", "reply_stopped"]);
    }
}
