//! The tools by which agents make an organisation and work in it. One file each; all of them are done by the turn that calls.

mod compress_context;
mod create_role;
mod list_agents;
mod list_roles;
mod request_collaboration;
mod send_message;
mod spawn_agent;
mod terminate_agent;

use polis_domain::{CallResult, EffectClass, Failure, FailureCode};
use polis_engine::{Cast, FindTools, Turn};
use polis_ports::ToolSpec;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

pub use compress_context::CompressContext;
pub use create_role::CreateRole;
pub use list_agents::ListAgents;
pub use list_roles::ListRoles;
pub use request_collaboration::RequestCollaboration;
pub use send_message::SendMessage;
pub use spawn_agent::SpawnAgent;
pub use terminate_agent::TerminateAgent;

/// The same cast with all tools of the society; agents of roles that agents make are run by this code.
pub fn with_society_tools(cast: Cast, behaviour: &str) -> Cast {
    cast.with_tool(CreateRole::new(behaviour))
        .with_tool(SpawnAgent)
        .with_tool(SendMessage)
        .with_tool(RequestCollaboration)
        .with_tool(TerminateAgent)
        .with_tool(CompressContext)
        .with_tool(ListAgents)
        .with_tool(ListRoles)
        .with_tool(FindTools)
}

/// What models are told of a tool.
pub(crate) fn spec(name: &str, description: &str, properties: Value, required: &[&str], class: EffectClass) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: description.to_owned(),
        parameters: match required {
            [] => json!({ "type": "object", "properties": properties }),
            required => json!({ "type": "object", "properties": properties, "required": required }),
        },
        class,
        // The society changes by itself.
        volatile: class == EffectClass::Read,
    }
}

pub(crate) fn arguments<T: DeserializeOwned>(arguments: &str) -> Result<T, Failure> {
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    serde_json::from_str(text).map_err(|error| Failure::new("bad_arguments", format!("the arguments cannot be used: {error}")))
}

/// The result of a tool as JSON: `{ok: true, …}`, or `{error: …, code: …}` (R177, R181).
pub(crate) fn to_call_result(result: Result<Value, Failure>) -> CallResult {
    match result {
        Ok(Value::Object(fields)) => {
            let ok = Map::from_iter([("ok".to_owned(), Value::Bool(true))]);
            CallResult::good(Value::Object(ok.into_iter().chain(fields).collect()).to_string())
        }
        Ok(other) => CallResult::good(other.to_string()),
        Err(failure) => CallResult::failed(json!({ "error": failure.message, "code": &*failure.code }).to_string()),
    }
}

/// A failure that says whom one could have meant, where nobody was.
async fn with_names(turn: &Turn, failure: Failure) -> Failure {
    const MOST: usize = 20;
    let me = turn.agent().clone();
    let names = turn.look(move |spine| {
        let agents = spine.agents.iter().filter(|(id, _)| spine.can_reach(&me, id, None));
        let mut agents: Vec<_> = agents.map(|(id, agent)| format!("{id} ({})", agent.role)).collect();
        agents.sort();
        let mut roles: Vec<_> = spine.roles.keys().map(ToString::to_string).collect();
        agents.truncate(MOST);
        roles.truncate(MOST);
        (agents.join(", "), roles.join(", "))
    });
    let (agents, roles) = names.await.unwrap_or_default();
    // The rest of the message names commands and pages for people.
    let what = failure.message.split(';').next().unwrap_or_default();
    let message = match failure.code {
        FailureCode::UnknownAgent if agents.is_empty() => format!("{what} that you can reach; list_agents lists those"),
        FailureCode::UnknownAgent => format!("{what} that you can reach; there are: {agents}"),
        FailureCode::UnknownRole if !roles.is_empty() => format!("{what}; there are: {roles}"),
        _ if &*failure.code == "name_taken" => format!("{what}, perhaps in another conversation; choose another name"),
        _ => failure.message.clone(),
    };
    Failure { message, ..failure }
}
