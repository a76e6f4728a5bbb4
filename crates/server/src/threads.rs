//! One conversation, by its address, in the documents' shape.

use axum::extract::State;
use polis_domain::{SubThreadPath, Thread, ThreadId};
use serde::Deserialize;

use crate::desk::Desk;
use crate::problem::Problem;
use crate::wanted::{Name, Wanted};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    /// Where the sub-thread lies, from the thread named in the address.
    #[serde(default)]
    path: String,
    /// Whether everything below it is wanted too.
    #[serde(default)]
    tree: bool,
}

pub(crate) async fn thread(
    State(desk): State<Desk>,
    Name(id): Name,
    Wanted(which): Wanted<Which>,
) -> Result<axum::Json<Thread>, Problem> {
    let path: SubThreadPath =
        which.path.parse().map_err(|bad: polis_domain::BadPath| Problem::bad_request("bad_path", bad.to_string()))?;
    let main = ThreadId::from(id);
    let thread = if which.tree { desk.society.tree(&main, &path).await? } else { desk.society.thread(&main, &path).await? };
    Ok(axum::Json(thread))
}
