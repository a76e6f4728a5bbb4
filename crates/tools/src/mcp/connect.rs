//! Opens the connection to a server: its process or its address, then the handshake.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use polis_http::{HeaderName, HeaderValue, HttpOptions};
use polis_ports::Documents;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};

use super::bounded_http::BoundedHttp;
use super::client_handler::McpClientHandler;
use super::limited_transport::LimitedTransport;
use super::oauth::{StoredLogin, Wants, auth_client, has_authorization, wants};
use super::process::Process;
use super::settings::{ServerSettings, ServerTransport, variables};
use super::without_type_names;
use crate::{http_client, is_plain_http};

/// Largest message that is taken from a server, in bytes.
const MAX_MESSAGE_BYTES: usize = 8 << 20;

/// A connection that has been opened.
pub(super) type Session = RunningService<RoleClient, McpClientHandler>;

/// Why there is no connection.
pub(super) enum ConnectError {
    /// For this reason.
    Failed(String),
    /// The server wants a login first, and perhaps says which.
    Login(Option<String>),
    /// It gave an answer to the question of the newest protocol that is none.
    Confused(String),
}

impl From<String> for ConnectError {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<ClientInitializeError> for ConnectError {
    fn from(error: ClientInitializeError) -> Self {
        match wants(&error) {
            Some(Wants::Login(challenge)) => Self::Login(challenge),
            Some(Wants::Rights(challenge)) => Self::Login(Some(challenge)),
            None if matches!(error, ClientInitializeError::ExpectedInitResult(_)) => Self::Confused(without_type_names(&error)),
            None => Self::Failed(without_type_names(&error)),
        }
    }
}

/// Opens it. The process is handed over as soon as there is one, so that it can be ended if the rest never comes. Tokens come
/// from the login that is kept.
pub(super) async fn open(
    settings: &ServerSettings,
    client: McpClientHandler,
    process: &mut Option<Process>,
    login: Option<&StoredLogin>,
    network: &HttpOptions,
) -> Result<Session, ConnectError> {
    let is_late = Arc::<AtomicBool>::default();
    let lifecycle = match once(settings, client.clone(), process, login, network, newest(), &is_late).await {
        // It is slow to start, so the library tried the older handshake; this time it has all the time that it needs.
        Err(_) if is_late.load(Ordering::Acquire) => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] }
        }
        // Some servers say `{}` to whatever they do not know.
        Err(ConnectError::Confused(_)) => ClientLifecycleMode::Initialize,
        opened => return opened,
    };
    once(settings, client, process, login, network, lifecycle, &is_late).await
}

async fn once(
    settings: &ServerSettings,
    client: McpClientHandler,
    process: &mut Option<Process>,
    login: Option<&StoredLogin>,
    network: &HttpOptions,
    lifecycle: ClientLifecycleMode,
    is_late: &Arc<AtomicBool>,
) -> Result<Session, ConnectError> {
    let all = |texts: &BTreeMap<String, String>| {
        texts.iter().map(|(name, text)| Ok((name.clone(), variables(text)?))).collect::<Result<BTreeMap<_, _>, String>>()
    };
    match &settings.transport {
        ServerTransport::Command { command, args, env, cwd } => {
            let guard = settings.start_guard.clone();
            tokio::task::spawn_blocking(move || guard.check()).await.map_err(|error| error.to_string())??;
            let (command, mut env) = (variables(command)?, all(env)?);
            if settings.start_guard.is_set() {
                // Compiled Python is not compared: it is neither read nor written.
                env.insert("PYTHONPYCACHEPREFIX".to_owned(), "/dev/null".to_owned());
            }
            let args = args.iter().map(|text| variables(text)).collect::<Result<Vec<_>, _>>()?;
            // The operating system would say of the program that it does not exist.
            if let Some(cwd) = cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
                return Err(format!("its `cwd` {} is no folder", cwd.display()).into());
            }
            let started = Process::start(&client.server, &command, &args, &env, cwd.as_deref());
            let (started, stdout, stdin) = started.map_err(|error| format!("`{command}` cannot be started: {error}"))?;
            *process = Some(started);
            let pipes = AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(MAX_MESSAGE_BYTES);
            Ok(client.serve_with_lifecycle(LimitedTransport::new(pipes, is_late.clone()), lifecycle).await?)
        }
        ServerTransport::Http { url, headers } => {
            let (secret_url, secret_header) = (url.contains("${"), secret_header(headers));
            let (url, headers) = (variables(url)?, custom_headers(headers)?);
            if is_plain_http(&url) && (secret_url || secret_header.is_some()) {
                let what = secret_header.map_or_else(|| "the variables in it".to_owned(), |name| format!("the header {name}"));
                return Err(
                    format!("its url is plain http, which would send {what} unencrypted; use https (plain_http)").into()
                );
            }
            if !url.starts_with("https://") && !url.starts_with("http://") {
                return Err("its url begins with neither https:// nor http://".to_owned().into());
            }
            let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
            config.custom_headers = headers;
            let http = BoundedHttp::new(http_client::client(network), MAX_MESSAGE_BYTES);
            let session = match login {
                Some(login) => {
                    let http =
                        StreamableHttpClientTransport::with_client(auth_client(http, &url, login, network).await?, config);
                    client.serve_with_lifecycle(LimitedTransport::new(http, is_late.clone()), lifecycle).await
                }
                None => {
                    let http = StreamableHttpClientTransport::with_client(http, config);
                    client.serve_with_lifecycle(LimitedTransport::new(http, is_late.clone()), lifecycle).await
                }
            };
            Ok(session?)
        }
    }
}

/// Where the login of a server is stored, if there can be one.
pub(super) fn login_of(settings: &ServerSettings, logins: Option<&Arc<dyn Documents>>) -> Option<StoredLogin> {
    let ServerTransport::Http { url, .. } = &settings.transport else { return None };
    let url = variables(url).ok().filter(|url| !is_plain_http(url) && !has_own_authorization(settings))?;
    Some(StoredLogin::new(logins?.clone(), &settings.name, &url))
}

/// Whether the operator has given an Authorization for it.
pub(super) fn has_own_authorization(settings: &ServerSettings) -> bool {
    matches!(&settings.transport, ServerTransport::Http { headers, .. } if has_authorization(headers.keys()))
}

/// The newest protocol where the server has it, else the one with a handshake.
fn newest() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

/// The first header that carries a secret by its name, or because its value comes from a variable.
fn secret_header(headers: &BTreeMap<String, String>) -> Option<String> {
    const NAMES: [&str; 6] = ["auth", "cookie", "key", "token", "secret", "password"];
    let is_secret = |name: &str, value: &str| {
        let name = name.to_ascii_lowercase();
        value.contains("${") || NAMES.iter().any(|part| name.contains(part))
    };
    headers.iter().find(|(name, value)| is_secret(name, value)).map(|(name, _)| name.clone())
}

/// The headers that the operator has set, as they are sent.
pub(super) fn custom_headers(headers: &BTreeMap<String, String>) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let one = |(name, value): (&String, &String)| {
        let value = variables(value)?;
        let header = HeaderName::try_from(name).map_err(|_| format!("`{name}` is no name of a header"))?;
        let mut value =
            HeaderValue::try_from(value).map_err(|_| format!("the header {name} has a value that cannot be sent"))?;
        value.set_sensitive(true);
        Ok((header, value))
    };
    headers.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_with_secrets_are_found() {
        let one = |name: &str, value: &str| secret_header(&[(name.to_owned(), value.to_owned())].into());
        for name in ["Authorization", "x-api-key", "Cookie", "Private-Token", "Proxy-Authorization"] {
            assert_eq!(one(name, "x").as_deref(), Some(name));
        }
        assert_eq!(one("X-Team", "${NAME}").as_deref(), Some("X-Team"));
        assert_eq!(one("X-Team", "blue"), None);
    }
}
