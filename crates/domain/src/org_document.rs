//! The organisation as a document (R206-R209). The log is the record; this is exported on request, and can be imported into
//! a society that has none of it (D15).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{AgentId, Command, Role, RoleId, Spine, Timestamp};

/// Roles, agents and who is gone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Org {
    /// All roles.
    pub roles: Vec<OrgRole>,
    /// All agents, those that are gone included; the oldest first.
    pub agents: Vec<OrgAgent>,
    /// Who went, and why.
    #[serde(default)]
    pub terminations: Vec<OrgTermination>,
}

/// A role, and who made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OrgRole {
    /// The role.
    #[serde(flatten)]
    pub role: Role,
    /// An agent, or the person.
    #[serde(default = "AgentId::user")]
    pub created_by: AgentId,
    /// When.
    #[serde(with = "crate::iso", default)]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub created_at: Timestamp,
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OrgAgent {
    /// Its name.
    pub id: AgentId,
    /// Its role.
    pub role_id: RoleId,
    /// Who made it; none for root.
    #[serde(default)]
    pub parent_agent_id: Option<AgentId>,
    /// Since when it exists.
    #[serde(with = "crate::iso", default)]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub created_at: Timestamp,
    /// When it went.
    #[serde(with = "crate::iso::option", default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub terminated_at: Option<Timestamp>,
    /// Whether it is there.
    pub status: OrgStatus,
}

/// Whether an agent is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OrgStatus {
    /// It is.
    Active,
    /// It was.
    Terminated,
}

/// That an agent went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OrgTermination {
    /// Who.
    pub agent_id: AgentId,
    /// Who said so.
    pub terminated_by: AgentId,
    /// When.
    #[serde(with = "crate::iso", default)]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub terminated_at: Timestamp,
    /// Why.
    #[serde(default)]
    pub reason: String,
}

/// What is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the organisation cannot be imported: {0}")]
pub struct BadOrg(pub String);

impl Org {
    /// The organisation of a society.
    pub fn of(spine: &Spine) -> Self {
        let role = |(id, role): (&RoleId, &Arc<Role>)| {
            let founder = spine.founders.get(id);
            OrgRole {
                role: Role::clone(role),
                created_by: founder.map_or_else(AgentId::user, |founder| founder.created_by.clone()),
                created_at: founder.map_or_else(Timestamp::default, |founder| founder.created_at),
            }
        };
        let active = spine.agents.iter().map(|(id, agent)| OrgAgent {
            id: id.clone(),
            role_id: agent.role.clone(),
            parent_agent_id: agent.parent.clone(),
            created_at: agent.created_at,
            terminated_at: None,
            status: OrgStatus::Active,
        });
        let gone = spine.terminated.iter().map(|(id, gone)| OrgAgent {
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
        let mut terminations: Vec<_> = spine.terminated.iter().map(termination).collect();
        terminations.sort_by(|a, b| (a.terminated_at, &a.agent_id).cmp(&(b.terminated_at, &b.agent_id)));
        Self { roles: spine.roles.iter().map(role).collect(), agents, terminations }
    }

    /// What to wish for so that a society gets these roles and agents: parents before their children. Agents that are gone,
    /// and what is there already just like this, are left out.
    pub fn wishes(&self, spine: &Spine) -> Result<Vec<Command>, BadOrg> {
        let roles = unique(self.roles.iter().map(|role| (&role.role.id, role)), "role")?;
        let agents = unique(self.agents.iter().map(|agent| (&agent.id, agent)), "agent")?;
        let mut wishes = Vec::new();
        for (id, role) in &roles {
            match spine.roles.get(*id) {
                None => wishes.push(Command::CreateRole { role: Arc::new(role.role.clone()) }),
                Some(known) if **known == role.role => {}
                Some(_) => return Err(BadOrg(format!("role `{id}` exists here and is another one"))),
            }
        }
        let mut placed = BTreeSet::new();
        for agent in agents.values().filter(|agent| agent.status == OrgStatus::Active) {
            let mut chain = vec![*agent];
            while let Some(child) = chain.last().filter(|child| !placed.contains(&child.id)) {
                match &child.parent_agent_id {
                    Some(parent) => {
                        let above = agents.get(parent).filter(|above| above.status == OrgStatus::Active);
                        let above =
                            above.ok_or_else(|| BadOrg(format!("`{}` has a parent `{parent}` that is not there", child.id)))?;
                        if chain.iter().any(|below| below.id == above.id) {
                            return Err(BadOrg(format!("`{}` is above itself", above.id)));
                        }
                        chain.push(above);
                    }
                    None if child.id == AgentId::root() => break,
                    None => return Err(BadOrg(format!("`{}` has no parent; only root has none", child.id))),
                }
            }
            while let Some(agent) = chain.pop() {
                if placed.insert(agent.id.clone()) {
                    wishes.extend(place(agent, &roles, spine)?);
                }
            }
        }
        Ok(wishes)
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

fn place(agent: &OrgAgent, roles: &BTreeMap<&RoleId, &OrgRole>, spine: &Spine) -> Result<Option<Command>, BadOrg> {
    let OrgAgent { id, role_id, parent_agent_id, .. } = agent;
    if !roles.contains_key(role_id) && !spine.roles.contains_key(role_id) {
        return Err(BadOrg(format!("`{id}` has a role `{role_id}` that is not there")));
    }
    match (spine.agents.get(id), parent_agent_id) {
        (Some(known), parent) if known.role == *role_id && known.parent == *parent => Ok(None),
        (Some(_), _) => Err(BadOrg(format!("agent `{id}` exists here and is another one"))),
        (None, Some(parent)) => Ok(Some(Command::Spawn { agent: id.clone(), role: role_id.clone(), parent: parent.clone() })),
        (None, None) => Err(BadOrg("there is no root here".to_owned())),
    }
}
