//! `polis backup`, `restore` and `verify`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The backup; one that is there is brought up to date. In a directory it is polis-1.backup
    #[arg(value_name = "FILE|DIR")]
    pub(crate) to: PathBuf,

    /// The path is a directory, made if there is none: use this many backups in it in turn, the oldest first
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<NonZeroU32>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The backup, or a directory whose newest one is taken
    #[arg(value_name = "FILE|DIR")]
    pub(crate) from: PathBuf,

    /// The new data directory; it must not exist, or be empty [default: the data directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// A data directory, a backup, or a directory of backups [default: the data directory]
    #[arg(value_name = "DIR|FILE")]
    pub(crate) path: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
