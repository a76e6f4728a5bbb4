//! The organisation: roles and the agents that hold them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Behaviour, RoleId, fits};

/// What an agent is for: a name, a prompt, the code that runs it, a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Role {
    /// Its id.
    pub id: RoleId,
    /// Its name, for people.
    pub name: Arc<str>,
    /// What its agents are told about themselves.
    #[serde(rename = "rolePrompt")]
    pub prompt: Arc<str>,
    /// The code that runs its agents' turns.
    pub behaviour: Behaviour,
    /// The models it uses, where they are not the society's: the first, and those to turn to when it fails.
    #[serde(rename = "model", default, with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::OneOrMany"))]
    pub models: Vec<Arc<str>>,
    /// The tools that its agents get, by name; `*` stands for any text. None for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Arc<[Arc<str>]>>,
    /// What its agents are told where the request is in another language, by its short name such as `zh`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub translations: BTreeMap<Arc<str>, Arc<str>>,
    /// What its agents may do at most, where it is less than the society allows.
    #[serde(default, skip_serializing_if = "RoleLimits::is_none")]
    pub limits: RoleLimits,
}

/// What agents of a role may do at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct RoleLimits {
    /// Children that each of them may make for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<usize>,
    /// Rounds of tool use within a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<usize>,
    /// Messages of a conversation before it is compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_messages: Option<usize>,
}

impl RoleLimits {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Role {
    /// A role of this name, run by this code, without a prompt and with the society's models.
    pub fn new(id: impl Into<RoleId>, behaviour: impl Into<Behaviour>) -> Self {
        let id = id.into();
        let name = id.as_str().into();
        Self {
            id,
            name,
            prompt: Arc::default(),
            behaviour: behaviour.into(),
            models: Vec::new(),
            tools: None,
            translations: BTreeMap::new(),
            limits: RoleLimits::default(),
        }
    }

    /// The same role, whose agents are told this about themselves.
    pub fn with_prompt(self, prompt: impl Into<Arc<str>>) -> Self {
        Self { prompt: prompt.into(), ..self }
    }

    /// The same role, whose agents get these tools only.
    pub fn with_tools<T: Into<Arc<str>>>(self, tools: impl IntoIterator<Item = T>) -> Self {
        Self { tools: Some(tools.into_iter().map(Into::into).collect()), ..self }
    }

    /// The same role, whose agents are told this about requests in another language.
    pub fn in_language(mut self, language: &str, prompt: impl Into<Arc<str>>) -> Self {
        self.translations.insert(language.into(), prompt.into());
        self
    }

    /// What its agents are told where the request is in this language.
    pub fn prompt_in(&self, language: &str) -> &Arc<str> {
        self.translations.get(language).unwrap_or(&self.prompt)
    }

    /// Whether its agents get a tool, as far as the role says.
    pub fn has_tool(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| fits(pattern, tool)))
    }
}

/// One name is written as such, several as a list.
mod one_or_many {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(names: &[Arc<str>], serializer: S) -> Result<S::Ok, S::Error> {
        match names {
            [one] => one.serialize(serializer),
            many => many.serialize(serializer),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Arc<str>>, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Names {
            One(Arc<str>),
            Many(Vec<Arc<str>>),
        }
        Ok(match Names::deserialize(deserializer)? {
            Names::One(name) => vec![name],
            Names::Many(names) => names,
        })
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
