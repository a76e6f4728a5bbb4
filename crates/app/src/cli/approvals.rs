//! What `polis approve`, `polis deny` and `polis answer` take.

use clap::{Args, ValueEnum};

use super::RunOptions;

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// As `polis approvals` lists it
    pub(crate) id: String,

    /// For a write in doubt: it was done, with this result
    #[arg(long, value_name = "RESULT", conflicts_with = "again")]
    pub(crate) done: Option<String>,

    /// For a write in doubt: repeat it; for a parked turn: resume it
    #[arg(long)]
    pub(crate) again: bool,

    /// For a call: run it with these arguments instead, as JSON
    #[arg(long, value_name = "JSON", conflicts_with_all = ["again", "done"])]
    pub(crate) arguments: Option<String>,

    /// For a call: do not ask again about similar calls; `polis approvals` shows which calls that covers
    #[arg(long, value_name = "FOR", value_enum, conflicts_with_all = ["again", "done"])]
    pub(crate) always: Option<Always>,

    /// With --always: which calls, for example to=bob@corp.example, path=notes/*, amount<=100, or any
    #[arg(long = "where", value_name = "PATTERN", requires = "always")]
    pub(crate) matching: Vec<String>,

    #[command(flatten)]
    pub(crate) with: RunOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Always {
    /// By this agent
    Agent,
    /// By any agent, for this request
    Task,
    /// By any agent
    Tool,
    /// By any agent, for all tools of the same server that are read-only according to the server
    Reads,
}

#[derive(Debug, Args)]
pub(crate) struct Answer {
    /// As `polis approvals` lists it
    pub(crate) id: String,

    /// A text, one of the options, or the filled form as JSON
    #[arg(required = true)]
    pub(crate) answer: Vec<String>,

    #[command(flatten)]
    pub(crate) with: RunOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Deny {
    /// As `polis approvals` lists it
    pub(crate) id: String,

    /// For a question of a server: dismiss it without an answer
    #[arg(long, conflicts_with = "reason")]
    pub(crate) cancel: bool,

    /// The reason, for the agent to read
    pub(crate) reason: Vec<String>,

    #[command(flatten)]
    pub(crate) with: RunOptions,
}
