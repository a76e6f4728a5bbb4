//! The reference of `polis.toml`: each key with its type, default and meaning. The reader of the file says which keys there are, and
//! reads each example.

use std::fmt::Write as _;
use std::path::Path;

use polis_docs::Page;

use super::{cell, check};
use crate::config_file;

/// A key: its name, type, default, an example in TOML, and what it means. Without a default nothing is set.
struct Key(&'static str, &'static str, &'static str, &'static str, &'static str);

/// A section and its keys.
struct Section(&'static str, &'static [Key]);

/// The sections of `polis.toml`, as a file with an entry of each would have them. `x` is a name of one's own.
const SECTIONS: &[Section] = &[
    Section("", TOP),
    Section("model_settings", MODEL_SETTINGS),
    Section("models.\"openai/x\"", MODELS),
    Section("[policy]", POLICY),
    Section("budget", BUDGET),
    Section("budget.task", TASK_BUDGET),
    Section("budget.agent", LIMITS),
    Section("budget.call", LIMITS),
    Section("budget.roles.x", LIMITS),
    Section("providers.x", PROVIDERS),
    Section("network", NETWORK),
    Section("tools", TOOLS),
    Section("workflow", WORKFLOW),
    Section("artifacts", ARTIFACTS),
    Section("backup", BACKUP),
    Section("retention", RETENTION),
    Section("store", STORE),
    Section("cluster", CLUSTER),
    Section("memory", MEMORY),
    Section("embeddings", EMBEDDINGS),
    Section("server", SERVER),
    Section("society.x", SOCIETY),
    Section("page", PAGE),
    Section("telemetry", TELEMETRY),
    Section("mcp.x", MCP),
    Section("a2a.x", A2A),
    Section("trust", TRUST),
];

const TOP: &[Key] = &[
    Key(
        "model",
        "text or list",
        "the first vendor whose key is set, else Ollama, else offline",
        "\"anthropic/claude-sonnet-5\"",
        "the model as vendor/name; of a list the next one is asked when one fails",
    ),
    Key("listen", "text", "127.0.0.1:3000", "\"127.0.0.1:8080\"", "the address of `polis serve`"),
    Key("workspace", "path", "the working directory", "\"notes\"", "the folder that file tools may touch"),
    Key(
        "emulated_tools",
        "list of texts",
        "",
        "[\"ollama/smollm2*\"]",
        "models whose tool calls are emulated, because they have none of their own; `*` stands for anything",
    ),
    Key("prices", "path", "the table of the program", "\"prices.toml\"", "a file with prices of models"),
    Key("model_settings", "table", "", "{ effort = \"high\" }", "how models are called: `[model_settings]`"),
    Key(
        "models",
        "table of tables",
        "the table of the program",
        "{ \"openai/x\" = { window = 128000 } }",
        "what models can do and cost: `[models.\"VENDOR/NAME\"]`",
    ),
    Key(
        "policy",
        "list of tables",
        "",
        "[{ tool = \"run_command\", then = \"deny\" }]",
        "rules for calls, the first that fits counts: `[[policy]]`",
    ),
    Key(
        "budget",
        "table or \"none\"",
        "",
        "\"none\"",
        "what may be spent: `[budget]`; \"none\" lifts the default budget of a request too",
    ),
    Key("providers", "table of tables", "", "{ openai = { retries = 1 } }", "vendors and endpoints: `[providers.NAME]`"),
    Key("network", "table", "", "{ proxy = \"none\" }", "proxies and certificates: `[network]`"),
    Key("tools", "table", "", "{ fetch = true }", "tools that touch the machine or the network: `[tools]`"),
    Key("workflow", "table", "", "{ cycles = 2 }", "how workflows run: `[workflow]`"),
    Key("artifacts", "table", "", "{ max_mb = 100 }", "limits of artifacts: `[artifacts]`"),
    Key("backup", "table", "", "{ to = \"backups\" }", "backups while `polis serve` runs: `[backup]`"),
    Key("retention", "table", "", "{ archive_after = \"90d\" }", "what becomes of old events: `[retention]`"),
    Key("store", "table", "", "{ lease = \"10s\" }", "the log in PostgreSQL: `[store]`; in your own file only"),
    Key("cluster", "table", "", "{ name = \"a\" }", "one of several nodes: `[cluster]`; in your own file only"),
    Key("memory", "table", "", "{ enabled = false }", "what agents remember: `[memory]`"),
    Key(
        "embeddings",
        "table",
        "",
        "{ model = \"openai/text-embedding-3-small\" }",
        "how memories are found by meaning: `[embeddings]`",
    ),
    Key("server", "table", "", "{ hosts = [\"polis.example.org\"] }", "who may ask over HTTP: `[server]`"),
    Key("society", "table of tables", "", "{ lab = { workspace = \"lab\" } }", "settings of another society: `[society.NAME]`"),
    Key("page", "table", "", "{ live_html = true }", "options of the page: `[page]`"),
    Key("telemetry", "table", "", "{ endpoint = \"http://127.0.0.1:4318\" }", "OpenTelemetry: `[telemetry]`"),
    Key("mcp", "table of tables", "", "{ git = { command = \"git-server\" } }", "MCP servers: `[mcp.NAME]`"),
    Key("a2a", "table of tables", "", "{ courier = { url = \"https://courier.example\" } }", "remote A2A agents: `[a2a.NAME]`"),
    Key(
        "trust",
        "table",
        "",
        "{ variables = [\"GITHUB_TOKEN\"] }",
        "what files of folders may use: `[trust]`; in your own file only",
    ),
];

const MODEL_SETTINGS: &[Key] = &[
    Key("effort", "text", "the vendor's", "\"high\"", "the reasoning effort: none, minimal, low, medium, high, xhigh or max"),
    Key(
        "thinking_budget",
        "whole number",
        "",
        "8000",
        "most tokens of reasoning, for models that take a number; 0 for none. It counts instead of `effort`",
    ),
    Key("temperature", "number", "the vendor's", "0.2", "the sampling temperature, from 0 to 2"),
    Key("top_p", "number", "the vendor's", "0.9", "the probability mass that is sampled from, above 0 and up to 1"),
    Key("stop", "text or list", "", "[\"END\"]", "texts that end a reply where they appear"),
    Key("seed", "whole number", "", "7", "the seed of sampling"),
    Key("max_tokens", "whole number", "", "4000", "the token limit of each reply"),
    Key(
        "tool_choice",
        "text",
        "auto",
        "\"required\"",
        "whether the model must or may not call a tool: auto, none, required or the name of a tool",
    ),
    Key("parallel_calls", "true or false", "the vendor's", "false", "whether a reply may have several calls"),
    Key("cache", "text", "on", "\"long\"", "how long the vendor keeps the beginning of a request: off, on or long"),
    Key("service_tier", "text", "the vendor's", "\"flex\"", "the vendor's own name for how fast and at what price it serves"),
];

const MODELS: &[Key] = &[
    Key("window", "whole number", "the table's", "128000", "tokens that it sees at once"),
    Key("max_output", "whole number", "the table's", "8192", "tokens that it can write in one reply"),
    Key("tools", "true or false", "the table's", "true", "whether it calls tools"),
    Key("parallel_calls", "true or false", "the table's", "true", "whether it makes several calls in one reply"),
    Key("images", "true or false", "the table's", "true", "whether it takes images"),
    Key("image_urls", "true or false", "the table's", "true", "whether it takes addresses of images, which its vendor fetches"),
    Key("pdf", "true or false", "the table's", "true", "whether it takes PDF files"),
    Key("audio", "true or false", "the table's", "false", "whether it takes audio"),
    Key(
        "efforts",
        "list of texts",
        "the table's",
        "[\"low\", \"high\"]",
        "the efforts that it knows; an empty list for a model that does not reason",
    ),
    Key("structured", "true or false", "the table's", "true", "whether it keeps a JSON schema"),
    Key("caching", "true or false", "the table's", "true", "whether the beginning of a request is cached"),
    Key(
        "vendor_tools",
        "table of numbers",
        "the table's",
        "{ web_search = 10.0 }",
        "the tools that its vendor runs, with the price of a thousand uses in US dollars",
    ),
];

const POLICY: &[Key] = &[
    Key("tool", "pattern", "any", "\"run_command\"", "the tool, by its listed name or that at its server"),
    Key("server", "pattern", "any", "\"git\"", "the MCP server that the tool comes from"),
    Key("agent", "pattern", "any", "\"root\"", "the agent that calls"),
    Key("role", "pattern", "any", "\"reviewer\"", "its role"),
    Key("arguments", "pattern", "any", "\"*rm -rf*\"", "the arguments as one line of JSON"),
    Key("then", "text", "must be set", "\"deny\"", "what happens to the call: allow, ask or deny"),
    Key("why", "text", "", "\"nothing is deleted here\"", "the reason, for people and models"),
    Key("tainted", "true or false", "false", "true", "whether an allowance holds also after outside content was read"),
];

const BUDGET: &[Key] = &[
    Key("tokens", "whole number or \"none\"", "none", "1000000", "most tokens of the society"),
    Key("usd", "number or \"none\"", "none", "20.0", "most US dollars of the society"),
    Key("requests", "whole number or \"none\"", "none", "5000", "most calls of models of the society"),
    Key("minutes", "number or \"none\"", "none", "600", "most minutes of waiting for models of the society"),
    Key("task", "table", "", "{ usd = 0.5 }", "of each request: `[budget.task]`"),
    Key("agent", "table", "", "{ usd = 1.0 }", "of each agent with those below it: `[budget.agent]`"),
    Key("call", "table", "", "{ tokens = 100000 }", "of a single call: `[budget.call]`"),
    Key("roles", "table of tables", "", "{ writer = { usd = 2.0 } }", "of all agents of a role: `[budget.roles.NAME]`"),
];

const TASK_BUDGET: &[Key] = &[
    Key("tokens", "whole number or \"none\"", "4000000", "1000000", "most tokens"),
    Key("usd", "number or \"none\"", "5", "0.5", "most US dollars"),
    Key("requests", "whole number or \"none\"", "200", "50", "most calls of models"),
    Key("minutes", "number or \"none\"", "60", "10", "most minutes of waiting for models"),
];

const LIMITS: &[Key] = &[
    Key("tokens", "whole number or \"none\"", "none", "1000000", "most tokens"),
    Key("usd", "number or \"none\"", "none", "0.5", "most US dollars"),
    Key("requests", "whole number or \"none\"", "none", "50", "most calls of models"),
    Key("minutes", "number or \"none\"", "none", "10", "most minutes of waiting for models"),
];

const PROVIDERS: &[Key] = &[
    Key("base_url", "text", "the vendor's", "\"https://llm.example/v1\"", "the address; a name of your own needs one"),
    Key(
        "dialect",
        "text",
        "the vendor's",
        "\"openai\"",
        "the interface: openai, openai-responses, anthropic, gemini, ollama, bedrock or vertex",
    ),
    Key("like", "text", "", "\"openai\"", "the vendor that an endpoint of your own is like"),
    Key("key_variable", "text", "the vendor's, or NAME_API_KEY", "\"TEAM_KEY\"", "the variable that holds the key"),
    Key("key_file", "path", "", "\"~/keys/openai\"", "a file that holds the key"),
    Key(
        "key_command",
        "list of texts",
        "",
        "[\"secret-tool\", \"lookup\", \"service\", \"openai\"]",
        "a program that prints the key, and its arguments",
    ),
    Key(
        "headers",
        "table of texts",
        "",
        "{ X-Cost-Center = \"${COST_CENTER}\" }",
        "further headers of every request; `${NAME}` is a variable",
    ),
    Key(
        "timeouts",
        "table of numbers",
        "10, 300, 60 and none",
        "{ connect = 5, first_token = 600, between_tokens = 60, whole = 1800 }",
        "in seconds: until a connection is open, until the reply begins, until it goes on, and for all of it",
    ),
    Key("retries", "whole number", "3", "1", "how often a failed call is repeated, 0 to 10"),
    Key("ca", "path", "", "\"ca.pem\"", "a PEM file with certificates to trust beside the system's"),
    Key("client_certificate", "path", "", "\"client.pem\"", "the certificate to present, with `client_key`"),
    Key("client_key", "path", "", "\"client.key\"", "its private key"),
    Key("proxy", "text", "that of `[network]`", "\"http://proxy.example:3128\"", "the address of a proxy, or \"none\""),
    Key("requests_per_minute", "whole number", "none", "500", "most requests in a minute"),
    Key("tokens_per_minute", "whole number", "none", "200000", "most tokens in a minute"),
    Key("region", "text", "AWS_REGION or the profile's", "\"eu-central-1\"", "of bedrock: the region"),
    Key("profile", "text", "", "\"work\"", "of bedrock: the profile of `~/.aws`"),
    Key("project", "text", "GOOGLE_CLOUD_PROJECT", "\"my-project\"", "of vertex: the project"),
    Key("location", "text", "global", "\"europe-west4\"", "of vertex: the location"),
    Key("file_stores", "list of texts", "", "[\"vs_123\"]", "the stores at the vendor that its file search reads"),
];

const NETWORK: &[Key] = &[
    Key("ca", "path", "", "\"company.pem\"", "a PEM file with certificates to trust beside the system's"),
    Key("client_certificate", "path", "", "\"client.pem\"", "the certificate to present, with `client_key`"),
    Key("client_key", "path", "", "\"client.key\"", "its private key"),
    Key(
        "proxy",
        "text",
        "that of the environment",
        "\"http://proxy.example:3128\"",
        "the address of a proxy, or \"none\"; `${NAME}` is a variable",
    ),
    Key(
        "no_proxy",
        "list of texts",
        "that of the environment",
        "[\"intranet.example\"]",
        "hosts that are reached without the proxy",
    ),
];

const TOOLS: &[Key] = &[
    Key("commands", "true or false", "false", "true", "whether `run_command` is offered"),
    Key("network", "true or false", "false", "true", "whether a command may ask for the network"),
    Key(
        "readable",
        "list of paths",
        "",
        "[\"/opt/toolchain\"]",
        "folders that commands may read and run programs from, besides the system's",
    ),
    Key("environment", "list of texts", "", "[\"CARGO_HOME\"]", "variables that commands receive; never names of secrets"),
    Key("seconds", "whole number", "600", "120", "the longest that a command may run"),
    Key("memory_mb", "whole number", "8192", "1024", "address space of each process of a command, at least 16"),
    Key("file_mb", "whole number", "1024", "100", "the largest file that a command may write"),
    Key("written_mb", "whole number", "4096", "500", "all that a command writes into files"),
    Key("output_mb", "whole number", "64", "16", "how much of stdout, and of stderr, is stored"),
    Key("processes", "whole number", "256", "64", "most processes of a command"),
    Key("fetch", "true or false", "false", "true", "whether `fetch_url` is offered"),
    Key("fetch_allow", "list of texts", "", "[\"intranet.example\", \"10.0.0.0/8\"]", "private addresses that may be fetched"),
    Key(
        "vendor",
        "list of texts",
        "",
        "[\"web_search\"]",
        "tools that vendors run: web_search, web_fetch, code_execution, file_search",
    ),
    Key(
        "search",
        "text or table",
        "",
        "\"brave\"",
        "the service that `web_search` asks: brave, tavily, exa, serper or searxng",
    ),
];

const WORKFLOW: &[Key] = &[
    Key("plan_approval", "text", "never", "\"ask\"", "when a plan needs approval: never, ask or always"),
    Key("ask_above", "whole number", "5", "10", "how many todos of a plan that only reads `ask` lets pass"),
    Key("planning_rounds", "whole number", "3", "5", "most rounds of the planner"),
    Key("executor_rounds", "whole number", "10", "20", "most rounds of the executor for a todo"),
    Key("verifier_rounds", "whole number", "1", "3", "most rounds of the verifier for a todo"),
    Key("cycles", "whole number", "3", "2", "how often a plan is made or mended"),
    Key("at_once", "whole number", "3", "5", "most todos in parallel"),
    Key("repairs", "whole number", "2", "1", "how often a reply that cannot be read is asked for again"),
];

const ARTIFACTS: &[Key] = &[
    Key("max_mb", "whole number", "2048", "100", "the largest artifact"),
    Key("max_total_mb", "whole number", "20480", "1000", "all artifacts together"),
    Key("max_count", "whole number", "100000", "1000", "most artifacts"),
    Key("grace_hours", "whole number", "24", "1", "how long `polis artifacts gc` keeps unreferenced ones"),
];

const BACKUP: &[Key] = &[
    Key("to", "path", "", "\"/backup/polis\"", "the folder for backups; without it none are made"),
    Key("every", "time", "10m", "\"1h\"", "how often one is made"),
    Key("keep", "whole number", "2", "7", "how many files are used in turn"),
];

const RETENTION: &[Key] = &[
    Key("archive_after", "time", "", "\"90d\"", "the age from which on events are archived"),
    Key("delete_after", "time", "", "\"365d\"", "the age from which on conversations are erased"),
    Key("max_log_mb", "whole number", "none", "10000", "the room that the log may take before new requests are refused"),
];

const STORE: &[Key] = &[
    Key(
        "url",
        "text",
        "the data directory",
        "\"postgres://polis@db.example/polis\"",
        "the database; the password belongs into `POLIS_STORE_PASSWORD`",
    ),
    Key("lease", "time", "10s", "\"30s\"", "how long a node that is not heard of keeps its societies"),
];

const CLUSTER: &[Key] = &[
    Key("listen", "text", "", "\"10.0.0.5:7000\"", "where this node listens for the others; makes it one of several"),
    Key("address", "text", "`listen`", "\"node-1.example:7000\"", "where the others reach it"),
    Key("name", "text", "the machine's", "\"node-1\"", "how its name begins"),
];

const MEMORY: &[Key] = &[Key("enabled", "true or false", "true", "false", "whether agents remember and recall")];

const EMBEDDINGS: &[Key] = &[
    Key(
        "model",
        "text",
        "",
        "\"openai/text-embedding-3-small\"",
        "the model that makes vectors of memories; without it they are found by words",
    ),
    Key("dimensions", "whole number", "the model's", "512", "the length of a vector"),
    Key("batch", "whole number", "64", "16", "most texts of one request"),
];

const SERVER: &[Key] = &[
    Key("hosts", "list of texts", "", "[\"polis.example.org\"]", "names of this server besides its addresses"),
    Key("cors", "list of texts", "", "[\"https://dashboard.example.org\"]", "other sites whose pages may send requests"),
    Key("approvers", "list of texts", "the person who asked", "[\"carl\"]", "persons who decide all approvals"),
    Key("requests_per_second", "whole number", "100", "20", "requests in a second of each token that you created"),
    Key("client_tool_seconds", "whole number", "600", "60", "how long to wait for a client tool"),
];

const SOCIETY: &[Key] = &[
    Key("model", "text or list", "the top level's", "\"anthropic/claude-sonnet-5\"", "its models"),
    Key("workspace", "path", "the top level's", "\"lab\"", "its workspace"),
    Key("budget", "table or \"none\"", "the top level's", "{ usd = 2.0 }", "its budgets, as in `[budget]`"),
    Key("keys", "text", "", "\"LAB_\"", "what the names of the variables with its keys begin with"),
];

const PAGE: &[Key] = &[Key(
    "live_html",
    "true or false",
    "false",
    "true",
    "whether documents of models may run scripts, in a frame that reaches nothing",
)];

const TELEMETRY: &[Key] = &[
    Key(
        "endpoint",
        "text",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "\"http://127.0.0.1:4318\"",
        "the collector; without it nothing is sent",
    ),
    Key("headers", "table of texts", "", "{ x-team = \"${TEAM}\" }", "headers of each request; `${NAME}` is a variable"),
    Key("content", "true or false", "false", "true", "whether texts are sent, too"),
    Key("service_name", "text", "polis", "\"polis-lab\"", "the name among other programs"),
    Key("protocol", "text", "http/protobuf", "\"http/json\"", "http/protobuf or http/json"),
];

const MCP: &[Key] = &[
    Key("command", "text", "", "\"uvx\"", "the program of a server on this machine"),
    Key("args", "list of texts", "", "[\"mcp-server-git\"]", "its arguments"),
    Key(
        "env",
        "table of texts",
        "",
        "{ TOKEN = \"${TOKEN}\" }",
        "environment variables of the server's process; `${NAME}` inserts a variable that Polis has",
    ),
    Key("cwd", "path", "the folder of the file", "\"servers\"", "where it runs"),
    Key("url", "text", "", "\"https://mcp.example/mcp\"", "the address of a server over HTTP, instead of `command`"),
    Key("headers", "table of texts", "", "{ Authorization = \"Bearer ${TOKEN}\" }", "headers of each request to a `url`"),
    Key("enabled", "true or false", "true", "false", "whether it is used"),
    Key("trusted", "true or false", "false", "true", "whether what it says about the effects of its tools is believed"),
    Key("roots", "list of paths", "the workspace", "[\"notes\"]", "the folders that it is told to work in"),
    Key("outside", "true or false", "true", "false", "whether what it returns counts as outside content"),
    Key("timeout_seconds", "number", "60", "30", "how long a call may stay without a sign of life"),
    Key("start_wait_seconds", "number", "30", "60", "how long after its start a turn waits for its tools"),
    Key(
        "tools",
        "table of tables",
        "",
        "{ push = { effect = \"write\" } }",
        "the `effect` of a tool (read, idempotent or write), and whether it is `volatile`",
    ),
    Key(
        "oauth",
        "table",
        "",
        "{ client_id = \"polis\" }",
        "how to log in: client_id, client_secret, client_metadata_url, scopes, port",
    ),
];

const A2A: &[Key] = &[
    Key("url", "text", "must be set", "\"https://courier.example\"", "the address of the agent"),
    Key("token_env", "text", "", "\"COURIER_TOKEN\"", "the variable with its token"),
    Key(
        "description",
        "text",
        "\"A remote agent, reached over A2A.\"",
        "\"Carries parcels.\"",
        "what other agents are told about it",
    ),
    Key("timeout_seconds", "number", "600", "60", "how long it may be out of reach"),
    Key("enabled", "true or false", "true", "false", "whether it is a member"),
];

const TRUST: &[Key] =
    &[Key("variables", "list of texts", "", "[\"GITHUB_TOKEN\"]", "secret variables that trusted files of folders may name")];

/// The text of a file with these lines in a section.
fn file(section: &str, lines: &str) -> String {
    if section.is_empty() { format!("{lines}\n") } else { format!("[{section}]\n{lines}\n") }
}

/// The keys that a section takes, as the reader of the file names them when it meets one that it does not know.
fn keys(section: &str) -> Vec<String> {
    let error = config_file::parse(&file(section, "no_such_key = 1"), Path::new("polis.toml")).unwrap_err().to_string();
    let (_, listed) = error.split_once("expected ").unwrap_or_else(|| panic!("[{section}]: {error}"));
    let listed = listed.split("; did you mean").next().unwrap_or_default();
    // A name with a capital letter is another spelling of one without.
    let names = listed.split('`').skip(1).step_by(2).filter(|name| !name.contains(char::is_uppercase));
    names.map(str::to_owned).collect()
}

#[test]
fn the_reference_of_the_configuration_is_current_and_every_key_is_explained() {
    let mut page = "# Configuration\n\nGenerated from what the program reads. `polis.toml` is in the working directory or else in the data \
                    directory; your own is `~/.config/polis/polis.toml`. An unknown key is an error that names the nearest \
                    one. Names such as `x` are your own. A time is a number with a unit: `30s`, `10m`, `6h`, `1d`. In a pattern `*` stands \
                    for any text. Without a default nothing is set.\n"
        .to_owned();
    let mut lacking = Vec::new();
    for Section(section, described) in SECTIONS {
        let title = match *section {
            "" => "top level".to_owned(),
            "[policy]" => "`[[policy]]`".to_owned(),
            section => format!("`[{section}]`"),
        };
        let names: Vec<_> = described.iter().map(|key| key.0).collect();
        assert_eq!(names, keys(section), "the keys of [{section}], in their order");
        let _ = write!(
            page,
            "\n## {title}\n\n| key | type | default | for example | means | explained in |\n|---|---|---|---|---|---|\n"
        );
        for Key(key, kind, default, example, meaning) in *described {
            let pages: Vec<Page> =
                Page::all().filter(|it| explains(it, section, key) && !it.source.ends_with(".zh.md")).collect();
            let path = |it: &Page| it.source.strip_prefix("docs/").map_or(format!("../{}", it.source), str::to_owned);
            let links: Vec<String> = pages.iter().map(|it| format!("[{}](../{})", it.name(), path(it))).collect();
            if links.is_empty() {
                lacking.push(format!("{title} {key}"));
            }
            let (default, meaning, links) = (cell(default), cell(meaning), links.join(", "));
            let _ = writeln!(page, "| `{key}` | {} | {default} | `{example}` | {meaning} | {links} |", cell(kind));
        }
    }
    assert!(lacking.is_empty(), "no page of docs explains {}", lacking.join(", "));
    check("configuration.md", &page);
}

#[test]
fn every_example_of_a_key_is_read() {
    for Section(section, described) in SECTIONS {
        for Key(key, _, _, example, _) in *described {
            let text = file(section, &format!("{key} = {example}\n{}", besides(section, key)));
            if let Err(error) = config_file::parse(&text, Path::new("polis.toml")) {
                panic!("{text}\n{error}");
            }
        }
    }
}

/// What a section must have besides a key.
fn besides(section: &str, key: &str) -> &'static str {
    match (section, key) {
        ("[policy]", key) if key != "then" => "then = \"ask\"",
        ("network", "client_certificate") => "client_key = \"k\"",
        ("network", "client_key") => "client_certificate = \"c\"",
        ("providers.x", "base_url") => "like = \"openai\"",
        ("providers.x", "like" | "dialect") => "base_url = \"https://llm.example/v1\"",
        ("providers.x", "region" | "profile") => "base_url = \"https://llm.example/v1\"\nlike = \"bedrock\"",
        ("providers.x", "project" | "location") => "base_url = \"https://llm.example/v1\"\nlike = \"vertex\"",
        ("providers.x", "client_certificate") => "base_url = \"https://llm.example/v1\"\nlike = \"openai\"\nclient_key = \"k\"",
        ("providers.x", "client_key") => "base_url = \"https://llm.example/v1\"\nlike = \"openai\"\nclient_certificate = \"c\"",
        ("providers.x", _) => "base_url = \"https://llm.example/v1\"\nlike = \"openai\"",
        ("mcp.x", "headers" | "oauth") => "url = \"https://mcp.example\"",
        ("mcp.x", key) if !["command", "url"].contains(&key) => "command = \"server\"",
        ("a2a.x", key) if key != "url" => "url = \"https://courier.example\"",
        _ => "",
    }
}

/// Whether a page has the key in the example of its section, or in words.
fn explains(page: &Page, section: &str, key: &str) -> bool {
    if ["docs/reference/", "docs/errors/", "docs/from-", "docs/concepts", "CHANGELOG"]
        .iter()
        .any(|it| page.source.starts_with(it))
    {
        return false;
    }
    let table = section.trim_matches(['[', ']']).split('.').next().unwrap_or_default();
    let is_named = page.text.contains(&format!("[{table}")) || page.text.contains(&format!("`{table}`"));
    if table.is_empty() {
        let starts =
            [format!("\n{key} ="), format!("\n[{key}]"), format!("\n[{key}."), format!("\n[[{key}]]"), format!("`[{key}]`")];
        return starts.iter().any(|it| page.text.contains(it));
    }
    let in_words = [
        format!("`{key}`"),
        format!("`{key} ="),
        format!("\n{key} ="),
        format!("[{key}]"),
        format!("[{key}."),
        format!(".{key}."),
    ];
    let in_words = in_words.iter().any(|it| page.text.contains(it)) || page.text.contains(&format!(".{key}]"));
    in_words && is_named
}
