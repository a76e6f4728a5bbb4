//! Embedding models: what each dialect is sent, and what is made of its answers.

use std::sync::Arc;

use polis_ports::{Embedder, EmbeddingPurpose, Embeddings, ModelError};
use polis_providers::{EmbeddingSettings, RemoteEmbedder, vendors};
use serde_json::{Value, json};

use crate::server::{Seen, Server, Step};

fn answer(status: &str, body: &Value) -> Vec<Step> {
    let body = body.to_string();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
    vec![Step::Send((head + &body).into_bytes())]
}

async fn embedder(server: &Server, model: &str, settings: EmbeddingSettings) -> RemoteEmbedder {
    let (vendor, _) = model.split_once('/').unwrap();
    let variable = format!("{}_BASE_URL", vendor.to_uppercase().replace('-', "_"));
    let base = server.base_url.clone();
    let lookup = move |name: &str| (name == variable).then(|| base.clone());
    let models = vendors::open(Some("offline"), &lookup).await.unwrap();
    models.embedder(model, settings).unwrap()
}

/// Embeds two texts; gives what was sent and what came back.
async fn embed(model: &str, dimensions: Option<u32>, reply: Value) -> (String, Value, Result<Embeddings, ModelError>) {
    let mut server = Server::start(answer("200 OK", &reply)).await;
    let embedder = embedder(&server, model, EmbeddingSettings { dimensions, ..EmbeddingSettings::default() }).await;
    let texts: [Arc<str>; 2] = ["tea".into(), "\u{8336}".into()];
    let embedded = embedder.embed(&texts, EmbeddingPurpose::Query).await;
    assert_eq!(server.seen().await, Seen::Connected);
    let Seen::Request { head, body } = server.seen().await else { panic!("no request") };
    let line = head.lines().next().unwrap().to_owned();
    (line, serde_json::from_str(&body).unwrap(), embedded)
}

#[tokio::test]
async fn vendors_that_are_like_openai_are_sent_a_list_and_answer_by_index() {
    let reply = json!({ "data": [{ "index": 1, "embedding": [0, 1] }, { "index": 0, "embedding": [0.5, -2] }],
        "usage": { "prompt_tokens": 7, "total_tokens": 7 } });
    for (model, field) in
        [("openai/small", "dimensions"), ("openai-compatible/small", "dimensions"), ("mistral/small", "output_dimension")]
    {
        let (line, body, embedded) = embed(model, Some(2), reply.clone()).await;
        assert_eq!(line, "POST /v1/embeddings HTTP/1.1");
        assert_eq!(body, json!({ "model": "small", "input": ["tea", "\u{8336}"], field: 2 }));
        let Embeddings { vectors, usage } = embedded.unwrap();
        assert_eq!((vectors, usage.input_tokens), (vec![vec![0.5, -2.0], vec![0.0, 1.0]], 7));
    }
}

#[tokio::test]
async fn gemini_is_told_what_the_vectors_are_for() {
    let reply = json!({ "embeddings": [{ "values": [1.0] }, { "values": [2.0] }] });
    let (line, body, embedded) = embed("gemini/embed-1", Some(1), reply).await;
    assert!(line.starts_with("POST /v1") && line.contains("/models/embed-1:batchEmbedContents "), "{line}");
    let first = json!({ "model": "models/embed-1", "content": { "parts": [{ "text": "tea" }] },
        "taskType": "RETRIEVAL_QUERY", "outputDimensionality": 1 });
    assert_eq!(body["requests"][0], first);
    let embedded = embedded.unwrap();
    assert_eq!((embedded.vectors, embedded.usage.input_tokens), (vec![vec![1.0], vec![2.0]], 2));
}

#[tokio::test]
async fn ollama_is_asked_in_its_own_dialect() {
    let reply = json!({ "embeddings": [[0.1, 0.2], [0.3, 0.4]], "prompt_eval_count": 4 });
    let (line, body, embedded) = embed("ollama/nomic-embed-text", None, reply).await;
    assert_eq!(line, "POST /api/embed HTTP/1.1");
    assert_eq!(body, json!({ "model": "nomic-embed-text", "input": ["tea", "\u{8336}"] }));
    let embedded = embedded.unwrap();
    assert_eq!((embedded.vectors[1].len(), embedded.usage.input_tokens), (2, 4));
}

#[tokio::test]
async fn an_answer_with_too_few_vectors_is_an_error_and_a_refusal_is_not_repeated() {
    let (_, _, embedded) = embed("openai/small", None, json!({ "data": [{ "embedding": [1.0] }] })).await;
    assert_eq!(embedded.unwrap_err().code(), "model_rejected");
    let mut server = Server::start(answer("400 Bad Request", &json!({ "error": { "message": "no such model" } }))).await;
    let embedder = embedder(&server, "openai/small", EmbeddingSettings::default()).await;
    let refused = embedder.embed(&["tea".into()], EmbeddingPurpose::Text).await.unwrap_err();
    assert!(refused.to_string().contains("no such model"), "{refused}");
    assert_eq!(server.seen().await, Seen::Connected);
    assert!(matches!(server.seen().await, Seen::Request { .. }));
    drop(embedder);
    assert_eq!(server.seen().await, Seen::Closed);
}

#[tokio::test]
async fn a_model_that_cannot_be_an_embedding_model_is_refused_at_once() {
    let lookup = |name: &str| (name == "ANTHROPIC_API_KEY").then(|| "k".to_owned());
    let models = vendors::open(Some("offline"), &lookup).await.unwrap();
    let refused = |model: &str| models.embedder(model, EmbeddingSettings::default()).err().unwrap().to_string();
    assert!(refused("anthropic/claude").contains("no embedding models"), "{}", refused("anthropic/claude"));
    assert!(refused("offline/x").contains("no embedding models"), "{}", refused("offline/x"));
    assert!(refused("openai/small").contains("OPENAI_API_KEY"), "{}", refused("openai/small"));
    assert!(refused("nobody/small").contains("no known vendor"), "{}", refused("nobody/small"));
}
