//! Several vendors behind one port.

use std::sync::Arc;

use polis_domain::{EffectClass, Usage};
use polis_ports::{Effort, Model, ModelError, ModelRequest, ModelSettings, ToolSpec, collect};
use polis_providers::{ListedModel, Models, Price, Prices, vendors};
use serde_json::{Value, json};

use crate::server::{SSE, Seen, Server, Step, events, hello, response};

/// Model servers on the machine that runs the tests must not answer.
const NOBODY: [(&str, &str); 4] = [
    ("OLLAMA_HOST", "127.0.0.1:9"),
    ("LMSTUDIO_BASE_URL", "http://127.0.0.1:9/v1"),
    ("LLAMACPP_BASE_URL", "http://127.0.0.1:9/v1"),
    ("VLLM_BASE_URL", "http://127.0.0.1:9/v1"),
];

async fn open(model: Option<&str>, set: &[(&str, &str)]) -> Models {
    let set = [set, &NOBODY].concat();
    let lookup = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string());
    vendors::open(model, &lookup).await.unwrap()
}

async fn ask(models: &Models, model: &str) -> Result<String, ModelError> {
    let request = ModelRequest { model: model.into(), ..hello() };
    Ok(collect(models.stream(request).await?).await?.text)
}

#[tokio::test]
async fn a_line_of_the_user_makes_a_server_of_unknown_make_get_the_effort() {
    let mut server = Server::start(vec![Step::Send(response(400, "text/plain", b"enough", 9)); 2]).await;
    let address = server.base_url.clone();
    let lookup = move |name: &str| (name == "OPENAI_COMPATIBLE_BASE_URL").then(|| address.clone());
    let models = vendors::open(Some("openai-compatible/m"), &lookup).await.unwrap();
    let lines = "\"openai-compatible/thinker\" = { efforts = [\"low\", \"high\"] }";
    let models = models.with_table(toml::from_str(lines).unwrap(), ModelSettings::default());
    for model in ["openai-compatible/thinker", "openai-compatible/other"] {
        let settings = ModelSettings { effort: Some(Effort::Max), ..ModelSettings::default() };
        let request = ModelRequest { model: model.into(), settings, ..ModelRequest::from("hello") };
        assert!(models.stream(request).await.is_err());
    }
    let mut efforts = Vec::new();
    while efforts.len() < 2 {
        if let Seen::Request { body, .. } = server.seen().await {
            efforts.push(serde_json::from_str::<Value>(&body).unwrap()["reasoning_effort"].clone());
        }
    }
    assert_eq!(efforts, [json!("high"), Value::Null]);
}

#[tokio::test]
async fn the_name_in_the_request_says_which_vendor_is_asked_for_which_model() {
    let hi = events(&[r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#, "[DONE]"]);
    let mut server = Server::start(vec![Step::Send(response(200, SSE, hi.as_bytes(), 999))]).await;
    let url = server.base_url.clone();
    let models = open(Some("openrouter/a/b"), &[("OPENROUTER_BASE_URL", &url), ("DASHSCOPE_BASE_URL", &url)]).await;
    let mut sent = Vec::new();
    for model in ["", "openrouter/c/d", "qwen/max", "qwen"] {
        assert_eq!(ask(&models, model).await.unwrap(), "hi");
        let body = loop {
            if let Seen::Request { body, .. } = server.seen().await {
                break body;
            }
        };
        sent.push(serde_json::from_str::<Value>(&body).unwrap()["model"].as_str().unwrap().to_owned());
    }
    assert_eq!(sent, ["a/b", "c/d", "max", "qwen-plus"]);
}

#[tokio::test]
async fn a_vendor_is_asked_through_the_proxy_that_is_set() {
    let hi = events(&[r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#, "[DONE]"]);
    let mut proxy = Server::start(vec![Step::Send(response(200, SSE, hi.as_bytes(), 999))]).await;
    let address = proxy.base_url.trim_end_matches("/v1").to_owned();
    let set = [("VLLM_BASE_URL", "http://model.example/v1"), ("http_proxy", &*address)];
    assert_eq!(ask(&open(Some("vllm/m"), &set).await, "").await.unwrap(), "hi");
    assert_eq!(proxy.seen().await, Seen::Connected);
    let Seen::Request { head, .. } = proxy.seen().await else { panic!("a request") };
    assert!(head.starts_with("POST http://model.example/v1/chat/completions HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nuser-agent: polis/"), "{head}");
}

#[tokio::test]
async fn models_without_tools_are_lent_ours_by_name() {
    let answer = events(&[r#"{"choices":[{"delta":{"content":"{\"answer\": \"hi\"}"},"finish_reason":"stop"}]}"#, "[DONE]"]);
    let server = Server::start(vec![Step::Send(response(200, SSE, answer.as_bytes(), 999))]).await;
    let set = [("VLLM_BASE_URL", &*server.base_url), ("DASHSCOPE_BASE_URL", &*server.base_url)];
    let patterns = ["vllm/smollm2*".to_owned(), "vllm/gemma".to_owned(), "qwen/*".to_owned()];
    let models = open(Some("vllm/smollm2:135m"), &set).await.with_emulated_tools(&patterns).unwrap();
    let tool = ToolSpec {
        name: "t".into(),
        description: String::new(),
        parameters: json!({}),
        class: EffectClass::Read,
        volatile: false,
    };
    for (model, want) in [
        ("", "hi"),
        ("vllm/gemma", "hi"),
        ("dashscope/qwen-max", "hi"),
        ("qwen", "hi"),
        ("vllm/qwen3", "{\"answer\": \"hi\"}"),
        ("vllm/gemma2", "{\"answer\": \"hi\"}"),
    ] {
        let request = ModelRequest { model: model.into(), tools: Arc::new([tool.clone()]), ..hello() };
        assert_eq!(collect(models.stream(request).await.unwrap()).await.unwrap().text, want, "{model}");
    }
    let unknown = open(None, &[]).await.with_emulated_tools(&["nobody/*".to_owned()]).err().map(|error| error.to_string());
    assert!(unknown.is_some_and(|why| why.starts_with("`nobody/*` names no known vendor")));
}

#[tokio::test]
async fn a_vendor_that_is_not_set_up_is_refused_with_what_to_set() {
    let models = open(None, &[]).await;
    assert!(models.is_offline());
    assert!(ask(&models, "").await.unwrap().contains("offline model"));
    let refused = ask(&models, "mistral/m").await.unwrap_err().to_string();
    assert_eq!(refused, "the provider rejects the request: mistral needs a key; set MISTRAL_API_KEY");
    assert!(ask(&models, "nobody/m").await.unwrap_err().to_string().contains("`nobody/m` names no known vendor"));
}

/// A server that answers everything with one JSON value.
async fn answering(json: &str) -> Server {
    Server::start(vec![Step::Send(response(200, "application/json", json.as_bytes(), 999))]).await
}

/// Its address without a path.
fn host(server: &Server) -> String {
    server.base_url.trim_end_matches("/v1").to_owned()
}

#[tokio::test]
async fn without_a_model_and_a_key_an_ollama_on_this_machine_answers() {
    let server = answering(r#"{"models":[{"name":"nomic-embed-text"},{"name":"qwen3:4b"},{"name":"other"}]}"#).await;
    let (host, base_url) = (host(&server), server.base_url.clone());
    for set in [("OLLAMA_HOST", host.trim_start_matches("http://")), ("OLLAMA_HOST", &host), ("OLLAMA_BASE_URL", &base_url)] {
        assert_eq!(&**open(None, &[set]).await.default_name(), "ollama/qwen3:4b", "{set:?}");
    }
    assert_eq!(
        &**open(None, &[("OLLAMA_HOST", &host), ("GROQ_API_KEY", "k")]).await.default_name(),
        "groq/openai/gpt-oss-120b"
    );
    assert_eq!(&**open(Some("offline"), &[("OLLAMA_HOST", &host)]).await.default_name(), "offline");
    let empty = answering(r#"{"models":[]}"#).await;
    assert!(open(None, &[("OLLAMA_BASE_URL", &empty.base_url)]).await.is_offline());
    let silent = Server::start(vec![Step::Hang]).await;
    assert!(open(None, &[("OLLAMA_BASE_URL", &silent.base_url)]).await.is_offline());
}

#[tokio::test]
async fn of_the_models_on_this_machine_one_that_calls_tools_answers_and_the_reason_is_told() {
    let list =
        r#"{"data":[{"id":"small","type":"llm","capabilities":[]},{"id":"q","type":"llm","capabilities":["tool_use"]}]}"#;
    let studio = answering(list).await;
    let found = open(None, &[("LMSTUDIO_BASE_URL", &studio.base_url)]).await;
    assert_eq!(&**found.default_name(), "lmstudio/q");
    assert_eq!(found.choice(), Some("it runs on this machine and can call tools"));
    assert_eq!(found.description("").capabilities.tools, Some(true));
    assert_eq!(found.description("lmstudio/small").capabilities.tools, Some(false), "the whole list is kept");
    let switched_off = [("LMSTUDIO_BASE_URL", &*studio.base_url), ("POLIS_LOCAL_MODELS", "off")];
    assert!(open(None, &switched_off).await.is_offline());
    let shown = r#"{"models":[{"name":"gemma3:1b"}],"capabilities":["completion"],"model_info":{"g.context_length":32768}}"#;
    let ollama = answering(shown).await;
    let found = open(None, &[("OLLAMA_BASE_URL", &ollama.base_url)]).await;
    assert_eq!(&**found.default_name(), "ollama/gemma3:1b");
    assert!(found.choice().unwrap().contains("cannot call tools"), "{:?}", found.choice());
    assert_eq!(
        (found.description("").capabilities.window, found.description("").window),
        (Some(32_768), None),
        "turns decide by what stays"
    );
    // The server talks to one client at a time.
    drop(found);
    let chosen = open(Some("ollama/gemma3:1b"), &[("OLLAMA_BASE_URL", &ollama.base_url)]).await;
    assert_eq!(
        (chosen.choice(), chosen.description("").capabilities.tools),
        (None, Some(false)),
        "a chosen one is asked about too"
    );
}

#[tokio::test]
async fn a_model_without_tools_gets_them_in_words_and_settings_reach_the_vendor() {
    let said = events(&[r#"{"choices":[{"delta":{"content":"{\"answer\":\"hi\"}"},"finish_reason":"stop"}]}"#, "[DONE]"]);
    let mut server = Server::start(vec![Step::Send(response(200, SSE, said.as_bytes(), 999))]).await;
    let set = [("PERPLEXITY_BASE_URL", &*server.base_url), ("OPENAI_BASE_URL", &server.base_url)];
    let mut everywhere = ModelSettings::at_temperature(0.2);
    everywhere.set("effort", "max").unwrap();
    let lines = "'openai/gpt-5' = { settings = { seed = 7 } }\n'perplexity/sonar' = { settings = { temperature = 0.9 } }";
    let models = open(Some("perplexity/sonar"), &set).await.with_table(toml::from_str(lines).unwrap(), everywhere);
    let tool = ToolSpec {
        name: "look".into(),
        description: String::new(),
        parameters: json!({ "type": "object" }),
        class: polis_domain::EffectClass::Read,
        volatile: false,
    };
    let mut ask = async |model: &str| {
        let request = ModelRequest { model: model.into(), tools: [tool.clone()].into(), ..hello() };
        let reply = collect(models.stream(request).await.unwrap()).await.unwrap();
        loop {
            if let Seen::Request { body, .. } = server.seen().await {
                return (reply.text, serde_json::from_str::<Value>(&body).unwrap());
            }
        }
    };
    let (text, body) = ask("").await;
    assert_eq!((&*text, body.get("tools"), &body["temperature"]), ("hi", None, &json!(0.9)));
    assert!(body["messages"][0]["content"].as_str().unwrap().contains("look"), "{body}");
    let (_, body) = ask("openai/gpt-5").await;
    assert!(body["tools"].is_array());
    assert_eq!((&body["seed"], &body["reasoning_effort"]), (&json!(7), &json!("high")), "max is not known there: {body}");
}

#[tokio::test]
async fn a_setting_that_a_vendor_refuses_is_left_out_of_the_next_attempt() {
    let refusal = br#"{"error":{"message":"Unsupported parameter: 'temperature' is not supported with this model."}}"#;
    let mut server = Server::start(vec![Step::Send(response(400, "application/json", refusal, 999))]).await;
    let models = open(Some("openai-compatible/m"), &[("OPENAI_COMPATIBLE_BASE_URL", &server.base_url)]).await;
    let request = ModelRequest { settings: ModelSettings::at_temperature(0.2), ..hello() };
    let mut codes = Vec::new();
    for request in [request.clone(), request] {
        codes.push(models.stream(request).await.err().unwrap().code());
    }
    assert_eq!(codes, ["model_adapted", "model_rejected"]);
    let mut sent = Vec::new();
    while sent.len() < 2 {
        if let Seen::Request { body, .. } = server.seen().await {
            sent.push(body.contains("\"temperature\""));
        }
    }
    assert_eq!(sent, [true, false]);
}

#[tokio::test]
async fn a_vendor_lists_its_models_with_what_is_known_of_them() {
    let mut server = answering(r#"{"data":[{"id":"gpt-4o-mini"},{"id":"new","context_length":77}]}"#).await;
    let models = open(Some("openai/m"), &[("OPENAI_BASE_URL", &server.base_url), ("OPENAI_API_KEY", "sk-secret")]).await;
    let price = Price { input: 0.15, cached: Some(0.075), cache_write: None, output: 0.6 };
    let want = [("openai/gpt-4o-mini", Some(128_000), Some(true), Some(price)), ("openai/new", Some(77), None, None)];
    let listed = models.list("openai").await.unwrap();
    let told = listed
        .iter()
        .map(|ListedModel { model, capabilities, price }| (model.as_str(), capabilities.window, capabilities.images, *price));
    assert_eq!(told.collect::<Vec<_>>(), want);
    assert_eq!(server.seen().await, Seen::Connected);
    let Seen::Request { head, .. } = server.seen().await else { panic!("no request") };
    assert!(head.starts_with("GET /v1/models HTTP/1.1") && head.contains("authorization: Bearer sk-secret"), "{head}");
    assert_eq!(models.list("offline").await.unwrap()[0].model, "offline");
    assert!(models.list("nobody").await.unwrap_err().to_string().contains("names no known vendor"));
    assert!(models.list("mistral").await.unwrap_err().to_string().contains("MISTRAL_API_KEY"));
    let page = Server::start(vec![Step::Send(response(200, "text/html", b"<html>", 9))]).await;
    let models = open(Some("openai/m"), &[("OPENAI_BASE_URL", &page.base_url)]).await;
    assert!(models.list("openai").await.unwrap_err().to_string().contains("is the base URL right?"));
}

#[tokio::test]
async fn every_dialect_asks_for_its_list_where_the_vendor_has_it() {
    let cases = [
        ("openai-responses", "OPENAI_RESPONSES_BASE_URL", "GET /v1/models "),
        ("anthropic", "ANTHROPIC_BASE_URL", "GET /v1/models?limit=1000 "),
        ("gemini", "GOOGLE_BASE_URL", "GET /v1/models?pageSize=1000 "),
        ("ollama", "OLLAMA_BASE_URL", "GET /api/tags "),
    ];
    for (vendor, variable, line) in cases {
        let mut server = answering(r#"{"models":[{"name":"models/x"}]}"#).await;
        let models = open(Some("offline"), &[(variable, &server.base_url)]).await;
        assert_eq!(models.list(vendor).await.unwrap()[0].model, format!("{vendor}/x"));
        server.seen().await;
        let Seen::Request { head, .. } = server.seen().await else { panic!("no request") };
        assert!(head.starts_with(line), "{head}");
    }
}

#[tokio::test]
async fn a_check_asks_for_a_word_and_says_what_it_cost() {
    let said = events(&[
        r#"{"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":10}}"#,
        "[DONE]",
    ]);
    let mut server = Server::start(vec![Step::Send(response(200, SSE, said.as_bytes(), 999))]).await;
    let models = open(Some("openai/gpt-4o"), &[("OPENAI_BASE_URL", &server.base_url)]).await;
    let checked = models.check("").await.unwrap();
    let usage = Usage { input_tokens: 1000, output_tokens: 10, cost_nanos: 1000 * 2500 + 10 * 10_000, ..Usage::default() };
    assert_eq!((&*checked.model, checked.usage), ("openai/gpt-4o", usage));
    server.seen().await;
    let Seen::Request { body, .. } = server.seen().await else { panic!("no request") };
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["max_completion_tokens"], 16);
    let own = Prices::read("\"openai/\" = { input = 1, output = 1 }\n\"openai/gpt-4o\" = { input = 1, output = 1 }").unwrap();
    let cheap = models.with_prices(own);
    assert_eq!(cheap.check("openai/gpt-4o").await.unwrap().usage.cost_nanos, 1_010_000);
    assert!(cheap.check("mistral/m").await.is_err());
}

#[tokio::test]
async fn a_request_is_priced_before_it_is_sent_and_a_window_is_known_by_name() {
    let models = open(Some("anthropic/claude-opus-4-8"), &[("ANTHROPIC_API_KEY", "k")]).await;
    let request = ModelRequest { settings: ModelSettings { max_tokens: Some(1000), ..ModelSettings::default() }, ..hello() };
    let guess = models.estimate(&request);
    assert_eq!(guess.cost_nanos, guess.input_tokens * 5000 + 1000 * 25_000);
    let unknown = models.estimate(&ModelRequest { model: "openai-compatible/m".into(), ..request });
    assert_eq!((unknown.cost_nanos, unknown.output_tokens), (0, 1000));
    assert_eq!(models.description("").window, Some(1_000_000));
    assert_eq!(models.description("qwen/qwen-max").window, Some(32_768));
    assert_eq!(models.description("nobody/m").window, None);
}

#[tokio::test]
async fn settings_stay_within_the_longest_answer_of_a_model() {
    for (model, settings, want) in [
        ("anthropic/claude-opus-4-1", [("effort", "max"), ("seed", "")], (32_000, 30_976)),
        ("anthropic/claude-opus-4-1", [("thinking_budget", "900000"), ("seed", "")], (32_000, 30_976)),
        ("anthropic/claude-opus-4-1", [("effort", "low"), ("seed", "")], (18_432, 2_048)),
        ("anthropic/claude-opus-4-1", [("max_tokens", "99000"), ("effort", "low")], (32_000, 2_048)),
    ] {
        let mut server = Server::start(vec![Step::Send(response(400, "text/plain", b"enough", 999))]).await;
        let models = open(Some(model), &[("ANTHROPIC_BASE_URL", &server.base_url), ("ANTHROPIC_API_KEY", "k")]).await;
        let mut request = hello();
        for (name, value) in settings {
            request.settings.set(name, value).unwrap();
        }
        assert!(models.stream(request).await.is_err());
        let body: Value = loop {
            if let Seen::Request { body, .. } = server.seen().await {
                break serde_json::from_str(&body).unwrap();
            }
        };
        assert_eq!((&body["max_tokens"], &body["thinking"]["budget_tokens"]), (&want.0.into(), &want.1.into()), "{model}");
    }
}
