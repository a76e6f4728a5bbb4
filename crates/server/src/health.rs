//! Whether the society is well, and what runs it. Open to everybody, so it tells nothing that is private.

use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::desk::Desk;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) async fn health(State(desk): State<Desk>) -> (StatusCode, axum::Json<Value>) {
    let society = &desk.society;
    let head = society.log().head(society.id()).await;
    // A society that has ended, or whose log is out of order, answers no look.
    let alive = society.look(|_| ()).await;
    let (status, word, store) = match (head, alive) {
        (Ok(seq), Ok(())) => (StatusCode::OK, "ok", json!({ "ok": true, "seq": seq })),
        (Ok(seq), Err(rejected)) => {
            (StatusCode::SERVICE_UNAVAILABLE, "down", json!({ "ok": false, "seq": seq, "code": rejected.code() }))
        }
        (Err(error), _) => (StatusCode::SERVICE_UNAVAILABLE, "down", json!({ "ok": false, "code": error.code() })),
    };
    let model = json!({ "name": desk.about.model, "offline": desk.about.is_offline });
    (status, axum::Json(json!({ "status": word, "version": VERSION, "model": model, "store": store })))
}

pub(crate) async fn version() -> axum::Json<Value> {
    axum::Json(json!({ "name": "polis", "version": VERSION }))
}
