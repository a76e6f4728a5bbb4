//! `polis archive`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Archive {
    /// Archive events that are older than this many days [default: archive_after in polis.toml, else 90]
    #[arg(long, value_name = "DAYS")]
    pub(crate) days: Option<u32>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
