//! Who sent a request: the caller that the guard has found, as handlers take it.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;
pub(crate) use polis_api::{Caller, Scope, Scopes};

/// The caller of a request.
pub(crate) struct From(pub(crate) Caller);

/// The caller of a request. One that came past the guard has none.
pub(crate) fn caller_of(extensions: &Extensions) -> Caller {
    extensions.get().cloned().unwrap_or_else(Caller::unknown)
}

impl<S: Sync> FromRequestParts<S> for From {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(caller_of(&parts.extensions)))
    }
}
