//! Requests and messages of a person.

use polis_domain::{AgentId, Artifact, ArtifactId, TaskId};
use polis_engine::Sent;
use serde_json::{Map, Value, json};

use super::Local;
use crate::{Accepted, ApiError, Attachment, Scope, Send, Submit};

/// The meta key of a request with the setting for plan approval.
const PLAN_APPROVAL: &str = "planApproval";

impl Local {
    /// Gives root a new request.
    pub async fn submit(&self, request: Submit) -> Result<Accepted, ApiError> {
        self.caller.needs(Scope::Send)?;
        let meta = [("strategy", json!(request.strategy)), (PLAN_APPROVAL, json!(request.plan_approval))];
        self.send_to(AgentId::root(), &request.text, None, request.artifacts, meta).await
    }

    /// Sends a message to an agent, within a request or as a new one.
    pub async fn send(&self, request: Send) -> Result<Accepted, ApiError> {
        self.caller.needs(Scope::Send)?;
        let agent = self.society.addressee(request.agent_id).await?;
        let meta = [(PLAN_APPROVAL, json!(request.plan_approval))];
        self.send_to(agent, &request.text, request.task_id, request.artifacts, meta).await
    }

    async fn send_to(
        &self,
        agent: AgentId,
        text: &str,
        task: Option<TaskId>,
        artifacts: Vec<Attachment>,
        meta: impl IntoIterator<Item = (&str, Value)>,
    ) -> Result<Accepted, ApiError> {
        let given = meta.into_iter().filter(|(_, value)| !value.is_null());
        let mut meta: Map<String, Value> = given.map(|(key, value)| (key.to_owned(), value)).collect();
        Artifact::attach(&mut meta, &self.attached(artifacts).await?);
        Ok(self.society.send_with_meta(agent, text, task, meta).await?.into())
    }

    /// The artifacts that a message names. Each must be in the store.
    pub async fn attached(&self, attachments: Vec<Attachment>) -> Result<Vec<Artifact>, ApiError> {
        let mut artifacts = Vec::new();
        for Attachment { id, name, media_type, .. } in attachments {
            let id = artifact_id(&id)?;
            let total = self.society.artifacts().read(&id, 0, 0).await?.total;
            let stored = self.society.listing().find(&id).await;
            let name = name.or_else(|| stored.as_ref().map(|stored| stored.name.to_string())).unwrap_or_default();
            let media_type = media_type.or_else(|| stored.map(|stored| stored.media_type.to_string())).unwrap_or_default();
            artifacts.push(Artifact::new(id, &name, &media_type, total));
        }
        Ok(artifacts)
    }
}

/// Reads the id of an artifact.
pub fn artifact_id(id: &str) -> Result<ArtifactId, ApiError> {
    id.parse().map_err(|error: polis_domain::BadArtifactId| ApiError::bad_request("bad_artifact_id", error.to_string()))
}

impl From<Sent> for Accepted {
    fn from(sent: Sent) -> Self {
        Self { task_id: sent.task_id, message_id: sent.message_id, seq: sent.seq }
    }
}
