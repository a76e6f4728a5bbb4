//! The chore `dictionary`: makes the dictionary that event bodies are packed with. Once a release has written with one, its file
//! stays as it is, and the next one gets another name and number (`stored-event/src/body.rs`).

use anyhow::Result;

use crate::workspace::{Workspace, succeed};

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut cargo = workspace.cargo();
    let test = "cli::dictionary::make_the_dictionary";
    cargo.args(["test", "--quiet", "-p", "polis-app", "--test", "main", "--", "--exact", test]);
    cargo.env("POLIS_DICTIONARY", workspace.root.join("crates/stored-event/src/dictionary_1.zdict"));
    succeed(&mut cargo, "making the dictionary")
}
