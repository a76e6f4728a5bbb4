//! The HTTP client that carries the token of a login, where there is one, and has it renewed.

use std::sync::Arc;

use polis_http::HttpOptions;
use rmcp::transport::auth::{AuthClient, AuthorizationManager, OAuthClientConfig};
use url::Url;

use super::http::OAuthHttp;
use super::stored_login::{Client, StoredLogin};
use crate::mcp::bounded_http::BoundedHttp;

/// A client for a server. Without a login it carries nothing, and the server says what it wants.
pub(in crate::mcp) async fn auth_client(
    http: BoundedHttp,
    url: &str,
    login: &StoredLogin,
    network: &HttpOptions,
) -> Result<AuthClient<BoundedHttp>, String> {
    let mut manager = manager(url, network).await?;
    manager.set_credential_store(login.clone());
    let record = login.read().await.map_err(|error| error.to_string())?;
    if let Some(record) = record.filter(|record| record.credentials.is_some()) {
        // Without it the token is used for as long as it lasts.
        match manager.initialize_from_store().await {
            Ok(true) => {
                if let Some(client) = record.client {
                    manager.configure_client(config(&client, &[])).map_err(|error| error.to_string())?;
                }
            }
            Ok(false) => {}
            Err(error) => tracing::warn!("who gave out the login of {url} cannot be asked: {error}"),
        }
    }
    Ok(AuthClient::new(http, manager))
}

/// What asks for logins at a server.
pub(super) async fn manager(url: &str, network: &HttpOptions) -> Result<AuthorizationManager, String> {
    let url: Url = url.parse().map_err(|error| format!("its url cannot be read: {error}"))?;
    let http = OAuthHttp::new(&url, network).await;
    AuthorizationManager::new_with_oauth_http_client(url, Arc::new(http)).await.map_err(|error| error.to_string())
}

/// Who we are, as the library wants it.
pub(super) fn config(client: &Client, scopes: &[String]) -> OAuthClientConfig {
    let config = OAuthClientConfig::new(&client.id, &client.redirect).with_scopes(scopes.to_vec());
    match &client.secret {
        Some(secret) => config.with_client_secret(secret),
        None => config,
    }
}
