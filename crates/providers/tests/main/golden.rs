//! The body that each vendor is sent for one rich conversation: kept in a file each, and checked against the types of the vendors'
//! own SDKs where there are any.
//!
//! `UPDATE_GOLDEN=1 cargo test -p polis-providers --test main golden` writes the files anew. The folder with the SDKs is made by
//! `cargo xtask test`; without it that test is skipped.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use polis_domain::{EffectClass, ToolCall};
use polis_http::HttpOptions;
use polis_ports::{ChatMessage, Effort, Format, Model, ModelRequest, ModelSettings, ToolSpec, VendorTool};
use polis_providers::vendors::{self, Setup, VENDORS, Vendor};
use polis_providers::{Dialect, Endpoint};
use serde_json::{Value, json};

use crate::server::{Seen, Server, Step, response};

/// Names the folder with the SDKs.
const SDKS: &str = "POLIS_TEST_SDKS";

/// The model of vendors that have no usual one.
const LOCAL_MODEL: &str = "gpt-oss-20b";

/// What one vendor's model would want back with its reasoning.
fn echo(dialect: Dialect) -> Option<Arc<Value>> {
    let (name, items) = match dialect {
        Dialect::OpenAiChat => {
            ("openai_chat", json!([{ "type": "reasoning.text", "index": 0, "text": "I need both.", "signature": "s" }]))
        }
        Dialect::OpenAiResponses => (
            "openai_responses",
            json!([
                { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e" },
                { "type": "function_call", "call_id": "call_PTLP8xhu3uwZk4l3nlnrrJha" },
                { "type": "function_call", "call_id": "functions.read:1" },
            ]),
        ),
        Dialect::Anthropic => (
            "anthropic",
            json!([
                { "type": "thinking", "thinking": "I need both.", "signature": "s" },
                { "type": "tool_use", "id": "call_PTLP8xhu3uwZk4l3nlnrrJha", "name": "read", "input": { "path": "a.txt" } },
                { "type": "tool_use", "id": "functions.read:1", "name": "read", "input": { "path": "b.txt" } },
            ]),
        ),
        Dialect::Gemini => (
            "gemini",
            json!([
                { "functionCall": { "id": "call_PTLP8xhu3uwZk4l3nlnrrJha", "name": "read", "args": { "path": "a.txt" } }, "thoughtSignature": "cw==" },
                { "functionCall": { "id": "functions.read:1", "name": "read", "args": { "path": "b.txt" } } },
            ]),
        ),
        Dialect::Bedrock => (
            "bedrock",
            json!([
                { "reasoningContent": { "reasoningText": { "text": "I need both.", "signature": "s" } } },
                { "toolUse": { "toolUseId": "call_PTLP8xhu3uwZk4l3nlnrrJha", "name": "read", "input": { "path": "a.txt" } } },
                { "toolUse": { "toolUseId": "functions.read:1", "name": "read", "input": { "path": "b.txt" } } },
            ]),
        ),
        // A conversation that began with another vendor.
        Dialect::Vertex | Dialect::Ollama => return None,
    };
    Some(Arc::new(json!({ "dialect": name, "items": items })))
}

/// A system prompt, a tool, two parallel calls with ids of other vendors, a result and a failure, reasoning, a shape, an effort and
/// limits.
fn conversation(model: String, dialect: Dialect, effort: Effort) -> ModelRequest {
    let call = |id: &str, path: &str| ToolCall {
        id: id.into(),
        name: "read".into(),
        arguments: json!({ "path": path }).to_string().into(),
    };
    let result = |id: &str, content: &str, is_error| ChatMessage::Tool {
        call_id: id.into(),
        name: "read".into(),
        content: content.into(),
        is_error,
        media: Vec::new(),
    };
    let schema = |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } }, "required": [name] });
    ModelRequest {
        model: model.into(),
        system: "Be brief.".into(),
        messages: vec![
            ChatMessage::user("Hello."),
            ChatMessage::assistant("Hello. What is it about?"),
            ChatMessage::user("比较 a.txt 和 b.txt。"),
            ChatMessage::Assistant {
                text: "I read both.".into(),
                reasoning: "I need both.".into(),
                tool_calls: vec![call("call_PTLP8xhu3uwZk4l3nlnrrJha", "a.txt"), call("functions.read:1", "b.txt")],
                echo: echo(dialect),
            },
            result("call_PTLP8xhu3uwZk4l3nlnrrJha", "one", false),
            result("functions.read:1", "no such file", true),
        ],
        tools: Arc::new([ToolSpec {
            name: "read".into(),
            description: "Reads a file.".to_owned(),
            parameters: schema("path"),
            class: EffectClass::Read,
            volatile: false,
        }]),
        format: Some(Arc::new(Format { name: "answer".to_owned(), schema: schema("difference") })),
        settings: ModelSettings {
            effort: Some(effort),
            temperature: Some(0.5),
            max_tokens: Some(9_000),
            ..ModelSettings::default()
        },
        ..ModelRequest::default()
    }
}

/// A body that is kept: of a vendor for one of its models.
struct Case {
    name: String,
    vendor: &'static Vendor,
    model: &'static str,
    effort: Effort,
    /// The types that it is checked against.
    types: String,
}

/// Each vendor with its usual model, clouds with a model of each kind, and a model of Gemini that is not to think.
fn cases() -> Vec<Case> {
    let case = |vendor: &'static Vendor, kind: &str, model, types: &str| Case {
        name: format!("{}{kind}", vendor.name),
        vendor,
        model,
        effort: Effort::Medium,
        types: types.to_owned(),
    };
    let of_vendor = |vendor: &'static Vendor| match vendor.dialect {
        Dialect::Bedrock => vec![
            case(vendor, "", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "Bedrock"),
            case(vendor, "-adaptive", "global.anthropic.claude-opus-4-6-v1", "Bedrock"),
            case(vendor, "-nova", "us.amazon.nova-2-lite-v1:0", "Bedrock"),
        ],
        Dialect::Vertex => vec![
            case(vendor, "", "gemini-2.5-pro", "Gemini"),
            case(vendor, "-claude", "claude-sonnet-4-5@20250929", "VertexAnthropic"),
        ],
        Dialect::Gemini => vec![
            case(vendor, "", vendor.default_model.unwrap_or(LOCAL_MODEL), "Gemini"),
            Case { effort: Effort::None, ..case(vendor, "-no-thinking", "gemini-2.5-flash", "Gemini") },
        ],
        dialect => vec![case(vendor, "", vendor.default_model.unwrap_or(LOCAL_MODEL), &format!("{dialect:?}"))],
    };
    VENDORS.iter().flat_map(of_vendor).collect()
}

/// The same conversation after a search by the vendor, which may use all tools that it has. Anthropic has no structured output beside
/// them.
fn with_vendor_tools(request: ModelRequest, tools: Vec<VendorTool>, dialect: Dialect) -> ModelRequest {
    let searched = match dialect {
        Dialect::OpenAiResponses => json!([
            { "type": "web_search_call", "id": "ws_1", "status": "completed", "action": { "type": "search", "query": "q" } },
            { "type": "code_interpreter_call", "id": "ci_1", "status": "completed", "code": "1+1", "container_id": "c",
              "outputs": [{ "type": "logs", "logs": "2" }] },
            { "type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [
                { "type": "output_text", "text": "Found.", "annotations": [
                    { "type": "url_citation", "url": "https://a", "title": "A", "start_index": 0, "end_index": 5 }] }] },
        ]),
        Dialect::Anthropic => json!([
            { "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": { "query": "q" } },
            { "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
                { "type": "web_search_result", "url": "https://a", "title": "A", "encrypted_content": "e", "page_age": null }] },
            { "type": "text", "text": "Found.", "citations": [
                { "type": "web_search_result_location", "url": "https://a", "title": "A", "encrypted_index": "i", "cited_text": "c" }] },
        ]),
        Dialect::Gemini => json!([
            { "toolCall": { "toolType": "GOOGLE_SEARCH_WEB", "args": { "queries": ["q"] }, "id": "t1" }, "thoughtSignature": "cw==" },
            { "toolResponse": { "toolType": "GOOGLE_SEARCH_WEB", "response": { "search_suggestions": "" }, "id": "t1" } },
            { "text": "Found." },
        ]),
        Dialect::OpenAiChat | Dialect::Ollama | Dialect::Bedrock | Dialect::Vertex => json!([]),
    };
    let name = echo(dialect).map(|echo| echo["dialect"].clone());
    let items = searched.as_array().filter(|items| !items.is_empty()).map(|items| json!({ "dialect": name, "items": items }));
    let found = ChatMessage::Assistant {
        text: "Found.".into(),
        reasoning: Arc::default(),
        tool_calls: Vec::new(),
        echo: items.map(Arc::new),
    };
    let mut messages = request.messages.clone();
    messages.extend([found, ChatMessage::user("Go on.")]);
    ModelRequest { messages, vendor_tools: tools, format: None, ..request }
}

/// What a vendor is sent.
async fn body(vendor: &'static Vendor, model: &str) -> Value {
    sent(vendor, model, Effort::Medium, false).await.unwrap()
}

/// What a vendor is sent, with the tools that it runs itself or without them; none if it has no such tools.
async fn sent(vendor: &'static Vendor, model: &str, effort: Effort, has_vendor_tools: bool) -> Option<Value> {
    let mut server = Server::start(vec![Step::Send(response(400, "text/plain", b"enough", 9))]).await;
    let set = [
        (vendor.key_variable.to_owned(), "k".to_owned()),
        (vendor.base_url_variable(), server.base_url.clone()),
        ("POLIS_LOCAL_MODELS".to_owned(), "off".to_owned()),
        ("AWS_REGION".to_owned(), "eu-central-1".to_owned()),
        ("GOOGLE_CLOUD_PROJECT".to_owned(), "p".to_owned()),
    ];
    let lookup = |name: &str| set.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    let model = format!("{}/{model}", vendor.name);
    let endpoint = Endpoint { file_stores: vec!["vs_1".to_owned()], ..Endpoint::new(vendor.name, vendor) };
    let setup = Setup { network: HttpOptions::default(), endpoints: vec![endpoint] };
    let models = vendors::open_with(Some(&model), &lookup, setup).await.unwrap();
    let mut request = conversation(model.clone(), vendor.dialect, effort);
    if has_vendor_tools {
        let tools = models.description(&model).capabilities.vendor_tools.unwrap_or_default();
        if tools.is_empty() {
            return None;
        }
        request = with_vendor_tools(request, tools.to_vec(), vendor.dialect);
    }
    assert!(models.stream(request).await.is_err());
    loop {
        if let Seen::Request { body, .. } = server.seen().await {
            return Some(serde_json::from_str(&body).unwrap());
        }
    }
}

/// JSON with a line for each field, and one for each message and tool.
fn in_lines(body: &Value) -> String {
    let mut text = String::from("{");
    for (number, (name, value)) in body.as_object().unwrap().iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        let value = match value {
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| format!("\n    {item}")).collect();
                format!("[{}\n  ]", items.join(","))
            }
            value => value.to_string(),
        };
        write!(text, "{comma}\n  \"{name}\": {value}").unwrap();
    }
    text + "\n}\n"
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Compares what vendors are sent with the files of a folder, or writes these.
async fn check_bodies(folder: &Path, has_vendor_tools: bool) {
    let updates = std::env::var_os("UPDATE_GOLDEN").is_some();
    let (mut changed, mut count) = (Vec::new(), 0);
    for Case { name, vendor, model, effort, .. } in cases() {
        let Some(body) = sent(vendor, model, effort, has_vendor_tools).await else { continue };
        let file = folder.join(format!("{name}.json"));
        let sent = in_lines(&body);
        count += 1;
        if updates {
            std::fs::write(&file, &sent).unwrap();
        } else if std::fs::read_to_string(&file).unwrap_or_default() != sent {
            changed.push(format!("{name}:\n{sent}"));
        }
    }
    assert!(changed.is_empty(), "other bodies than in tests/golden; UPDATE_GOLDEN=1 writes them:\n{}", changed.join("\n"));
    assert_eq!(bodies_in(folder).len(), count, "a file for each body, and no other");
}

/// The names of the bodies of a folder.
fn bodies_in(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned)).collect()
}

#[tokio::test]
async fn every_vendor_is_sent_the_body_in_its_file() {
    check_bodies(&folder(), false).await;
    assert_eq!(bodies_in(&folder()).len(), cases().len());
}

#[tokio::test]
async fn vendors_with_tools_of_their_own_are_sent_the_body_in_their_file() {
    check_bodies(&folder().join("vendor_tools"), true).await;
}

/// The ids that Mistral takes, on the wire.
#[tokio::test]
async fn mistral_gets_ids_of_nine_letters_and_digits_for_calls_of_other_vendors() {
    let mistral = vendors::find("mistral").unwrap();
    let sent = body(mistral, mistral.default_model.unwrap()).await;
    let calls = sent["messages"][4]["tool_calls"].as_array().unwrap().clone();
    let ids: Vec<&str> = calls.iter().map(|call| call["id"].as_str().unwrap()).collect();
    assert!(ids.iter().all(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())), "{ids:?}");
    assert_ne!(ids[0], ids[1]);
    assert_eq!([&sent["messages"][5]["tool_call_id"], &sent["messages"][6]["tool_call_id"]], [&json!(ids[0]), &json!(ids[1])]);
}

#[test]
fn the_official_sdks_take_the_bodies() {
    let Some(sdks) = std::env::var_os(SDKS) else {
        let name = "the_official_sdks_take_the_bodies";
        writeln!(std::io::stderr(), "skipped: {name}: {SDKS} names no folder; cargo xtask test makes one").unwrap();
        return;
    };
    for folder in [folder(), folder().join("vendor_tools")] {
        let cases = cases().into_iter().filter(|case| bodies_in(&folder).contains(&case.name));
        let types: serde_json::Map<String, Value> = cases.map(|case| (case.name, case.types.into())).collect();
        let count = types.len();
        let mut python = Command::new("python3");
        python.arg(self::folder().join("check.py")).arg(&folder).arg(Value::from(types).to_string()).env("PYTHONPATH", &sdks);
        let output = python.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let checked = said.lines().filter(|line| line.starts_with("ok ")).count();
        assert_eq!(checked, count, "{said}");
    }
}
