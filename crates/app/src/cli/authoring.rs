//! What `polis check` and `polis new` take.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Commands about sources; they need no society and no settings.
#[derive(Debug, Subcommand)]
pub(crate) enum Authoring {
    /// Report what breaks the rules of names and layout for agents: docs/naming.md
    Check(Check),
    /// Write the beginning of something, by those rules
    #[command(subcommand)]
    New(New),
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The folder to look at, with all below it [default: the working directory]
    pub(crate) dir: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum New {
    /// An agent: its folder, files, prompts and a test that passes
    Agent(NewAgent),
    /// A procedure that agents follow: sops/NAME.md
    Sop(NewSop),
    /// A role: a file in roles/
    Role(NewRole),
}

#[derive(Debug, Args)]
pub(crate) struct NewSop {
    /// What it is for, such as monthly_report; a Chinese name gives a Chinese file
    pub(crate) name: String,

    /// Where the folder sops is, or is to be [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct NewRole {
    /// Its name, such as reviewer or "Code Reviewer"
    pub(crate) name: String,

    /// Where the folder roles/ is [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct NewAgent {
    /// What it does, such as order_tracking or OrderTracking
    pub(crate) name: String,

    /// A sub-thread that it starts; may be said several times
    #[arg(long, value_name = "NAME")]
    pub(crate) sub: Vec<String>,

    /// Where: modules if this is in a crate, else a project in a new folder [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// The library for a new project: a checkout of Polis or its git address [default: the checkout that this program was
    /// built from]
    #[arg(long, value_name = "WHERE", env = "POLIS_SOURCE")]
    pub(crate) polis: Option<String>,
}
