//! What handlers take from a request: the operations on behalf of its caller, its path and its query. Errors say what is wrong.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use polis_api::Local;
use polis_api::local::Registry;
use polis_engine::Society;
use serde::de::DeserializeOwned;

use crate::caller::caller_of;
use crate::problem::Problem;
use crate::state::SocietyState;

/// The operations of the society for the caller of a request. Where the request has an idempotency key, the one command given
/// through them happens once (see `idempotency.rs`).
pub(crate) struct CallerApi(pub(crate) Local);

impl FromRequestParts<SocietyState> for CallerApi {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &SocietyState) -> Result<Self, Infallible> {
        let society = parts.extensions.get::<Society>().unwrap_or(&state.society).clone();
        let state = SocietyState { society, ..state.clone() };
        let registry = parts.extensions.get::<Arc<dyn Registry>>().cloned();
        Ok(Self(Local { registry, ..state.api(caller_of(&parts.extensions)) }))
    }
}

/// The state of the society for the caller of a request: its society shows and reaches only what the caller may.
pub(crate) struct CallerState(pub(crate) SocietyState);

impl FromRequestParts<SocietyState> for CallerState {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &SocietyState) -> Result<Self, Infallible> {
        Ok(Self(state.for_caller(&caller_of(&parts.extensions))))
    }
}

/// The one parameter in the path of a route.
pub(crate) struct PathParam(pub(crate) String);

impl FromRequestParts<SocietyState> for PathParam {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &SocietyState) -> Result<Self, Problem> {
        let Path(name) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|error| Problem::bad_request("bad_url", format!("{}; percent-encode UTF-8", error.body_text())))?;
        Ok(Self(name))
    }
}

/// The query of a request.
pub(crate) struct QueryParams<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<SocietyState> for QueryParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &SocietyState) -> Result<Self, Problem> {
        let Query(params) = Query::<T>::from_request_parts(parts, state)
            .await
            .map_err(|error| Problem::bad_request("bad_query", error.body_text()))?;
        Ok(Self(params))
    }
}
