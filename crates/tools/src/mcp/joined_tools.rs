//! The built-in tools and those of servers, as one toolbox. Built-in names come first and are never taken over.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use polis_domain::{CallResult, Flow, Ruling};
use polis_ports::{
    CallContext, Caller, ServerWait, TextChange, ToolError, ToolIdentity, ToolOrigin, ToolServer, ToolSpec, Toolbox,
};

use super::servers::McpServers;

/// Two toolboxes in one.
pub struct JoinedTools {
    own: Arc<dyn Toolbox>,
    servers: Arc<McpServers>,
    /// The last list of tools, and the version of the servers' tools that it was made from.
    cache: Mutex<Option<(u64, Arc<[ToolSpec]>)>>,
}

impl JoinedTools {
    /// Puts them together. `own` is a fixed set.
    pub fn new(own: Arc<dyn Toolbox>, servers: Arc<McpServers>) -> Self {
        Self { own, servers, cache: Mutex::default() }
    }
}

#[async_trait]
impl Toolbox for JoinedTools {
    fn tools(&self) -> Arc<[ToolSpec]> {
        // Read before the tools: a change that comes between is told next time.
        let version = self.servers.version();
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, tools)) = &*cache
            && *of == version
        {
            return tools.clone();
        }
        let own = self.own.tools();
        let theirs = self.servers.tools();
        let new = theirs.iter().filter(|spec| own.iter().all(|mine| mine.name != spec.name));
        let tools: Arc<[ToolSpec]> = own.iter().chain(new).cloned().collect();
        *cache = Some((version, tools.clone()));
        tools
    }

    fn listed(&self, tool: &str) -> Result<Arc<str>, ToolError> {
        self.own.listed(tool).or_else(|_| self.servers.listed(tool))
    }

    fn origin(&self, tool: &str) -> Option<ToolOrigin> {
        if self.own.listed(tool).is_ok() { None } else { self.servers.origin(tool) }
    }

    fn is_deferred(&self, tool: &str) -> bool {
        if self.own.listed(tool).is_ok() { self.own.is_deferred(tool) } else { self.servers.is_deferred(tool) }
    }

    fn ruling(&self, tool: &str, arguments: &str, who: &Caller<'_>) -> Ruling {
        if self.own.tools().iter().any(|spec| &*spec.name == tool) {
            return self.own.ruling(tool, arguments, who);
        }
        self.servers.ruling(tool, arguments, who)
    }

    fn flow(&self, tool: &str, arguments: &str, who: &Caller<'_>) -> Flow {
        if self.own.tools().iter().any(|spec| &*spec.name == tool) {
            return self.own.flow(tool, arguments, who);
        }
        self.servers.flow(tool, arguments, who)
    }

    fn identity(&self, tool: &str) -> Option<ToolIdentity> {
        if self.own.listed(tool).is_ok() { None } else { self.servers.identity(tool) }
    }

    fn sampling_ruling(&self, server: &str, who: &Caller<'_>) -> Ruling {
        self.servers.sampling_ruling(server, who)
    }

    async fn change(&self, tool: &str, arguments: &str, who: &Caller<'_>) -> Option<Result<TextChange, String>> {
        self.own.change(tool, arguments, who).await
    }

    async fn call(&self, tool: &str, arguments: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        if self.own.tools().iter().any(|spec| &*spec.name == tool) {
            return self.own.call(tool, arguments, context).await;
        }
        self.servers.call(tool, arguments, context).await
    }

    async fn wait_for_server(&self, server: &str, purpose: ServerWait) {
        self.servers.wait_for_server(server, purpose).await;
    }

    fn servers(&self) -> Vec<ToolServer> {
        self.servers.servers()
    }
}
