//! What `polis trust` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct TrustFolder {
    #[command(subcommand)]
    pub(crate) action: Option<TrustAction>,

    /// The folder [default: the working directory]
    pub(crate) dir: Option<PathBuf>,

    /// Trust it without asking
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrustAction {
    /// List the folders that you trust, and what has changed in them
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Trust a folder no longer
    Revoke {
        /// The folder [default: the working directory]
        dir: Option<PathBuf>,
    },
}
