//! Scripts that the operator puts beside the society to add components to the page: one file, no build.

use std::path::{Path, PathBuf};

use axum::extract::{Path as Named, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{Extensions, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use polis_api::Scope;
use polis_domain::PersonId;
use schemars::JsonSchema;
use serde::Serialize;

use crate::caller::caller_of;
use crate::extract::CallerState;
use crate::problem::Problem;
use crate::state::SocietyState;

/// Largest script that is served.
const MAX_BYTES: u64 = 4 << 20;

/// What the operator adds to the page.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageAdditions {
    /// Scripts to load, by the names of their files.
    components: Vec<String>,
    live_html: bool,
    /// The person who looks at it.
    person: PersonId,
    /// What their token may do.
    scopes: Vec<&'static str>,
    /// Whether they decide the approvals of others.
    is_approver: bool,
    /// The persons who decide their approvals; none if they do so themselves.
    approvers: Vec<PersonId>,
}

/// Settings of the page.
pub(crate) async fn page(CallerState(state): CallerState, extensions: Extensions) -> axum::Json<PageAdditions> {
    let caller = caller_of(&extensions);
    let all = |folder: &PathBuf| {
        let is_admitted = |name: &String| admitted(&state, &folder.join(name)).is_some();
        scripts(folder).into_iter().filter(is_admitted).collect()
    };
    let components = state.page.components.as_ref().map(all).unwrap_or_default();
    axum::Json(PageAdditions {
        components,
        live_html: state.page.live_html,
        person: caller.person().clone(),
        scopes: Scope::ALL.into_iter().filter(|scope| caller.may(*scope)).map(Scope::as_str).collect(),
        is_approver: state.society.is_approver(),
        approvers: state.society.other_approvers().to_vec(),
    })
}

/// One script. It is the operator's and no secret, and a browser asks for it without a token.
pub(crate) async fn script(State(state): State<SocietyState>, Named(name): Named<String>) -> Result<Response, Problem> {
    let none = || Problem::new(StatusCode::NOT_FOUND, "not_found", "there is no such script in the folder `components`");
    let folder = state.page.components.as_deref().ok_or_else(none)?;
    if !scripts(folder).contains(&name) {
        return Err(none());
    }
    let path = folder.join(&name);
    let size = std::fs::metadata(&path).map_err(|_| none())?.len();
    if size > MAX_BYTES {
        let detail = format!("{name} has {size} bytes; a component script may have {MAX_BYTES}");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", &detail));
    }
    let bytes = tokio::task::spawn_blocking(move || admitted(&state, &path)).await.ok().flatten().ok_or_else(none)?;
    let kind = (CONTENT_TYPE, HeaderValue::from_static("text/javascript; charset=utf-8"));
    Ok(([kind, (CACHE_CONTROL, HeaderValue::from_static("no-cache"))], bytes).into_response())
}

/// The content of a script, if the guard admits it.
fn admitted(state: &SocietyState, path: &Path) -> Option<Vec<u8>> {
    std::fs::read(path).ok().filter(|bytes| state.page.guard.admits(path, bytes))
}

/// The scripts of a folder by name, in order.
fn scripts(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_script = |name: &String| name.ends_with(".js") && !name.starts_with('.');
    let mut names: Vec<_> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(is_script)
        .collect();
    names.sort();
    names
}
