//! `create_role`: what kind of agent there may be from now on.

use std::sync::Arc;

use polis_domain::{Behaviour, CallResult, EffectClass, Effort, Failure, ModelSettings, Role, RoleLimits, fits};
use polis_engine::{Turn, TurnTool};
use polis_ports::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{arguments, spec, to_call_result};
use crate::workflow::Language;

/// Longest prompt, in characters.
const MAX_CHARS: usize = 8_000;

/// Most patterns of tools.
const MAX_TOOLS: usize = 64;

const SCAFFOLD: [(Language, &str); 2] =
    [(Language::En, include_str!("../../prompts/role.en.md")), (Language::Zh, include_str!("../../prompts/role.zh.md"))];

/// Makes roles.
#[derive(Debug, Clone)]
pub struct CreateRole {
    behaviour: Behaviour,
}

impl CreateRole {
    /// Makes roles whose agents are run by this code.
    pub fn new(behaviour: &str) -> Self {
        Self { behaviour: behaviour.into() }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    name: String,
    role_prompt: String,
    id: Option<String>,
    tools: Option<Vec<Arc<str>>>,
    model: Option<Arc<str>>,
    effort: Option<Effort>,
    #[serde(default)]
    limits: RoleLimits,
}

impl TurnTool for CreateRole {
    fn spec(&self) -> ToolSpec {
        let description = "Makes a role: a kind of colleague with a job of its own, whose agents you can then make with \
                           spawn_agent. Look at list_roles first and reuse what fits. Only worth it for work that needs its own \
                           instructions or that several agents do beside each other.";
        let count = |description: &str| json!({ "type": "integer", "minimum": 1, "description": description });
        let properties = json!({
            "name": { "type": "string", "description": "Its name, for people, for example Reviewer" },
            "rolePrompt": {
                "type": "string",
                "description": "What its agents are for, what they must deliver, in which form, and what they must not do",
            },
            "id": { "type": "string", "description": "A short name to address it by; taken from the name when left out" },
            "tools": {
                "type": "array",
                "items": { "type": "string" },
                "description": "The tools that its agents get, such as read_file or git__*; all of yours when left out. None can \
                                have a tool that you lack.",
            },
            "model": { "type": "string", "description": "Its model as vendor/name, where it is not the usual one" },
            "effort": {
                "enum": ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
                "description": "How much its model reasons, where it is not the usual effort",
            },
            "limits": {
                "type": "object",
                "properties": {
                    "children": count("Agents that each of its agents may make"),
                    "rounds": count("Rounds of tool use in one go"),
                    "contextMessages": count("Messages of a conversation before it is compressed"),
                },
            },
        });
        spec("create_role", description, properties, &["name", "rolePrompt"], EffectClass::Idempotent)
    }

    fn is_deferred(&self) -> bool {
        true
    }

    async fn call(&self, turn: &mut Turn, given: &str) -> CallResult {
        to_call_result(self.create(turn, given).await)
    }
}

impl CreateRole {
    async fn create(&self, turn: &mut Turn, given: &str) -> Result<Value, Failure> {
        let request: Arguments = arguments(given)?;
        let bad = |message: String| Failure::new("bad_arguments", message);
        let (name, text) = (request.name.trim(), request.role_prompt.trim());
        if name.is_empty() || text.is_empty() || text.chars().count() > MAX_CHARS {
            return Err(bad(format!("a role needs a name, and a rolePrompt of at most {MAX_CHARS} characters")));
        }
        if request.tools.as_ref().is_some_and(|tools| tools.len() > MAX_TOOLS) {
            return Err(bad(format!("a role names at most {MAX_TOOLS} tools; use patterns such as git__*")));
        }
        let id = request.id.unwrap_or_else(|| slug(name));
        let role = Role {
            name: name.into(),
            prompt: prompt(name, text, turn.agent().as_str()).into(),
            models: request.model.into_iter().collect(),
            tools: request.tools.map(Into::into),
            limits: request.limits,
            settings: ModelSettings { effort: request.effort, ..ModelSettings::default() },
            ..Role::new(id.as_str(), self.behaviour.clone())
        };
        let (tools, models) = (role.tools.clone(), role.models.clone());
        turn.create_role(role).await?;
        let own = turn.callable_tools();
        let lacks = |pattern: &&Arc<str>| !own.iter().any(|tool| fits(pattern, &tool.name));
        let lacking: Vec<_> = tools.iter().flat_map(|tools| tools.iter()).filter(lacks).map(ToString::to_string).collect();
        let mut result = json!({ "roleId": id });
        if !lacking.is_empty() {
            result["toolsThatYouLack"] = json!(lacking);
        }
        if let Some(wrong) = models.iter().find_map(|model| turn.refuses_model(model)) {
            result["modelThatCannotBe"] = wrong.into();
        }
        Ok(result)
    }
}

/// What agents of a role are told: whose they are and how to work together, around what they are for.
fn prompt(name: &str, text: &str, creator: &str) -> String {
    let language = Language::of(text);
    let scaffold = SCAFFOLD.iter().find(|(known, _)| *known == language).map_or(SCAFFOLD[0].1, |(_, text)| text);
    scaffold.trim().replace("{{name}}", name).replace("{{creator}}", creator).replace("{{rolePrompt}}", text)
}

/// A name that can stand in an address.
fn slug(name: &str) -> String {
    let plain: String =
        name.to_lowercase().chars().map(|c| if c.is_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' }).collect();
    plain.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_addresses() {
        assert_eq!([slug("Code Reviewer"), slug(" QA / tests "), slug("审稿人")], ["code-reviewer", "qa-tests", "审稿人"]);
    }

    #[test]
    fn a_role_is_told_whose_it_is_in_its_own_language() {
        let english = prompt("Writer", "Write short texts. {{name}}", "root");
        assert!(
            english.contains("Write short texts. {{name}}") && english.contains("`root`") && !english.contains("{{creator}}")
        );
        assert!(prompt("写手", "撰写短文，简洁明了。", "root").contains("由 `root` 设立"));
    }
}
