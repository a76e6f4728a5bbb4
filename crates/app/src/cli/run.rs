//! The flags of `polis run`.

use std::path::PathBuf;

use clap::Args;

use super::{ApprovalMode, ConversationFlags, RunOptions, Strategy};

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The request; a `-` at its end appends standard input below it, and `-` alone reads all of it from there. Without
    /// `-` standard input is not read
    #[arg(required = true, value_name = "REQUEST")]
    pub(crate) request: Vec<String>,

    /// Attach a file, which is stored as an artifact; may be given several times
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Vec<PathBuf>,

    /// Tell agents and tools what the request is about, for example currentResourceId=doc-7; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) context: Vec<String>,

    #[command(flatten)]
    pub(crate) conversation: ConversationFlags,

    /// Print events as JSON lines instead of the answer
    #[arg(long)]
    pub(crate) json: bool,

    /// How to handle the request [default: auto, or as the conversation was begun]
    #[arg(long, value_enum)]
    pub(crate) strategy: Option<Strategy>,

    /// What to do when a call needs approval
    #[arg(long, value_enum, default_value = "ask")]
    pub(crate) approve: ApprovalMode,

    #[command(flatten)]
    pub(crate) with: RunOptions,
}
