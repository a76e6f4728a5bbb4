//! `list_roles`: what kinds of agents there can be.

use std::sync::Arc;

use polis_domain::{AgentId, CallResult, EffectClass, Failure, Role, Spine, Visibility};
use polis_engine::{Turn, TurnTool};
use polis_ports::ToolSpec;
use serde_json::{Map, Value, json};

use super::{arguments, spec, to_call_result};

/// Most roles of one list, and how much of a prompt is shown.
const MOST: usize = 100;
const CHARS: usize = 240;

/// Lists roles.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListRoles;

impl TurnTool for ListRoles {
    fn spec(&self) -> ToolSpec {
        let description = "Lists the roles that are there, what each is for, and how many agents have it. Look here before you make one \
                           more.";
        spec("list_roles", description, json!({}), &[], EffectClass::Read)
    }

    fn is_deferred(&self) -> bool {
        true
    }

    async fn call(&self, turn: &mut Turn, given: &str) -> CallResult {
        to_call_result(list(turn, given).await)
    }
}

async fn list(turn: &Turn, given: &str) -> Result<Value, Failure> {
    let _: Map<String, Value> = arguments(given)?;
    let me = turn.agent().clone();
    let listed = turn.look(move |spine| {
        let visibility = Visibility::of_agent(spine, &me);
        let visible = || spine.roles.values().filter(|role| visibility.role(spine, &role.id));
        let roles: Vec<_> = visible().take(MOST).map(|role| role_json(spine, role, &me)).collect();
        (roles, visible().count())
    });
    let (roles, count) = listed.await.ok_or_else(|| Failure::new("unavailable", "the society cannot be looked at just now"))?;
    Ok(json!({ "roles": roles, "count": count }))
}

fn role_json(spine: &Spine, role: &Arc<Role>, me: &AgentId) -> Value {
    let mut start: String = role.prompt.chars().take(CHARS).collect();
    if start.len() < role.prompt.len() {
        start.push('…');
    }
    json!({
        "id": role.id.as_str(),
        "name": &*role.name,
        "rolePrompt": start,
        "tools": role.tools.as_ref().map(|tools| tools.iter().map(ToString::to_string).collect::<Vec<_>>()),
        "model": role.models.first().map(|model| &**model),
        "agents": spine.agents.iter().filter(|(id, agent)| agent.role == role.id && spine.can_reach(me, id, None)).count(),
    })
}
