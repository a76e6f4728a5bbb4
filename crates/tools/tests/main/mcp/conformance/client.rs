//! The client that the suite starts: it connects, logs in when it is told to, and uses what the scenario offers.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::{Failure, Question, Reply, Verdict, Wanted};
use polis_ports::{CallContext, Host, ModelRequest, ServerState, Toolbox};
use polis_testkit::MemoryDocuments;
use polis_tools::HttpOptions;
use polis_tools::mcp::{McpOptions, McpServers, OAuth, ServerSettings, ServerTransport, login};
use serde_json::{Map, Value, json};

use super::browser;
use crate::bench::context;

/// Set by the suite.
const SCENARIO: &str = "MCP_CONFORMANCE_SCENARIO";
const CONTEXT: &str = "MCP_CONFORMANCE_CONTEXT";

/// The address that the suite takes for a description of a client.
const DESCRIBED: &str = "https://conformance-test.local/client-metadata.json";

/// How often a person would log in before they gave up.
const MAX_LOGINS: usize = 3;

/// How long a scenario may take.
const PATIENCE: Duration = Duration::from_secs(25);

#[tokio::test]
async fn performs() {
    let Ok(scenario) = std::env::var(SCENARIO) else { return };
    let url = std::env::args().next_back().unwrap();
    let told = std::env::var(CONTEXT).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let done = tokio::time::timeout(PATIENCE, Performance::begin(url, told).perform(&scenario)).await;
    match done.unwrap_or_else(|_| Err("it takes too long".to_owned())) {
        Ok(()) => std::process::exit(0),
        Err(why) => {
            eprintln!("{scenario}: {why}");
            std::process::exit(1);
        }
    }
}

struct Performance {
    settings: ServerSettings,
    logins: Arc<MemoryDocuments>,
    servers: McpServers,
    told: Value,
    log_ins: usize,
}

impl Performance {
    fn begin(url: String, told: Value) -> Self {
        let text = |name: &str| told[name].as_str().map(str::to_owned);
        let oauth = OAuth {
            client_id: text("client_id"),
            client_secret: text("client_secret"),
            client_metadata_url: Some(DESCRIBED.to_owned()),
            ..OAuth::default()
        };
        let reach = ServerTransport::Http { url, headers: Default::default() };
        let settings = ServerSettings { oauth, timeout: Duration::from_secs(10), ..ServerSettings::new("suite", reach) };
        let logins = Arc::new(MemoryDocuments::default());
        let options = McpOptions {
            logins: Some(logins.clone()),
            first_pause: Duration::from_millis(50),
            longest_pause: Duration::from_millis(500),
            ..McpOptions::default()
        };
        let servers = McpServers::open([settings.clone()], options);
        Self { settings, logins, servers, told, log_ins: 0 }
    }

    async fn perform(mut self, scenario: &str) -> Result<(), String> {
        self.connected().await?;
        let tools: Vec<String> = self.servers.tools().iter().map(|tool| tool.name.to_string()).collect();
        if let Some(calls) = self.told["toolCalls"].as_array().cloned() {
            for call in calls {
                self.call(&format!("suite__{}", call["name"].as_str().unwrap_or_default()), &call["arguments"]).await?;
            }
        } else if scenario == "json-schema-2020-12-preservation" {
            let seen = self.servers.tools().iter().find(|tool| tool.name.ends_with("json_schema_2020_12_tool")).cloned();
            let seen = seen.ok_or("the tool is not there")?;
            self.call("suite__json_schema_echo", &json!({ "schema": seen.parameters })).await?;
        } else if scenario != "json-schema-ref-no-deref" {
            for tool in tools {
                self.call(&tool, &self.arguments(&tool)).await?;
            }
        }
        self.servers.close().await;
        Ok(())
    }

    /// What a model would write for it.
    fn arguments(&self, tool: &str) -> Value {
        let tools = self.servers.tools();
        let schema = tools.iter().find(|spec| *spec.name == *tool).map(|spec| spec.parameters.clone()).unwrap_or_default();
        let value = |schema: &Value| match schema["type"].as_str() {
            Some("number" | "integer") => json!(2),
            Some("boolean") => json!(true),
            Some("object") => json!({}),
            Some("array") => json!([]),
            _ => json!("text"),
        };
        let all = schema["properties"].as_object().cloned().unwrap_or_default();
        all.iter().map(|(name, schema)| (name.clone(), value(schema))).collect::<Map<_, _>>().into()
    }

    /// Calls a tool, and once more after each login that the server wants for it.
    async fn call(&mut self, tool: &str, arguments: &Value) -> Result<(), String> {
        let hosted = CallContext { host: Some(Arc::new(Agrees)), ..context() };
        loop {
            let result = self.servers.call(tool, &arguments.to_string(), &hosted).await.map_err(|error| error.to_string())?;
            if !result.is_error || !result.content.contains("polis tools login") {
                return if result.is_error { Err(result.content.to_string()) } else { Ok(()) };
            }
            self.log_in().await?;
            self.connected().await?;
        }
    }

    async fn connected(&mut self) -> Result<(), String> {
        loop {
            let server = self.servers.servers().remove(0);
            match server.state {
                ServerState::Connected => return Ok(()),
                ServerState::Down if server.detail.contains("polis tools login") => {
                    self.log_in().await?;
                    let noticed = async {
                        while self.servers.servers()[0].detail == server.detail {
                            tokio::time::sleep(Duration::from_millis(5)).await;
                        }
                    };
                    // A server that wants yet another login says so in the same words.
                    let _ = tokio::time::timeout(Duration::from_secs(2), noticed).await;
                }
                ServerState::Down => return Err(server.detail),
                _ => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    async fn log_in(&mut self) -> Result<(), String> {
        self.log_ins += 1;
        if self.log_ins > MAX_LOGINS {
            return Err("a person would not log in again".to_owned());
        }
        let open = |address: &str| drop(tokio::spawn(browser::open(address.to_owned())));
        login(&self.settings, self.logins.clone(), &HttpOptions::default(), open).await.map_err(|error| error.to_string())
    }
}

/// A person who takes what is proposed and agrees to everything.
#[derive(Debug)]
struct Agrees;

#[async_trait]
impl Host for Agrees {
    async fn ask_person(&self, _: &str, question: Question) -> Option<Verdict> {
        let Wanted::Form { schema } = &question.wanted else { return Some(Verdict::yes()) };
        let fields = schema["properties"].as_object().cloned().unwrap_or_default();
        let is_plain_yes = |field: &Value| field["type"] == "boolean" && field.get("default").is_none();
        let agreed = fields.into_iter().filter(|(_, field)| is_plain_yes(field)).map(|(name, _)| (name, json!(true)));
        let verdict = Verdict { answer: Some(agreed.collect::<Map<_, _>>().into()), ..Verdict::yes() };
        // What the log does with every answer; the person says nothing of fields with defaults.
        Some(question.wanted.with_defaults(verdict))
    }

    async fn ask_model(&self, _: &str, _: ModelRequest) -> Result<Reply, Failure> {
        Err(Failure::new("no_model", "there is no model"))
    }
}
