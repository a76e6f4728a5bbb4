//! The OpenAI chat dialect, as very many vendors speak it: one request out, one stream of deltas back.

mod loose;
mod reply;
mod request;
mod stream;

use std::borrow::Cow;
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::Full;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Request, Uri};
use polis_ports::{DeltaStream, Model, ModelError, ModelRequest};

use crate::api_key::hide;
use crate::{ApiKey, Http, http};
use stream::{Patience, ReplyStream};

/// A model behind an OpenAI-compatible `/chat/completions` address.
#[derive(Debug)]
pub struct OpenAiChat {
    http: Http,
    address: Uri,
    options: OpenAiOptions,
}

/// Where the model is and how to talk to it.
#[derive(Debug, Clone)]
pub struct OpenAiOptions {
    /// The address before `/chat/completions`, for example `https://api.openai.com/v1`.
    pub base_url: String,
    /// The key; local servers need none.
    pub key: Option<ApiKey>,
    /// Our name for the vendor: `vendor/name` in a request is sent as `name`.
    pub vendor: Cow<'static, str>,
    /// The model for requests that name none.
    pub model: String,
    /// Where this vendor's dialect differs.
    pub quirks: Quirks,
    /// How long the reply may take to begin: models that think say nothing meanwhile.
    pub first_timeout: Duration,
    /// How long the reply may stand still once it has begun.
    pub idle_timeout: Duration,
}

/// Where vendors differ in what they accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quirks {
    /// Whether `stream_options` may be sent; without it, usage comes unasked or not at all.
    pub stream_options: bool,
    /// What the limit of output tokens is called.
    pub token_limit: TokenLimit,
}

/// What a vendor calls the limit of output tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenLimit {
    /// `max_tokens`
    MaxTokens,
    /// `max_completion_tokens`
    MaxCompletionTokens,
}

/// An address that no request can be sent to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address of a model; write it like https://api.openai.com/v1")]
pub struct BadAddress(pub String);

impl Default for Quirks {
    fn default() -> Self {
        Self { stream_options: true, token_limit: TokenLimit::MaxTokens }
    }
}

impl OpenAiOptions {
    /// A vendor's model at `base_url`, with the usual settings and no key.
    pub fn new(vendor: impl Into<Cow<'static, str>>, base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            key: None,
            vendor: vendor.into(),
            model: model.into(),
            quirks: Quirks::default(),
            first_timeout: Duration::from_secs(300),
            idle_timeout: Duration::from_secs(60),
        }
    }
}

impl OpenAiChat {
    /// A model that is asked over `http`.
    pub fn new(http: Http, options: OpenAiOptions) -> Result<Self, BadAddress> {
        let address = chat_address(&options.base_url).ok_or_else(|| BadAddress(options.base_url.clone()))?;
        Ok(Self { http, address, options })
    }

    /// The vendor's own name for the model that `asked` means.
    fn model_name<'a>(&'a self, asked: &'a str) -> &'a str {
        if asked.is_empty() {
            return &self.options.model;
        }
        match asked.split_once('/') {
            Some((vendor, name)) if vendor == self.options.vendor => name,
            Some(_) | None => asked,
        }
    }
}

#[async_trait]
impl Model for OpenAiChat {
    async fn stream(&self, request: ModelRequest) -> Result<DeltaStream, ModelError> {
        let OpenAiOptions { key, quirks, first_timeout, idle_timeout, .. } = &self.options;
        let body = request::body(&request, self.model_name(&request.model), *quirks);
        let mut wire = Request::post(self.address.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(ACCEPT, HeaderValue::from_static("text/event-stream"))
            .body(Full::from(body))
            .expect("every part was checked before");
        if let Some(key) = key {
            wire.headers_mut().insert(AUTHORIZATION, key.bearer());
        }
        let sent = tokio::time::timeout(*first_timeout, self.http.send(wire)).await;
        let response = sent.map_err(|_| ModelError::Cut { reason: stream::silent(*first_timeout) })??;
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            let said = http::error_body(body).await;
            let reason = reply::reason(head.status, &head.headers, &said);
            return Err(hide(key.as_ref(), http::refusal(head.status, &head.headers, reason)));
        }
        let patience = Patience { first: *first_timeout, idle: *idle_timeout };
        Ok(Box::pin(ReplyStream::new(body, &head.headers, patience, key.clone())))
    }
}

fn chat_address(base_url: &str) -> Option<Uri> {
    const PATH: &str = "/chat/completions";
    let (base, query) = match base_url.trim().split_once('?') {
        Some((base, query)) => (base, format!("?{query}")),
        None => (base_url.trim(), String::new()),
    };
    let base = base.trim_end_matches('/');
    let path = if base.ends_with(PATH) { "" } else { PATH };
    let uri: Uri = format!("{base}{path}{query}").parse().ok()?;
    let spoken = matches!(uri.scheme_str(), Some("http" | "https"));
    let hosted = uri.host().is_some_and(|host| !host.is_empty());
    (spoken && hosted).then_some(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_completed_once() {
        let cases = [
            ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            (" https://api.openai.com/v1/ ", "https://api.openai.com/v1/chat/completions"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/chat/completions"),
            ("http://h/x/chat/completions", "http://h/x/chat/completions"),
            ("https://h/v1?api-version=3", "https://h/v1/chat/completions?api-version=3"),
        ];
        for (base, whole) in cases {
            assert_eq!(chat_address(base).unwrap().to_string(), whole);
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for bad in ["", "api.openai.com/v1", "ftp://h/v1", "https://", "http://a b/", "/v1"] {
            let made = OpenAiChat::new(Http::new(), OpenAiOptions::new("x", bad, "m"));
            assert_eq!(made.unwrap_err(), BadAddress(bad.to_owned()));
        }
    }

    #[test]
    fn only_our_own_vendor_is_taken_off_a_model_name() {
        let chat = OpenAiChat::new(Http::new(), OpenAiOptions::new("openrouter", "http://h", "auto")).unwrap();
        let names = ["", "openrouter/openai/gpt-4o", "openai/gpt-4o", "gpt-4o"].map(|asked| chat.model_name(asked));
        assert_eq!(names, ["auto", "openai/gpt-4o", "openai/gpt-4o", "gpt-4o"]);
    }
}
