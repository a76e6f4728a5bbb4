//! Opens the connection to a server: its process or its address, then the handshake.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ProtocolVersion;
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};

use super::ear::Ear;
use super::process::Process;
use super::settings::{Reach, expanded};
use super::watched::Watched;

/// Largest message that is taken from a server, in bytes.
const MAX_MESSAGE_BYTES: usize = 8 << 20;

/// How long an address may take to be reached.
const CONNECT: Duration = Duration::from_secs(10);

/// A connection that has been opened.
pub(super) type Session = RunningService<RoleClient, Ear>;

/// Opens it. The process is handed over as soon as there is one, so that it can be ended if the rest never comes.
pub(super) async fn open(reach: &Reach, ear: Ear, process: &mut Option<Process>) -> Result<Session, String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let put_in = |text: &str| expanded(text, &variable);
    let all = |texts: &BTreeMap<String, String>| {
        texts.iter().map(|(name, text)| Ok((name.clone(), put_in(text)?))).collect::<Result<BTreeMap<_, _>, String>>()
    };
    match reach {
        Reach::Command { command, args, env, cwd } => {
            let (command, env) = (put_in(command)?, all(env)?);
            let args = args.iter().map(|text| put_in(text)).collect::<Result<Vec<_>, _>>()?;
            let started = Process::start(&ear.server, &command, &args, &env, cwd.as_deref());
            let (started, stdout, stdin) = started.map_err(|error| format!("`{command}` cannot be started: {error}"))?;
            *process = Some(started);
            let pipes = AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(MAX_MESSAGE_BYTES);
            let session = ear.serve_with_lifecycle(Watched::new(pipes), lifecycle()).await;
            session.map_err(|error| error.to_string())
        }
        Reach::Http { url, headers } => {
            let (url, headers) = (put_in(url)?, named(&all(headers)?)?);
            if !url.starts_with("https://") && !url.starts_with("http://") {
                return Err("its url begins with neither https:// nor http://".to_owned());
            }
            let mut config = StreamableHttpClientTransportConfig::with_uri(url).max_sse_event_size(MAX_MESSAGE_BYTES);
            config.custom_headers = headers;
            let http = StreamableHttpClientTransport::with_client(http_client()?, config);
            let session = ear.serve_with_lifecycle(Watched::new(http), lifecycle()).await;
            session.map_err(|error| error.to_string())
        }
    }
}

/// The newest protocol where the server has it, else the one with a handshake.
fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

fn named(headers: &BTreeMap<String, String>) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let one = |(name, value): (&String, &String)| {
        let header = HeaderName::try_from(name).map_err(|_| format!("`{name}` is no name of a header"))?;
        let mut value =
            HeaderValue::try_from(value).map_err(|_| format!("the header {name} has a value that cannot be sent"))?;
        value.set_sensitive(true);
        Ok((header, value))
    };
    headers.iter().map(one).collect()
}

/// Follows no redirects: what is sent along is meant for one address.
fn http_client() -> Result<reqwest::Client, String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let provider = rustls::crypto::ring::default_provider();
    let tls = rustls::ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT)
        .pool_max_idle_per_host(0)
        .build()
        .map_err(|error| error.to_string())
}
