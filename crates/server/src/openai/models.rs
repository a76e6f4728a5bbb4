//! The models that clients can choose: the society, agents and roles.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::error::ApiError;
use crate::addressee::{Addressee, addressee, addressees};
use crate::extract::{CallerState, PathParam};
use crate::state::SocietyState;

pub(crate) async fn models(CallerState(state): CallerState) -> Result<axum::Json<Value>, ApiError> {
    let data: Vec<_> = addressees(&state).await?.iter().map(model_json).collect();
    Ok(axum::Json(json!({ "object": "list", "data": data })))
}

pub(crate) async fn model(CallerState(state): CallerState, PathParam(name): PathParam) -> Result<axum::Json<Value>, ApiError> {
    Ok(axum::Json(model_json(&find_model(&state, &name).await?)))
}

/// The agent behind a model's name.
pub(super) async fn find_model(state: &SocietyState, name: &str) -> Result<Addressee, ApiError> {
    addressee(state, name).await?.ok_or_else(|| {
        let message = format!("there is no model `{name}`; /v1/models lists them, and `polis` is the society itself");
        ApiError::new(StatusCode::NOT_FOUND, "model_not_found", message)
    })
}

fn model_json(addressee: &Addressee) -> Value {
    json!({
        "id": addressee.name, "object": "model", "created": addressee.since_ms / 1_000, "owned_by": "polis",
        "description": addressee.about
    })
}
