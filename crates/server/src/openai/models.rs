//! The models that clients can choose: the society, agents and roles.

use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::error::ApiError;
use crate::desk::Desk;
use crate::spoken::{Addressee, addressee, addressees};
use crate::wanted::Name;

pub(crate) async fn models(State(desk): State<Desk>) -> Result<axum::Json<Value>, ApiError> {
    let data: Vec<_> = addressees(&desk).await?.iter().map(listed).collect();
    Ok(axum::Json(json!({ "object": "list", "data": data })))
}

pub(crate) async fn model(State(desk): State<Desk>, Name(name): Name) -> Result<axum::Json<Value>, ApiError> {
    Ok(axum::Json(listed(&chosen(&desk, &name).await?)))
}

/// The agent behind a model's name.
pub(super) async fn chosen(desk: &Desk, name: &str) -> Result<Addressee, ApiError> {
    addressee(desk, name).await?.ok_or_else(|| {
        let message = format!("there is no model `{name}`; /v1/models lists them, and `polis` is the society itself");
        ApiError::new(StatusCode::NOT_FOUND, "model_not_found", message)
    })
}

fn listed(addressee: &Addressee) -> Value {
    json!({
        "id": addressee.name, "object": "model", "created": addressee.since_ms / 1_000, "owned_by": "polis",
        "description": addressee.about
    })
}
