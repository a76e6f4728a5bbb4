//! The arguments of the commands on the history of a society: fork, rewind, replay.

use clap::Args;

use super::RunOptions;

#[derive(Debug, Args)]
pub(crate) struct Fork {
    /// The last event that it shares [default: the last one]
    #[arg(long, value_name = "N")]
    pub(crate) at: Option<u64>,

    /// Its name [default: this one's name and a number]
    pub(crate) name: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Rewind {
    /// The last event to keep
    #[arg(long, value_name = "N")]
    pub(crate) to: u64,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) with: RunOptions,
}
