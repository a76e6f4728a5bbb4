//! What `polis completions` and `polis man` take, and what `polis --version` prints.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// What `-V` prints after the name.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What `--version` prints after the name: `build.rs` knows the rest.
pub(super) const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("POLIS_COMMIT"),
    ", ",
    env!("POLIS_TARGET"),
    ")\nfeatures: ",
    env!("POLIS_FEATURES")
);

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder; it is made if it is not there
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}
