//! The tools of a task's world, and the record of the writes that were made.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use polis_domain::{CallResult, EffectClass, Flow, Ruling};
use polis_ports::{CallContext, Caller, Tool, ToolError, ToolSpec, Toolbox};
use polis_tools::ToolRegistry;
use serde_json::{Value, json};

use super::task::{Gives, TaskTool};

/// The writes that were made: tool and arguments.
pub(crate) type Made = Arc<Mutex<Vec<(String, String)>>>;

/// A tool of the task, while the task runs.
pub(crate) struct WorldTool {
    tool: TaskTool,
    calls: AtomicUsize,
}

impl WorldTool {
    pub(crate) fn new(tool: TaskTool) -> Self {
        Self { tool, calls: AtomicUsize::new(0) }
    }
}

#[async_trait]
impl Tool for WorldTool {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({
            "type": "object",
            "properties": {
                "id": { "type": "string", "description": "What it is about" },
                "period": { "type": "string", "description": "A year, a month or a day; all if left out" },
            },
            "additionalProperties": false,
        });
        let TaskTool { name, description, class, gives } = &self.tool;
        let volatile = matches!(gives, Gives::Once(_) | Gives::AfterErrors(..));
        ToolSpec { name: name.as_str().into(), description: description.clone(), parameters, class: *class, volatile }
    }

    fn is_deferred(&self) -> bool {
        self.tool.name.contains("__")
    }

    async fn call(&self, arguments: &str, _: &CallContext) -> Result<CallResult, ToolError> {
        let bad = |why: String| ToolError::BadArguments(why);
        let given: Value = serde_json::from_str(arguments).map_err(|error| bad(error.to_string()))?;
        let fields = given.as_object().ok_or_else(|| bad("they must be a JSON object".to_owned()))?;
        if let Some(unknown) = fields.keys().find(|key| !["id", "period"].contains(&key.as_str())) {
            return Err(bad(format!("unknown field `{unknown}`, expected `id` or `period`")));
        }
        let before = self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(match &self.tool.gives {
            Gives::Always(text) => CallResult::good(text.clone()),
            Gives::Once(text) if before == 0 => CallResult::good(text.clone()),
            Gives::Once(_) => CallResult::failed("it was given out already"),
            Gives::AfterErrors(errors, _) if before < *errors => CallResult::failed("busy, try again"),
            Gives::AfterErrors(_, text) => CallResult::good(text.clone()),
            Gives::For(texts) => match texts.iter().find(|(key, _)| arguments.contains(key.as_str())) {
                Some((_, text)) => CallResult::good(text.clone()),
                None => CallResult::failed("there is nothing under this id"),
            },
            Gives::Needs { argument, text, .. } if arguments.contains(argument.as_str()) => CallResult::good(text.clone()),
            Gives::Needs { error, .. } => CallResult::failed(error.clone()),
        })
    }
}

/// Tools whose writes are recorded. Tools of servers are deferred, as they are in the program.
pub(crate) struct Recorded {
    tools: ToolRegistry,
    made: Made,
}

impl Recorded {
    pub(crate) fn new(tools: ToolRegistry, made: Made) -> Self {
        Self { tools, made }
    }
}

#[async_trait]
impl Toolbox for Recorded {
    fn tools(&self) -> Arc<[ToolSpec]> {
        self.tools.tools()
    }

    fn is_deferred(&self, tool: &str) -> bool {
        self.tools.is_deferred(tool)
    }

    fn ruling(&self, tool: &str, arguments: &str, who: &Caller<'_>) -> Ruling {
        self.tools.ruling(tool, arguments, who)
    }

    fn flow(&self, tool: &str, arguments: &str, who: &Caller<'_>) -> Flow {
        self.tools.flow(tool, arguments, who)
    }

    async fn call(&self, tool: &str, arguments: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        let result = self.tools.call(tool, arguments, context).await?;
        let is_write = self.tools().iter().any(|spec| *spec.name == *tool && spec.class == EffectClass::Write);
        if is_write && !result.is_error {
            let arguments =
                serde_json::from_str::<Value>(arguments).map_or_else(|_| arguments.to_owned(), |json| json.to_string());
            self.made.lock().unwrap_or_else(PoisonError::into_inner).push((tool.to_owned(), arguments));
        }
        Ok(result)
    }
}
