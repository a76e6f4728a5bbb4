//! What `polis memory` takes.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Memory {
    #[command(subcommand)]
    pub(crate) command: Option<MemoryCommand>,

    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// List all, newest first
    List,
    /// List those that fit these words, best first
    Search {
        /// The words
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// Add one
    Add {
        /// What to remember
        #[arg(required = true)]
        text: Vec<String>,

        /// For the agents of everybody instead of your own
        #[arg(long)]
        everyone: bool,
    },
    /// Give one another text; the old text is erased
    Edit {
        /// As `polis memory` lists it
        id: String,

        /// The new text
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// Erase some for good
    Forget {
        /// As `polis memory` lists them
        #[arg(required_unless_present = "all")]
        ids: Vec<String>,

        /// Forget all memories about you
        #[arg(long, conflicts_with = "ids")]
        all: bool,

        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Print all as JSON, with their texts
    Export,
    /// Let agents remember for you again
    On,
    /// Let agents neither store nor recall anything for you; what is stored stays
    Off,
}
