//! Endpoints with settings of their own: names, keys, headers, limits, and what their errors say.

use std::time::Duration;

use polis_http::{HeaderMap, HeaderName, HeaderValue};
use polis_ports::{Model, ModelError, ModelRequest, ModelSettings, collect};
use polis_providers::vendors::{self, OpenError, Setup};
use polis_providers::{Dialect, Endpoint, KeyCommand, KeySource, Models};
use serde_json::Value;

use crate::server::{SSE, Seen, Server, Step, events, head, hello, response};

fn saying_hi() -> Vec<Step> {
    let hi = events(&[r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#, "[DONE]"]);
    vec![Step::Send(response(200, SSE, hi.as_bytes(), 999))]
}

fn endpoint(name: &str, vendor: &str, base_url: &str) -> Endpoint {
    Endpoint { base_url: Some(base_url.to_owned()), ..Endpoint::new(name, vendors::find(vendor).unwrap()) }
}

fn header(name: &'static str, value: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))])
}

async fn open(set: &[(&str, &str)], endpoints: Vec<Endpoint>) -> Result<Models, OpenError> {
    let nobody = ("OLLAMA_HOST", "127.0.0.1:9");
    let set = [set, &[nobody]].concat();
    let lookup = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string());
    vendors::open_with(None, &lookup, Setup { endpoints, ..Setup::default() }).await
}

async fn ask(models: &Models, model: &str) -> Result<String, ModelError> {
    Ok(collect(models.stream(ModelRequest { model: model.into(), ..hello() }).await?).await?.text)
}

async fn next_request(server: &mut Server) -> (String, String) {
    loop {
        if let Seen::Request { head, body } = server.seen().await {
            return (head.to_lowercase(), body);
        }
    }
}

#[tokio::test]
async fn several_endpoints_of_one_vendor_have_their_own_addresses_keys_and_headers() {
    let (mut first, mut second) = (Server::start(saying_hi()).await, Server::start(saying_hi()).await);
    let work = Endpoint {
        key_variable: Some("WORK_TOKEN".to_owned()),
        headers: header("x-team", "blue"),
        ..endpoint("work", "openai", &first.base_url)
    };
    let home = endpoint("home", "openai", &second.base_url);
    let set = [("WORK_TOKEN", "sk-work"), ("HOME_API_KEY", "sk-home"), ("OPENAI_API_KEY", "sk-vendor")];
    let models = open(&set, vec![work, home]).await.unwrap();
    assert_eq!(ask(&models, "work/gpt").await.unwrap(), "hi");
    let (head, body) = next_request(&mut first).await;
    assert!(head.contains("\r\nauthorization: bearer sk-work\r\n") && head.contains("\r\nx-team: blue\r\n"), "{head}");
    assert!(head.contains("\r\nuser-agent: polis/"), "{head}");
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["model"], "gpt");
    assert_eq!(ask(&models, "home/gpt").await.unwrap(), "hi");
    let (head, _) = next_request(&mut second).await;
    assert!(head.contains("\r\nauthorization: bearer sk-home\r\n") && !head.contains("x-team"), "{head}");
    assert_eq!(models.address("work"), Some(&*first.base_url));
    let unknown = ask(&models, "nobody/gpt").await.unwrap_err().to_string();
    assert!(unknown.contains("openai-compatible, work, home, offline"), "{unknown}");
}

#[tokio::test]
async fn an_endpoint_with_a_name_of_its_own_never_takes_the_key_of_the_vendor_unasked() {
    let mut server = Server::start(saying_hi()).await;
    let models = open(&[("OPENAI_API_KEY", "sk-vendor")], vec![endpoint("gateway", "openai", &server.base_url)]).await.unwrap();
    assert_eq!(ask(&models, "gateway/m").await.unwrap(), "hi");
    assert!(!next_request(&mut server).await.0.contains("authorization"));
    let named = Endpoint { key_variable: Some("ITS_TOKEN".to_owned()), ..endpoint("gateway", "openai", &server.base_url) };
    let models = open(&[], vec![named]).await.unwrap();
    let error = models.find("gateway/m").unwrap_err().to_string();
    assert_eq!(error, "gateway needs a key; set ITS_TOKEN");
}

#[tokio::test]
async fn settings_of_an_account_count_in_its_other_dialect_too() {
    let mut server = Server::start(saying_hi()).await;
    let openai = Endpoint { headers: header("x-team", "blue"), ..endpoint("openai", "openai", &server.base_url) };
    let models = open(&[], vec![openai]).await.unwrap();
    // The reply is of the other dialect; only the request counts here.
    let _ = ask(&models, "openai-responses/m").await;
    let (head, _) = next_request(&mut server).await;
    assert!(head.starts_with("post /v1/responses ") && head.contains("\r\nx-team: blue\r\n"), "{head}");
    let mut server = Server::start(saying_hi()).await;
    let anthropic = Endpoint { dialect: Some(Dialect::Anthropic), ..endpoint("claude-gateway", "openai", &server.base_url) };
    let models = open(&[], vec![anthropic]).await.unwrap();
    let _ = ask(&models, "claude-gateway/m").await;
    assert!(next_request(&mut server).await.0.starts_with("post /v1/messages "));
}

#[tokio::test]
async fn a_key_of_a_file_is_kept_and_read_again_when_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "sk-first-key\n").unwrap();
    let refusal = response(401, "application/json", br#"{"error":"sk-first-key expired"}"#, 999);
    let mut server = Server::start(vec![Step::Send(refusal)]).await;
    let source = Some(KeySource::File(file.clone().into()));
    let models =
        open(&[], vec![Endpoint { key_source: source, ..endpoint("rotating", "openai", &server.base_url) }]).await.unwrap();
    let error = ask(&models, "rotating/m").await.unwrap_err();
    assert!(matches!(error, ModelError::Rejected { .. }), "the same key does not help: {error:?}");
    assert!(error.to_string().contains("/key gives is refused"), "{error}");
    std::fs::write(&file, "sk-second-key\n").unwrap();
    let error = ask(&models, "rotating/m").await.unwrap_err();
    assert!(matches!(error, ModelError::Adapted { .. }) && !error.to_string().contains("sk-"), "{error:?}");
    let _ = ask(&models, "rotating/m").await;
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.push(next_request(&mut server).await.0.contains("sk-second-key"));
    }
    assert_eq!(sent, [false, false, true]);
    std::fs::remove_file(&file).unwrap();
    let models = open(
        &[],
        vec![Endpoint { key_source: Some(KeySource::File(file.into())), ..endpoint("x", "openai", &server.base_url) }],
    );
    let error = ask(&models.await.unwrap(), "x/m").await.unwrap_err().to_string();
    assert!(error.contains("the key file") && error.contains("cannot be read"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_that_prints_another_key_each_time_is_asked_for_one_more() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = response(401, "application/json", br#"{"error":"unknown key"}"#, 999);
    let mut server = Server::start(vec![Step::Send(refusal)]).await;
    let script = "echo x >> count; echo sk-key-$(wc -l < count | tr -d ' ')";
    let words = ["sh", "-c", script].map(str::to_owned).to_vec();
    let command = KeyCommand { words, folder: Some(folder.path().to_owned()), environment: None, guard: None };
    let endpoint = Endpoint { key_source: Some(KeySource::Command(command)), ..endpoint("x", "openai", &server.base_url) };
    let models = open(&[], vec![endpoint]).await.unwrap();
    for _ in 0..2 {
        let first = ask(&models, "x/m").await.unwrap_err();
        assert!(matches!(first, ModelError::Adapted { .. }), "{first:?}");
        let second = ask(&models, "x/m").await.unwrap_err();
        assert!(matches!(second, ModelError::Rejected { .. }), "{second:?}");
        assert!(second.to_string().contains("unknown key; what the key command `sh` gives is refused"), "{second}");
    }
    for number in 1..=4 {
        let (head, _) = next_request(&mut server).await;
        assert!(head.contains(&format!("bearer sk-key-{number}\r\n")), "{number}: {head}");
    }
}

#[tokio::test]
async fn values_of_headers_are_in_no_error_and_not_sent_unencrypted() {
    let refusal = response(403, "application/json", br#"{"error":"team-secret-7 may not"}"#, 999);
    let server = Server::start(vec![Step::Send(refusal)]).await;
    let closed = Endpoint { headers: header("x-team", "team-secret-7"), ..endpoint("gate", "openai", &server.base_url) };
    let error = ask(&open(&[], vec![closed.clone()]).await.unwrap(), "gate/m").await.unwrap_err().to_string();
    assert!(error.contains("*** may not"), "{error}");
    let plain = Endpoint { base_url: Some("http://gate.example/v1".to_owned()), ..closed };
    let error = open(&[], vec![plain]).await.unwrap().find("gate/m").unwrap_err();
    assert_eq!(error.code(), "plain_http");
    assert!(error.to_string().contains("would send the header x-team unencrypted"), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_run_is_named_with_what_starts_it() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://user:password@{closed}");
    let endpoints = ["ollama", "lmstudio", "vllm", "llamacpp", "openai"].map(|vendor| endpoint(vendor, vendor, &url));
    let models = open(&[], endpoints.to_vec()).await.unwrap();
    for (model, hint) in [
        ("ollama/m", "is Ollama running? start it with `ollama serve`"),
        ("lmstudio/m", "start it with `lms server start`"),
        ("vllm/m", "start it with `vllm serve MODEL`"),
        ("llamacpp/m", "start it with `llama-server -m MODEL.gguf`"),
        ("openai/m", "check the address, and that the server runs"),
    ] {
        let error = ask(&models, model).await.unwrap_err();
        assert_eq!(error.code(), "model_unreachable");
        let said = error.to_string();
        assert!(said.contains(&format!("nothing answers at http://{closed}; ")) && said.ends_with(hint), "{said}");
        let listed = models.list(model.split('/').next().unwrap()).await.unwrap_err().to_string();
        assert!(listed.ends_with(hint), "{listed}");
    }
}

#[tokio::test]
async fn a_reply_may_not_take_longer_than_its_endpoint_allows() {
    let begun = events(&[r#"{"choices":[{"delta":{"content":"hi"}}]}"#]);
    let chunk = format!("{:x}\r\n{begun}\r\n", begun.len());
    let steps = vec![Step::Send(head(200, SSE, "")), Step::Send(chunk.into_bytes()), Step::Hang];
    let server = Server::start(steps).await;
    let mut slow = Endpoint { retries: Some(0), ..endpoint("slow", "openai", &server.base_url) };
    slow.timeouts.whole = Some(Duration::from_millis(50));
    let models = open(&[], vec![slow]).await.unwrap();
    let error = ask(&models, "slow/m").await.unwrap_err();
    assert!(error.to_string().contains("took more than 0.05 s"), "{error}");
    assert_eq!((models.description("slow/m").retries, models.description("openai/m").retries), (Some(0), None));
}

#[tokio::test]
async fn a_vendor_whose_key_comes_from_a_source_is_chosen_by_itself() {
    let source = KeySource::File(std::path::PathBuf::from("/no/such/file").into());
    let mistral = Endpoint { key_source: Some(source), ..Endpoint::new("mistral", vendors::find("mistral").unwrap()) };
    assert_eq!(&**open(&[], vec![mistral]).await.unwrap().default_name(), "mistral/mistral-small-latest");
}

#[tokio::test]
async fn azure_takes_a_key_in_its_own_header_and_a_token_of_entra_as_a_bearer() {
    let mut server = Server::start(saying_hi()).await;
    let origin = server.base_url.trim_end_matches("/v1").to_owned();
    let deployments = format!("{origin}/openai/deployments/{{model}}?api-version=2024-10-21");
    let set = [("AZURE_OPENAI_API_KEY", "0123456789abcdef")];
    let models = open(&set, vec![endpoint("azure", "azure", &deployments)]).await.unwrap();
    assert_eq!(ask(&models, "azure/mine").await.unwrap(), "hi");
    let (head, _) = next_request(&mut server).await;
    assert!(head.starts_with("post /openai/deployments/mine/chat/completions?api-version=2024-10-21 "), "{head}");
    assert!(head.contains("\r\napi-key: 0123456789abcdef\r\n") && !head.contains("authorization"), "{head}");
    let mut server = Server::start(saying_hi()).await;
    let origin = server.base_url.trim_end_matches("/v1").to_owned();
    let set = [("AZURE_OPENAI_API_KEY", "eyJhbGciOiJ9.eyJhdWQiOiJ9.c2ln"), ("AZURE_OPENAI_ENDPOINT", &*origin)];
    let models = open(&set, Vec::new()).await.unwrap();
    let _ = ask(&models, "azure-responses/mine").await;
    let (head, _) = next_request(&mut server).await;
    assert!(head.starts_with("post /openai/v1/responses "), "{head}");
    assert!(head.contains("\r\nauthorization: bearer eyj") && !head.contains("api-key"), "{head}");
}

#[tokio::test]
async fn an_endpoint_of_a_vendor_costs_what_the_vendor_costs() {
    let work = endpoint("work", "openai", "https://work.example/v1");
    let models = open(&[("OPENAI_API_KEY", "k")], vec![work]).await.unwrap();
    let cost = |model: &str| {
        let settings = ModelSettings { max_tokens: Some(1_000), ..ModelSettings::default() };
        let request = ModelRequest { model: model.into(), settings, ..hello() };
        models.estimate(&request).cost_nanos
    };
    assert!(cost("openai/gpt-4.1-mini") > 0);
    assert_eq!(cost("work/gpt-4.1-mini"), cost("openai/gpt-4.1-mini"));
    assert_eq!(models.description("work/gpt-4.1-mini").window, models.description("openai/gpt-4.1-mini").window);
}
