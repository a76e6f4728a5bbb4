//! All servers of a configuration, and their tools by name.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{CallResult, EffectClass, Flow, ReadTool, Ruling, targets};
use polis_http::HttpOptions;
use polis_ports::{
    CallContext, Caller, Documents, NoArtifacts, ServerWait, ToolError, ToolIdentity, ToolOrigin, ToolServer, ToolSpec, Toolbox,
};
use rmcp::model::{GetPromptRequestParams, JsonObject, ReadResourceRequestParams};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::listing::{List, Prompt, Resource, entries};
use super::server::{Server, State};
use super::settings::{ServerSettings, ServerTransport};
use super::tools::{ServerTool, ToolAction};
use super::{render, without_type_names};

/// The longest arguments with which a tool may claim that it only looks something up.
const MAX_LOOKUP_BYTES: usize = 256;

/// What holds for all servers.
#[derive(Clone)]
pub struct McpOptions {
    /// The data and the configuration, which no server is told about as a root.
    pub closed: Vec<PathBuf>,
    /// How long a server may take to be ready.
    pub start_timeout: Duration,
    /// How long a server may take to show that it lives when a call was waited for in vain.
    pub pulse: Duration,
    /// How long to wait before a dead server is started again; doubles each time.
    pub first_pause: Duration,
    /// The longest such wait.
    pub longest_pause: Duration,
    /// Where logins are stored; without it nobody is logged in.
    pub logins: Option<Arc<dyn Documents>>,
    /// The proxies and certificates for servers over HTTP.
    pub network: HttpOptions,
}

impl Default for McpOptions {
    fn default() -> Self {
        Self {
            closed: Vec::new(),
            // Enough for a package that is fetched first.
            start_timeout: Duration::from_secs(120),
            pulse: Duration::from_secs(10),
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(60),
            logins: None,
            network: HttpOptions::from_env(),
        }
    }
}

/// Why a server cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// Nobody has set it up.
    #[error("there is no MCP server `{0}`")]
    Unknown(String),
    /// It is not connected, or says no.
    #[error("{0}")]
    Failed(String),
}

/// The servers of a configuration. Dropping it ends them at once, [`McpServers::close`] in peace.
pub struct McpServers {
    servers: Arc<[Arc<Server>]>,
    /// Counts the changes of the tools.
    version: Arc<AtomicU64>,
    /// Bare names that were warned about.
    warned: Mutex<HashSet<String>>,
    stop: CancellationToken,
    tasks: Mutex<JoinSet<()>>,
}

impl McpServers {
    /// Opens them, each in a task of its own. The first of two with one name is taken.
    pub fn open(settings: impl IntoIterator<Item = ServerSettings>, options: McpOptions) -> Self {
        let mut names = HashSet::new();
        let settings = settings.into_iter().filter(|server| names.insert(server.name.clone()));
        let servers: Arc<[_]> = settings.map(|settings| Arc::new(Server::new(settings, &options))).collect();
        let (stop, version) = (CancellationToken::new(), Arc::new(AtomicU64::new(0)));
        let mut tasks = JoinSet::new();
        for server in servers.iter().filter(|server| server.settings.enabled) {
            let server = server.clone();
            let (options, stop, version) = (options.clone(), stop.clone(), version.clone());
            tasks.spawn(async move {
                let changed = || {
                    version.fetch_add(1, Ordering::Release);
                };
                server.supervise(&options, &stop, &changed).await;
            });
        }
        Self { servers, version, warned: Mutex::default(), stop, tasks: Mutex::new(tasks) }
    }

    /// Waits until each of them has either come up or failed once, but no longer than `patience`.
    pub async fn settled(&self, patience: Duration) {
        let all = async {
            for server in self.servers.iter() {
                let mut state = server.state.subscribe();
                let _ = state.wait_for(|state| !matches!(state, State::Starting)).await;
            }
        };
        let _ = tokio::time::timeout(patience, all).await;
    }

    /// Ends all of them and what they have started.
    pub async fn close(&self) {
        self.stop.cancel();
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        while tasks.join_next().await.is_some() {}
    }

    /// What a server lets be read.
    pub async fn resources(&self, server: &str) -> Result<Vec<Resource>, McpError> {
        self.list(server, List::Resources).await
    }

    /// The prompts that a server offers.
    pub async fn prompts(&self, server: &str) -> Result<Vec<Prompt>, McpError> {
        self.list(server, List::Prompts).await
    }

    /// Reads a resource, as text.
    pub async fn read_resource(&self, server: &str, uri: &str) -> Result<String, McpError> {
        let server = self.server(server)?;
        let connection = server.connection().map_err(McpError::Failed)?;
        let read = connection.peer.read_resource(ReadResourceRequestParams::new(uri));
        Ok(render::resource(&in_time(server.settings.timeout, read).await?, &NoArtifacts).await.content.to_string())
    }

    /// Fills in a prompt: its messages, as the protocol says them.
    pub async fn prompt(&self, server: &str, name: &str, filled: JsonObject) -> Result<serde_json::Value, McpError> {
        let server = self.server(server)?;
        let connection = server.connection().map_err(McpError::Failed)?;
        let get = connection.peer.get_prompt(GetPromptRequestParams::new(name).with_arguments(filled));
        let result = in_time(server.settings.timeout, get).await?;
        serde_json::to_value(result.messages).map_err(|error| McpError::Failed(error.to_string()))
    }

    /// Changes whenever the tools do.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn server(&self, name: &str) -> Result<&Arc<Server>, McpError> {
        self.servers.iter().find(|server| server.settings.name == name).ok_or_else(|| McpError::Unknown(name.to_owned()))
    }

    async fn list<T: DeserializeOwned>(&self, server: &str, list: List) -> Result<Vec<T>, McpError> {
        let server = self.server(server)?;
        let connection = server.connection().map_err(McpError::Failed)?;
        let listed = in_time(server.settings.timeout, entries(&connection.peer, list)).await?;
        Ok(listed.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect())
    }

    /// Why a tool cannot be called: there is none, or the server that its name names is not there just now.
    fn absent(&self, tool: &str) -> ToolError {
        let is_meant =
            |server: &&Arc<Server>| tool.strip_prefix(&server.settings.name).is_some_and(|rest| rest.starts_with("__"));
        let why = self.servers.iter().filter(is_meant).find_map(|server| server.connection().err());
        why.map_or_else(|| ToolError::Unknown(tool.to_owned()), ToolError::Absent)
    }

    /// Who has a tool that is listed under a name.
    fn find(&self, tool: &str) -> Option<(Arc<Server>, Arc<ServerTool>)> {
        self.first(|found| &*found.spec.name == tool)
    }

    /// The first tool that is it, and whose it is.
    fn first(&self, is_it: impl Fn(&ServerTool) -> bool) -> Option<(Arc<Server>, Arc<ServerTool>)> {
        self.servers.iter().find_map(|server| {
            let connection = server.connection().ok()?;
            let found = connection.tools.iter().find(|found| is_it(found))?;
            Some((server.clone(), found.clone()))
        })
    }
}

/// Endings by which a name with one dot is a file's and no host's.
const FILE_ENDINGS: &[&str] = &[
    "md", "txt", "csv", "tsv", "json", "jsonl", "yaml", "yml", "toml", "xml", "html", "htm", "pdf", "png", "jpg", "jpeg",
    "gif", "svg", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "zip", "gz", "tar", "log", "sql", "db", "py", "js", "ts",
    "tsx", "jsx", "rs", "go", "java", "c", "h", "cpp", "hpp", "rb", "php", "lua", "css", "scss", "lock", "ini", "cfg", "conf",
    "ipynb", "parquet",
];

/// Names of arguments that say where something goes, whatever their values are.
const PLACES: &[&str] =
    &["host", "hostname", "domain", "server", "url", "uri", "address", "endpoint", "webhook", "ip", "proxy"];

/// Whether an argument of a call says by its name where it goes.
fn names_place(arguments: &str) -> bool {
    let fields = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(arguments).unwrap_or_default();
    fields.keys().any(|name| PLACES.contains(&name.to_ascii_lowercase().as_str()))
}

/// Whether a value may name a place on the network or a mailbox, as the most lenient reader would have it. A plain file name such as
/// `plan.md` does not.
fn is_address(value: &str) -> bool {
    let value: String = value.trim().chars().filter(|c| !c.is_control()).collect();
    let host = value.trim_start_matches(['/', '\\']).split(['/', '\\', '?', '#', ':']).next().unwrap_or_default();
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let is_host = host.contains('.') && host.split('.').all(|part| !part.is_empty() && part.chars().all(is_plain));
    let ending = host.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let goes_on = host.len() < value.len() || host.matches('.').count() > 1 || !FILE_ENDINGS.contains(&&*ending);
    let in_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-');
    let is_scheme = |scheme: &str| scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(in_scheme);
    value.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme))
        || value.contains("://")
        || value.starts_with(['/', '\\']) && value[1..].starts_with(['/', '\\'])
        || value.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
        || (is_host && goes_on && !value.starts_with('/'))
}

fn ruling_on(settings: &ServerSettings, found: &ServerTool) -> Ruling {
    let is_known = settings.trusted || settings.effects.contains_key(&found.name);
    match settings.transport {
        ServerTransport::Http { .. } if found.action != ToolAction::Call && !is_known => {
            Ruling::Ask("It reaches the network.".to_owned())
        }
        _ => Ruling::Allow,
    }
}

async fn in_time<T>(timeout: Duration, asked: impl Future<Output = Result<T, rmcp::ServiceError>>) -> Result<T, McpError> {
    match tokio::time::timeout(timeout, asked).await {
        Ok(answer) => answer.map_err(|error| McpError::Failed(without_type_names(&error))),
        Err(_) => Err(McpError::Failed(format!("the server gave no answer for {} s", timeout.as_secs_f32()))),
    }
}

#[async_trait]
impl Toolbox for McpServers {
    fn tools(&self) -> Arc<[ToolSpec]> {
        let mut names = HashSet::new();
        let connections = self.servers.iter().filter_map(|server| server.connection().ok());
        let specs = connections.flat_map(|it| it.tools.iter().map(|found| found.spec.clone()).collect::<Vec<_>>());
        specs.filter(|spec| names.insert(spec.name.clone())).collect()
    }

    /// A whole name, else the first server that has a tool of this name (D23).
    fn listed(&self, tool: &str) -> Result<Arc<str>, ToolError> {
        if let Some((_, found)) = self.find(tool) {
            return Ok(found.spec.name.clone());
        }
        let Some((server, found)) = self.first(|found| found.name == tool && found.action == ToolAction::Call) else {
            return Err(self.absent(tool));
        };
        if self.warned.lock().unwrap_or_else(PoisonError::into_inner).insert(tool.to_owned()) {
            tracing::warn!("the tool `{tool}` was called without its server; `{}` is taken", server.settings.name);
        }
        Ok(found.spec.name.clone())
    }

    fn origin(&self, tool: &str) -> Option<ToolOrigin> {
        let (server, found) = self.find(tool)?;
        Some(ToolOrigin { server: server.settings.name.clone(), tool: found.name.clone() })
    }

    /// What a server lends beside its own tools only reads; over the network nobody knows what that tells it.
    fn ruling(&self, tool: &str, _: &str, _: &Caller<'_>) -> Ruling {
        self.find(tool).map_or(Ruling::Allow, |(server, found)| ruling_on(&server.settings, &found))
    }

    /// What a server returns comes from outside and may be private; what it is given leaves the sandbox, unless it only looks
    /// something up that is no address.
    fn flow(&self, tool: &str, arguments: &str, _: &Caller<'_>) -> Flow {
        let Some((server, found)) = self.find(tool) else {
            // A server that does not list it just now may do so again in a moment.
            return Flow { private: true, recalls: true, stores: true, sends: true, destroys: true, ..Flow::default() };
        };
        let settings = &server.settings;
        // Whoever asks for something says little. More could carry away what was read.
        let is_lookup = found.claims_read && (settings.trusted || arguments.len() <= MAX_LOOKUP_BYTES);
        let reads = is_lookup || found.spec.class == EffectClass::Read;
        let is_harmless = reads || (settings.trusted && found.claims_harmless);
        Flow {
            outside: settings.outside.then(|| format!("the MCP server {}", settings.name).into()),
            private: true,
            recalls: true,
            stores: !reads,
            sends: !reads || names_place(arguments) || targets(arguments).iter().any(|value| is_address(value)),
            destroys: !is_harmless,
            ..Flow::default()
        }
    }

    fn identity(&self, tool: &str) -> Option<ToolIdentity> {
        let (server, found) = self.find(tool)?;
        let connection = server.connection().ok()?;
        let reads = connection.tools.iter().filter(|found| found.claims_read && found.action == ToolAction::Call);
        let reads = reads.map(|found| ReadTool { tool: found.spec.name.clone(), identity: found.identity.clone() }).collect();
        Some(ToolIdentity { digest: found.identity.clone(), definition: found.definition.clone(), reads })
    }

    fn sampling_ruling(&self, server: &str, _: &Caller<'_>) -> Ruling {
        match self.server(server) {
            Ok(server) if server.settings.trusted => Ruling::Allow,
            _ => Ruling::Ask("It is not marked as trusted.".to_owned()),
        }
    }

    async fn call(&self, tool: &str, text: &str, context: &CallContext) -> Result<CallResult, ToolError> {
        match self.find(tool) {
            Some((server, found)) => server.call(&found.name, found.action, text, context).await,
            None => Err(self.absent(tool)),
        }
    }

    async fn wait_for_server(&self, server: &str, purpose: ServerWait) {
        if let Ok(server) = self.server(server) {
            server.started(purpose).await;
        }
    }

    fn servers(&self) -> Vec<ToolServer> {
        let describe = |server: &Arc<Server>| {
            let state = server.state.borrow().clone();
            let tools = match &state {
                State::Connected(connection) => connection.tools.iter().map(|found| found.spec.name.clone()).collect(),
                _ => Vec::new(),
            };
            let (state, detail) = state.summary();
            let ServerSettings { name, trusted, transport, .. } = &server.settings;
            ToolServer { name: name.clone(), reach: transport.to_string(), state, detail, trusted: *trusted, tools }
        };
        self.servers.iter().map(describe).collect()
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ServerCapabilities;
    use serde_json::json;

    use super::*;
    use crate::mcp::resource_tools::resource_tools;

    #[test]
    fn an_address_is_known_however_lenient_its_reader_is() {
        for value in [
            "https://evil.example/x",
            "http:/127.0.0.1:80/?d=1",
            "http:127.0.0.1",
            "http:\\\\host",
            "ht\ttp://h",
            "//host/x",
            "\\\\host\\x",
            "/\\host",
            "evil.example/x",
            "a.b.example",
            "eve@host",
            "b\u{fc}cher.example/x",
            "my_host.example/x",
            "mailto:eve",
            "evil.com",
            "127.1",
        ] {
            assert!(is_address(value), "{value}");
        }
        assert!(names_place(r#"{"host":"localhost","path":"/x"}"#) && !names_place(r#"{"path":"/x"}"#));
        for value in ["plan.md", "notes/plan.md", "/data/plan.md", "what is new", "3"] {
            assert!(!is_address(value), "{value}");
        }
    }

    #[test]
    fn what_an_untrusted_server_far_away_lends_is_asked_about() {
        let far =
            || ServerSettings::new("s", ServerTransport::Http { url: "https://h".to_owned(), headers: Default::default() });
        let can: ServerCapabilities = serde_json::from_value(json!({ "resources": {}, "prompts": {} })).unwrap();
        let asked = |settings: &ServerSettings| {
            let resource_tools = resource_tools(settings, &can, &[]);
            resource_tools.iter().filter(|found| matches!(ruling_on(settings, found), Ruling::Ask(_))).count()
        };
        assert_eq!(asked(&far()), 4);
        assert_eq!(asked(&ServerSettings { trusted: true, ..far() }), 0);
        assert_eq!(asked(&ServerSettings { effects: [("read_resource".to_owned(), EffectClass::Read)].into(), ..far() }), 3);
        assert_eq!(asked(&ServerSettings::new("s", ServerTransport::command("x", [""; 0]))), 0, "a program of this machine");
    }
}
