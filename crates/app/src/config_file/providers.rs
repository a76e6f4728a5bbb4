//! `[providers.NAME]`: where a vendor or an endpoint of one's own is, its key, headers, limits and certificates.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use polis_http::{HeaderMap, HeaderName, HeaderValue, HttpOptions, Uri};
use polis_providers::vendors::{self, OFFLINE, VENDORS, Vendor};
use polis_providers::{CloudSettings, CommandGuard, Dialect, Endpoint, EndpointTimeouts, KeyCommand, KeyFile, KeySource, Rate};
use polis_tools::mcp::{PASSED_ON, variable_names, variables};
use serde::Deserialize;

use super::network::{NetworkSection, path_from_home};

/// The longest time limit, in seconds: a day.
const MAX_SECONDS: f64 = 86_400.0;

/// Most retries of a failed call.
const MAX_RETRIES: u32 = 10;

/// Headers that belong to the connection: another value would break the request.
const OWN_HEADERS: [&str; 7] =
    ["connection", "content-length", "content-type", "host", "proxy-authorization", "transfer-encoding", "upgrade"];

/// Longest name of an endpoint, in bytes.
const MAX_NAME_BYTES: usize = 64;

#[derive(Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProviderSection {
    pub(super) base_url: Option<String>,
    dialect: Option<DialectName>,
    /// The vendor that an endpoint with a name of its own is like.
    like: Option<String>,
    key_variable: Option<String>,
    #[serde(default, deserialize_with = "path_from_home")]
    key_file: Option<PathBuf>,
    /// The program that prints the key, and its arguments.
    key_command: Option<Vec<String>>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    timeouts: TimeoutsSection,
    retries: Option<u32>,
    #[serde(default, deserialize_with = "path_from_home")]
    ca: Option<PathBuf>,
    #[serde(default, deserialize_with = "path_from_home")]
    client_certificate: Option<PathBuf>,
    #[serde(default, deserialize_with = "path_from_home")]
    client_key: Option<PathBuf>,
    proxy: Option<String>,
    pub(super) requests_per_minute: Option<u32>,
    tokens_per_minute: Option<u64>,
    /// The account of a vendor in a cloud: at Amazon, and at Google.
    region: Option<String>,
    profile: Option<String>,
    project: Option<String>,
    location: Option<String>,
    /// The stores at the vendor whose files its file search reads.
    #[serde(default)]
    file_stores: Vec<String>,
    /// The folder of the user's own file, where its program runs.
    #[serde(skip)]
    folder: Option<PathBuf>,
    /// Decides whether the program of a folder's file may still run.
    #[serde(skip)]
    guard: Option<CommandGuard>,
}

/// How long things may take, in seconds.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct TimeoutsSection {
    connect: Option<f64>,
    first_token: Option<f64>,
    between_tokens: Option<f64>,
    whole: Option<f64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DialectName {
    #[serde(rename = "openai")]
    OpenAi,
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    Anthropic,
    Gemini,
    Ollama,
    Bedrock,
    Vertex,
}

impl From<DialectName> for Dialect {
    fn from(name: DialectName) -> Self {
        match name {
            DialectName::OpenAi => Self::OpenAiChat,
            DialectName::OpenAiResponses => Self::OpenAiResponses,
            DialectName::Anthropic => Self::Anthropic,
            DialectName::Gemini => Self::Gemini,
            DialectName::Ollama => Self::Ollama,
            DialectName::Bedrock => Self::Bedrock,
            DialectName::Vertex => Self::Vertex,
        }
    }
}

/// Its values may be secret.
impl fmt::Debug for ProviderSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderSection").finish_non_exhaustive()
    }
}

impl ProviderSection {
    /// What is wrong with it, as far as that is known without the environment.
    pub(super) fn check(&self, name: &str) -> Result<(), String> {
        let whose = |what: &str| format!("the provider `{name}` {what}");
        let known = self.vendor(name)?.cloud.map(polis_providers::Cloud::settings).unwrap_or_default();
        if let Some(setting) = self.cloud_settings().into_iter().find(|setting| !known.contains(setting)) {
            return Err(whose(&format!("has `{setting}`, which its vendor does not know")));
        }
        if vendors::find(name).is_some() && self.like.is_some() {
            return Err(whose("is a vendor itself, so it cannot have `like`"));
        }
        let keys = [self.key_variable.is_some(), self.key_file.is_some(), self.key_command.is_some()];
        if keys.into_iter().filter(|is_set| *is_set).count() > 1 {
            return Err(whose("has more than one of `key_variable`, `key_file` and `key_command`"));
        }
        if self.key_command.as_ref().is_some_and(|words| words.first().is_none_or(|word| word.trim().is_empty())) {
            return Err(whose(
                "needs a program and its arguments in `key_command`, such as [\"secret-tool\", \"lookup\", \"service\", \"openai\"]",
            ));
        }
        if self.key_variable.as_ref().is_some_and(|variable| variable.trim().is_empty() || variable.contains(['=', ' '])) {
            return Err(whose("needs the name of a variable in `key_variable`"));
        }
        if self.base_url.as_deref().is_some_and(|address| !is_address(address)) {
            return Err(whose("has a `base_url` that is no address; write it like https://api.openai.com/v1"));
        }
        for header in self.headers.keys() {
            match HeaderName::try_from(header.as_str()) {
                Err(_) => return Err(whose(&format!("has the header `{header}`, which is no name of a header"))),
                Ok(name) if OWN_HEADERS.contains(&name.as_str()) => {
                    return Err(whose(&format!("has the header `{header}`, which Polis sets itself")));
                }
                Ok(_) => {}
            }
        }
        self.timeouts
            .check()
            .map_err(|key| whose(&format!("has `timeouts.{key}` that is not above 0 and at most {MAX_SECONDS} seconds")))?;
        if self.retries.is_some_and(|retries| retries > MAX_RETRIES) {
            return Err(whose(&format!("has more than {MAX_RETRIES} `retries`")));
        }
        self.network().check().map_err(|what| whose(&format!("has a wrong setting: {what}")))
    }

    /// The vendor that it is, or is like.
    fn vendor(&self, name: &str) -> Result<&'static Vendor, String> {
        if let Some(vendor) = vendors::find(name) {
            return Ok(vendor);
        }
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > MAX_NAME_BYTES || name == OFFLINE || !name.chars().all(is_plain) {
            return Err(format!("the provider `{name}` needs a name of a-z, 0-9, `-`, `_` and `.`, other than `{OFFLINE}`"));
        }
        let known = || VENDORS.iter().map(|vendor| vendor.name).collect::<Vec<_>>().join(", ");
        match (&self.like, self.dialect) {
            (Some(like), _) if self.base_url.is_some() => vendors::find(like)
                .ok_or_else(|| format!("the provider `{name}` is like `{like}`, which is none of {}", known())),
            (None, Some(dialect)) if self.base_url.is_some() => Ok(vendors::of_dialect(dialect.into())),
            _ => Err(format!(
                "unknown provider `{name}`, expected one of {}; a provider of your own needs a `base_url` and a `dialect` or `like`",
                known()
            )),
        }
    }

    /// The settings of a cloud that it has.
    fn cloud_settings(&self) -> Vec<&'static str> {
        let Self { region, profile, project, location, .. } = self;
        let all = [("region", region), ("profile", profile), ("project", project), ("location", location)];
        all.into_iter().filter(|(_, value)| value.is_some()).map(|(name, _)| name).collect()
    }

    /// Its proxies and certificates.
    pub(crate) fn network(&self) -> NetworkSection {
        let Self { ca, client_certificate, client_key, proxy, .. } = self.clone();
        NetworkSection { ca, client_certificate, client_key, proxy, no_proxy: Vec::new() }
    }

    /// The variable that it takes its key from, if that is not the vendor's usual one.
    pub(crate) fn key_variable(&self, name: &str) -> Option<String> {
        let is_elsewhere = self.key_file.is_some() || self.key_command.is_some();
        let usual = || (vendors::find(name).is_none() && !is_elsewhere).then(|| Endpoint::usual_key_variable(name));
        self.key_variable.clone().or_else(usual)
    }

    /// All variables that it names.
    pub(super) fn variables(&self, name: &str) -> Vec<String> {
        let of_headers = self.headers.values().flat_map(|value| variable_names(value));
        self.key_variable(name).into_iter().chain(of_headers).chain(self.network().variables()).collect()
    }

    pub(super) fn key_file(&self) -> Option<&Path> {
        self.key_file.as_deref()
    }

    /// Whether it has a key file, certificates or a proxy, which may be missing or wrong.
    pub(crate) fn has_own_files(&self) -> bool {
        self.key_file.is_some() || !self.network().is_empty()
    }

    /// The files with secrets, which no agent may read.
    pub(crate) fn private_files(&self) -> impl Iterator<Item = &PathBuf> {
        self.key_file.iter().chain(&self.client_key)
    }

    /// The program that prints its key, as trust looks at programs.
    pub(super) fn program(&self) -> Option<serde_json::Value> {
        let (command, args) = self.key_command.as_ref()?.split_first()?;
        Some(serde_json::json!({ "command": command, "args": args }))
    }

    pub(super) fn set_guard(&mut self, guard: CommandGuard) {
        self.guard = Some(guard);
    }

    /// Has its relative paths and its program begin in the folder of the user's own file: in a stranger's folder the program
    /// could load what lies there.
    pub(super) fn set_folder(&mut self, folder: &Path) {
        let paths = [&mut self.key_file, &mut self.ca, &mut self.client_certificate, &mut self.client_key];
        for path in paths.into_iter().flatten() {
            *path = folder.join(&*path);
        }
        self.folder = Some(folder.to_owned());
    }

    /// This one, with the other's numbers where it has none. Where it goes and with which key comes from one of them alone: a
    /// folder's proxy must not carry the user's key.
    pub(super) fn over(self, other: Self) -> Self {
        let timeouts = self.timeouts.over(other.timeouts);
        let retries = self.retries.or(other.retries);
        let requests_per_minute = self.requests_per_minute.or(other.requests_per_minute);
        let tokens_per_minute = self.tokens_per_minute.or(other.tokens_per_minute);
        let connects = if self.has_connection() { self } else { other };
        Self { timeouts, retries, requests_per_minute, tokens_per_minute, ..connects }
    }

    /// Whether it says where requests go, or with which key, header or certificate.
    fn has_connection(&self) -> bool {
        let Self { base_url, dialect, like, key_variable, key_file, key_command, headers, .. } = self;
        let has_address = base_url.is_some() || dialect.is_some() || like.is_some();
        let has_key = key_variable.is_some() || key_file.is_some() || key_command.is_some() || !headers.is_empty();
        has_address || has_key || !self.cloud_settings().is_empty() || !self.network().is_empty()
    }

    /// The endpoint with this name, in a network that is `usual` where this section sets nothing.
    pub(crate) fn endpoint(&self, name: &str, usual: &HttpOptions) -> Result<Endpoint, String> {
        let mut endpoint = Endpoint::new(name, self.vendor(name)?);
        let Self { base_url, dialect, key_variable, timeouts, retries, region, profile, project, location, .. } = self.clone();
        endpoint.cloud = CloudSettings { region, profile, project, location };
        endpoint.base_url = base_url;
        endpoint.dialect = dialect.map(Dialect::from);
        endpoint.key_variable = key_variable;
        endpoint.timeouts = timeouts.into();
        endpoint.retries = retries;
        endpoint.rate = self.rate();
        endpoint.file_stores.clone_from(&self.file_stores);
        endpoint.key_source = match (&self.key_file, &self.key_command) {
            (Some(path), _) => Some(KeySource::File(KeyFile { path: path.clone(), guard: self.guard.clone() })),
            (None, Some(words)) => {
                let (words, folder, guard) = (words.clone(), self.folder.clone(), self.guard.clone());
                // The program of a folder's file gets no secrets, as its MCP servers do not.
                let environment = guard.is_some().then_some(PASSED_ON);
                Some(KeySource::Command(KeyCommand { words, folder, environment, guard }))
            }
            (None, None) => None,
        };
        let whose = |what: String| format!("[providers.{name}] {what}");
        match self.headers() {
            Ok(headers) => endpoint.headers = headers,
            Err(what) => endpoint.problem = Some(whose(what)),
        }
        let network = self.network();
        if !network.is_empty() {
            match network.apply(usual.clone()) {
                Ok(network) => endpoint.network = Some(network),
                Err(what) => endpoint.problem = Some(whose(what)),
            }
        }
        Ok(endpoint)
    }

    fn headers(&self) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let value = variables(value).map_err(|what| format!("headers.{name}: {what}"))?;
            let unfit = || format!("headers.{name}: its value cannot be sent");
            let header = HeaderName::try_from(name.as_str()).map_err(|_| unfit())?;
            let mut value = HeaderValue::try_from(value.trim()).map_err(|_| unfit())?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        Ok(headers)
    }

    /// Its rate limit.
    pub(super) fn rate(&self) -> Rate {
        Rate { requests_per_minute: self.requests_per_minute, tokens_per_minute: self.tokens_per_minute }
    }
}

fn is_address(text: &str) -> bool {
    let uri = text.trim().replace("{model}", "m").parse::<Uri>();
    uri.is_ok_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty()))
}

impl TimeoutsSection {
    /// The first key with an impossible value.
    fn check(&self) -> Result<(), &'static str> {
        let Self { connect, first_token, between_tokens, whole } = self;
        let all = [("connect", connect), ("first_token", first_token), ("between_tokens", between_tokens), ("whole", whole)];
        let is_bad = |seconds: &f64| !(*seconds > 0.0 && *seconds <= MAX_SECONDS);
        match all.into_iter().find(|(_, seconds)| seconds.as_ref().is_some_and(is_bad)) {
            Some((key, _)) => Err(key),
            None => Ok(()),
        }
    }

    fn over(self, other: Self) -> Self {
        Self {
            connect: self.connect.or(other.connect),
            first_token: self.first_token.or(other.first_token),
            between_tokens: self.between_tokens.or(other.between_tokens),
            whole: self.whole.or(other.whole),
        }
    }
}

impl From<TimeoutsSection> for EndpointTimeouts {
    fn from(section: TimeoutsSection) -> Self {
        let seconds = |seconds: Option<f64>| seconds.map(Duration::from_secs_f64);
        Self {
            connect: seconds(section.connect),
            first_token: seconds(section.first_token),
            between_tokens: seconds(section.between_tokens),
            whole: seconds(section.whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config_file::parse;

    #[test]
    fn a_wrong_setting_is_reported_with_its_place_and_without_its_value() {
        let own = "\n[providers.corp]\nbase_url = \"https://h/v1\"\nlike = \"openai\"\n";
        for (text, want) in [
            (
                "[providers.corp]\nbase_url = \"https://h\"\n",
                "line 1, column 12: unknown provider `corp`, expected one of openai",
            ),
            ("[providers.corp]\ndialect = \"openai\"\n", "a provider of your own needs a `base_url` and a `dialect` or `like`"),
            ("[providers.corp]\nbase_url = \"https://h\"\ndialect = \"chat\"\n", "line 3, column 11: unknown variant `chat`"),
            ("[providers.corp]\nbase_url = \"https://h\"\nlike = \"opnai\"\n", "is like `opnai`, which is none of openai"),
            ("[providers.\"a/b\"]\nbase_url = \"https://h\"\nlike = \"openai\"\n", "needs a name of a-z"),
            ("[providers.offline]\nbase_url = \"https://h\"\nlike = \"openai\"\n", "other than `offline`"),
            ("[providers.openai]\nlike = \"mistral\"\n", "is a vendor itself"),
            ("[providers.qwen]\nretries = 1\n[providers.dashscope]\nretries = 1\n", "has another section under its other name"),
            (
                &format!("{own}key_file = \"k\"\nkey_variable = \"K\"\n"),
                "line 2, column 12: the provider `corp` has more than one",
            ),
            (&format!("{own}key_command = []\n"), "needs a program and its arguments"),
            (&format!("{own}key_command = \"op read\"\n"), "line 5, column 15: invalid type: string"),
            (&format!("{own}headers = {{ \"a b\" = \"sk-secret\" }}\n"), "is no name of a header"),
            (&format!("{own}headers = {{ Content-Length = \"0\" }}\n"), "which Polis sets itself"),
            (
                "[providers.openai]\nbase_url = \"api.openai.com\"\n",
                "line 1, column 12: the provider `openai` has a `base_url` that is no address",
            ),
            (&format!("{own}timeouts = {{ whole = 0 }}\n"), "`timeouts.whole` that is not above 0"),
            (&format!("{own}timeouts = {{ first = 1 }}\n"), "unknown field `first`"),
            (&format!("{own}retries = 11\n"), "more than 10 `retries`"),
            (&format!("{own}client_key = \"k\"\n"), "`client_certificate` and `client_key` belong together"),
            (&format!("{own}proxy = \"ftp://u:sk-secret@p\"\n"), "`proxy` is no address of a proxy"),
            ("model = \"a/b\"\n[network]\nproxy = \"sk-secret@\"\n", "line 2, column 1: in [network] `proxy` is no address"),
            ("[providers.openai]\nregion = \"eu-west-1\"\n", "has `region`, which its vendor does not know"),
            ("[providers.vertex]\nprofile = \"work\"\n", "has `profile`, which its vendor does not know"),
            ("[network]\ncert = \"x\"\n", "line 2, column 1: unknown field `cert`"),
        ] {
            let error = parse(text, Path::new("polis.toml")).err().unwrap_or_else(|| panic!("{text}")).to_string();
            assert!(error.contains(want) && !error.contains("sk-secret"), "{text}: {error}");
        }
    }

    #[test]
    fn a_section_becomes_an_endpoint() {
        let text = "[providers.corp]\nbase_url = \"https://h/v1\"\ndialect = \"anthropic\"\nkey_command = [\"op\", \"read\", \"a b\"]\nheaders = { X-Team = \"${POLIS_TEST_UNSET:-blue}\" }\ntimeouts = { connect = 1, first_token = 2, between_tokens = 3.5, whole = 4 }\nretries = 0\nca = \"a.pem\"\nproxy = \"none\"\nrequests_per_minute = 9\n[providers.kimi]\nheaders = { A = \"${POLIS_TEST_UNSET}\" }\n";
        let file = parse(text, Path::new("x")).unwrap();
        let endpoints: Vec<_> = file
            .providers
            .iter()
            .map(|(name, section)| section.endpoint(name.get_ref(), &polis_http::HttpOptions::default()).unwrap())
            .collect();
        let [corp, kimi] = &endpoints[..] else { panic!("two, not {}", endpoints.len()) };
        assert_eq!((corp.vendor.name, corp.dialect), ("anthropic", Some(polis_providers::Dialect::Anthropic)));
        assert_eq!(corp.key_source.as_ref().unwrap().to_string(), "the key command `op`");
        assert_eq!(corp.headers["x-team"], "blue");
        assert!(!format!("{corp:?}").contains("blue"), "{corp:?}");
        let seconds = |seconds| Some(std::time::Duration::from_secs_f64(seconds));
        let timeouts = polis_providers::EndpointTimeouts {
            connect: seconds(1.0),
            first_token: seconds(2.0),
            between_tokens: seconds(3.5),
            whole: seconds(4.0),
        };
        assert_eq!((corp.timeouts, corp.retries, corp.rate.requests_per_minute), (timeouts, Some(0), Some(9)));
        let network = corp.network.as_ref().unwrap();
        assert_eq!(network.trust, polis_http::Trust::SystemAnd(vec!["a.pem".into()]));
        assert_eq!((kimi.name.as_str(), &kimi.network.is_none()), ("moonshot", &true));
        let clouds = "[providers.bedrock]\nregion = \"eu-west-1\"\nprofile = \"work\"\n[providers.vertex]\nproject = \"p\"\nlocation = \"us-east5\"\n";
        let file = parse(clouds, Path::new("x")).unwrap();
        let settings: Vec<_> = file
            .providers
            .iter()
            .map(|(name, section)| section.endpoint(name.get_ref(), &polis_http::HttpOptions::default()).unwrap().cloud)
            .collect();
        let text = |text: &str| Some(text.to_owned());
        let aws = polis_providers::CloudSettings { region: text("eu-west-1"), profile: text("work"), ..Default::default() };
        let google = polis_providers::CloudSettings { project: text("p"), location: text("us-east5"), ..Default::default() };
        assert_eq!(settings, [aws, google]);
        let problem = kimi.problem.as_deref();
        assert_eq!(problem, Some("[providers.moonshot] headers.A: the variable POLIS_TEST_UNSET is not set"));
    }
}
