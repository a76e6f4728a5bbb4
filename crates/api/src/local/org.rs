//! Reading and changing the organisation.

use std::sync::Arc;

use polis_domain::{AgentId, Event, Org, Recorded, Spine};
use serde_json::Value;

use super::Local;
use crate::{ApiError, ImportRequest, Imported, MAX_ORG_BYTES, Paging, Roles, Scope, Terminate, Terminated};

impl Local {
    /// The organisation as one document.
    pub async fn org(&self) -> Result<Org, ApiError> {
        self.caller.needs(Scope::Read)?;
        let visibility = self.society.visibility().clone();
        let export = move |spine: &Spine| {
            let mut org = Org::of(spine);
            org.roles.retain(|role| visibility.role(spine, &role.role.id));
            org.agents.retain(|agent| visibility.agent(spine, &agent.id));
            org.terminations.retain(|gone| visibility.agent(spine, &gone.agent_id));
            org
        };
        Ok(self.society.look_with_terminated(export).await?)
    }

    /// The roles, by id.
    pub async fn roles(&self, paging: &Paging) -> Result<Roles, ApiError> {
        let mut roles = self.org().await?.roles;
        roles.sort_by(|a, b| a.role.id.cmp(&b.role.id));
        let (roles, next) = paging.cut(roles, |role| role.role.id.to_string());
        Ok(Roles { roles, next })
    }

    /// Creates the roles and agents of a document that are not there yet.
    pub async fn import(&self, document: Value, how: ImportRequest) -> Result<Imported, ApiError> {
        self.caller.needs(Scope::Admin)?;
        self.caller.needs(Scope::Everyone)?;
        if document.to_string().len() > MAX_ORG_BYTES {
            let detail = format!("the document is longer than {MAX_ORG_BYTES} bytes; import it in parts");
            return Err(ApiError::new(413, "body_too_large", detail));
        }
        let org = Org::read(document).map_err(|bad| ApiError::bad_request("bad_org", bad.to_string()))?;
        let made = self.society.import(org, how.root).await?;
        let changed = Some(made.changed).filter(|count| *count > 0);
        Ok(Imported { roles: made.roles, agents: made.agents, changed, left: made.left })
    }

    /// Terminates an agent.
    pub async fn terminate(&self, id: AgentId, request: Terminate) -> Result<Terminated, ApiError> {
        self.caller.needs(Scope::Admin)?;
        if let Some(terminated) = self.society.done_before().await?.as_deref().and_then(terminated) {
            return Ok(terminated);
        }
        let agent = self.society.addressee(id).await?;
        self.society.terminate(agent.clone(), request.children, &request.reason, request.now).await?;
        let gone = agent.clone();
        let ok = self.society.look(move |spine| spine.terminated.contains_key(&gone)).await?;
        Ok(Terminated { ok, terminated_agent_id: agent })
    }
}

/// The result of a termination, from its events.
fn terminated(events: &[Arc<Recorded>]) -> Option<Terminated> {
    let agent = events.iter().find_map(|recorded| match &recorded.event {
        Event::AgentDismissed { agent, .. } => Some(agent.clone()),
        _ => None,
    })?;
    let ok = events.iter().any(|recorded| matches!(&recorded.event, Event::AgentTerminated { agent: gone } if *gone == agent));
    Some(Terminated { ok, terminated_agent_id: agent })
}
