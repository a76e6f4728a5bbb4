//! Embedding models over the same endpoints as chat models: same addresses, keys, proxies and limits.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use polis_domain::Usage;
use polis_http::{Bytes, Method};
use polis_ports::{Embedder, EmbeddingPurpose, Embeddings, ModelError, estimate_tokens};
use serde_json::{Value, json};

use crate::rate_limit::Limiter;
use crate::remote_model::{Dialect, RemoteModel};
use crate::vendors::OpenError;
use crate::{Models, Price};

/// How often a failed call is repeated where the endpoint's settings do not say so.
const RETRIES: u32 = 2;

/// The longest wait before a repetition. A search does not wait longer; it goes on without vectors.
const MAX_DELAY: Duration = Duration::from_secs(5);

/// An embedding model of a vendor or of a configured endpoint.
pub struct RemoteEmbedder {
    remote: Arc<RemoteModel>,
    /// The vendor's name for the model.
    name: String,
    /// `vendor/name`, and the number of dimensions if that is set.
    full: Arc<str>,
    settings: EmbeddingSettings,
    price: Option<Price>,
    retries: u32,
    limiter: Arc<Limiter>,
}

/// How an embedding model is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddingSettings {
    /// The length of the vectors, for models that offer a choice.
    pub dimensions: Option<u32>,
    /// Most texts of one call.
    pub batch: usize,
}

impl Default for EmbeddingSettings {
    fn default() -> Self {
        Self { dimensions: None, batch: 64 }
    }
}

impl Models {
    /// Opens an embedding model, `vendor/name`.
    pub fn embedder(&self, model: &str, settings: EmbeddingSettings) -> Result<RemoteEmbedder, OpenError> {
        let vendor = self.find(model)?;
        let name = model.split_once('/').map_or("", |(_, name)| name);
        if name.is_empty() {
            return Err(OpenError::NoName { vendor: vendor.to_string() });
        }
        let remote = self.remote(&vendor).filter(|remote| path(remote.dialect(), name).is_some());
        let remote = remote.ok_or_else(|| {
            let others = "openai, azure, gemini, mistral, ollama or any endpoint that is compatible with OpenAI";
            OpenError::BadSettings(format!("{vendor} has no embedding models that Polis can ask; take one of {others}"))
        })?;
        let full = format!("{vendor}/{name}");
        let price = self.price_of(&full);
        let full = settings.dimensions.map_or(full.clone(), |dimensions| format!("{full}#{dimensions}"));
        let retries = self.retries_of(&vendor).unwrap_or(RETRIES);
        let limiter = self.limiter_of(&vendor);
        Ok(RemoteEmbedder { remote, name: name.to_owned(), full: full.into(), settings, price, retries, limiter })
    }
}

/// Where a dialect takes texts; none if it has no embeddings.
fn path(dialect: Dialect, model: &str) -> Option<String> {
    match dialect {
        Dialect::OpenAiChat | Dialect::OpenAiResponses => Some("/embeddings".to_owned()),
        Dialect::Gemini => Some(format!("/models/{model}:batchEmbedContents")),
        Dialect::Ollama => Some("/api/embed".to_owned()),
        _ => None,
    }
}

impl RemoteEmbedder {
    fn body(&self, texts: &[Arc<str>], purpose: EmbeddingPurpose) -> Value {
        let dimensions = self.settings.dimensions;
        let (mut body, field) = match self.remote.dialect() {
            Dialect::Gemini => {
                let model = format!("models/{}", self.name);
                let task = match purpose {
                    EmbeddingPurpose::Query => "RETRIEVAL_QUERY",
                    EmbeddingPurpose::Text => "RETRIEVAL_DOCUMENT",
                };
                let request = |text: &Arc<str>| {
                    let mut request = json!({ "model": model, "content": { "parts": [{ "text": text }] }, "taskType": task });
                    if let Some(dimensions) = dimensions {
                        request["outputDimensionality"] = dimensions.into();
                    }
                    request
                };
                return json!({ "requests": texts.iter().map(request).collect::<Vec<_>>() });
            }
            dialect => {
                // Mistral and Voyage have another name for the field.
                let has_other_name = dialect != Dialect::Ollama && ["mistral", "voyage"].contains(&self.remote.vendor());
                let field = if has_other_name { "output_dimension" } else { "dimensions" };
                (json!({ "model": self.name, "input": texts }), field)
            }
        };
        if let Some(dimensions) = dimensions {
            body[field] = dimensions.into();
        }
        body
    }

    async fn once(&self, texts: &[Arc<str>], purpose: EmbeddingPurpose) -> Result<Embeddings, ModelError> {
        let path = path(self.remote.dialect(), &self.name).unwrap_or_default();
        let body = Bytes::from(self.body(texts, purpose).to_string());
        let guess = texts.iter().map(|text| estimate_tokens(text)).sum();
        self.limiter.wait(&self.full, guess).await;
        let answer = self.remote.ask(Method::POST, &path, body).await?;
        let vectors = vectors(&answer);
        if vectors.len() != texts.len() || vectors.iter().any(Vec::is_empty) {
            let reason = format!("{} vectors for {} texts cannot be used", vectors.len(), texts.len());
            return Err(ModelError::Rejected { reason });
        }
        // Gemini counts nothing.
        let counts = [&answer["usage"]["prompt_tokens"], &answer["usage"]["total_tokens"], &answer["prompt_eval_count"]];
        let counted = counts.into_iter().find_map(Value::as_u64);
        let input_tokens = counted.unwrap_or(guess);
        self.limiter.correct(guess, input_tokens);
        let usage = Usage { input_tokens, ..Usage::default() };
        Ok(Embeddings { vectors, usage: Usage { cost_nanos: self.price.map_or(0, |price| price.nanos(&usage)), ..usage } })
    }
}

/// The vectors of an answer, in the order of the texts. One with something else than numbers in it is empty.
fn vectors(answer: &Value) -> Vec<Vec<f32>> {
    let list = ["data", "embeddings"].iter().find_map(|key| answer[key].as_array());
    let mut entries: Vec<_> = list.into_iter().flatten().enumerate().collect();
    entries.sort_by_key(|(place, entry)| entry["index"].as_u64().unwrap_or(*place as u64));
    let numbers = |(_, entry): (usize, &Value)| {
        let parts = [&entry["embedding"], &entry["values"], entry].into_iter().find_map(Value::as_array);
        let numbers = parts.into_iter().flatten().map(|part| part.as_f64().map(|part| part as f32));
        numbers.collect::<Option<Vec<_>>>().unwrap_or_default()
    };
    entries.into_iter().map(numbers).collect()
}

#[async_trait]
impl Embedder for RemoteEmbedder {
    fn model(&self) -> Arc<str> {
        self.full.clone()
    }

    async fn embed(&self, texts: &[Arc<str>], purpose: EmbeddingPurpose) -> Result<Embeddings, ModelError> {
        let mut attempt = 0;
        loop {
            match self.once(texts, purpose).await {
                Err(error) if error.is_passing() && attempt < self.retries => {
                    let usual = Duration::from_secs(1 << attempt.min(2));
                    tokio::time::sleep(error.retry_after().unwrap_or(usual).min(MAX_DELAY)).await;
                    attempt += 1;
                }
                done => return done,
            }
        }
    }

    fn batch(&self) -> usize {
        self.settings.batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendors;

    #[test]
    fn a_vector_with_something_else_than_numbers_is_empty() {
        let answer = json!({ "data": [{ "index": 1, "embedding": [1, 0.5] }, { "index": 0, "embedding": [null, 0.5] }] });
        assert_eq!(vectors(&answer), [vec![], vec![1.0, 0.5]]);
    }

    #[tokio::test]
    async fn embeddings_and_chat_share_the_limits_of_a_key() {
        let lookup = |name: &str| (name == "OLLAMA_BASE_URL").then(|| "http://127.0.0.1:9".to_owned());
        let models = vendors::open(Some("offline"), &lookup).await.unwrap();
        let embedder = models.embedder("ollama/nomic-embed-text", EmbeddingSettings::default()).unwrap();
        assert!(Arc::ptr_eq(&embedder.limiter, &models.limiter_of("ollama")));
    }
}
