//! What `polis tools` takes.

use clap::{Args, Subcommand};

use super::RunOptions;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Tools {
    #[command(subcommand)]
    pub(crate) command: Option<ToolsCommand>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) with: RunOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// Write a known MCP server into polis.toml: a browser, web search, a database and others
    Add(AddTools),
    /// Remove an MCP server from polis.toml
    Remove(RemoveTools),
    #[command(flatten)]
    Login(Login),
}

#[derive(Debug, Args)]
pub(crate) struct AddTools {
    /// The server, as --list names it
    #[arg(required_unless_present = "list")]
    pub(crate) name: Option<String>,

    /// What the server needs to know, such as the folder of `filesystem`
    pub(crate) argument: Option<String>,

    /// List the servers that can be added
    #[arg(long, conflicts_with_all = ["name", "argument", "rename", "user", "dry_run", "more"])]
    pub(crate) list: bool,

    /// The name of its section and the beginning of its tools' names [default: NAME]
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) rename: Option<String>,

    /// Write into your own configuration, which applies in every folder
    #[arg(long, conflicts_with = "config")]
    pub(crate) user: bool,

    /// Print the section and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Further arguments of the server's program
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) more: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveTools {
    /// As polis.toml names it
    pub(crate) name: String,

    /// Remove it from your own configuration
    #[arg(long, conflicts_with = "config")]
    pub(crate) user: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Login {
    /// Log in to an MCP server, in your browser
    Login {
        /// As polis.toml names it
        server: String,
    },
    /// Log out of an MCP server
    Logout {
        /// As polis.toml names it
        server: String,
    },
}
