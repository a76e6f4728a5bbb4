//! Has the model keep what the client of a request prescribes for the answer: it is told, its answer is checked, and an answer
//! that does not fit is asked for once more with the reason. What still does not fit is a failure, never an answer.

use std::sync::Arc;

use polis_domain::{AnswerRules, CallResult, Failure, Finish, Reply, ToolCall};
use polis_engine::Turn;
use polis_ports::{ChatMessage, ModelRequest, ToolChoice, ToolSpec};

/// How often an answer that does not fit is asked for again.
const MAX_REPEATS: usize = 1;

/// The check of the answers of one turn.
#[derive(Debug, Default)]
pub(crate) struct AnswerCheck {
    /// How often the present answer was asked for again.
    repeats: usize,
}

impl AnswerCheck {
    /// The request as it is sent: with these tools and what the client prescribes.
    pub(crate) fn request(&self, turn: &Turn, request: &ModelRequest, tools: Arc<[ToolSpec]>) -> ModelRequest {
        let mut request = ModelRequest { tools, ..request.clone() };
        let Some(rules) = turn.answer_rules().cloned() else { return request };
        request.one_call = rules.one_call;
        if !rules.must_call {
            request.format.clone_from(&rules.format);
            return request;
        }
        let client_tools = client_tools(turn, &request.tools);
        let names = names(&client_tools);
        let note = format!(
            "The program that asks takes no text as an answer. Use other tools first where you need them, then answer with a call of \
             {names}."
        );
        request.system = format!("{}\n\n{note}", request.system).trim_start().into();
        request.tool_choice = ToolChoice::Required;
        // Asked again, the model has nothing else to choose from.
        if self.repeats > 0 {
            if let [only] = &*client_tools {
                request.tool_choice = ToolChoice::Named(only.name.clone());
            }
            request.tools = client_tools;
        }
        request
    }

    /// A reply without calls as the answer; none if the model is to be asked again, for which the request then has the reason.
    pub(crate) fn answer(
        &mut self,
        turn: &Turn,
        request: &mut ModelRequest,
        mut reply: Reply,
    ) -> Result<Option<Reply>, Failure> {
        let Some(rules) = turn.answer_rules().filter(|rules| rules.are_binding()) else { return Ok(Some(reply)) };
        let (code, wrong) = match fault(turn, rules, &reply) {
            Ok(text) => {
                reply.text = text;
                return Ok(Some(reply));
            }
            Err(wrong) => wrong,
        };
        if reply.finish == Finish::Refusal {
            return Err(Failure::new("model_refused", format!("the model will not do this: {}", reply.text.trim())));
        }
        if self.repeats == MAX_REPEATS {
            return Err(Failure::new(code, format!("the model was asked twice, and {wrong}")));
        }
        self.repeats += 1;
        request.messages.push(ChatMessage::said(&reply));
        request.messages.push(ChatMessage::user(format!("This cannot be used: {wrong}. Answer again, as it is prescribed.")));
        Ok(None)
    }

    /// Makes the calls of a reply. A client that takes one call at a time gets the first of those to its own tools.
    pub(crate) async fn call_tools(&mut self, turn: &mut Turn, calls: &[ToolCall]) -> Vec<CallResult> {
        self.repeats = 0;
        let one_call = turn.answer_rules().is_some_and(|rules| rules.one_call);
        let mut clients = 0;
        let is_made = |call: &ToolCall| {
            clients += usize::from(turn.is_client_tool(&call.name));
            !one_call || clients <= 1 || !turn.is_client_tool(&call.name)
        };
        let is_made: Vec<bool> = calls.iter().map(is_made).collect();
        let made = calls.iter().zip(&is_made).filter(|(_, is_made)| **is_made).map(|(call, _)| call.clone()).collect();
        let mut results = turn.call_tools(made).await.into_iter();
        let refused = || {
            CallResult::failed("not made: the program that asks takes one call at a time; call it again if it is still needed")
        };
        is_made.into_iter().map(|is_made| if is_made { results.next() } else { None }.unwrap_or_else(refused)).collect()
    }
}

/// The answer of a turn whose client took a call and wants no other answer, so that no model is asked for one. The next turn of
/// the conversation reads what was called.
pub(crate) fn answer_of_calls(turn: &Turn, calls: &[ToolCall], results: &[CallResult]) -> String {
    let calls = calls.iter().zip(results).filter(|(call, _)| turn.is_client_tool(&call.name));
    let line = |(call, result): (&ToolCall, &CallResult)| {
        let came = if result.is_error { "no result".to_owned() } else { format!("result: {}", result.content) };
        format!("[called {} with {}; {came}]", call.name, call.arguments)
    };
    calls.map(line).collect::<Vec<_>>().join("\n")
}

/// The text of an answer that fits; otherwise the code and what is wrong.
fn fault(turn: &Turn, rules: &AnswerRules, reply: &Reply) -> Result<String, (&'static str, String)> {
    if rules.must_call {
        let names = names(&client_tools(turn, &turn.tools()));
        return Err(("tool_choice_not_kept", format!("the answer must be a call of {names}, and it is text")));
    }
    match &rules.format {
        Some(format) => format
            .read(&reply.text)
            .map(str::to_owned)
            .map_err(|wrong| ("format_not_kept", format!("the answer does not have the prescribed format: {wrong}"))),
        None => Ok(reply.text.clone()),
    }
}

/// The client's tools among these.
fn client_tools(turn: &Turn, tools: &[ToolSpec]) -> Arc<[ToolSpec]> {
    tools.iter().filter(|tool| turn.is_client_tool(&tool.name)).cloned().collect()
}

fn names(tools: &[ToolSpec]) -> String {
    tools.iter().map(|tool| format!("`{}`", tool.name)).collect::<Vec<_>>().join(" or ")
}
