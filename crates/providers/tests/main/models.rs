//! Several vendors behind one port.

use polis_ports::{Model, ModelError, ModelRequest, collect};
use polis_providers::{Models, vendors};
use serde_json::Value;

use crate::server::{SSE, Seen, Server, Step, events, hello, response};

async fn open(model: Option<&str>, set: &[(&str, &str)]) -> Models {
    let nobody = ("OLLAMA_HOST", "127.0.0.1:9");
    let set = [set, &[nobody]].concat();
    let lookup = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string());
    vendors::open(model, &lookup).await.unwrap()
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
async fn a_vendor_that_is_not_set_up_is_refused_with_what_to_set() {
    let models = open(None, &[]).await;
    assert!(models.is_offline());
    assert!(ask(&models, "").await.unwrap().contains("offline model"));
    let refused = ask(&models, "mistral/m").await.unwrap_err().to_string();
    assert_eq!(refused, "the provider rejects the request: mistral needs a key; set MISTRAL_API_KEY");
    assert!(ask(&models, "nobody/m").await.unwrap_err().to_string().contains("`nobody/m` names no vendor"));
}
