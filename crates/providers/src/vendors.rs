//! The vendors that people use, by name: where they are, how their key is called, and how to open one.

use std::net::IpAddr;
use std::sync::Arc;

use polis_http::{Environment, HttpClient, HttpOptions, Uri};
use polis_ports::Model;

use crate::cloud::Cloud;
use crate::endpoint::Endpoint;
use crate::local_servers::{self, SERVERS, SWITCH, TELLING_SERVERS};
use crate::names::EndpointNames;
use crate::openai_chat::{EffortField, FormatField, Quirks, SeedField, TokenLimit, VendorToolNames};
use crate::remote_model::{BadAddress, Dialect, KeyHeader, RemoteModel};
use crate::{BadKey, CallIds, Models};

/// The name under which the offline model can be asked for.
pub const OFFLINE: &str = "offline";

/// Any server that speaks OpenAI's chat.
const COMPATIBLE: &str = "openai-compatible";

pub(crate) const OLLAMA: &str = "ollama";
pub(crate) const LM_STUDIO: &str = "lmstudio";
pub(crate) const LLAMA_CPP: &str = "llamacpp";
pub(crate) const VLLM: &str = "vllm";

/// One vendor.
#[derive(Debug)]
pub struct Vendor {
    /// What it is called in `vendor/name`.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// The language of its interface.
    pub dialect: Dialect,
    /// The variable that holds its key.
    pub key_variable: &'static str,
    /// Other variables that may hold its key or its address.
    pub more_variables: &'static [&'static str],
    /// Whether it answers without a key.
    pub keyless: bool,
    /// Its usual address.
    pub base_url: Option<&'static str>,
    /// Where else it is known to be, by host; one that begins with a dot stands for all below it, and `*` for anything without a
    /// dot.
    pub more_hosts: &'static [&'static str],
    /// The model that is used when only the vendor is known.
    pub default_model: Option<&'static str>,
    /// Where its OpenAI chat differs.
    pub quirks: Quirks,
    /// The vendor whose settings count for this one too, because it is the same account in another dialect.
    pub account: Option<&'static str>,
    /// What to check when nothing listens at its address.
    pub start_hint: Option<&'static str>,
    /// The header that carries its key.
    pub key_header: KeyHeader,
    /// The cloud whose accounts it belongs to.
    pub cloud: Option<Cloud>,
}

const fn hosted(
    name: &'static str,
    aliases: &'static [&'static str],
    key_variable: &'static str,
    base_url: &'static str,
    default_model: &'static str,
) -> Vendor {
    Vendor {
        name,
        aliases,
        dialect: Dialect::OpenAiChat,
        key_variable,
        more_variables: &[],
        keyless: false,
        base_url: Some(base_url),
        more_hosts: &[],
        default_model: Some(default_model),
        quirks: Quirks::PLAIN,
        account: None,
        start_hint: None,
        key_header: KeyHeader::OfDialect,
        cloud: None,
    }
}

/// A server of one's own: it needs no key, and only its owner knows its models.
const fn local(
    name: &'static str,
    aliases: &'static [&'static str],
    key_variable: &'static str,
    base_url: Option<&'static str>,
    start_hint: Option<&'static str>,
) -> Vendor {
    let usual = hosted(name, aliases, key_variable, "", "");
    Vendor { base_url, default_model: None, keyless: true, quirks: OPEN, start_hint, ..usual }
}

const OPENAI: Quirks = Quirks {
    // Its newer models refuse `max_tokens`.
    token_limit: TokenLimit::MaxCompletionTokens,
    effort: EffortField::OpenAi,
    cache_key: true,
    call_ids: CallIds::UpTo(40),
    service_tier: true,
    ..Quirks::PLAIN
};

const OPEN: Quirks = Quirks { effort: EffortField::GptOss, ..Quirks::PLAIN };

const GROQ: Quirks =
    Quirks { effort: EffortField::Groq, service_tier: true, vendor_tools: VendorToolNames::Groq, ..Quirks::PLAIN };

const XAI: Quirks = Quirks { effort: EffortField::Xai, ..Quirks::PLAIN };

const TEMPLATE: Quirks = Quirks { effort: EffortField::ChatTemplate, ..Quirks::PLAIN };

const IN_WORDS: Quirks = Quirks { format: FormatField::JsonObject, ..Quirks::PLAIN };

/// Everybody has an address of their own there, and names of their own for models.
const AZURE: Vendor = Vendor {
    base_url: None,
    default_model: None,
    more_variables: &["AZURE_API_KEY", "AZURE_OPENAI_BASE_URL", AZURE_ENDPOINT],
    more_hosts: &[".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"],
    quirks: OPENAI,
    key_header: KeyHeader::Azure,
    ..hosted("azure", &[], "AZURE_OPENAI_API_KEY", "", "")
};

/// A vendor that is part of a cloud: the account tells where it is, and a variable may hold a token that is ready to be sent. Many
/// have such an account for other purposes, so that it is never chosen by itself.
const fn in_cloud(name: &'static str, cloud: Cloud, dialect: Dialect, key_variable: &'static str) -> Vendor {
    let usual = hosted(name, &[], key_variable, "", "");
    Vendor { dialect, base_url: None, default_model: None, cloud: Some(cloud), ..usual }
}

/// The variable of Azure's own programs, which holds an address without a path.
const AZURE_ENDPOINT: &str = "AZURE_OPENAI_ENDPOINT";

/// Every vendor; where no model is configured, the first one with a key is taken.
#[rustfmt::skip]
pub const VENDORS: &[Vendor] = &[
    Vendor { quirks: OPENAI, ..hosted("openai", &[], "OPENAI_API_KEY", "https://api.openai.com/v1", "gpt-4.1-mini") },
    Vendor {
        dialect: Dialect::OpenAiResponses,
        account: Some("openai"),
        ..hosted("openai-responses", &[], "OPENAI_API_KEY", "https://api.openai.com/v1", "gpt-5-mini")
    },
    Vendor {
        dialect: Dialect::Anthropic,
        ..hosted("anthropic", &["claude"], "ANTHROPIC_API_KEY", "https://api.anthropic.com/v1", "claude-sonnet-4-6")
    },
    Vendor {
        dialect: Dialect::Gemini,
        more_variables: &["GOOGLE_API_KEY"],
        ..hosted("gemini", &["google"], "GEMINI_API_KEY", "https://generativelanguage.googleapis.com/v1beta", "gemini-3.6-flash")
    },
    Vendor {
        quirks: Quirks { effort: EffortField::DeepSeek, wants_reasoning: true, ..IN_WORDS },
        ..hosted("deepseek", &[], "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1", "deepseek-flash")
    },
    Vendor {
        quirks: Quirks { effort: EffortField::EnableThinking, ..IN_WORDS },
        more_hosts: &["dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"],
        ..hosted("dashscope", &["qwen"], "DASHSCOPE_API_KEY", "https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen-plus")
    },
    Vendor {
        quirks: Quirks { effort: EffortField::Thinking, wants_reasoning: true, ..IN_WORDS },
        more_hosts: &["api.moonshot.cn"],
        ..hosted("moonshot", &["kimi"], "MOONSHOT_API_KEY", "https://api.moonshot.ai/v1", "kimi-k2.6")
    },
    Vendor {
        quirks: Quirks { effort: EffortField::Thinking, ..IN_WORDS },
        more_variables: &["ZHIPU_API_KEY"],
        more_hosts: &["api.z.ai"],
        ..hosted("zhipu", &["zhipuai", "glm"], "ZHIPUAI_API_KEY", "https://open.bigmodel.cn/api/paas/v4", "glm-4.6")
    },
    Vendor {
        // It answers 422 to `stream_options`, and tells usage unasked.
        quirks: Quirks {
            stream_options: false,
            call_ids: CallIds::Nine,
            effort: EffortField::Mistral,
            seed: SeedField::RandomSeed,
            ..Quirks::PLAIN
        },
        ..hosted("mistral", &[], "MISTRAL_API_KEY", "https://api.mistral.ai/v1", "mistral-small-latest")
    },
    Vendor {
        quirks: Quirks { vendor_tools: VendorToolNames::OpenRouter, effort: EffortField::Reasoning, service_tier: true, wants_details: true, ..Quirks::PLAIN },
        ..hosted("openrouter", &[], "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1", "openrouter/auto")
    },
    Vendor { quirks: GROQ, ..hosted("groq", &[], "GROQ_API_KEY", "https://api.groq.com/openai/v1", "openai/gpt-oss-120b") },
    Vendor { quirks: XAI, ..hosted("xai", &["grok"], "XAI_API_KEY", "https://api.x.ai/v1", "grok-4.3") },
    Vendor { quirks: OPEN, ..hosted("together", &[], "TOGETHER_API_KEY", "https://api.together.xyz/v1", "openai/gpt-oss-120b") },
    Vendor {
        quirks: OPEN,
        ..hosted("fireworks", &[], "FIREWORKS_API_KEY", "https://api.fireworks.ai/inference/v1", "accounts/fireworks/models/gpt-oss-120b")
    },
    Vendor {
        quirks: Quirks { effort: EffortField::EnableThinking, ..IN_WORDS },
        more_hosts: &["api.siliconflow.com"],
        ..hosted("siliconflow", &[], "SILICONFLOW_API_KEY", "https://api.siliconflow.cn/v1", "deepseek-ai/DeepSeek-V3.2")
    },
    Vendor {
        quirks: Quirks { reasoning_split: true, wants_details: true, effort: EffortField::MiniMax, ..Quirks::PLAIN },
        more_hosts: &["api.minimaxi.com", "api.minimax.chat"],
        ..hosted("minimax", &[], "MINIMAX_API_KEY", "https://api.minimax.io/v1", "MiniMax-M2.7")
    },
    Vendor { quirks: OPEN, ..hosted("nvidia", &["nim"], "NVIDIA_API_KEY", "https://integrate.api.nvidia.com/v1", "openai/gpt-oss-120b") },
    Vendor { quirks: OPEN, ..hosted("cerebras", &[], "CEREBRAS_API_KEY", "https://api.cerebras.ai/v1", "gpt-oss-120b") },
    Vendor {
        quirks: Quirks { stream_options: false, vendor_tools: VendorToolNames::AlwaysSearches, ..Quirks::PLAIN },
        ..hosted("perplexity", &[], "PERPLEXITY_API_KEY", "https://api.perplexity.ai", "sonar")
    },
    AZURE,
    Vendor { dialect: Dialect::OpenAiResponses, name: "azure-responses", account: Some("azure"), quirks: Quirks::PLAIN, ..AZURE },
    Vendor {
        more_variables: &["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"],
        more_hosts: &[
            "bedrock-runtime.*.amazonaws.com",
            "bedrock-runtime-fips.*.amazonaws.com",
            "bedrock-runtime.*.amazonaws.com.cn",
        ],
        ..in_cloud("bedrock", Cloud::Aws, Dialect::Bedrock, "AWS_BEARER_TOKEN_BEDROCK")
    },
    Vendor {
        more_hosts: &["aiplatform.googleapis.com", "*-aiplatform.googleapis.com", "aiplatform.*.rep.googleapis.com"],
        ..in_cloud("vertex", Cloud::Google, Dialect::Vertex, "GOOGLE_OAUTH_ACCESS_TOKEN")
    },
    Vendor {
        dialect: Dialect::OpenAiResponses,
        account: Some("xai"),
        ..hosted("xai-responses", &[], "XAI_API_KEY", "https://api.x.ai/v1", "grok-4.3")
    },
    Vendor { default_model: None, ..hosted("github", &[], "GITHUB_MODELS_API_KEY", "https://models.github.ai/inference", "") },
    Vendor { default_model: None, quirks: OPEN, ..hosted("huggingface", &["hf"], "HF_TOKEN", "https://router.huggingface.co/v1", "") },
    Vendor {
        dialect: Dialect::Ollama,
        more_variables: &["OLLAMA_HOST"],
        ..local(OLLAMA, &[], "OLLAMA_API_KEY", Some("http://127.0.0.1:11434"), Some("is Ollama running? start it with `ollama serve`"))
    },
    local(LM_STUDIO, &[], "LMSTUDIO_API_KEY", Some("http://127.0.0.1:1234/v1"),
        Some("is the server of LM Studio running? start it with `lms server start`")),
    Vendor {
        quirks: TEMPLATE,
        ..local(VLLM, &[], "VLLM_API_KEY", Some("http://127.0.0.1:8000/v1"), Some("is vLLM running? start it with `vllm serve MODEL`"))
    },
    Vendor {
        quirks: TEMPLATE,
        ..local(LLAMA_CPP, &["llama.cpp"], "LLAMACPP_API_KEY", Some("http://127.0.0.1:8080/v1"),
            Some("is llama.cpp running? start it with `llama-server -m MODEL.gguf`"))
    },
    local(COMPATIBLE, &[], "OPENAI_COMPATIBLE_API_KEY", None, None),
];

/// Why a model cannot be asked, and what to set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The vendor is not in the table.
    #[error("`{model}` names no known vendor; write vendor/name with one of {known}")]
    Unknown {
        /// What was asked for.
        model: String,
        /// The names that there are.
        known: String,
    },
    /// The vendor alone does not say which model.
    #[error("which model of {vendor}? write {vendor}/NAME")]
    NoName {
        /// The prefix of the model's name.
        vendor: String,
    },
    /// The key is missing.
    #[error("{vendor} needs a key; set {variable}")]
    NoKey {
        /// The prefix of the model's name.
        vendor: String,
        /// Where the key belongs.
        variable: String,
    },
    /// There are no credentials of the cloud.
    #[error("{vendor} needs credentials; {advice}")]
    NoCredentials {
        /// The prefix of the model's name.
        vendor: String,
        /// How to set it, for the message.
        advice: &'static str,
    },
    /// The account does not tell where the vendor is.
    #[error("{vendor} needs a {what}; {advice}")]
    NoPlace {
        /// The prefix of the model's name.
        vendor: String,
        /// A region or a project.
        what: &'static str,
        /// How to set it, for the message.
        advice: &'static str,
    },
    /// The address is missing.
    #[error("{vendor} needs an address; set {variable}, for example to http://127.0.0.1:8080/v1")]
    NoAddress {
        /// The prefix of the model's name.
        vendor: String,
        /// Where the address belongs.
        variable: String,
    },
    /// The key cannot be sent.
    #[error("{variable}: {bad}")]
    BadKey {
        /// Where it is set.
        variable: String,
        /// What is wrong.
        bad: BadKey,
    },
    /// Nobody else can be asked, and the feature `offline` is off.
    #[error(
        "this program was built without the offline model; set a vendor's key, for example OPENAI_API_KEY, or name a model"
    )]
    NoOffline,
    /// The key would be sent in clear.
    #[error(
        "{address} ({variable}) is plain http, which would send {secret} unencrypted; use https, \
         or unset the key"
    )]
    PlainHttp {
        /// Where the address is set.
        variable: String,
        /// The address.
        address: String,
        /// The secret that would be sent.
        secret: String,
    },
    /// Its settings cannot be used.
    #[error("{0}")]
    BadSettings(String),
    /// The address cannot be used.
    #[error("{variable}: {bad}")]
    BadAddress {
        /// Where it is set.
        variable: String,
        /// What is wrong.
        bad: BadAddress,
    },
}

impl OpenError {
    /// The error's code, which stays the same.
    pub fn code(&self) -> &'static str {
        match self {
            Self::PlainHttp { .. } => "plain_http",
            _ => "bad_model",
        }
    }
}

impl Vendor {
    /// The variables that may hold its key.
    pub fn key_variables(&self) -> impl Iterator<Item = &'static str> {
        let more = self.more_variables.iter().copied().filter(|name| name.ends_with("_KEY"));
        std::iter::once(self.key_variable).chain(more)
    }

    /// Whether this is an address at which the vendor itself is known to be.
    pub fn is_known_address(&self, address: &str) -> bool {
        let Some(asked) = host(address) else { return false };
        let own = self.base_url.and_then(host);
        own.as_deref() == Some(&*asked)
            || self.more_hosts.iter().any(|known| match known.split_once('*') {
                Some((start, end)) => {
                    let middle = asked.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
                    middle.is_some_and(|middle| !middle.is_empty() && !middle.contains('.'))
                }
                None if known.starts_with('.') => asked.ends_with(known),
                None => asked == *known,
            })
    }

    /// The variable that overrides its address.
    pub fn base_url_variable(&self) -> String {
        base_url_variable(self.name)
    }

    pub(crate) fn key(&self, variable: Lookup<'_>) -> Option<(&'static str, String)> {
        self.key_variables().find_map(|name| Some((name, filled(variable, name)?)))
    }

    /// The address that the user gave it under its own name, an alias or its account, and the variable.
    pub(crate) fn address(&self, variable: Lookup<'_>) -> Option<(String, String)> {
        let mut names =
            std::iter::once(&self.name).chain(self.aliases).chain(&self.account).map(|name| base_url_variable(name));
        names.find_map(|name| Some((name.clone(), filled(variable, &name)?)))
    }

    /// The address in a variable that other programs read too.
    pub(crate) fn foreign_address(&self, variable: Lookup<'_>) -> Option<(String, String)> {
        let mut names = self.more_variables.iter().filter(|name| !name.ends_with("_KEY"));
        names.find_map(|name| {
            let value = filled(variable, name)?;
            let address = match *name {
                "OLLAMA_HOST" => ollama_address(&value),
                AZURE_ENDPOINT => azure_address(&value),
                _ => value,
            };
            Some(((*name).to_owned(), address))
        })
    }
}

pub(crate) fn base_url_variable(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    format!("{name}_BASE_URL")
}

/// The address of the interface without versions at an endpoint of Azure.
fn azure_address(endpoint: &str) -> String {
    let endpoint = endpoint.trim().trim_end_matches('/');
    let has_path = endpoint.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
    if has_path { endpoint.to_owned() } else { format!("{endpoint}/openai/v1") }
}

/// The address in `OLLAMA_HOST`, which Ollama itself takes in many forms.
fn ollama_address(host: &str) -> String {
    let host = host.trim().trim_end_matches('/');
    if host.contains("://") {
        return host.to_owned();
    }
    let host = host.replacen("0.0.0.0", "127.0.0.1", 1);
    let host = if host.is_empty() || host.starts_with(':') { format!("127.0.0.1{host}") } else { host };
    let has_port =
        host.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    format!("http://{host}{}", if has_port { "" } else { ":11434" })
}

/// Looks up an environment variable, or what a configuration says in its place.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Opens `model` (`vendor/name`, or a vendor alone, or `offline`) with the proxies and certificates of the environment; with
/// none, the first vendor whose key is set, else a server of models that runs on this machine, else the offline model. The other
/// vendors that are set up can be asked by name as well.
pub fn open(model: Option<&str>, variable: Lookup<'_>) -> impl Future<Output = Result<Models, OpenError>> + Send + use<> {
    open_with(
        model,
        variable,
        Setup { network: HttpOptions::new(Environment::from_variables(variable)), endpoints: Vec::new() },
    )
}

/// What a configuration says about models.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// The proxies and certificates.
    pub network: HttpOptions,
    /// The endpoints that have settings of their own, each name once.
    pub endpoints: Vec<Endpoint>,
}

/// The same as the configuration says.
pub fn open_with(
    model: Option<&str>,
    variable: Lookup<'_>,
    setup: Setup,
) -> impl Future<Output = Result<Models, OpenError>> + Send + use<> {
    let Setup { network, endpoints } = setup;
    let endpoints = all_endpoints(endpoints);
    let names = EndpointNames::new(&endpoints);
    let http = HttpClient::new(network.clone());
    let opened: Vec<_> =
        endpoints.into_iter().map(|endpoint| (endpoint.open(&http, &network, variable).map(Arc::new), endpoint)).collect();
    let named = model.map(str::trim).filter(|model| !model.is_empty()).map(|model| names.resolve(model));
    let configured = named.or_else(|| first_with_key(&opened, variable).map(Ok));
    let looks = filled(variable, SWITCH).is_none_or(|word| word.trim() != "off");
    async move {
        let near = |name: &'static str| {
            let (opened, _) = opened.iter().find(|(_, endpoint)| endpoint.name == name)?;
            let remote = opened.as_ref().ok()?;
            (looks && is_loopback(remote.base_url())).then(|| (name, remote.clone()))
        };
        // Where a model is chosen, its server is asked what it can do.
        let servers = match &configured {
            None => SERVERS.into_iter().filter_map(near).collect(),
            Some(Ok((vendor, _))) => TELLING_SERVERS.into_iter().filter(|name| **vendor == **name).filter_map(near).collect(),
            Some(Err(_)) => Vec::new(),
        };
        let listed = local_servers::list(servers).await;
        let found = if configured.is_none() { local_servers::choose(&listed) } else { None };
        let (vendor, default) = match (configured, &found) {
            (Some(chosen), _) => chosen?,
            (None, Some(found)) => (found.vendor.into(), found.model.clone()),
            (None, None) => (OFFLINE.into(), OFFLINE.into()),
        };
        let mut models = Models::new(default, names);
        for (opened, endpoint) in opened {
            models.insert(opened, endpoint);
        }
        models.insert_local(OFFLINE, offline());
        match models.error_of(&vendor) {
            Some(error) => Err(error.clone()),
            None => Ok(models.told(listed).found(found.map(|found| found.reason))),
        }
    }
}

/// Every vendor, with its settings where it has some, and the endpoints with names of their own.
fn all_endpoints(configured: Vec<Endpoint>) -> Vec<Endpoint> {
    let settings_of = |name: &str| configured.iter().find(|endpoint| endpoint.name == name);
    let of_vendor = |vendor: &'static Vendor| {
        let of_account = || vendor.account.and_then(settings_of).map(|account| Endpoint { dialect: None, ..account.clone() });
        let settings = settings_of(vendor.name).cloned().or_else(of_account);
        settings.map_or_else(
            || Endpoint::new(vendor.name, vendor),
            |settings| Endpoint { name: vendor.name.to_owned(), vendor, ..settings },
        )
    };
    let mut all: Vec<_> = VENDORS.iter().map(of_vendor).collect();
    all.extend(configured.into_iter().filter(Endpoint::has_own_name));
    all
}

/// The vendor that a name or an alias means.
pub fn find(name: &str) -> Option<&'static Vendor> {
    VENDORS.iter().find(|vendor| vendor.name == name || vendor.aliases.contains(&name))
}

/// The vendor that an endpoint with only a dialect is like.
pub fn of_dialect(dialect: Dialect) -> &'static Vendor {
    let name = match dialect {
        Dialect::OpenAiChat => COMPATIBLE,
        Dialect::OpenAiResponses => "openai-responses",
        Dialect::Anthropic => "anthropic",
        Dialect::Gemini => "gemini",
        Dialect::Ollama => OLLAMA,
        Dialect::Bedrock => "bedrock",
        Dialect::Vertex => "vertex",
    };
    find(name).expect("every dialect has a vendor in the table")
}

/// The offline model, if this program has it.
#[cfg(feature = "offline")]
fn offline() -> Result<Arc<dyn Model>, OpenError> {
    Ok(Arc::new(crate::Offline::default()))
}

#[cfg(not(feature = "offline"))]
fn offline() -> Result<Arc<dyn Model>, OpenError> {
    Err(OpenError::NoOffline)
}

/// Whether a key would be readable on its way: plain http to another machine.
pub(crate) fn is_plain_http(address: &str) -> bool {
    let uri: Option<Uri> = address.trim().parse().ok();
    let scheme = uri.as_ref().and_then(|uri| uri.scheme_str()).unwrap_or_default().to_ascii_lowercase();
    scheme == "http" && !is_loopback(address)
}

/// The host of an address, in lower case and without brackets.
fn host(address: &str) -> Option<String> {
    let uri: Uri = address.trim().parse().ok()?;
    Some(uri.host()?.trim_matches(['[', ']']).to_ascii_lowercase())
}

/// Nobody is asked over the network without having been chosen.
fn is_loopback(address: &str) -> bool {
    let host = host(address).unwrap_or_default();
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

type Opened = (Result<Arc<RemoteModel>, OpenError>, Endpoint);

fn first_with_key(opened: &[Opened], variable: Lookup<'_>) -> Option<(Arc<str>, Arc<str>)> {
    let has_key = |endpoint: &&Endpoint| endpoint.key_source.is_some() || endpoint.key(variable).is_some();
    let of_vendors = opened.iter().map(|(_, endpoint)| endpoint).filter(|endpoint| !endpoint.has_own_name());
    of_vendors.filter(has_key).find_map(|endpoint| {
        let model = endpoint.vendor.default_model?;
        Some((endpoint.name.as_str().into(), format!("{}/{model}", endpoint.name).into()))
    })
}

pub(crate) fn filled(variable: Lookup<'_>, name: &str) -> Option<String> {
    variable(name).filter(|value| !value.trim().is_empty())
}

#[cfg(test)]
mod tests;
