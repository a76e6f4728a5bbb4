//! The organisation as a document (R206-R209). The log is the record; the document is exported on request and can be imported
//! into another society (D15).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{AgentId, Behaviour, Role, RoleId, Spine, Timestamp};

/// One step of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrgChange {
    /// A new role.
    CreateRole(Arc<Role>),
    /// Another definition of root's role.
    ChangeRole(Arc<Role>),
    /// A new agent.
    Spawn {
        /// Its name.
        agent: AgentId,
        /// Its role.
        role: RoleId,
        /// Its parent, which exists or was spawned before.
        parent: AgentId,
    },
}

/// Roles, agents and terminations.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Org {
    /// All roles.
    pub roles: Vec<OrgRole>,
    /// All agents, including terminated ones, oldest first.
    pub agents: Vec<OrgAgent>,
    /// The records of terminations.
    #[serde(default)]
    pub terminations: Vec<OrgTermination>,
}

/// A role and its creator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OrgRole {
    /// The role.
    #[serde(flatten)]
    pub role: Role,
    /// The creator: an agent, or the person.
    #[serde(default = "AgentId::user")]
    pub created_by: AgentId,
    /// When it happened.
    #[serde(with = "crate::iso", default)]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub created_at: Timestamp,
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OrgAgent {
    /// The id of the agent.
    pub id: AgentId,
    /// The role of the agent.
    pub role_id: RoleId,
    /// The parent; none for root.
    #[serde(default)]
    pub parent_agent_id: Option<AgentId>,
    /// When it was created.
    #[serde(with = "crate::iso", default)]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub created_at: Timestamp,
    /// When it was terminated.
    #[serde(with = "crate::iso::option", default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub terminated_at: Option<Timestamp>,
    /// Whether it is active or terminated.
    pub status: OrgStatus,
}

/// The status of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OrgStatus {
    /// It exists.
    Active,
    /// It was terminated.
    Terminated,
}

/// The record of a termination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OrgTermination {
    /// The terminated agent.
    pub agent_id: AgentId,
    /// Who ordered it.
    pub terminated_by: AgentId,
    /// When it happened.
    #[serde(with = "crate::iso", default)]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub terminated_at: Timestamp,
    /// The reason.
    #[serde(default)]
    pub reason: String,
}

/// What is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the organisation cannot be imported: {0}")]
pub struct BadOrg(pub String);

impl Org {
    /// The organisation of a society: root and all below it. The agents of other conversations come and go with those.
    pub fn of(spine: &Spine) -> Self {
        let is_shared = |id: &AgentId| spine.top(id).as_str() == AgentId::ROOT;
        let role = |(id, role): (&RoleId, &Arc<Role>)| {
            let founder = spine.founders.get(id);
            OrgRole {
                role: Role::clone(role),
                created_by: founder.map_or_else(AgentId::user, |founder| founder.created_by.clone()),
                created_at: founder.map_or_else(Timestamp::default, |founder| founder.created_at),
            }
        };
        let active = spine.agents.iter().filter(|(id, _)| is_shared(id)).map(|(id, agent)| OrgAgent {
            id: id.clone(),
            role_id: agent.role.clone(),
            parent_agent_id: agent.parent.clone(),
            created_at: agent.created_at,
            terminated_at: None,
            status: OrgStatus::Active,
        });
        let gone = spine.terminated.iter().filter(|(id, _)| is_shared(id)).map(|(id, gone)| OrgAgent {
            id: id.clone(),
            role_id: gone.role.clone(),
            parent_agent_id: gone.parent.clone(),
            created_at: gone.created_at,
            terminated_at: Some(gone.terminated_at),
            status: OrgStatus::Terminated,
        });
        let mut agents: Vec<_> = active.chain(gone).collect();
        agents.sort_by(|a, b| (a.created_at, &a.parent_agent_id, &a.id).cmp(&(b.created_at, &b.parent_agent_id, &b.id)));
        let termination = |(id, gone): (&AgentId, &crate::Termination)| OrgTermination {
            agent_id: id.clone(),
            terminated_by: gone.terminated_by.clone(),
            terminated_at: gone.terminated_at,
            reason: gone.reason.clone(),
        };
        let mut terminations: Vec<_> = spine.terminated.iter().filter(|(id, _)| is_shared(id)).map(termination).collect();
        terminations.sort_by(|a, b| (a.terminated_at, &a.agent_id).cmp(&(b.terminated_at, &b.agent_id)));
        Self { roles: spine.roles.iter().map(role).collect(), agents, terminations }
    }

    /// Reads a document. A role without a behaviour gets that of root. Everything else must be as documented; unknown fields
    /// are refused, because they would be lost.
    pub fn read(written: Value) -> Result<Self, BadOrg> {
        let mut fields = match written {
            Value::Object(fields) => fields,
            _ => return Err(BadOrg("it is no object with `roles` and `agents`".to_owned())),
        };
        let mut listed = |name: &str| match fields.remove(name) {
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(_) => Err(BadOrg(format!("`{name}` is no list"))),
            None => Ok(None),
        };
        let (roles, agents, gone) = (listed("roles")?, listed("agents")?, listed("terminations")?);
        if let Some(name) = fields.keys().next() {
            return Err(unknown(name, "it", &["roles", "agents", "terminations"]));
        }
        let missing = |name: &str| BadOrg(format!("it has no `{name}`"));
        let mut roles = roles.ok_or_else(|| missing("roles"))?;
        for role in roles.iter_mut().filter_map(Value::as_object_mut) {
            role.entry("behaviour").or_insert_with(|| "".into());
        }
        Ok(Self {
            roles: items("roles", ROLE_FIELDS, roles)?,
            agents: items("agents", AGENT_FIELDS, agents.ok_or_else(|| missing("agents"))?)?,
            terminations: items("terminations", TERMINATION_FIELDS, gone.unwrap_or_default())?,
        })
    }

    /// The changes that create these roles and agents in a society, parents before their children. Terminated agents, and
    /// roles and agents that exist already, are left out. The society keeps its own root; root's role is replaced only with
    /// `root`.
    pub fn changes(&self, spine: &Spine, root: bool) -> Result<Vec<OrgChange>, BadOrg> {
        let roles = unique(self.roles.iter().map(|role| (&role.role.id, role)), "role")?;
        let agents = unique(self.agents.iter().map(|agent| (&agent.id, agent)), "agent")?;
        self.check_gone(&agents)?;
        let of_root = root_role(spine);
        let mut changes = Vec::new();
        for (id, role) in &roles {
            role.role.settings.check().map_err(|wrong| BadOrg(format!("the role `{id}`: {wrong}")))?;
            if role.role.name.trim().is_empty() {
                return Err(BadOrg(format!("role `{id}` has no name")));
            }
            let role = with_behaviour(role, spine);
            match spine.roles.get(*id) {
                None if role.prompt.trim().is_empty() => return Err(BadOrg(format!("role `{id}` has no rolePrompt"))),
                None => changes.push(OrgChange::CreateRole(Arc::new(role))),
                Some(known) if **known == role => {}
                Some(_) if Some(*id) == of_root => changes.extend(root.then(|| OrgChange::ChangeRole(Arc::new(role)))),
                Some(_) => return Err(BadOrg(format!("role `{id}` exists here and is another one"))),
            }
        }
        let mut placed = BTreeSet::from([AgentId::root()]);
        for agent in agents.values().filter(|agent| agent.status == OrgStatus::Active) {
            let mut chain = vec![*agent];
            while let Some(child) = chain.last().filter(|child| !placed.contains(&child.id)) {
                let Some(parent) = &child.parent_agent_id else {
                    return Err(BadOrg(format!("`{}` has no parent; only root has none", child.id)));
                };
                if !agents.contains_key(parent) && spine.agents.contains_key(parent) {
                    break;
                }
                let above = agents.get(parent).filter(|above| above.status == OrgStatus::Active);
                let above = above.ok_or_else(|| BadOrg(format!("`{}` has a parent `{parent}` that is not there", child.id)))?;
                if chain.iter().any(|below| below.id == above.id) {
                    return Err(BadOrg(format!("`{}` is above itself", above.id)));
                }
                chain.push(above);
            }
            while let Some(agent) = chain.pop() {
                if placed.insert(agent.id.clone()) {
                    changes.extend(place(agent, &roles, spine)?);
                }
            }
        }
        Ok(changes)
    }

    /// What an import would skip, one sentence each.
    pub fn left_out(&self, spine: &Spine, root: bool) -> Vec<String> {
        let mut left = Vec::new();
        let differs = |id: &RoleId| {
            let role = self.roles.iter().find(|role| role.role.id == *id);
            role.is_some_and(|role| spine.roles.get(id).is_some_and(|known| **known != with_behaviour(role, spine)))
        };
        if let Some(id) = root_role(spine).filter(|id| !root && differs(id)) {
            left.push(format!("root's role `{id}` stays as it is here; say so if it is to become what the document says"));
        }
        let other =
            self.agents.iter().find(|agent| agent.id == AgentId::root()).filter(|it| Some(&it.role_id) != root_role(spine));
        if let Some(other) = other {
            left.push(format!("root keeps the role that it has here; the document gives it `{}`", other.role_id));
        }
        let gone = self.agents.iter().filter(|agent| agent.status == OrgStatus::Terminated).count();
        if gone > 0 {
            left.push(format!("agents that are gone stay in the document alone, with when and why they went: {gone}"));
        }
        left
    }

    /// Checks that the records of terminations are consistent.
    fn check_gone(&self, agents: &BTreeMap<&AgentId, &OrgAgent>) -> Result<(), BadOrg> {
        for OrgAgent { id, status, terminated_at, .. } in agents.values() {
            match (status, terminated_at) {
                (OrgStatus::Terminated, None) => return Err(BadOrg(format!("`{id}` is terminated and has no terminatedAt"))),
                (OrgStatus::Active, Some(_)) => return Err(BadOrg(format!("`{id}` is active and has a terminatedAt"))),
                _ => {}
            }
        }
        match agents.get(&AgentId::root()) {
            Some(root) if root.status == OrgStatus::Terminated => {
                return Err(BadOrg("root is terminated; it stays as long as the society does".to_owned()));
            }
            Some(OrgAgent { parent_agent_id: Some(_), .. }) => return Err(BadOrg("root has a parent".to_owned())),
            _ => {}
        }
        let gone = unique(self.terminations.iter().map(|gone| (&gone.agent_id, gone)), "the termination of")?;
        let is_gone = |id: &AgentId| agents.get(id).is_some_and(|agent| agent.status == OrgStatus::Terminated);
        match gone.keys().find(|id| !is_gone(id)) {
            Some(id) => Err(BadOrg(format!("`{id}` has a termination and is no agent that is terminated"))),
            None => Ok(()),
        }
    }
}

const ROLE_FIELDS: &[&str] = &[
    "id",
    "name",
    "rolePrompt",
    "createdBy",
    "createdAt",
    "behaviour",
    "model",
    "tools",
    "translations",
    "limits",
    "settings",
];
const AGENT_FIELDS: &[&str] = &["id", "roleId", "parentAgentId", "createdAt", "terminatedAt", "status"];
const TERMINATION_FIELDS: &[&str] = &["agentId", "terminatedBy", "terminatedAt", "reason"];

/// Reads the items of a list, naming the one that cannot be read.
fn items<T: DeserializeOwned>(list: &str, fields: &[&str], items: Vec<Value>) -> Result<Vec<T>, BadOrg> {
    let read = |(at, item): (usize, Value)| {
        let place = format!("{list}[{at}]");
        let other =
            item.as_object().and_then(|item: &Map<String, Value>| item.keys().find(|key| !fields.contains(&key.as_str())));
        match other {
            Some(key) => Err(unknown(key, &place, fields)),
            None => serde_json::from_value(item).map_err(|error| BadOrg(format!("{place}: {error}"))),
        }
    };
    items.into_iter().enumerate().map(read).collect()
}

fn unknown(key: &str, place: &str, fields: &[&str]) -> BadOrg {
    BadOrg(format!("{place} has `{key}`, which is not known; there are {}", fields.join(", ")))
}

/// The role of the society's root.
fn root_role(spine: &Spine) -> Option<&RoleId> {
    spine.agents.get(&AgentId::root()).map(|root| &root.role)
}

/// A role of the document, with root's behaviour if it names none.
fn with_behaviour(role: &OrgRole, spine: &Spine) -> Role {
    let known = spine.roles.get(&role.role.id).or_else(|| spine.roles.get(root_role(spine)?));
    match known {
        Some(known) if role.role.behaviour == Behaviour::from("") => {
            Role { behaviour: known.behaviour.clone(), ..role.role.clone() }
        }
        _ => role.role.clone(),
    }
}

fn unique<'a, K: Ord + std::fmt::Display, V>(
    all: impl Iterator<Item = (&'a K, V)>,
    what: &str,
) -> Result<BTreeMap<&'a K, V>, BadOrg> {
    let mut by_id = BTreeMap::new();
    for (id, one) in all {
        if by_id.insert(id, one).is_some() {
            return Err(BadOrg(format!("{what} `{id}` stands there twice")));
        }
    }
    Ok(by_id)
}

fn place(agent: &OrgAgent, roles: &BTreeMap<&RoleId, &OrgRole>, spine: &Spine) -> Result<Option<OrgChange>, BadOrg> {
    let OrgAgent { id, role_id, parent_agent_id, .. } = agent;
    if !roles.contains_key(role_id) && !spine.roles.contains_key(role_id) {
        return Err(BadOrg(format!("`{id}` has a role `{role_id}` that is not there")));
    }
    match (spine.agents.get(id), parent_agent_id) {
        (Some(known), parent) if known.role == *role_id && known.parent == *parent => Ok(None),
        (Some(_), _) => Err(BadOrg(format!("agent `{id}` exists here and is another one"))),
        (None, Some(parent)) => Ok(Some(OrgChange::Spawn { agent: id.clone(), role: role_id.clone(), parent: parent.clone() })),
        (None, None) => Err(BadOrg(format!("`{id}` has no parent; only root has none"))),
    }
}
