//! What `polis init` takes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The model as vendor/name [default: the first vendor whose key is set, else a model server on this machine]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// The folder that agents' file tools may access [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,

    /// What agents may do besides
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) allow: Option<Allowed>,

    /// Ask nothing: what is not given has its default
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Allowed {
    /// Nothing
    Nothing,
    /// Run commands in a sandbox
    Commands,
    /// Read web pages; each call needs approval
    Web,
    /// Both
    Both,
}
