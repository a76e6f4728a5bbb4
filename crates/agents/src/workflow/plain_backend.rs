//! A backend without an engine: a model, tools, and messages in memory. For embedding the workflow alone, and for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt;
use polis_domain::{CallResult, Failure, Reply, Timestamp, ToolCall};
use polis_engine::with_fresh;
use polis_ports::{Clock, Collector, Delta, Model, ModelError, ModelRequest, ToolSpec};
use serde_json::{Map, Value};

use super::CallMemory;
use super::backend::{AgentBackend, AiMessage, ChatOptions, Listeners, Watcher};
use super::call_memory::without_fresh;

/// Calls a tool: the server's name, the tool's name, the arguments and the context of the run, as in
/// [`AgentBackend::execute_tool`].
pub type CallTool = Arc<dyn Fn(&str, &str, &Value, &Map<String, Value>) -> CallResult + Send + Sync>;

/// Runs a workflow with nothing but a model and some tools. Nothing of it survives the process.
pub struct PlainBackend {
    model: Arc<dyn Model>,
    clock: Arc<dyn Clock>,
    tools: Arc<[ToolSpec]>,
    call: CallTool,
    /// The tools of the last request, which may be those of the application.
    offered: Arc<[ToolSpec]>,
    memory: CallMemory,
    listeners: Listeners,
    watcher: Option<Watcher>,
    messages: Vec<AiMessage>,
    stop: StopHandle,
}

/// Stops a workflow from outside.
#[derive(Debug, Clone, Default)]
pub struct StopHandle(Arc<AtomicBool>);

impl StopHandle {
    /// Ends the loops at their next step.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl PlainBackend {
    /// A backend with this model and no tools.
    pub fn new(model: Arc<dyn Model>, clock: Arc<dyn Clock>) -> Self {
        let call: CallTool = Arc::new(|_, tool, _, _| CallResult::failed(format!("there is no tool `{tool}`")));
        Self {
            model,
            clock,
            tools: Arc::default(),
            call,
            offered: Arc::default(),
            memory: CallMemory::default(),
            listeners: Listeners::default(),
            watcher: None,
            messages: Vec::new(),
            stop: StopHandle::default(),
        }
    }

    /// The same backend with these tools.
    #[must_use]
    pub fn with_tools(self, tools: impl Into<Arc<[ToolSpec]>>, call: CallTool) -> Self {
        let tools: Arc<[ToolSpec]> = tools.into();
        Self { tools: tools.iter().cloned().map(with_fresh).collect(), call, ..self }
    }

    /// The same backend; this is told what is seen meanwhile.
    #[must_use]
    pub fn with_watcher(self, watcher: Watcher) -> Self {
        Self { watcher: Some(watcher), ..self }
    }

    /// Stops the workflow from outside.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// What was said so far.
    pub fn messages(&self) -> &[AiMessage] {
        &self.messages
    }
}

impl AgentBackend for PlainBackend {
    async fn chat_completion(&mut self, options: ChatOptions) -> Result<Reply, Failure> {
        if !options.tools.is_empty() {
            self.offered = options.tools.clone();
        }
        let ChatOptions { event_id, model, system, messages, tools, tool_choice, format } = options;
        let offered = tools.clone();
        let request = ModelRequest { model, system, messages, tools, tool_choice, format, ..ModelRequest::default() };
        let failed = |error: ModelError| Failure::new(error.code(), error.to_string());
        let mut collector = Collector::default();
        let heard = async {
            let mut stream = match self.model.stream(request.clone()).await {
                // The model takes another form from now on.
                Err(ModelError::Adapted { .. }) => self.model.stream(request).await?,
                stream => stream?,
            };
            while let Some(delta) = stream.next().await {
                let delta = delta?;
                if self.stop.is_stopped() {
                    self.listeners.tell(&event_id, &Delta::Stopped);
                    return Ok(false);
                }
                self.listeners.tell(&event_id, &delta);
                collector.push(delta);
            }
            Ok(true)
        };
        let whole = match heard.await {
            Ok(false) => return Err(super::work::stopped()),
            Ok(true) => collector.finish(),
            Err(error) => Err(error),
        };
        let is_offered = |name: &str| offered.iter().any(|tool| *tool.name == *name);
        let reply =
            whole.map(|reply| reply.without_torn_call().without_excess_calls().with_plain_names(is_offered)).map_err(failed);
        if let Err(failure) = &reply {
            self.listeners.tell(&event_id, &Delta::Error(failure.clone()));
        }
        reply
    }

    async fn execute_tool(
        &mut self,
        server_name: &str,
        tool_name: &str,
        arguments: Value,
        context: &Map<String, Value>,
    ) -> CallResult {
        let tools = if self.offered.is_empty() { self.tools.clone() } else { self.offered.clone() };
        let call = ToolCall { id: tool_name.into(), name: tool_name.into(), arguments: arguments.to_string().into() };
        if let Some(known) = self.memory.recall(&call, &tools) {
            return known;
        }
        let meant = serde_json::from_str(&without_fresh(&call).arguments).unwrap_or(arguments);
        let made = (self.call)(server_name, tool_name, &meant, context);
        self.memory.note(&call, &tools, &made);
        made
    }

    fn begin_chat(&mut self, _chat_id: &str) {
        self.memory.clear();
    }

    async fn save_message(&mut self, message: AiMessage) -> Result<(), Failure> {
        let message = AiMessage { timestamp: Some(self.now()), ..message };
        let same = self.messages.iter_mut().find(|known| !known.id.is_empty() && known.id == message.id);
        match same {
            Some(known) => *known = message,
            None => self.messages.push(message),
        }
        Ok(())
    }

    fn listeners(&mut self) -> &mut Listeners {
        &mut self.listeners
    }

    fn reuses_results(&self) -> bool {
        true
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        self.tools.clone()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_stopped()
    }

    fn watcher(&self) -> Option<Watcher> {
        self.watcher.clone()
    }
}
