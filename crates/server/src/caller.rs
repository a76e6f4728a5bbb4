//! Extracts the caller of a request, as the guard has found it.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;
pub(crate) use polis_api::{Caller, Scope, Scopes};

/// The caller of a request.
pub(crate) struct RequestCaller(pub(crate) Caller);

/// The caller of a request. One that came past the guard has none.
pub(crate) fn caller_of(extensions: &Extensions) -> Caller {
    extensions.get().cloned().unwrap_or_else(Caller::unknown)
}

impl<S: Sync> FromRequestParts<S> for RequestCaller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(caller_of(&parts.extensions)))
    }
}
