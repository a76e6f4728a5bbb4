//! Whether the society is well, and what runs it. Open to everybody, so it tells nothing that is private.

use axum::extract::State;
use axum::http::StatusCode;
use polis_domain::Seq;
use schemars::JsonSchema;
use serde::Serialize;

use crate::state::SocietyState;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Health of the society.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Health {
    status: HealthStatus,
    version: &'static str,
    model: HealthModel,
    store: HealthStore,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum HealthStatus {
    Ok,
    /// What happened can be read, but nothing can be written: `store.code` says why.
    Degraded,
    Down,
}

/// The model that answers where none is named.
#[derive(Serialize, JsonSchema)]
struct HealthModel {
    name: String,
    offline: bool,
}

/// Whether the log can be read and written.
#[derive(Serialize, JsonSchema)]
struct HealthStore {
    ok: bool,
    /// The last event.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<Seq>,
    /// What is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

/// What runs here.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Version {
    name: &'static str,
    version: &'static str,
}

pub(crate) async fn health(State(state): State<SocietyState>) -> (StatusCode, axum::Json<Health>) {
    let society = &state.society;
    let head = society.log().readable_head(society.id()).await;
    // A society that has ended, or whose log cannot be read, answers no look.
    let alive = society.look(|_| ()).await;
    let standby = society.standby();
    let is_readable = head.is_ok() && alive.is_ok();
    let store = match (head, alive) {
        (Ok(seq), Ok(())) => {
            HealthStore { ok: standby.is_none(), seq: Some(seq), code: standby.map(|failure| failure.code.to_string()) }
        }
        (Ok(seq), Err(rejected)) => HealthStore { ok: false, seq: Some(seq), code: Some(rejected.code().to_owned()) },
        (Err(error), _) => HealthStore { ok: false, seq: None, code: Some(error.code().to_owned()) },
    };
    let (code, status) = match (store.ok, is_readable) {
        (true, _) => (StatusCode::OK, HealthStatus::Ok),
        (false, true) => (StatusCode::OK, HealthStatus::Degraded),
        (false, false) => (StatusCode::SERVICE_UNAVAILABLE, HealthStatus::Down),
    };
    let model = HealthModel { name: state.about.model.clone(), offline: state.about.is_offline };
    (code, axum::Json(Health { status, version: VERSION, model, store }))
}

pub(crate) async fn version() -> axum::Json<Version> {
    axum::Json(Version { name: "polis", version: VERSION })
}
