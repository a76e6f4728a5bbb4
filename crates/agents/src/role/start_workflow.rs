//! How a model says that a request is complex: it calls a tool that hands the request over (R335). It decides with the whole
//! conversation in view, and a simple request costs no call more.

use polis_domain::{EffectClass, Failure, ToolCall};
use polis_ports::ToolSpec;
use serde_json::json;

use crate::end_tools;

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
        }),
        class: EffectClass::Read,
        volatile: true,
    }
}

/// The failure that carries the model's reason to the code that chose the strategy.
pub(crate) fn handed_over(call: &ToolCall) -> Failure {
    let reason = end_tools::reason(call, 300);
    Failure::new(START_WORKFLOW, if reason.is_empty() { "it gives no reason".to_owned() } else { reason })
}
