//! How a model says that a request is complex: it calls a tool that hands the request over (R335). It decides with the whole
//! conversation in view, and a simple request costs no call more.

use polis_domain::{CallResult, EffectClass, Failure, ToolCall};
use polis_engine::Turn;
use polis_ports::ToolSpec;
use serde_json::{Value, json};

/// The tool, and the code of the failure that ends the simple strategy in its favour. Neither leaves the turn.
pub(crate) const START_WORKFLOW: &str = "start_workflow";

const DESCRIPTION: &str = "Hands this request over to a planner, executors and a verifier, who answer the person. Call it, alone and \
first, for work of several parts that build on each other, or whose result must be proved. It takes many model calls: do everything \
else yourself.";

/// What models are told of the tool.
pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: START_WORKFLOW.into(),
        description: DESCRIPTION.to_owned(),
        parameters: json!({
            "type": "object",
            "properties": { "reason": { "type": "string", "description": "For the person" } },
            "required": ["reason"],
            "additionalProperties": false,
        }),
        class: EffectClass::Read,
        volatile: true,
    }
}

/// Whether a reply hands the request over.
pub(crate) fn is_called(calls: &[ToolCall]) -> bool {
    calls.iter().any(|call| &*call.name == START_WORKFLOW)
}

/// Notes in the log that the request is handed over. Other calls of the same reply are not made: the roles that take over decide what
/// is to be done. The failure carries the model's reason to the code that chose the strategy.
pub(crate) async fn hand_over(turn: &mut Turn, calls: &[ToolCall]) -> Failure {
    let first = calls.iter().position(|call| &*call.name == START_WORKFLOW);
    for (place, call) in calls.iter().enumerate() {
        let result = match Some(place) == first {
            true => CallResult::good("handed over; the answer follows"),
            false => CallResult::failed("not called: the same reply hands the request over with start_workflow"),
        };
        turn.note_call(call, result).await;
    }
    let written = first.and_then(|place| calls.get(place)).map_or("", |call| &call.arguments);
    let arguments: Value = serde_json::from_str(written).unwrap_or_default();
    let reason = arguments["reason"].as_str().map(str::trim).filter(|reason| !reason.is_empty());
    Failure::new(START_WORKFLOW, reason.unwrap_or("it gives no reason").chars().take(300).collect::<String>())
}
