//! What a server says that wants a login, or more rights than a login gave, found in the errors of a connection.

use std::error::Error;

use polis_http::HttpError;
use rmcp::ServiceError;
use rmcp::service::ClientInitializeError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

/// What it wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mcp) enum Wants {
    /// A login; with its challenge, if it gave one.
    Login(Option<String>),
    /// A login with more rights.
    Rights(String),
}

/// An error that may hold a demand of the server.
pub(in crate::mcp) trait HasChallenge {
    /// The errors of the transport in it.
    fn transport(&self) -> Vec<&DynamicTransportError>;
}

impl HasChallenge for ServiceError {
    fn transport(&self) -> Vec<&DynamicTransportError> {
        match self {
            Self::TransportSend(error) => vec![error],
            _ => Vec::new(),
        }
    }
}

impl HasChallenge for ClientInitializeError {
    fn transport(&self) -> Vec<&DynamicTransportError> {
        match self {
            Self::TransportError { error, .. } => vec![error],
            Self::LegacyFallbackFailed { discover, fallback } => [discover.transport(), fallback.transport()].concat(),
            _ => Vec::new(),
        }
    }
}

/// What the server wants, if that is why it said no.
pub(in crate::mcp) fn wants(error: &impl HasChallenge) -> Option<Wants> {
    error.transport().into_iter().find_map(|error| within(error.error.as_ref()))
}

fn within(error: &(dyn Error + 'static)) -> Option<Wants> {
    let mut next = Some(error);
    while let Some(error) = next {
        match error.downcast_ref::<StreamableHttpError<HttpError>>() {
            Some(StreamableHttpError::AuthRequired(it)) => return Some(Wants::Login(Some(it.www_authenticate_header.clone()))),
            Some(StreamableHttpError::InsufficientScope(it)) => {
                return Some(Wants::Rights(it.www_authenticate_header.clone()));
            }
            // Servers of older times say it without a challenge.
            Some(StreamableHttpError::UnexpectedServerResponse(said)) if said.starts_with("HTTP 401") => {
                return Some(Wants::Login(None));
            }
            _ => {}
        }
        if matches!(error.downcast_ref(), Some(AuthError::AuthorizationRequired)) {
            return Some(Wants::Login(None));
        }
        next = error.source();
    }
    None
}
