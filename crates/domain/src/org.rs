//! The organisation: roles and the agents that hold them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Behaviour, RoleId};

/// What an agent is for: a name, a prompt, the code that runs it, a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The model it uses, where it is not the society's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
}
