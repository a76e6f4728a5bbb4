//! Tools that do what the test wrote for them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{CallResult, EffectClass, Flow, Ruling};
use polis_ports::{CallContext, Caller, TextChange, ToolError, ToolSpec, Toolbox};
use serde_json::json;

type Act = dyn Fn(&str, &CallContext) -> CallResult + Send + Sync;
type Rule = dyn Fn(&str, &str) -> Ruling + Send + Sync;
type FlowOf = dyn Fn(&str, &str) -> Flow + Send + Sync;
type Delay = dyn Fn(&str) -> Duration + Send + Sync;

/// A toolbox of functions.
#[derive(Default)]
pub struct ScriptedTools {
    specs: Arc<[ToolSpec]>,
    acts: BTreeMap<String, Box<Act>>,
    delay: Option<Box<Delay>>,
    rule: Option<Box<Rule>>,
    flow: Option<Box<FlowOf>>,
    deferred: Option<String>,
}

impl ScriptedTools {
    /// No tools yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same tools and one more.
    pub fn with(
        mut self,
        name: &str,
        class: EffectClass,
        act: impl Fn(&str, &CallContext) -> CallResult + Send + Sync + 'static,
    ) -> Self {
        let parameters = json!({ "type": "object" });
        let spec = ToolSpec { name: name.into(), description: name.to_owned(), parameters, class, volatile: false };
        self.specs = self.specs.iter().cloned().chain([spec]).collect();
        self.acts.insert(name.to_owned(), Box::new(act));
        self
    }

    /// The same tools, of which this one gives another result each time.
    pub fn volatile(mut self, name: &str) -> Self {
        let volatile = |spec: &ToolSpec| ToolSpec { volatile: spec.volatile || &*spec.name == name, ..spec.clone() };
        self.specs = self.specs.iter().map(volatile).collect();
        self
    }

    /// The same tools under a policy: a function of tool and arguments.
    pub fn ruled(self, rule: impl Fn(&str, &str) -> Ruling + Send + Sync + 'static) -> Self {
        Self { rule: Some(Box::new(rule)), ..self }
    }

    /// The same tools with what they do with content: a function of tool and arguments.
    pub fn flowing(self, flow: impl Fn(&str, &str) -> Flow + Send + Sync + 'static) -> Self {
        Self { flow: Some(Box::new(flow)), ..self }
    }

    /// The same tools. Those whose names begin like this need not be listed where there are many.
    pub fn deferring(self, prefix: &str) -> Self {
        Self { deferred: Some(prefix.to_owned()), ..self }
    }

    /// The same tools, each taking a while.
    pub fn delayed(self, delay: impl Fn(&str) -> Duration + Send + Sync + 'static) -> Self {
        Self { delay: Some(Box::new(delay)), ..self }
    }
}

#[async_trait]
impl Toolbox for ScriptedTools {
    fn tools(&self) -> Arc<[ToolSpec]> {
        self.specs.clone()
    }

    fn is_deferred(&self, tool: &str) -> bool {
        self.deferred.as_ref().is_some_and(|prefix| tool.starts_with(prefix))
    }

    fn ruling(&self, tool: &str, arguments: &str, _: &Caller<'_>) -> Ruling {
        self.rule.as_ref().map_or(Ruling::Allow, |rule| rule(tool, arguments))
    }

    fn flow(&self, tool: &str, arguments: &str, _: &Caller<'_>) -> Flow {
        self.flow.as_ref().map_or_else(Flow::default, |flow| flow(tool, arguments))
    }

    /// A write changes a new file with the name of the tool, into its arguments.
    async fn change(&self, tool: &str, arguments: &str, _: &Caller<'_>) -> Option<Result<TextChange, String>> {
        let is_write = self.specs.iter().any(|spec| &*spec.name == tool && spec.class == EffectClass::Write);
        is_write.then(|| Ok(TextChange { path: tool.to_owned(), before: None, after: arguments.to_owned() }))
    }

    async fn call(&self, tool: &str, arguments: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        let act = self.acts.get(tool).ok_or_else(|| ToolError::Unknown(tool.to_owned()))?;
        // Half of the time passes before the act and half after it, so that a crash can fall on either side.
        let half = self.delay.as_ref().map_or(Duration::ZERO, |delay| delay(tool)) / 2;
        if !half.is_zero() {
            tokio::time::sleep(half).await;
        }
        let result = act(arguments, context);
        if !half.is_zero() {
            tokio::time::sleep(half).await;
        }
        Ok(result)
    }
}
