//! Servers that others wrote, over stdio and over HTTP.
//!
//! They are packages of npm and PyPI, so this has a step of its own in `cargo xtask test`, which installs them into a
//! temporary folder and names that in a variable.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use polis_domain::{EffectClass, Verdict, Wanted};
use polis_ports::{ServerState, Toolbox};
use polis_tools::mcp::{McpOptions, McpServers, ServerSettings, ServerTransport};
use serde_json::{Value, json};

use super::asking::{answering, hosted};
use super::{bad, good, names, until};

/// Names the folder with the packages.
const FOLDER: &str = "POLIS_TEST_MCP_SERVERS";

/// How long all of it may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(180);

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_others_are_used_over_stdio_and_http() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        let why = "it has a step of its own in `cargo xtask test`, which installs the servers";
        writeln!(std::io::stderr(), "skipped: servers_of_others_are_used_over_stdio_and_http: {why}").unwrap();
        return;
    };
    let folder = Path::new(&folder);
    let everything = async {
        let work = tempfile::tempdir().unwrap();
        std::fs::write(work.path().join("notes.txt"), "the treasure is under the oak").unwrap();
        git(work.path(), &["init", "--quiet"]);
        let mut remote = Listening::start(folder, None);
        let servers = open(folder, work.path(), &remote).await;
        for server in ["everything", "remote"] {
            everything_works(&servers, server, work.path()).await;
            it_asks_the_person_and_a_model(&servers, server).await;
        }
        files_are_read_and_written_where_it_is_allowed(&servers, work.path()).await;
        memory_remembers(&servers).await;
        time_is_told(&servers).await;
        git_tells_what_has_changed(&servers, work.path()).await;
        a_remote_server_may_go_and_come_back(&servers, &mut remote, folder).await;
        servers.close().await;
    };
    tokio::time::timeout(PATIENCE, everything).await.expect("the servers of others should be done by now");
}

async fn open(folder: &Path, work: &Path, remote: &Listening) -> McpServers {
    let url = format!("http://127.0.0.1:{}/mcp", remote.port);
    let headers = BTreeMap::from([("X-Test".to_owned(), "${HOME}".to_owned())]);
    let work_text = work.to_str().unwrap();
    let mut memory = node(folder, "memory", &[]);
    if let ServerTransport::Command { env, .. } = &mut memory.transport {
        env.insert("MEMORY_FILE_PATH".to_owned(), format!("{work_text}/memory.json"));
    }
    let settings = [
        ServerSettings {
            timeout: Duration::from_secs(2),
            roots: Some(vec![work.to_owned()]),
            ..node(folder, "everything", &["stdio"])
        },
        ServerSettings { trusted: true, ..node(folder, "filesystem", &[work_text]) },
        memory,
        python(folder, "time", &[]),
        python(folder, "git", &["--repository", work_text]),
        ServerSettings {
            timeout: Duration::from_secs(2),
            ..ServerSettings::new("remote", ServerTransport::Http { url, headers })
        },
    ];
    let servers = McpServers::open(settings, McpOptions { first_pause: Duration::from_millis(50), ..super::options() });
    until("all are connected", || servers.servers().iter().all(|server| server.state == ServerState::Connected)).await;
    servers
}

async fn everything_works(servers: &McpServers, server: &str, work: &Path) {
    let tool = |name: &str| format!("{server}__{name}");
    assert!(good(servers, &tool("echo"), json!({ "message": "你好" })).await.contains("你好"));
    assert!(good(servers, &tool("get-sum"), json!({ "a": 2, "b": 3 })).await.contains('5'));
    let refused = bad(servers, &tool("get-sum"), json!({ "a": "two" })).await;
    assert!(refused.contains("Invalid arguments"), "{refused}");
    let image = good(servers, &tool("get-tiny-image"), json!({})).await;
    assert!(image.contains("[image, image/png, "), "{image}");
    let weather = good(servers, &tool("get-structured-content"), json!({ "location": "New York" })).await;
    assert!(serde_json::from_str::<Value>(&weather).unwrap()["temperature"].is_number(), "{weather}");
    // Longer than the time-out, with a sign of life twice a second.
    let long = good(servers, &tool("trigger-long-running-operation"), json!({ "duration": 3, "steps": 6 })).await;
    assert!(long.contains("completed"), "{long}");
    if server == "everything" {
        let roots = good(servers, &tool("get-roots-list"), json!({})).await;
        assert!(roots.contains(work.to_str().unwrap()), "{roots}");
        let environment = good(servers, &tool("get-env"), json!({})).await;
        assert!(environment.contains("PATH") && !environment.contains("CARGO"), "{environment}");
    }
    let resources = servers.resources(server).await.unwrap();
    let read = servers.read_resource(server, &resources[0].uri).await.unwrap();
    assert!(read.starts_with(&format!("[resource {}]", resources[0].uri)), "{read}");
    assert!(servers.read_resource(server, "no:such/thing").await.is_err());
    let prompts = servers.prompts(server).await.unwrap();
    assert!(prompts.iter().any(|prompt| prompt.name == "simple-prompt"), "{prompts:?}");
    let filled = servers.prompt(server, "simple-prompt", Default::default()).await.unwrap();
    assert!(filled[0]["content"]["text"].is_string(), "{filled}");
}

async fn it_asks_the_person_and_a_model(servers: &McpServers, server: &str) {
    let tool = |name: &str| format!("{server}__{name}");
    until("it knows what we can do", || names(servers).contains(&tool("trigger-elicitation-request"))).await;
    let filled = Verdict { answer: Some(json!({ "name": "Ada", "check": true, "integer": 42 })), ..Verdict::yes() };
    for (verdict, told) in [(Some(filled), "Ada"), (Some(Verdict::no("private")), "declined"), (None, "cancel")] {
        let host = answering(verdict);
        let result = servers.call(&tool("trigger-elicitation-request"), "{}", &hosted(&host)).await.unwrap();
        assert!(!result.is_error && result.content.contains(told), "{}", result.content);
        let asked = host.asked.lock().unwrap();
        let Wanted::Form { schema } = &asked[0].1.wanted else { panic!("{asked:?}") };
        assert!(schema["properties"]["name"]["type"] == "string" && asked[0].0 == server, "{asked:?}");
        // What a person says is checked against the form of a server that we did not write.
        let fits = |answer: Value| asked[0].1.wanted.check(&Verdict { answer: Some(answer), ..Verdict::yes() }).is_ok();
        assert!(fits(json!({ "name": "Ada", "email": "ada@b.example" })), "{schema}");
        assert!(!fits(json!({ "check": true })) && !fits(json!({ "name": "Ada", "email": "nobody" })), "{schema}");
    }
    let host = answering(Some(Verdict::yes()));
    let visit = json!({ "url": "https://a.example/in", "message": "sign in" }).to_string();
    servers.call(&tool("trigger-url-elicitation"), &visit, &hosted(&host)).await.unwrap();
    assert_eq!(host.asked.lock().unwrap()[0].1.wanted, Wanted::Visit { url: "https://a.example/in".to_owned() });
    let arguments = json!({ "prompt": "a word, please", "maxTokens": 20 }).to_string();
    let result = servers.call(&tool("trigger-sampling-request"), &arguments, &hosted(&host)).await.unwrap();
    assert!(result.content.contains("said to") && result.content.contains("a word, please"), "{}", result.content);
}

async fn files_are_read_and_written_where_it_is_allowed(servers: &McpServers, work: &Path) {
    let class = |name: &str| servers.tools().iter().find(|spec| &*spec.name == name).unwrap().class;
    assert_eq!(class("filesystem__read_text_file"), EffectClass::Read, "a trusted server's hint counts");
    assert_eq!(class("filesystem__write_file"), EffectClass::Write);
    assert_eq!(class("memory__read_graph"), EffectClass::Write, "nobody trusts this one");
    let path = |name: &str| work.join(name).to_str().unwrap().to_owned();
    let text = good(servers, "filesystem__read_text_file", json!({ "path": path("notes.txt") })).await;
    assert!(text.contains("under the oak"), "{text}");
    good(servers, "filesystem__write_file", json!({ "path": path("new.txt"), "content": "new" })).await;
    assert_eq!(std::fs::read_to_string(work.join("new.txt")).unwrap(), "new");
    let denied = bad(servers, "filesystem__read_text_file", json!({ "path": "/etc/passwd" })).await;
    assert!(denied.contains("denied"), "{denied}");
}

async fn memory_remembers(servers: &McpServers) {
    let polis = json!({ "name": "polis", "entityType": "city", "observations": ["has agents"] });
    good(servers, "memory__create_entities", json!({ "entities": [polis] })).await;
    let graph = good(servers, "memory__read_graph", json!({})).await;
    assert!(graph.contains("has agents"), "{graph}");
}

async fn time_is_told(servers: &McpServers) {
    let time = good(servers, "time__get_current_time", json!({ "timezone": "Asia/Shanghai" })).await;
    assert!(time.contains("+08:00"), "{time}");
    let strange = bad(servers, "time__get_current_time", json!({ "timezone": "Nowhere" })).await;
    assert!(strange.contains("Nowhere"), "{strange}");
}

async fn git_tells_what_has_changed(servers: &McpServers, work: &Path) {
    let status = good(servers, "git__git_status", json!({ "repo_path": work })).await;
    assert!(status.contains("notes.txt"), "{status}");
    let denied = bad(servers, "git__git_status", json!({ "repo_path": "/" })).await;
    assert!(!denied.is_empty());
}

async fn a_remote_server_may_go_and_come_back(servers: &McpServers, remote: &mut Listening, folder: &Path) {
    remote.end();
    let echo = json!({ "message": "hi" });
    bad(servers, "remote__echo", echo.clone()).await;
    until("it is found to be gone", || !names(servers).contains(&"remote__echo".to_owned())).await;
    assert!(good(servers, "everything__echo", echo.clone()).await.contains("hi"), "the others go on");
    *remote = Listening::start(folder, Some(remote.port));
    until("it is there again", || names(servers).contains(&"remote__echo".to_owned())).await;
    assert!(good(servers, "remote__echo", echo).await.contains("hi"));
}

fn node(folder: &Path, name: &str, args: &[&str]) -> ServerSettings {
    let script = folder.join(format!("node_modules/@modelcontextprotocol/server-{name}/dist/index.js"));
    let args = std::iter::once(script.to_str().unwrap()).chain(args.iter().copied());
    ServerSettings::new(name, ServerTransport::command("node", args))
}

fn python(folder: &Path, name: &str, args: &[&str]) -> ServerSettings {
    let module = format!("mcp_server_{name}");
    let args = ["-m", &module].into_iter().chain(args.iter().copied()).map(str::to_owned).collect();
    let env = BTreeMap::from([("PYTHONPATH".to_owned(), folder.join("python").to_str().unwrap().to_owned())]);
    ServerSettings::new(name, ServerTransport::Command { command: "python3".to_owned(), args, env, cwd: None })
}

fn git(folder: &Path, args: &[&str]) {
    assert!(Command::new("git").args(args).current_dir(folder).status().unwrap().success());
}

/// A server that listens by itself. It ends with the test.
struct Listening {
    child: Child,
    port: u16,
}

impl Listening {
    fn start(folder: &Path, port: Option<u16>) -> Self {
        let port = port.unwrap_or_else(|| TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port());
        let script = folder.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
        let mut command = Command::new("node");
        command.arg(script).arg("streamableHttp").env("PORT", port.to_string());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { child, port }
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.end();
    }
}
