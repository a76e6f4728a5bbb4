//! Holds tools by name and runs the one that is asked for. Knows nothing of what they do.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use polis_domain::{CallResult, Flow, Ruling};
use polis_ports::{CallContext, Caller, TextChange, Tool, ToolError, ToolSpec, Toolbox};

/// A fixed set of tools.
pub struct ToolRegistry {
    specs: Arc<[ToolSpec]>,
    tools: HashMap<Arc<str>, Box<dyn Tool>>,
}

/// Two tools have one name, and nobody could say which is meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there are two tools with the name `{0}`")]
pub struct DuplicateTool(pub Arc<str>);

impl ToolRegistry {
    /// Lays out `tools`, in this order.
    pub fn new(tools: impl IntoIterator<Item = Box<dyn Tool>>) -> Result<Self, DuplicateTool> {
        let (mut specs, mut by_name) = (Vec::new(), HashMap::new());
        for tool in tools {
            let spec = tool.spec();
            if by_name.insert(spec.name.clone(), tool).is_some() {
                return Err(DuplicateTool(spec.name));
            }
            specs.push(spec);
        }
        Ok(Self { specs: specs.into(), tools: by_name })
    }
}

#[async_trait]
impl Toolbox for ToolRegistry {
    fn tools(&self) -> Arc<[ToolSpec]> {
        self.specs.clone()
    }

    fn is_deferred(&self, tool: &str) -> bool {
        self.tools.get(tool).is_some_and(|tool| tool.is_deferred())
    }

    fn ruling(&self, tool: &str, arguments: &str, _: &Caller<'_>) -> Ruling {
        let Some(tool) = self.tools.get(tool) else { return Ruling::Allow };
        let question = tool.question(arguments).map(Ruling::Person);
        question.or_else(|| tool.caution().map(Ruling::AskEach)).unwrap_or_default()
    }

    fn flow(&self, tool: &str, arguments: &str, _: &Caller<'_>) -> Flow {
        self.tools.get(tool).map(|tool| tool.flow(arguments)).unwrap_or_default()
    }

    async fn change(&self, tool: &str, arguments: &str, _: &Caller<'_>) -> Option<Result<TextChange, String>> {
        self.tools.get(tool)?.change(arguments).await
    }

    async fn call(&self, tool: &str, arguments: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        match self.tools.get(tool) {
            Some(tool) => tool.call(arguments, context).await,
            None => Err(ToolError::Unknown(tool.to_owned())),
        }
    }
}
