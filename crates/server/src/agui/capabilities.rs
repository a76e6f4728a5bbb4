//! The capabilities of an agent, in AG-UI's terms.

use polis_domain::EffectClass;
use serde_json::{Value, json};

use super::find_addressee;
use crate::addressee::addressees;
use crate::extract::{CallerState, PathParam};
use crate::problem::Problem;

pub(crate) async fn capabilities(
    CallerState(state): CallerState,
    PathParam(agent): PathParam,
) -> Result<axum::Json<Value>, Problem> {
    let addressee = find_addressee(&state, &agent).await?;
    let others = addressees(&state).await?.into_iter().filter(|other| other.name.starts_with("agent/"));
    let others: Vec<_> = others
        .filter(|other| other.receiver != addressee.receiver)
        .map(|other| json!({ "name": other.receiver.name(), "description": other.about }))
        .collect();
    let (toolbox, own) = (state.society.toolbox().tools(), state.society.own_tools());
    let tools = toolbox.iter().chain(&own).map(|tool| {
        let writes = tool.class == EffectClass::Write;
        json!({
            "name": tool.name, "description": tool.description, "parameters": tool.parameters,
            "metadata": { "polis": { "writes": writes } }
        })
    });
    Ok(axum::Json(json!({
        "identity": {
            "name": addressee.receiver.name(), "type": "polis", "description": addressee.about, "version": env!("CARGO_PKG_VERSION")
        },
        "transport": { "streaming": true, "websocket": false, "httpBinary": false, "resumable": true },
        "tools": { "supported": true, "items": tools.collect::<Vec<_>>(), "parallelCalls": true, "clientProvided": true },
        "state": { "snapshots": true, "deltas": true, "memory": true, "persistentState": true },
        "multiAgent": { "supported": true, "delegation": true, "handoffs": false, "subagents": others },
        "reasoning": { "supported": true, "streaming": true, "encrypted": false },
        "multimodal": { "input": { "image": false, "audio": false, "video": false, "pdf": false, "file": false } },
        "humanInTheLoop": {
            "supported": true, "approvals": true, "interventions": true, "interrupts": true, "approveWithEdits": true
        },
        "custom": { "polis": { "connect": "POST /agui/{agent}/connect", "cancel": "POST /api/tasks/{threadId}/cancel" } },
    })))
}
