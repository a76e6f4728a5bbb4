//! `polis migrate`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// A data directory, or postgres://user@host/database
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) from: String,

    /// The other of the two, without a log so far; memories and tokens of an earlier log do not stay
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) to: String,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
