//! What a request's address asks for: names in its path and its query, with errors that say what is wrong.

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::problem::Problem;
use crate::state::SocietyState;

/// The one name in the path of a route.
pub(crate) struct Name(pub(crate) String);

impl FromRequestParts<SocietyState> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &SocietyState) -> Result<Self, Problem> {
        let Path(name) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|error| Problem::bad_request("bad_url", format!("{}; percent-encode UTF-8", error.body_text())))?;
        Ok(Self(name))
    }
}

/// The query of a request.
pub(crate) struct Wanted<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<SocietyState> for Wanted<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &SocietyState) -> Result<Self, Problem> {
        let Query(wanted) = Query::<T>::from_request_parts(parts, state)
            .await
            .map_err(|error| Problem::bad_request("bad_query", error.body_text()))?;
        Ok(Self(wanted))
    }
}
