//! The command line as clap parses it. `config.rs` and each command decide what it means.

mod approvals;
mod archive;
#[cfg(feature = "authoring")]
mod authoring;
mod backup;
mod conversations;
mod docs;
pub(crate) mod examples;
mod init;
mod memory;
#[cfg(feature = "postgres")]
mod migrate;
mod nodes;
mod run;
mod settings;
mod shell;
mod societies;
mod tools;
mod trust;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::budget::RequestBudget;
use crate::suggest;
use crate::workflow_settings::PlanApprovalFlag;
pub(crate) use approvals::{Always, Answer, Approve, Deny};
pub(crate) use archive::Archive;
#[cfg(feature = "authoring")]
pub(crate) use authoring::{Authoring, Check, New, NewAgent, NewRole, NewSkill, NewSop, NewTool, NewWorkflow};
pub(crate) use backup::{Backup, Restore, Verify};
pub(crate) use conversations::{Compress, ConversationCommand, ConversationFlags, Conversations, Delete};
pub(crate) use docs::{Docs, DocsLanguage};
pub(crate) use init::{Allowed, Init};
pub(crate) use memory::{Memory, MemoryCommand};
#[cfg(feature = "postgres")]
pub(crate) use migrate::Migrate;
pub(crate) use nodes::{Drain, NodeOptions};
pub(crate) use run::Run;
pub(crate) use settings::assign;
pub(crate) use shell::{Completions, Man};
pub(crate) use societies::{Fork, Replay, Rewind};
pub(crate) use tools::{AddTools, Login, RemoveTools, Tools, ToolsCommand};
pub(crate) use trust::{TrustAction, TrustFolder};

/// A durable runtime for teams of AI agents.
///
/// Exit status: 0 done, 1 the work failed, 2 the command line is wrong, 3 a person must decide, 4 the answer is incomplete, refused or not verified, 130 stopped by a signal.
#[derive(Debug, Parser)]
#[command(name = "polis", version = shell::VERSION, long_version = shell::LONG_VERSION, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// The data directory [default: .polis]
    #[arg(long, value_name = "DIR", env = "POLIS_DATA", global = true)]
    pub(crate) data: Option<PathBuf>,

    /// The configuration file [default: polis.toml, here or in the data directory]
    #[arg(long, value_name = "FILE", env = "POLIS_CONFIG", global = true)]
    pub(crate) config: Option<PathBuf>,

    /// The society to use [default: main, or the one that the running polis was started with]
    #[arg(long, value_name = "NAME", env = "POLIS_SOCIETY", global = true)]
    pub(crate) society: Option<String>,

    /// A running polis to connect to, for example http://127.0.0.1:3000; its token is in POLIS_TOKEN, or else in the data directory
    #[arg(long, value_name = "URL", env = "POLIS_URL", global = true)]
    pub(crate) url: Option<String>,

    /// Where the log, artifacts, memories and tokens are: postgres://user@host,host/database. The password belongs into POLIS_STORE
    /// or POLIS_STORE_PASSWORD [default: the data directory]
    #[arg(long, value_name = "URL", env = "POLIS_STORE", hide_env_values = true, global = true)]
    pub(crate) store: Option<String>,

    /// Write results into a file or a pipe unchanged; otherwise control characters, bidirectional marks and invisible
    /// characters are shown as escapes such as \u001b
    #[arg(long, global = true)]
    pub(crate) raw: bool,

    /// Trust the files of this folder for this run: polis.toml, .mcp.json, roles, SOPs, skills, AGENTS.md; nothing is stored
    #[arg(long, global = true)]
    pub(crate) trust: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Set this folder up: asks three questions and writes polis.toml
    Init(Init),
    /// Run the society and its HTTP server
    Serve(Serve),
    /// Run one request to its end, in a new conversation or with --continue in an earlier one; only the answer goes to stdout
    Run(Run),
    /// Talk to the society in a conversation or, with @name, to any agent
    Chat(Chat),
    /// Run the society as an MCP server on stdio
    Mcp(Mcp),
    /// Print the log
    Log(Log),
    /// Print a thread: a conversation such as root, or a part such as root.messages[3].meta._thread
    Show(Show),
    /// List the agents
    Agents(ListOptions),
    /// List the conversations, search them; rename, archive, pin or delete one
    Conversations(Conversations),
    /// Delete a conversation and erase its content for good: from the log, artifacts, snapshots and, with their next run, backups
    Delete(Delete),
    /// List what agents remember for you; search, add, edit, erase or export it
    Memory(Memory),
    /// List the threads: one for each agent, and those below it
    Threads(ListOptions),
    /// List open requests, the plans of agents and dead letters; or those of one request
    Tasks(Tasks),
    /// Wait until a request has ended; the exit status is that of `polis run`
    Wait(Wait),
    /// Follow a request to its end, with progress and answer as `polis run` shows them
    Attach(Attach),
    /// Print the answer of a request that has ended
    Result(TaskResult),
    /// Have an agent compress its conversation, or undo its last compression
    Compress(Compress),
    /// Show the organisation: roles, agents and terminated agents
    Org(ListOptions),
    /// Terminate an agent when it has finished its queue
    Terminate(Terminate),
    /// Write the organisation to a file, or to stdout
    Export(Export),
    /// Create the roles and agents that a file describes
    Import(Import),
    /// List the available vendors, or the models of one
    Models(Models),
    /// List the agents' tools and the state of the MCP servers; add or remove a server, log in to one
    Tools(Tools),
    /// List the artifacts; get one, or remove unreferenced ones
    Artifacts(Artifacts),
    /// Create, list and revoke tokens for HTTP clients
    Token(Tokens),
    /// Show what was spent on models, and what is left
    Usage(ListOptions),
    /// Show which versions of agents' code open turns need, and which of them this program has
    ///
    /// A version can be removed from the program when a newer one is registered and no open turn of any society began with this one.
    ///
    /// Exit status: 0 if every open turn began with the newest version, 1 if one needs a version that is old or not registered.
    Deploy(ListOptions),
    /// Check the installation and say what to do
    Doctor(Doctor),
    /// Show what a folder's files would do and trust them; list and revoke what you trust
    Trust(TrustFolder),
    /// List what waits for a person
    Approvals(ListOptions),
    /// Approve what waits for a person
    Approve(Approve),
    /// Deny what waits for a person
    Deny(Deny),
    /// Answer a question that waits for a person
    Answer(Answer),
    /// Send a message to an agent
    Send(Send),
    /// Cancel a request and all work for it
    Cancel(Cancel),
    /// List the societies of the data directory
    Societies(ListOptions),
    /// List the nodes that share the log of --store
    Nodes(ListOptions),
    /// Have a node give its societies to the others and take none
    Drain(Drain),
    /// Create another society that shares the history of this one
    Fork(Fork),
    /// Go back to an event; the previous history is kept under another name
    Rewind(Rewind),
    /// Pack old events together so that they take less room; they are read as before
    Archive(Archive),
    /// Back up the data directory, also while polis runs; later runs add what is new
    Backup(Backup),
    /// Make a data directory of a backup
    Restore(Restore),
    /// Move the log, artifacts, memories and tokens between a data directory and PostgreSQL, and check that they are the same
    #[cfg(feature = "postgres")]
    Migrate(Migrate),
    /// Check every event, hash chains, references, artifacts and memories of a data directory or a backup
    Verify(Verify),
    /// Run every settled turn again against the log, without any call, and report where code or state differs
    Replay(Replay),
    #[cfg(feature = "authoring")]
    #[command(flatten)]
    Authoring(Authoring),
    /// Print the completions for a shell
    Completions(Completions),
    /// Write the manual pages into a folder
    Man(Man),
    /// Open the documents on a local address, list the pages, or print one
    Docs(Docs),
    /// Say how this installation is updated; nothing is downloaded
    Update,
}

/// The command line as it is parsed, with the examples of its help.
pub(crate) fn command() -> clap::Command {
    examples::add_to(Cli::command())
}

/// What was typed. Wrong usage ends the process with status 2, and a request for help with 0.
pub(crate) fn parse(arguments: Vec<OsString>) -> Cli {
    let mut command = command();
    let parsed = command.try_get_matches_from_mut(arguments).and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.unwrap_or_else(|error| with_command(error.format(&mut command), &command).exit())
}

/// The error with the command that was meant, where clap finds none: it takes no account of swapped letters.
fn with_command(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    if let (Some(ContextValue::String(typed)), None) =
        (error.get(ContextKind::InvalidSubcommand), error.get(ContextKind::SuggestedSubcommand))
    {
        let names = command.get_subcommands().map(|below| (below.get_name(), below.get_name()));
        if let Some(meant) = suggest::nearest(typed, names) {
            let meant = ContextValue::Strings(vec![meant.to_owned()]);
            error.insert(ContextKind::SuggestedSubcommand, meant);
        }
    }
    error
}

/// What a society runs with, for commands that run one.
#[derive(Debug, Args, Default)]
pub(crate) struct RunOptions {
    /// The model as vendor/name, or several with commas to fail over to the next one [default: the first vendor
    /// whose key is set, else an Ollama on this machine, else the offline model]
    #[arg(long, value_name = "MODEL", env = "POLIS_MODEL")]
    pub(crate) model: Option<String>,

    /// The folder that file tools may access [default: the working directory]
    #[arg(long, value_name = "DIR", env = "POLIS_WORKSPACE")]
    pub(crate) workspace: Option<PathBuf>,

    /// When the plan of a workflow needs approval before it is carried out [default: never]
    #[arg(long, value_name = "WHEN", value_enum, env = "POLIS_PLAN_APPROVAL")]
    pub(crate) plan_approval: Option<PlanApprovalFlag>,

    /// What each request may spend: `none` for no limit, `3x` for three times the budget of polis.toml
    /// [default: 200 model calls, 4 million tokens, 5 USD, 60 minutes of waiting for models]
    #[arg(long, value_name = "none|Nx", env = "POLIS_BUDGET")]
    pub(crate) budget: Option<RequestBudget>,

    /// Record requests to the model and its replies to this cassette
    #[arg(long, value_name = "FILE", env = "POLIS_RECORD", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,

    /// Answer from this cassette instead of a model; no key and no network is needed
    #[arg(long, value_name = "FILE", env = "POLIS_REPLAY")]
    pub(crate) replay: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The address to listen on; port 0 picks a free one [default: 127.0.0.1:3000]
    #[arg(long, value_name = "ADDRESS", env = "POLIS_LISTEN")]
    pub(crate) listen: Option<String>,

    /// Accept every client without a token; on loopback only
    #[arg(long)]
    pub(crate) no_auth: bool,

    /// Allow an address that other machines can reach, although nothing is encrypted
    #[arg(long)]
    pub(crate) insecure_listen: bool,

    #[command(flatten)]
    pub(crate) node: NodeOptions,

    /// Use TLS with this certificate and its chain, a PEM file; allows addresses that other machines can reach
    #[arg(long, value_name = "FILE", env = "POLIS_TLS_CERT", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The private key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", env = "POLIS_TLS_KEY", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Replace the polis that serves this data directory: it comes to a safe point and hands its address over
    ///
    /// First this program runs the open turns against a copy of the log. If it cannot continue one, or cannot start, the running polis
    /// continues.
    #[arg(long)]
    pub(crate) take_over: bool,

    #[command(flatten)]
    pub(crate) with: RunOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strategy {
    /// Choose one of the others: an SOP, a direct answer, or a plan
    Auto,
    /// Directly, in one loop of model and tools
    Simple,
    /// By the matching SOP in sops/
    Template,
    /// By a plan
    Workflow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApprovalMode {
    /// Ask on a terminal; elsewhere stop with status 3
    Ask,
    /// Deny everything
    Never,
    /// Approve everything
    All,
}

#[derive(Debug, Args)]
pub(crate) struct Chat {
    #[command(flatten)]
    pub(crate) conversation: ConversationFlags,

    #[command(flatten)]
    pub(crate) with: RunOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    #[command(flatten)]
    pub(crate) with: RunOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Log {
    /// Follow new events
    #[arg(long)]
    pub(crate) follow: bool,

    /// Start at this event
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) from: u64,

    /// Print JSON lines
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// A thread, optionally with a path below it
    #[arg(value_name = "THREAD[PATH]")]
    pub(crate) address: String,

    /// Include everything below it
    #[arg(long)]
    pub(crate) tree: bool,

    /// Print the system message of the planner, executor or verifier of this thread
    #[arg(long, conflicts_with_all = ["tree", "json"])]
    pub(crate) prompt: bool,

    /// Print JSON, with sub-threads in their messages
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListOptions {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Terminate {
    /// The agent
    pub(crate) agent: String,

    /// The reason, for the log
    pub(crate) reason: Vec<String>,

    /// What happens to its children
    #[arg(long, value_enum, default_value = "cascade")]
    pub(crate) children: Children,

    /// Terminate it immediately, with its work unfinished
    #[arg(long)]
    pub(crate) now: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Children {
    /// Terminate them first
    Cascade,
    /// Give them to its parent
    Detach,
    /// Refuse while it has any
    Refuse,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Where to write; an existing file is not overwritten [default: stdout]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// A file that `polis export` wrote
    pub(crate) file: PathBuf,

    /// Replace root's role with the file's; otherwise it is kept
    #[arg(long)]
    pub(crate) root: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Models {
    /// List the models of this vendor; `pull` tells how to get a small model for this machine
    pub(crate) vendor: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) with: RunOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Artifacts {
    #[command(subcommand)]
    pub(crate) command: Option<ArtifactCommand>,

    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Tokens {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,

    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it; it is shown only once
    New {
        /// Its name
        #[arg(long)]
        name: String,

        /// The person that it belongs to; one of the token's name if none is given
        #[arg(long)]
        person: Option<String>,

        /// Its scopes, separated by commas: read, send, approve, admin, and everyone for what belongs to other persons
        #[arg(long, value_name = "SCOPES", default_value = "read")]
        scope: String,
    },
    /// List the tokens, without their secrets, which are not stored
    List,
    /// Revoke a token
    Revoke {
        /// As polis token list shows it
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ArtifactCommand {
    /// Write one to stdout or into a file
    Get {
        /// As `polis artifacts` lists it, or its first digits
        id: String,

        /// The file; it is overwritten
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Remove artifacts that no log references; polis must not be running
    Gc {
        /// Keep what was stored within this many hours [default: 24, or grace_hours in polis.toml]
        #[arg(long, value_name = "HOURS")]
        hours: Option<u32>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Send a test request to the model, which costs a little
    #[arg(long)]
    pub(crate) call: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) with: RunOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Send {
    /// The agent, for example root
    pub(crate) agent: String,

    /// The message
    #[arg(required = true)]
    pub(crate) text: Vec<String>,

    /// The request that it belongs to; a new one by default
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The request
    pub(crate) task: String,

    /// The reason, for those who wait
    pub(crate) reason: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Tasks {
    /// A request
    pub(crate) task: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// The request
    pub(crate) task: String,

    #[command(flatten)]
    pub(crate) with: RunOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Attach {
    /// The request
    pub(crate) task: String,

    /// Print events as JSON lines instead of the answer
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) with: RunOptions,
}

#[derive(Debug, Args)]
pub(crate) struct TaskResult {
    /// The request
    pub(crate) task: String,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Command {
    /// Whether it shows its own progress, asks the person, or lasts until it is stopped.
    pub(crate) fn converses(&self) -> bool {
        match self {
            Self::Init(_)
            | Self::Serve(_)
            | Self::Run(_)
            | Self::Chat(_)
            | Self::Mcp(_)
            | Self::Wait(_)
            | Self::Attach(_)
            | Self::Delete(_)
            | Self::Conversations(Conversations { command: Some(ConversationCommand::Delete { .. }), .. })
            | Self::Memory(Memory { command: Some(MemoryCommand::Forget { .. }), .. })
            | Self::Trust(_)
            | Self::Tools(Tools { command: Some(_), .. })
            | Self::Approve(_)
            | Self::Deny(_)
            | Self::Answer(_) => true,
            Self::Log(log) => log.follow,
            _ => false,
        }
    }

    /// What the society runs with; `None` for commands that do not run one.
    pub(crate) fn run_options(&self) -> Option<&RunOptions> {
        match self {
            Self::Serve(Serve { with, .. })
            | Self::Run(Run { with, .. })
            | Self::Chat(Chat { with, .. })
            | Self::Wait(Wait { with, .. })
            | Self::Attach(Attach { with, .. })
            | Self::Mcp(Mcp { with })
            | Self::Models(Models { with, .. })
            | Self::Tools(Tools { with, .. })
            | Self::Doctor(Doctor { with, .. })
            | Self::Replay(Replay { with, .. })
            | Self::Approve(Approve { with, .. })
            | Self::Deny(Deny { with, .. })
            | Self::Answer(Answer { with, .. }) => Some(with),
            Self::Init(_)
            | Self::Log(_)
            | Self::Show(_)
            | Self::Agents(_)
            | Self::Artifacts(_)
            | Self::Token(_)
            | Self::Org(_)
            | Self::Threads(_)
            | Self::Tasks(_)
            | Self::Conversations(_)
            | Self::Delete(_)
            | Self::Memory(_)
            | Self::Result(_)
            | Self::Compress(_)
            | Self::Terminate(_)
            | Self::Export(_)
            | Self::Import(_)
            | Self::Usage(_)
            | Self::Deploy(_)
            | Self::Trust(_)
            | Self::Approvals(_)
            | Self::Send(_)
            | Self::Cancel(_)
            | Self::Societies(_)
            | Self::Nodes(_)
            | Self::Drain(_)
            | Self::Archive(_)
            | Self::Backup(_)
            | Self::Restore(_)
            | Self::Verify(_)
            | Self::Fork(_)
            | Self::Rewind(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Docs(_)
            | Self::Update => None,
            #[cfg(feature = "postgres")]
            Self::Migrate(_) => None,
            #[cfg(feature = "authoring")]
            Self::Authoring(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }
}
