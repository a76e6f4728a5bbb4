//! Several vendors behind one port.

use std::sync::Arc;

use polis_domain::EffectClass;
use polis_ports::{Model, ModelError, ModelRequest, ToolSpec, collect};
use polis_providers::{Models, vendors};
use serde_json::{Value, json};

use crate::server::{SSE, Seen, Server, Step, events, hello, response};

fn open(model: Option<&str>, set: &[(&str, &str)]) -> Models {
    let lookup = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string());
    vendors::open(model, &lookup).unwrap()
}

async fn ask(models: &Models, model: &str) -> Result<String, ModelError> {
    let request = ModelRequest { model: model.into(), ..hello() };
    Ok(collect(models.stream(request).await?).await?.text)
}

#[tokio::test]
async fn the_name_in_the_request_says_which_vendor_is_asked_for_which_model() {
    let hi = events(&[r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#, "[DONE]"]);
    let mut server = Server::start(vec![Step::Send(response(200, SSE, hi.as_bytes(), 999))]).await;
    let url = server.base_url.clone();
    let models = open(Some("openrouter/a/b"), &[("OPENROUTER_BASE_URL", &url), ("DASHSCOPE_BASE_URL", &url)]);
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
async fn models_without_tools_are_lent_ours_by_name() {
    let answer = events(&[r#"{"choices":[{"delta":{"content":"{\"answer\": \"hi\"}"},"finish_reason":"stop"}]}"#, "[DONE]"]);
    let server = Server::start(vec![Step::Send(response(200, SSE, answer.as_bytes(), 999))]).await;
    let set = [("OLLAMA_BASE_URL", &*server.base_url), ("DASHSCOPE_BASE_URL", &*server.base_url)];
    let patterns = ["ollama/smollm2*".to_owned(), "ollama/gemma".to_owned(), "qwen/*".to_owned()];
    let models = open(Some("ollama/smollm2:135m"), &set).with_emulated_tools(&patterns).unwrap();
    let tool = ToolSpec { name: "t".into(), description: String::new(), parameters: json!({}), class: EffectClass::Read };
    for (model, want) in [
        ("", "hi"),
        ("ollama/gemma", "hi"),
        ("dashscope/qwen-max", "hi"),
        ("qwen", "hi"),
        ("ollama/qwen3", "{\"answer\": \"hi\"}"),
        ("ollama/gemma2", "{\"answer\": \"hi\"}"),
    ] {
        let request = ModelRequest { model: model.into(), tools: Arc::new([tool.clone()]), ..hello() };
        assert_eq!(collect(models.stream(request).await.unwrap()).await.unwrap().text, want, "{model}");
    }
    let unknown = open(None, &[]).with_emulated_tools(&["nobody/*".to_owned()]).err().map(|error| error.to_string());
    assert!(unknown.is_some_and(|why| why.starts_with("`nobody/*` names no vendor that we know")));
}

#[tokio::test]
async fn a_vendor_that_is_not_set_up_is_refused_with_what_to_set() {
    let models = open(None, &[]);
    assert!(models.is_offline());
    assert!(ask(&models, "").await.unwrap().contains("offline model"));
    let refused = ask(&models, "mistral/m").await.unwrap_err().to_string();
    assert_eq!(refused, "the provider rejects the request: mistral needs a key; set MISTRAL_API_KEY");
    assert!(ask(&models, "nobody/m").await.unwrap_err().to_string().contains("`nobody/m` names no vendor"));
}
