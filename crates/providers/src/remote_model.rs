//! A model behind an address: which dialect it speaks, where its requests go, and how long it may keep silent.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::TryStreamExt;
use polis_domain::EffectClass;
use polis_http::{Bytes, HeaderMap, HttpClient, HttpError, Method, Timeouts, Uri};
use polis_ports::{
    Capabilities, ChatMessage, DeltaStream, MediaKind, Model, ModelDescription, ModelError, ModelRequest, ModelSettings,
    ToolChoice, ToolSpec, VendorTool,
};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::api_key::hide_headers;
use crate::key_source::KeySource;
use crate::login::Login;
use crate::media_support::MediaRefusals;
use crate::model_list::{self, DETAILS_TIMEOUT, VendorModel};
use crate::openai_chat::{FormatField, Quirks};
use crate::refused_settings::RefusedSettings;
use crate::wire::{self, Reader, SilenceLimits};
use crate::{ApiKey, CallIds, anthropic, bedrock, gemini, ollama, openai_chat, openai_responses, vertex};

/// How long a list of models may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(20);

/// A model over HTTP.
#[derive(Debug)]
pub struct RemoteModel {
    http: HttpClient,
    base: Base,
    /// Where its own model is asked, and its whole name.
    own: Option<(Uri, Arc<str>)>,
    options: RemoteOptions,
    /// The key and the headers with it; none until its source was asked.
    login: Mutex<Option<Arc<Login>>>,
    /// Whether it refused to be told the shape of a reply in a field.
    takes_no_format: AtomicBool,
    /// Whether it refused to be told that it must call a tool.
    takes_no_choice: AtomicBool,
    /// Whether it refused to be asked for usage in a stream.
    takes_no_stream_options: AtomicBool,
    /// The settings that it refused.
    refused: RefusedSettings,
    /// The media that it refused.
    media_refusals: MediaRefusals,
    /// The models that refused to stream a reply.
    unstreamed: std::sync::Mutex<BTreeSet<String>>,
}

/// Where the model is and how to talk to it.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// The language of its interface.
    pub dialect: Dialect,
    /// The address before the dialect's own path, for example `https://api.openai.com/v1`.
    pub base_url: String,
    /// The key; local servers need none.
    pub key: Option<ApiKey>,
    /// Where the key comes from, if it is read when it is needed.
    pub key_source: Option<KeySource>,
    /// Further headers of every request. Their values are secret.
    pub headers: HeaderMap,
    /// Our name for the vendor: `vendor/name` in a request is sent as `name`.
    pub vendor: Cow<'static, str>,
    /// The model for requests that name none.
    pub model: String,
    /// Where this vendor's OpenAI chat differs.
    pub quirks: Quirks,
    /// How long the reply may take to begin: models that think say nothing meanwhile.
    pub first_timeout: Duration,
    /// How long the reply may stand still once it has begun.
    pub idle_timeout: Duration,
    /// How long the whole reply may take; none is without a limit.
    pub whole_timeout: Option<Duration>,
    /// What to check when nothing listens at the address.
    pub start_hint: Option<&'static str>,
    /// The header that carries the key.
    pub key_header: KeyHeader,
    /// The region of Amazon's for which requests are signed.
    pub region: Option<String>,
    /// The stores at the vendor whose files its file search reads.
    pub file_stores: Vec<String>,
}

/// The header that carries the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyHeader {
    /// As the dialect has it.
    OfDialect,
    /// `api-key`; a token of Entra goes into `Authorization`.
    Azure,
}

/// The languages that vendors speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI's chat completions, which very many others speak too.
    OpenAiChat,
    /// OpenAI's responses.
    OpenAiResponses,
    /// Anthropic's messages.
    Anthropic,
    /// Google's `generateContent`.
    Gemini,
    /// Ollama's own.
    Ollama,
    /// Amazon Bedrock's Converse.
    Bedrock,
    /// Google's Vertex AI: Gemini's, Anthropic's or OpenAI's chat, by the name of the model.
    Vertex,
}

/// An address that no request can be sent to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is not the address of a model; write it like https://api.openai.com/v1")]
pub struct BadAddress(pub String);

impl RemoteOptions {
    /// A vendor's model at `base_url` that speaks OpenAI chat, with the usual settings and no key.
    pub fn new(vendor: impl Into<Cow<'static, str>>, base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            dialect: Dialect::OpenAiChat,
            base_url: base_url.into(),
            key: None,
            key_source: None,
            headers: HeaderMap::new(),
            vendor: vendor.into(),
            model: model.into(),
            quirks: Quirks::default(),
            first_timeout: Duration::from_secs(300),
            idle_timeout: Duration::from_secs(60),
            whole_timeout: None,
            start_hint: None,
            key_header: KeyHeader::OfDialect,
            region: None,
            file_stores: Vec::new(),
        }
    }
}

impl RemoteModel {
    /// A model that is asked over `http`.
    pub fn new(http: HttpClient, options: RemoteOptions) -> Result<Self, BadAddress> {
        let base = Base::new(options.dialect, &options.base_url);
        if base.join("m", options.dialect.path("m")).is_none_or(|address| address.host().is_none()) {
            return Err(BadAddress(options.base_url));
        }
        let own = base.join(&options.model, options.dialect.path(&options.model));
        let own = own.map(|address| (address, format!("{}/{}", options.vendor, options.model).into()));
        let login = options.key_source.is_none().then(|| Arc::new(Login::with_key(&options)));
        let whole = Timeouts { whole: options.whole_timeout, ..Timeouts::default() };
        let http = if options.whole_timeout.is_some() { http.with_timeouts(whole) } else { http };
        Ok(Self {
            http,
            base,
            own,
            login: Mutex::new(login),
            options,
            takes_no_format: AtomicBool::default(),
            takes_no_choice: AtomicBool::default(),
            takes_no_stream_options: AtomicBool::default(),
            refused: RefusedSettings::default(),
            media_refusals: MediaRefusals::default(),
            unstreamed: std::sync::Mutex::default(),
        })
    }

    /// The address before the dialect's own path, without user, password and query.
    pub fn base_url(&self) -> &str {
        &self.base.shown
    }

    /// The models that the vendor offers, with what it says about them.
    pub async fn list(&self) -> Result<Vec<VendorModel>, ModelError> {
        model_list::list(self, DETAILS_TIMEOUT).await
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.options.dialect
    }

    pub(crate) fn vendor(&self) -> &str {
        &self.options.vendor
    }

    /// Whether its interface has this tool, which the vendor runs itself.
    pub(crate) fn has_vendor_tool(&self, tool: VendorTool) -> bool {
        match (self.options.dialect, tool) {
            (Dialect::OpenAiResponses | Dialect::Gemini, VendorTool::FileSearch) => !self.options.file_stores.is_empty(),
            (Dialect::OpenAiChat, tool) => self.options.quirks.vendor_tools.has(tool),
            (Dialect::OpenAiResponses, VendorTool::WebSearch | VendorTool::CodeExecution) => true,
            (
                Dialect::Anthropic | Dialect::Gemini,
                VendorTool::WebSearch | VendorTool::WebFetch | VendorTool::CodeExecution,
            ) => true,
            (Dialect::OpenAiResponses | Dialect::Anthropic | Dialect::Ollama | Dialect::Bedrock | Dialect::Vertex, _) => false,
        }
    }

    /// The settings that change nothing in what this vendor is sent for a model.
    pub(crate) fn ignored_settings(&self, model: &str, settings: &ModelSettings) -> Vec<&'static str> {
        let name = self.model_name(model);
        let tool = ToolSpec {
            name: "tool".into(),
            description: String::new(),
            parameters: serde_json::json!({ "type": "object" }),
            class: EffectClass::Read,
            volatile: false,
        };
        let (messages, tools) = (vec![ChatMessage::user("hello")], [tool].into());
        let probe = ModelRequest { system: "hello".into(), messages, tools, ..ModelRequest::default() };
        let body = |settings: &ModelSettings| {
            let request = ModelRequest { settings: settings.clone(), ..probe.clone() };
            self.options.dialect.body(&request, name, self.options.quirks, &[])
        };
        let whole = body(settings);
        let is_ignored = |name: &&'static str| {
            let mut without = settings.clone();
            // An empty text takes any setting back.
            without.set(name, "").is_ok() && without != *settings && body(&without) == whole
        };
        ModelSettings::NAMES.into_iter().filter(is_ignored).collect()
    }

    /// What the vendor answers below its address, as JSON.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: Bytes) -> Result<Value, ModelError> {
        self.ask_at(&self.base, method, path, body).await
    }

    /// What it answers beside its OpenAI interface.
    pub(crate) async fn ask_root(&self, path: &str) -> Result<Value, ModelError> {
        self.ask_from(self.start().trim_end_matches("/v1").to_owned(), path).await
    }

    /// What it answers below another address.
    pub(crate) async fn ask_from(&self, start: String, path: &str) -> Result<Value, ModelError> {
        let base = Base { start, ..self.base.clone() };
        self.ask_at(&base, Method::GET, path, Bytes::new()).await
    }

    /// The address before the dialect's own path.
    pub(crate) fn start(&self) -> &str {
        &self.base.start
    }

    async fn ask_at(&self, base: &Base, method: Method, path: &str, body: Bytes) -> Result<Value, ModelError> {
        let login = self.login().await?;
        let request = login.request(method, base.join("", path.into()).ok_or_else(bad_name)?, body);
        let json = wire::answer(&self.http, request, login.key.as_ref(), LIST_TIMEOUT).await;
        json.map_err(|error| self.explained(error))
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

    fn address(&self, model: &str, path: Cow<'_, str>) -> Result<Uri, ModelError> {
        self.base.join(model, path).ok_or_else(bad_name)
    }

    /// The key in use; a source is asked when there is none yet, and before it expires.
    async fn login(&self) -> Result<Arc<Login>, ModelError> {
        let mut login = self.login.lock().await;
        let is_fresh = login.as_ref().is_some_and(|login| login.is_fresh());
        if let (false, Some(source)) = (is_fresh, &self.options.key_source) {
            match (source.read(&self.http).await, &*login) {
                (Ok(secret), _) => *login = Some(Arc::new(Login::new(&self.options, Some(secret)))),
                // The old one is still good for a moment.
                (Err(_), Some(old)) if old.is_valid() => {}
                (Err(error), _) => return Err(error.into()),
            }
        }
        Ok(login.clone().unwrap_or_default())
    }

    /// Whether the source has another key by now than the one that was refused.
    async fn has_new_key(&self, refused: &Login) -> bool {
        let Some(source) = &self.options.key_source else { return false };
        let mut login = self.login.lock().await;
        if login.as_ref().is_some_and(|login| !login.has_same_secret(refused)) {
            return true;
        }
        if refused.is_refused_replacement() {
            // A program may print another key each time. The next request begins anew.
            *login = None;
            return false;
        }
        let Ok(secret) = source.read(&self.http).await else { return false };
        let new = Login::new(&self.options, Some(secret)).in_place_of_refused();
        let is_new = !new.has_same_secret(refused);
        if is_new {
            *login = Some(Arc::new(new));
        }
        is_new
    }

    /// Whether replies of a model come in chunks.
    fn streams(&self, model: &str) -> bool {
        !self.unstreamed.lock().unwrap_or_else(PoisonError::into_inner).contains(model)
    }

    /// Notes that a model does not stream, if a refusal says so; false if that was known.
    fn note_unstreamed(&self, model: &str, reason: &str) -> bool {
        let is_such = self.options.dialect == Dialect::Bedrock && bedrock::wants_no_stream(reason);
        is_such && self.unstreamed.lock().unwrap_or_else(PoisonError::into_inner).insert(model.to_owned())
    }

    /// Whether what a model thinks counts as a part of its answer.
    pub(crate) fn thinks_within_answer(&self, model: &str) -> bool {
        match self.options.dialect {
            Dialect::Anthropic => true,
            Dialect::Bedrock => bedrock::is_claude(self.model_name(model)),
            Dialect::Vertex => vertex::is_claude(self.model_name(model)),
            Dialect::OpenAiChat | Dialect::OpenAiResponses | Dialect::Gemini | Dialect::Ollama => false,
        }
    }

    /// An error with what to check where nothing listens, and without the values of the headers.
    fn explained(&self, error: ModelError) -> ModelError {
        let error = match &error {
            ModelError::Unreachable(cause) if matches!(cause.downcast_ref(), Some(HttpError::Refused { .. })) => {
                let hint = self.options.start_hint.unwrap_or("check the address, and that the server runs");
                ModelError::Unreachable(format!("nothing answers at {}; {hint}", self.base_url()).into())
            }
            _ => error,
        };
        hide_headers(&self.options.headers, error)
    }
}

#[async_trait]
impl Model for RemoteModel {
    async fn stream(&self, mut request: ModelRequest) -> Result<DeltaStream, ModelError> {
        let mut quirks = self.options.quirks;
        self.refused.drop_from(&mut request);
        if self.takes_no_choice.load(Ordering::Relaxed) {
            request.drop_choice();
        }
        let has_choice = *request.choice() != ToolChoice::Auto || request.is_one_call();
        if self.takes_no_format.load(Ordering::Relaxed) {
            quirks.format = FormatField::Absent;
        }
        if self.takes_no_stream_options.load(Ordering::Relaxed) {
            quirks.stream_options = false;
        }
        let model = self.model_name(&request.model).to_owned();
        self.media_refusals.leave_out(&model, &mut request);
        let has_format = self.options.dialect == Dialect::OpenAiChat && request.format.is_some();
        let login = self.login().await?;
        let sent = match self.send(&request, quirks, &login).await {
            // A token of a source expires; the next attempt uses the new one.
            Err(ModelError::Rejected { reason }) if names_login(&reason) && self.options.key_source.is_some() => {
                match (self.has_new_key(&login).await, &self.options.key_source) {
                    (false, Some(source)) => {
                        Err(ModelError::Rejected { reason: format!("{reason}; what {source} gives is refused") })
                    }
                    (true, _) | (false, None) => Err(ModelError::Adapted { reason }),
                }
            }
            // Some models of Bedrock answer a request with tools only as a whole.
            Err(ModelError::Rejected { reason }) if self.note_unstreamed(&model, &reason) => {
                Err(ModelError::Adapted { reason })
            }
            // Many that speak OpenAI's dialect do not know this field: the next attempt describes the shape in words.
            Err(ModelError::Rejected { reason })
                if has_format && quirks.format != FormatField::Absent && names_format(&reason) =>
            {
                self.takes_no_format.store(true, Ordering::Relaxed);
                Err(ModelError::Adapted { reason })
            }
            // Without them usage comes unasked, or is estimated.
            Err(ModelError::Rejected { reason }) if quirks.stream_options && names_stream_options(&reason) => {
                self.takes_no_stream_options.store(true, Ordering::Relaxed);
                Err(ModelError::Adapted { reason })
            }
            // The request says in words too that a call is wanted.
            Err(ModelError::Rejected { reason }) if has_choice && names_choice(&reason) => {
                self.takes_no_choice.store(true, Ordering::Relaxed);
                Err(ModelError::Adapted { reason })
            }
            Err(ModelError::Rejected { reason }) if self.refused.note(&request, &reason) => Err(ModelError::Adapted { reason }),
            // The model is told what it is not shown. Some servers call this a failure of their own.
            Err(ModelError::Rejected { reason } | ModelError::Failed { reason, .. })
                if self.media_refusals.learn(&model, &request, &reason) =>
            {
                Err(ModelError::Adapted { reason })
            }
            Ok(deltas) => {
                login.prove();
                self.media_refusals.accepted(&model, &request);
                Ok(deltas)
            }
            Err(error) => Err(error),
        };
        // Last, because the words of a refusal are looked for, and the name of a model may contain them.
        let place = Arc::<str>::from(format!(" ({}/{model} at {})", self.options.vendor, self.base_url()));
        let deltas = sent.map_err(|error| with_place(error, &place))?;
        Ok(Box::pin(deltas.map_err(move |error| with_place(error, &place))))
    }

    fn description(&self, model: &str) -> ModelDescription {
        let model = self.model_name(model);
        let is_refused =
            |kind: &MediaKind| self.media_refusals.has(model, *kind) || !self.options.dialect.has_form_for(model, *kind);
        let image_urls = (!self.options.dialect.has_form_for_addresses()).then_some(false);
        let known = Capabilities { image_urls, ..Capabilities::default() };
        let capabilities = MediaKind::ALL.into_iter().filter(is_refused).fold(known, Capabilities::without);
        ModelDescription { capabilities, ..ModelDescription::default() }
    }
}

/// Whether a refusal is about the field for the shape of the reply. A shape that is itself wrong is for whoever wrote it to hear of.
fn names_format(reason: &str) -> bool {
    let is_wrong = reason.to_lowercase().contains("invalid schema");
    !is_wrong && ["response_format", "json_schema", "json_object"].iter().any(|word| reason.contains(word))
}

/// Whether a refusal is about the key. Amazon refuses expired keys with another status than others.
fn names_login(reason: &str) -> bool {
    reason.starts_with("401") || reason.starts_with("403") && reason.contains("expired")
}

/// Whether a refusal is about the field that asks for usage.
fn names_stream_options(reason: &str) -> bool {
    ["stream_options", "include_usage"].iter().any(|word| reason.contains(word))
}

/// An error of the vendor with the model and the address; what could not be sent names them itself.
fn with_place(mut error: ModelError, place: &str) -> ModelError {
    match &mut error {
        ModelError::Throttled { reason, .. }
        | ModelError::Rejected { reason }
        | ModelError::Adapted { reason }
        | ModelError::Failed { reason, .. }
        | ModelError::Cut { reason } => reason.push_str(place),
        ModelError::Resting { .. } | ModelError::Unreachable(_) => {}
    }
    error
}

/// Whether a refusal is about the fields for the choice of tools.
fn names_choice(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    ["tool_choice", "tool choice", "toolchoice", "parallel_tool_calls", "functioncallingconfig"]
        .iter()
        .any(|word| reason.contains(word))
}

impl RemoteModel {
    async fn send(&self, asked: &ModelRequest, quirks: Quirks, login: &Login) -> Result<DeltaStream, ModelError> {
        let RemoteOptions { dialect, vendor, first_timeout, idle_timeout, .. } = &self.options;
        let name = self.model_name(&asked.model);
        let body = Bytes::from(dialect.body(&dialect.call_ids(quirks).fit(asked), name, quirks, &self.options.file_stores));
        let (address, model) = match &self.own {
            Some(own) if name == self.options.model && self.streams(name) => own.clone(),
            _ if self.streams(name) => (self.address(name, dialect.path(name))?, format!("{vendor}/{name}").into()),
            _ => (self.address(name, bedrock::path(name, false).into())?, format!("{vendor}/{name}").into()),
        };
        let wire = login.request(Method::POST, address, body);
        let limits = SilenceLimits { first: *first_timeout, idle: *idle_timeout };
        let sent = wire::stream(&self.http, wire, login.key.as_ref(), limits, model, dialect.reader(name)).await;
        let deltas = sent.map_err(|error| self.explained(error))?;
        let headers = self.options.headers.clone();
        Ok(match headers.is_empty() {
            true => deltas,
            false => Box::pin(deltas.map_err(move |error| hide_headers(&headers, error))),
        })
    }
}

impl Dialect {
    fn path(self, model: &str) -> Cow<'static, str> {
        match self {
            Self::OpenAiChat => "/chat/completions".into(),
            Self::OpenAiResponses => "/responses".into(),
            Self::Anthropic => "/messages".into(),
            Self::Gemini => format!("/models/{model}:streamGenerateContent?alt=sse").into(),
            Self::Ollama => "/api/chat".into(),
            Self::Bedrock => bedrock::path(model, true).into(),
            Self::Vertex => vertex::path(model).into(),
        }
    }

    /// Whether a request can hold media of this kind.
    fn has_form_for(self, model: &str, kind: MediaKind) -> bool {
        match (self, kind) {
            (Self::Ollama, MediaKind::Document | MediaKind::Audio) => false,
            (Self::Anthropic | Self::OpenAiResponses | Self::Bedrock, MediaKind::Audio) => false,
            (Self::Vertex, MediaKind::Audio) => !vertex::is_claude(model),
            (_, MediaKind::Image | MediaKind::Document | MediaKind::Audio) => true,
        }
    }

    /// Whether a request can hold the address of a picture.
    fn has_form_for_addresses(self) -> bool {
        !matches!(self, Self::Ollama | Self::Bedrock)
    }

    /// Which ids of calls are taken back.
    fn call_ids(self, quirks: Quirks) -> CallIds {
        match self {
            Self::OpenAiChat => quirks.call_ids,
            Self::OpenAiResponses => CallIds::UpTo(64),
            Self::Anthropic | Self::Bedrock | Self::Vertex => CallIds::Words,
            Self::Gemini | Self::Ollama => CallIds::Any,
        }
    }

    pub(crate) fn media(self) -> &'static str {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses | Self::Anthropic | Self::Gemini | Self::Vertex => "text/event-stream",
            Self::Bedrock => "application/vnd.amazon.eventstream, application/json",
            Self::Ollama => "application/x-ndjson",
        }
    }

    fn body(self, request: &ModelRequest, model: &str, quirks: Quirks, stores: &[String]) -> Vec<u8> {
        match self {
            Self::OpenAiChat => openai_chat::body(request, model, quirks),
            Self::OpenAiResponses => openai_responses::body(request, model, stores),
            Self::Anthropic => anthropic::body(request, model),
            Self::Gemini => gemini::body(request, model, stores),
            Self::Ollama => ollama::body(request, model),
            Self::Bedrock => bedrock::body(request, model),
            Self::Vertex => vertex::body(request, model),
        }
    }

    pub(crate) fn reader(self, model: &str) -> Box<dyn Reader> {
        match self {
            Self::OpenAiChat => Box::<openai_chat::ChatReader>::default(),
            Self::OpenAiResponses => Box::<openai_responses::ResponseReader>::default(),
            Self::Anthropic => Box::<anthropic::MessageReader>::default(),
            Self::Gemini => Box::<gemini::ContentReader>::default(),
            Self::Ollama => Box::<ollama::OllamaReader>::default(),
            Self::Bedrock => Box::<bedrock::ConverseReader>::default(),
            Self::Vertex => vertex::reader(model),
        }
    }
}

/// An address as people write it, without its query.
#[derive(Debug, Clone)]
struct Base {
    start: String,
    query: String,
    /// The address as it was written, as far as it may be shown.
    shown: String,
}

impl Base {
    fn new(dialect: Dialect, base_url: &str) -> Self {
        let (start, query) = base_url.trim().split_once('?').unwrap_or((base_url.trim(), ""));
        let start = start.trim_end_matches('/');
        // People also write the whole address, or only its beginning as the vendor's own tools want it.
        let start = start.strip_suffix(&*dialect.path("")).unwrap_or(start);
        let is_bare = start.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'));
        let start = match dialect {
            Dialect::Anthropic if !start.ends_with("/v1") => format!("{start}/v1"),
            Dialect::Gemini if is_bare => format!("{start}/v1beta"),
            Dialect::Ollama => start.trim_end_matches("/v1").trim_end_matches("/api").to_owned(),
            _ => start.to_owned(),
        };
        let written = base_url.trim().split('?').next().unwrap_or_default();
        let shown = match written.split_once("://") {
            Some((scheme, rest)) => {
                let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                format!("{scheme}://{}{path}", host.rsplit('@').next().unwrap_or_default())
            }
            None => written.to_owned(),
        };
        Self { start, query: query.to_owned(), shown }
    }

    /// The address of a path. An address may hold the model as `{model}`, as deployments of Azure do.
    fn join(&self, model: &str, path: Cow<'_, str>) -> Option<Uri> {
        let mark = if path.contains('?') { '&' } else { '?' };
        let query = if self.query.is_empty() { String::new() } else { format!("{mark}{}", self.query) };
        let uri: Uri = format!("{}{path}{query}", self.start.replace("{model}", model)).parse().ok()?;
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        let has_host = uri.host().is_some_and(|host| !host.is_empty());
        (is_http && has_host).then_some(uri)
    }
}

fn bad_name() -> ModelError {
    ModelError::Rejected { reason: "the model's name cannot be part of an address".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_completed_once() {
        let cases = [
            (Dialect::OpenAiChat, "https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            (Dialect::OpenAiChat, " https://api.openai.com/v1/ ", "https://api.openai.com/v1/chat/completions"),
            (Dialect::OpenAiChat, "http://127.0.0.1:8080", "http://127.0.0.1:8080/chat/completions"),
            (Dialect::OpenAiChat, "http://h/x/chat/completions", "http://h/x/chat/completions"),
            (Dialect::OpenAiChat, "https://h/v1?api-version=3", "https://h/v1/chat/completions?api-version=3"),
            (
                Dialect::OpenAiChat,
                "https://h/openai/deployments/{model}?api-version=3",
                "https://h/openai/deployments/m/chat/completions?api-version=3",
            ),
            (Dialect::OpenAiResponses, "https://h/v1/", "https://h/v1/responses"),
            (Dialect::Anthropic, "https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
            (Dialect::Anthropic, "https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1/messages"),
            (Dialect::Anthropic, "https://h/anthropic/", "https://h/anthropic/v1/messages"),
            (Dialect::Gemini, "https://h", "https://h/v1beta/models/m:streamGenerateContent?alt=sse"),
            (Dialect::Gemini, "https://h/v9?x=1", "https://h/v9/models/m:streamGenerateContent?alt=sse&x=1"),
            (Dialect::Ollama, "http://h:11434/v1/", "http://h:11434/api/chat"),
            (Dialect::Ollama, "http://h:11434/api/chat", "http://h:11434/api/chat"),
            (Dialect::Ollama, "http://h:11434", "http://h:11434/api/chat"),
            (Dialect::Bedrock, "https://h", "https://h/model/m/converse-stream"),
            (Dialect::Vertex, "https://h/v1/p", "https://h/v1/p/publishers/google/models/m:streamGenerateContent?alt=sse"),
        ];
        for (dialect, base, whole) in cases {
            assert_eq!(Base::new(dialect, base).join("m", dialect.path("m")).unwrap().to_string(), whole);
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for bad in ["", "api.openai.com/v1", "ftp://h/v1", "https://", "http://a b/", "/v1"] {
            let made = RemoteModel::new(HttpClient::default(), RemoteOptions::new("x", bad, "m"));
            assert_eq!(made.unwrap_err(), BadAddress(bad.to_owned()));
        }
    }

    #[test]
    fn settings_that_a_vendor_is_not_sent_are_known() {
        let ignored = |dialect, model: &str, pairs: &[(&str, &str)]| {
            let options = RemoteOptions { dialect, ..RemoteOptions::new("x", "http://h", "m") };
            let mut settings = ModelSettings::default();
            pairs.iter().for_each(|(name, value)| settings.set(name, value).unwrap());
            RemoteModel::new(HttpClient::default(), options).unwrap().ignored_settings(model, &settings)
        };
        let all = [("temperature", "0.2"), ("seed", "7"), ("stop", "END"), ("service_tier", "flex"), ("tool_choice", "none")];
        assert_eq!(ignored(Dialect::OpenAiChat, "m", &all), ["service_tier"]);
        assert_eq!(ignored(Dialect::OpenAiResponses, "gpt-5", &all), ["temperature", "stop", "seed"]);
        assert_eq!(ignored(Dialect::Anthropic, "claude-opus-5", &all), ["temperature", "seed"]);
        assert!(ignored(Dialect::Gemini, "gemini-3-flash", &[]).is_empty());
    }

    #[test]
    fn what_a_dialect_has_no_form_for_is_known() {
        let takes = |dialect, kind| {
            let options = RemoteOptions { dialect, ..RemoteOptions::new("x", "http://h", "m") };
            RemoteModel::new(HttpClient::default(), options).unwrap().description("m").capabilities.takes(kind)
        };
        assert_eq!(takes(Dialect::Ollama, MediaKind::Image), None);
        assert_eq!(takes(Dialect::Ollama, MediaKind::Document), Some(false));
        assert_eq!(takes(Dialect::Anthropic, MediaKind::Audio), Some(false));
        assert_eq!(takes(Dialect::OpenAiChat, MediaKind::Document), None);
        let takes_addresses = |dialect| {
            let options = RemoteOptions { dialect, ..RemoteOptions::new("x", "http://h", "m") };
            RemoteModel::new(HttpClient::default(), options).unwrap().description("m").capabilities.image_urls
        };
        let all = [Dialect::Ollama, Dialect::Bedrock, Dialect::Anthropic, Dialect::OpenAiChat].map(takes_addresses);
        assert_eq!(all, [Some(false), Some(false), None, None]);
    }

    #[test]
    fn only_our_own_vendor_is_taken_off_a_model_name() {
        let model = RemoteModel::new(HttpClient::default(), RemoteOptions::new("openrouter", "http://h", "auto")).unwrap();
        let names = ["", "openrouter/openai/gpt-4o", "openai/gpt-4o", "gpt-4o"].map(|asked| model.model_name(asked));
        assert_eq!(names, ["auto", "openai/gpt-4o", "openai/gpt-4o", "gpt-4o"]);
    }
}
