//! Empty ports, for societies without a model or tools.

use std::sync::Arc;

use async_trait::async_trait;
use polis_domain::CallResult;
use polis_ports::{CallContext, DeltaStream, Model, ModelError, ModelRequest, ToolError, ToolSpec, Toolbox};

/// No model: every request fails with an explanation (R076).
#[derive(Debug, Clone, Copy, Default)]
pub struct NoModel;

#[async_trait]
impl Model for NoModel {
    async fn stream(&self, _: ModelRequest) -> Result<DeltaStream, ModelError> {
        let reason = "Agent没有可用的LLM客户端 (this society has no model; give it one in its ports)";
        Err(ModelError::Rejected { reason: reason.to_owned() })
    }
}

/// An empty toolbox.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTools;

#[async_trait]
impl Toolbox for NoTools {
    fn tools(&self) -> Arc<[ToolSpec]> {
        Arc::default()
    }

    async fn call(&self, tool: &str, _: &str, _: &CallContext) -> Result<CallResult, ToolError> {
        Err(ToolError::Unknown(tool.to_owned()))
    }
}
