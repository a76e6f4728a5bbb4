//! Tools by which a model ends its turn without an answer: it hands the request over to be planned, or rejects it. The turn is
//! told by a failure with a code of its own.

use polis_domain::{CallResult, EffectClass, Failure, ToolCall};
use polis_engine::Turn;
use polis_ports::ToolSpec;
use serde_json::{Value, json};

use crate::role::start_workflow::{self, START_WORKFLOW};

/// The tool that rejects a request of another agent (D38).
const REJECT_REQUEST: &str = "reject_request";

const DESCRIPTION: &str = "Rejects the request of the agent that waits for you, and ends your turn. Call it, alone and first, when the \
request is not yours to do, or must not be done. When you only lack a fact, answer with a question instead.";

/// Longest reason, in characters.
const REASON_CHARS: usize = 1_000;

/// Whether a model may hand a request over to be planned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HandOver {
    /// The agent never plans, and its models are not offered the tool.
    #[default]
    Never,
    /// Not this request: a person or a plan says how it is done. The tool is offered and refuses, so that the list of tools stays
    /// the same in a conversation.
    NotNow,
    /// As the model judges.
    Allowed,
}

/// Which of these tools a turn offers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EndTools {
    pub(crate) hands_over: HandOver,
    /// Offered to an agent in all of its turns or in none, so that its list of tools stays the same.
    pub(crate) rejects: bool,
}

impl EndTools {
    pub(crate) fn specs(self) -> impl Iterator<Item = ToolSpec> {
        (self.hands_over != HandOver::Never).then(start_workflow::spec).into_iter().chain(self.rejects.then(reject_request))
    }

    /// Why the turn ends, if one of these calls ends it. The other calls of the reply are not made: what is still to be done is
    /// decided elsewhere. Each has a result in the log, so that later turns see what became of it.
    pub(crate) async fn end(self, turn: &mut Turn, calls: &[ToolCall]) -> Option<Failure> {
        let is_end = |call: &ToolCall| self.specs().any(|spec| spec.name == call.name) && self.refusal(turn, call).is_none();
        let place = calls.iter().position(is_end)?;
        let ends = &calls[place];
        let (done, failure) = match &*ends.name == START_WORKFLOW {
            true => ("handed over; the answer follows", start_workflow::handed_over(ends)),
            false => ("rejected", turn.reject(&reason(ends, REASON_CHARS))),
        };
        for (at, call) in calls.iter().enumerate() {
            let result = match at == place {
                true => CallResult::good(done),
                false => CallResult::failed(format!("not called: {} of the same reply ends the turn", ends.name)),
            };
            turn.note_call(call, result).await;
        }
        Some(failure)
    }

    /// Why a call does not end the turn, for the model; none for a call that does, and for those of other tools.
    pub(crate) fn refusal(self, turn: &Turn, call: &ToolCall) -> Option<CallResult> {
        if self.hands_over == HandOver::NotNow && &*call.name == START_WORKFLOW {
            return Some(CallResult::failed(
                "nothing was handed over: it is settled that you do this yourself. Go on, and answer.",
            ));
        }
        if !self.rejects || &*call.name != REJECT_REQUEST {
            return None;
        }
        let why = match (turn.is_request(), reason(call, REASON_CHARS).is_empty()) {
            (false, _) => "no agent waits for your answer. Answer the message, or say in your answer why you will not do it.",
            (true, true) => {
                "`reason` is missing. The agent that asked reads it: call it again and say why you reject the request."
            }
            (true, false) => return None,
        };
        Some(CallResult::failed(format!("nothing was rejected: {why}")))
    }
}

/// The reason that a call gives, or nothing.
pub(crate) fn reason(call: &ToolCall, chars: usize) -> String {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    arguments["reason"].as_str().unwrap_or_default().trim().chars().take(chars).collect()
}

fn reject_request() -> ToolSpec {
    ToolSpec {
        name: REJECT_REQUEST.into(),
        description: DESCRIPTION.to_owned(),
        parameters: json!({
            "type": "object",
            "properties": { "reason": { "type": "string", "description": "For the agent that asked" } },
            "required": ["reason"],
        }),
        class: EffectClass::Read,
        volatile: true,
    }
}
