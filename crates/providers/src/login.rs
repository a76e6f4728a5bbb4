//! How requests to one vendor are authenticated: by a key in a header, or by a signature. Secrets that expire are read again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use polis_http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE};
use polis_http::{Bytes, HeaderMap, HeaderName, HeaderValue, HttpClient, Method, Request, Uri};
use polis_ports::ModelError;
use serde_json::Value;

use crate::ApiKey;
use crate::aws::{self, AwsKeys};
use crate::remote_model::{Dialect, KeyHeader, RemoteOptions};
use crate::wire::shortened;

/// How long before its end a secret is replaced: a request that is on its way must not become invalid.
const REFRESH_BEFORE: Duration = Duration::from_secs(300);

/// Longest answer of a service that gives out secrets, in bytes.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// The version of Anthropic's interface that we speak.
const ANTHROPIC_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// The name of Bedrock in signatures.
const BEDROCK: &str = "bedrock";

/// What proves to a vendor who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Proof {
    /// A key or a token, which is sent.
    Key(ApiKey),
    /// Keys that sign.
    Aws(AwsKeys),
}

/// What a source of secrets gives.
#[derive(Debug, Clone)]
pub(crate) struct Secret {
    pub(crate) proof: Proof,
    /// When it becomes invalid, if it does.
    pub(crate) expires: Option<SystemTime>,
    /// The project of Google's whose quota counts.
    pub(crate) quota_project: Option<String>,
}

impl Secret {
    /// One without a known expiry.
    pub(crate) fn new(proof: Proof) -> Self {
        Self { proof, expires: None, quota_project: None }
    }
}

/// Why a source gives no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoginError {
    /// Something is set up wrongly; the text says what.
    Refused(String),
    /// Another attempt may succeed.
    Failed(String),
}

impl From<LoginError> for ModelError {
    fn from(error: LoginError) -> Self {
        match error {
            LoginError::Refused(reason) => Self::Rejected { reason },
            LoginError::Failed(reason) => Self::Failed { reason, retry_after: None },
        }
    }
}

/// The key and the headers of every request, or the keys that sign it.
#[derive(Debug, Default)]
pub(crate) struct Login {
    pub(crate) key: Option<ApiKey>,
    headers: HeaderMap,
    signer: Option<(AwsKeys, String)>,
    expires: Option<SystemTime>,
    /// Whether it took the place of one that was refused.
    is_replacement: bool,
    /// Whether the vendor has taken it.
    is_proven: AtomicBool,
}

impl Login {
    /// The login with a key that is known from the start, or without any.
    pub(crate) fn with_key(options: &RemoteOptions) -> Self {
        Self::new(options, options.key.clone().map(|key| Secret::new(Proof::Key(key))))
    }

    pub(crate) fn new(options: &RemoteOptions, secret: Option<Secret>) -> Self {
        let (proof, expires, quota_project) = match secret {
            Some(Secret { proof, expires, quota_project }) => (Some(proof), expires, quota_project),
            None => (None, None, None),
        };
        let (key, keys) = match proof {
            Some(Proof::Key(key)) => (Some(key), None),
            Some(Proof::Aws(keys)) => (None, Some(keys)),
            None => (None, None),
        };
        let mut headers = headers(options.dialect, options.key_header, key.as_ref());
        let project = quota_project.and_then(|project| HeaderValue::try_from(project).ok());
        headers.extend(project.map(|project| (HeaderName::from_static("x-goog-user-project"), project)));
        // A gateway may want its own in the place of the usual one.
        for (name, value) in &options.headers {
            headers.insert(name, value.clone());
        }
        let signer = keys.zip(options.region.clone()).filter(|_| !options.headers.contains_key(AUTHORIZATION));
        Self { key, headers, signer, expires, is_replacement: false, is_proven: AtomicBool::default() }
    }

    pub(crate) fn request(&self, method: Method, address: Uri, body: Bytes) -> Request<Bytes> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = address;
        *request.headers_mut() = self.headers.clone();
        if let Some((keys, region)) = &self.signer {
            aws::sign(&mut request, keys, region, BEDROCK, now());
        }
        request
    }

    /// Whether it will be valid for a while.
    pub(crate) fn is_fresh(&self) -> bool {
        self.expires.is_none_or(|expires| expires > now() + REFRESH_BEFORE)
    }

    /// Whether it is still valid.
    pub(crate) fn is_valid(&self) -> bool {
        self.expires.is_none_or(|expires| expires > now())
    }

    /// The same, which takes the place of one that was refused.
    pub(crate) fn in_place_of_refused(self) -> Self {
        Self { is_replacement: true, ..self }
    }

    /// Notes that the vendor has taken it.
    pub(crate) fn prove(&self) {
        self.is_proven.store(true, Ordering::Relaxed);
    }

    /// Whether it was refused although it had just been read.
    pub(crate) fn is_refused_replacement(&self) -> bool {
        self.is_replacement && !self.is_proven.load(Ordering::Relaxed)
    }

    /// Whether it has the same secret as another.
    pub(crate) fn has_same_secret(&self, other: &Self) -> bool {
        (&self.key, &self.signer) == (&other.key, &other.signer)
    }
}

#[expect(clippy::disallowed_methods, reason = "vendors check the time of signatures and tokens, and no turn sees it")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

fn headers(dialect: Dialect, key_header: KeyHeader, key: Option<&ApiKey>) -> HeaderMap {
    let mut headers = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (ACCEPT, HeaderValue::from_static(dialect.media())),
        (ACCEPT_ENCODING, HeaderValue::from_static("identity")),
    ]);
    if dialect == Dialect::Anthropic {
        headers.insert(HeaderName::from_static("anthropic-version"), ANTHROPIC_VERSION);
    }
    if let Some(key) = key {
        let (name, value) = match (key_header, dialect) {
            (KeyHeader::Azure, _) if !key.is_json_web_token() => (HeaderName::from_static("api-key"), key.plain()),
            (KeyHeader::OfDialect, Dialect::Anthropic) => (HeaderName::from_static("x-api-key"), key.plain()),
            (KeyHeader::OfDialect, Dialect::Gemini) => (HeaderName::from_static("x-goog-api-key"), key.plain()),
            (KeyHeader::Azure | KeyHeader::OfDialect, _) => (AUTHORIZATION, key.bearer()),
        };
        headers.insert(name, value);
    }
    headers
}

/// Asks a service that gives out secrets. An error names the address and never what was sent or answered well.
pub(crate) async fn ask(http: &HttpClient, request: Request<Bytes>, limit: Duration) -> Result<Vec<u8>, LoginError> {
    let uri = request.uri();
    let place = format!("{}://{}{}", uri.scheme_str().unwrap_or_default(), uri.host().unwrap_or_default(), uri.path());
    let failed = |what: String| LoginError::Failed(format!("no credentials from {place}: {what}"));
    let answered = tokio::time::timeout(limit, async {
        let response = http.send(request).await?;
        let status = response.status();
        Ok::<_, polis_http::HttpError>((status, response.into_body().read(MAX_ANSWER_BYTES).await?))
    });
    let (status, body) = match answered.await {
        Err(_) => return Err(failed(format!("nothing came within {} s", limit.as_secs()))),
        Ok(Err(error)) => return Err(failed(error.to_string())),
        Ok(Ok(answered)) => answered,
    };
    if status.is_success() {
        return Ok(body);
    }
    let what = format!("{status}{}", reported(&body));
    let may_help = status.is_server_error() || matches!(status.as_u16(), 408 | 429);
    Err(if may_help { failed(what) } else { LoginError::Refused(format!("no credentials from {place}: {what}")) })
}

/// What a service says about its refusal.
fn reported(body: &[u8]) -> String {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let error = if json["Error"].is_object() { &json["Error"] } else { &json };
    let words = ["error", "code", "Code", "error_description", "message", "Message"];
    let words: Vec<&str> = words.iter().filter_map(|name| error[name].as_str()).collect();
    if words.is_empty() { String::new() } else { shortened(&format!(": {}", words.join(": "))) }
}
