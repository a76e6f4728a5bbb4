//! What `polis docs` takes.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct Docs {
    /// The page to print, such as tutorial or errors/access, or an error code, such as unknown_agent; without it all pages are served
    #[arg(value_name = "PAGE|CODE", conflicts_with_all = ["list", "listen", "out"])]
    pub(crate) page: Option<String>,

    /// List the pages
    #[arg(long, conflicts_with_all = ["listen", "out"])]
    pub(crate) list: bool,

    /// Write the site into a folder, which is made if it is not there
    #[arg(long, value_name = "DIR", conflicts_with = "listen")]
    pub(crate) out: Option<PathBuf>,

    /// The address to serve the site at [default: a free port of this machine]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,

    /// The language [default: that of the terminal]
    #[arg(long, value_enum)]
    pub(crate) language: Option<DocsLanguage>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum DocsLanguage {
    En,
    Zh,
}
