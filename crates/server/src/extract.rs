//! Extractors for the path and the query of a request, with errors that say what is wrong.

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::problem::Problem;
use crate::state::SocietyState;

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
