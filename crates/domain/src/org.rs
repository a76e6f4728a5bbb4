//! Roles: what agents are for and what they may do.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Behaviour, ModelSettings, RoleId, Text, fits};

/// A role: name, prompt, behaviour, models, tools and limits of its agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Role {
    /// The id of the role.
    pub id: RoleId,
    /// The display name.
    pub name: Arc<str>,
    /// The system prompt of its agents.
    #[serde(rename = "rolePrompt")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub prompt: Text,
    /// The name of the code that runs its agents' turns.
    pub behaviour: Behaviour,
    /// Its models: the first choice, then the fallbacks. When empty, those of the society.
    #[serde(rename = "model", default, with = "crate::one_or_many", skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::OneOrMany"))]
    pub models: Vec<Arc<str>>,
    /// The tools that its agents may use, by name; `*` matches any text. None for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Arc<[Arc<str>]>>,
    /// The skills that its agents are told about, by name; `*` matches any text. None for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<Arc<[Arc<str>]>>,
    /// The system prompt for requests in other languages, by language code such as `zh`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, String>"))]
    pub translations: BTreeMap<Arc<str>, Text>,
    /// Limits of its agents, where they are lower than those of the society.
    #[serde(default, skip_serializing_if = "RoleLimits::is_none")]
    pub limits: RoleLimits,
    /// How its agents call models, where a request or its conversation does not say so.
    #[serde(default, skip_serializing_if = "ModelSettings::is_default")]
    pub settings: ModelSettings,
}

/// Limits of the agents of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct RoleLimits {
    /// Most children of each agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<usize>,
    /// Most rounds of tool calls within a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<usize>,
    /// Length of a conversation, in messages, before it is compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_messages: Option<usize>,
}

impl RoleLimits {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Role {
    /// A role with this id and behaviour, without a prompt and with the society's models.
    pub fn new(id: impl Into<RoleId>, behaviour: impl Into<Behaviour>) -> Self {
        let id = id.into();
        let name = id.as_str().into();
        Self {
            id,
            name,
            prompt: Text::default(),
            behaviour: behaviour.into(),
            models: Vec::new(),
            tools: None,
            skills: None,
            translations: BTreeMap::new(),
            limits: RoleLimits::default(),
            settings: ModelSettings::default(),
        }
    }

    /// Sets the system prompt.
    pub fn with_prompt(self, prompt: impl Into<Text>) -> Self {
        Self { prompt: prompt.into(), ..self }
    }

    /// Limits the tools.
    pub fn with_tools<T: Into<Arc<str>>>(self, tools: impl IntoIterator<Item = T>) -> Self {
        Self { tools: Some(tools.into_iter().map(Into::into).collect()), ..self }
    }

    /// Sets the system prompt for another language.
    pub fn in_language(mut self, language: &str, prompt: impl Into<Text>) -> Self {
        self.translations.insert(language.into(), prompt.into());
        self
    }

    /// The system prompt for a language.
    pub fn prompt_in(&self, language: &str) -> &Text {
        self.translations.get(language).unwrap_or(&self.prompt)
    }

    /// Whether the role may allow a tool whose name begins like this. It need not be known which tools there are.
    pub fn may_have_tool_beginning(&self, beginning: &str) -> bool {
        self.tools.as_ref().is_none_or(|patterns| {
            patterns.iter().any(|pattern| match pattern.split_once('*') {
                Some((fixed, _)) => fixed.starts_with(beginning) || beginning.starts_with(fixed),
                None => pattern.starts_with(beginning),
            })
        })
    }

    /// Whether the role allows a tool.
    pub fn has_tool(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| fits(pattern, tool)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_role_names_one_model_or_several() {
        let read = |model: serde_json::Value| {
            let written = json!({ "id": "r", "name": "R", "rolePrompt": "p", "behaviour": "b", "model": model });
            let role: Role = serde_json::from_value(written.clone()).unwrap();
            assert_eq!(serde_json::to_value(&role).unwrap(), written);
            role.models.len()
        };
        assert_eq!((read(json!("a/x")), read(json!(["a/x", "b/y"]))), (1, 2));
        let none = json!({ "id": "r", "name": "R", "rolePrompt": "p", "behaviour": "b" });
        assert!(serde_json::from_value::<Role>(none).unwrap().models.is_empty());
    }
}
