//! The login flow: shows the address to open, waits for the browser's callback, and stores the tokens.

use std::sync::Arc;
use std::time::Duration;

use polis_http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use polis_http::{Bytes, HeaderValue, HttpOptions, Method, Request, StatusCode};
use polis_ports::Documents;
use rmcp::transport::auth::{AuthorizationManager, CredentialStore, InMemoryCredentialStore, WWWAuthenticateParams};
use url::Url;

use super::auth_client::{config, manager};
use super::redirect::RedirectListener;
use super::stored_login::{Client, Record, StoredLogin};
use crate::mcp::connect::custom_headers;
use crate::mcp::servers::McpError;
use crate::mcp::settings::{ServerSettings, ServerTransport, variables};
use crate::{http_client, is_plain_http};

/// How long a person may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long a server may take to say what it wants.
const CHALLENGE_TIMEOUT: Duration = Duration::from_secs(30);

/// A request that changes nothing, whoever answers it.
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// The name that a person reads where the login is given.
const NAME: &str = "Polis";

/// Logs in at a server and stores the login. `show` is given the address that a person must open.
pub async fn login(
    settings: &ServerSettings,
    logins: Arc<dyn Documents>,
    network: &HttpOptions,
    show: impl FnOnce(&str),
) -> Result<(), McpError> {
    let url = address(settings)?;
    let stored = StoredLogin::new(logins, &settings.name, &url);
    let pending = begin(settings, &url, &stored, network).await.map_err(McpError::Failed)?;
    show(&pending.address);
    let ended = tokio::time::timeout(PATIENCE, pending.end()).await;
    ended.unwrap_or_else(|_| Err("the login was not finished in the browser".to_owned())).map_err(McpError::Failed)
}

/// Forgets the login at a server; says whether there was one.
pub async fn logout(settings: &ServerSettings, logins: Arc<dyn Documents>) -> Result<bool, McpError> {
    let url = address(settings)?;
    let stored = StoredLogin::new(logins, &settings.name, &url);
    stored.remove().await.map_err(|error| McpError::Failed(error.to_string()))
}

fn address(settings: &ServerSettings) -> Result<String, McpError> {
    match &settings.transport {
        ServerTransport::Http { url, headers } if !has_authorization(headers.keys()) => {
            let url = variables(url).map_err(McpError::Failed)?;
            if is_plain_http(&url) {
                let what = "its url is plain http, which would send a login unencrypted; use https (plain_http)";
                return Err(McpError::Failed(what.to_owned()));
            }
            Ok(url)
        }
        ServerTransport::Http { .. } => {
            Err(McpError::Failed("its `headers` already have an Authorization; remove it to log in".to_owned()))
        }
        ServerTransport::Command { .. } => Err(McpError::Failed("it is a local program; it has no login".to_owned())),
    }
}

/// Whether the operator has given a token by hand.
pub(in crate::mcp) fn has_authorization<'a>(mut headers: impl Iterator<Item = &'a String>) -> bool {
    headers.any(|name| name.eq_ignore_ascii_case("authorization"))
}

/// A login that waits for the browser.
struct PendingLogin {
    manager: AuthorizationManager,
    credentials_store: InMemoryCredentialStore,
    redirect: RedirectListener,
    client: Client,
    stored: StoredLogin,
    address: String,
    state: String,
}

async fn begin(
    settings: &ServerSettings,
    url: &str,
    stored: &StoredLogin,
    network: &HttpOptions,
) -> Result<PendingLogin, String> {
    let describe = |error: rmcp::transport::auth::AuthError| error.to_string();
    let oauth = &settings.oauth;
    let before = stored.read().await.map_err(|error| error.to_string())?.unwrap_or_else(|| stored.empty());
    let redirect = RedirectListener::open(oauth.port).await.map_err(|error| format!("no port for the browser: {error}"))?;
    let (mut manager, credentials_store) = (manager(url, network).await?, InMemoryCredentialStore::new());
    manager.set_credential_store(credentials_store.clone());
    let challenge = match &before.challenge {
        Some(challenge) => Some(challenge.clone()),
        None => challenge_of(settings, url, network).await,
    };
    let resolved = manager.resolve_metadata_from_challenge(challenge.as_deref()).await.map_err(describe)?;
    manager.set_metadata(resolved.metadata.clone());
    let scopes = if oauth.scopes.is_empty() { scopes_to_request(&manager, &before, url).await } else { oauth.scopes.clone() };
    let all: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let supports = resolved.metadata.additional_fields.get("client_id_metadata_document_supported");
    let described = oauth.client_metadata_url.as_ref().filter(|_| supports == Some(&true.into()));
    let client = match (&oauth.client_id, described) {
        (Some(id), _) => {
            let secret = oauth.client_secret.as_deref().map(variables).transpose()?;
            Client { id: variables(id)?, secret, redirect: redirect.address.clone() }
        }
        (None, Some(described)) => Client { id: variables(described)?, secret: None, redirect: redirect.address.clone() },
        (None, None) => {
            let registered = manager.register_client(NAME, &redirect.address, &all).await;
            let registered = registered.map_err(|error| {
                format!("{error}; if you are known there by a client_id, give it in `oauth` of [mcp.{}]", settings.name)
            })?;
            Client { id: registered.client_id, secret: registered.client_secret, redirect: redirect.address.clone() }
        }
    };
    manager.configure_client(config(&client, &scopes)).map_err(describe)?;
    let address = manager.get_authorization_url(&all).await.map_err(describe)?;
    let parsed: Url = address.parse().map_err(|_| "the address of the login cannot be read".to_owned())?;
    let state = parsed.query_pairs().find(|(name, _)| name == "state").map(|(_, value)| value.into_owned());
    let state = state.ok_or("the address of the login has no state")?;
    Ok(PendingLogin { manager, credentials_store, redirect, client, stored: stored.clone(), address, state })
}

/// What the server says to a request without a login. Some servers say only to a `POST` where their metadata is, and the library
/// asks by `GET`. None if it says nothing of a login; then the usual places are tried.
async fn challenge_of(settings: &ServerSettings, url: &str, network: &HttpOptions) -> Option<String> {
    let ServerTransport::Http { headers, .. } = &settings.transport else { return None };
    let mut request = Request::new(Bytes::from_static(PING.as_bytes()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = url.parse().ok()?;
    request.headers_mut().extend(custom_headers(headers).ok()?);
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    let answer = tokio::time::timeout(CHALLENGE_TIMEOUT, http_client::client(network).send(request)).await.ok()?.ok()?;
    let challenges = answer.headers().get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    let challenges = challenges.collect::<Vec<_>>().join(", ");
    (answer.status() == StatusCode::UNAUTHORIZED && !challenges.is_empty()).then_some(challenges)
}

/// The scopes that the server asks for, plus those already granted if it only wants more.
async fn scopes_to_request(manager: &AuthorizationManager, before: &Record, url: &str) -> Vec<String> {
    let mut scopes = manager.select_initial_scopes(&[]).await;
    let wants_more = match (&before.challenge, url.parse()) {
        (Some(challenge), Ok(url)) => WWWAuthenticateParams::parse(challenge, &url).is_insufficient_scope(),
        _ => false,
    };
    if wants_more && let Some(credentials) = &before.credentials {
        let had = credentials.granted_scopes.iter().filter(|scope| !scopes.contains(scope)).cloned().collect::<Vec<_>>();
        scopes.splice(..0, had);
    }
    scopes
}

impl PendingLogin {
    async fn end(self) -> Result<(), String> {
        let callback = self.redirect.callback(&self.state).await?;
        let exchanged =
            self.manager.exchange_code_for_token_with_issuer(&callback.code, &callback.state, callback.issuer.as_deref()).await;
        exchanged.map_err(|error| error.to_string())?;
        let credentials = self.credentials_store.load().await.map_err(|error| error.to_string())?;
        let new = Record { client: Some(self.client), credentials, ..self.stored.empty() };
        let store = self.stored.update(|record| {
            record.clone_from(&new);
            true
        });
        store.await.map_err(|error| format!("the login cannot be stored: {error}"))
    }
}
