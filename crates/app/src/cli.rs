//! What the user typed. What it means is decided in `config.rs` and by each command.

#[cfg(feature = "authoring")]
mod authoring;
mod trust;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::budget::RequestBudget;
use crate::planning::AskAboutPlans;
#[cfg(feature = "authoring")]
pub(crate) use authoring::{Authoring, Check, New, NewAgent, NewRole, NewSop};
pub(crate) use trust::{TrustAction, TrustFolder};

/// A durable society of AI agents.
///
/// Exit status: 0 done, 1 the work failed, 2 the command line is wrong, 3 waiting for a person, 4 the answer is not whole or not verified, 130 stopped.
#[derive(Debug, Parser)]
#[command(name = "polis", version, max_term_width = 100)]
pub(crate) struct Typed {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// The data directory [default: .polis]
    #[arg(long, value_name = "DIR", env = "POLIS_DATA", global = true)]
    pub(crate) data: Option<PathBuf>,

    /// The configuration file [default: polis.toml, here or in the data directory]
    #[arg(long, value_name = "FILE", env = "POLIS_CONFIG", global = true)]
    pub(crate) config: Option<PathBuf>,

    /// Which society is meant [default: main, or the one that the running polis was started with]
    #[arg(long, value_name = "NAME", env = "POLIS_SOCIETY", global = true)]
    pub(crate) society: Option<String>,

    /// A running polis to talk to, for example http://127.0.0.1:3000
    #[arg(long, value_name = "URL", env = "POLIS_URL", global = true)]
    pub(crate) url: Option<String>,

    /// Write results into a file or a pipe as they are; otherwise control characters, marks of writing direction and invisible
    /// characters are shown as escapes such as \u001b
    #[arg(long, global = true)]
    pub(crate) raw: bool,

    /// Trust what lies in this folder for this run: polis.toml, .mcp.json, roles, SOPs, prompts; nothing is remembered
    #[arg(long, global = true)]
    pub(crate) trust: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the society and its HTTP server
    Serve(Serve),
    /// Do one request from start to finish; the answer alone goes to stdout
    Run(Run),
    /// Talk to root or, with @name, to any agent
    Chat(Chat),
    /// Be an MCP server on stdio, for programs that start one
    Mcp(Mcp),
    /// Show what happened
    Log(Log),
    /// Show a conversation: root, or root.messages[3].meta._thread
    Show(Show),
    /// List the agents
    Agents(Look),
    /// List the conversations
    Threads(Look),
    /// List the requests that are under way, the plans that agents keep and what was set aside; or those of one request
    Tasks(Tasks),
    /// Have an agent compress its conversation, or undo its last compression
    Compress(Compress),
    /// Show the organisation: roles, agents, and who is gone
    Org(Look),
    /// Send an agent away; it does first what waits for it
    Terminate(Terminate),
    /// Write the organisation to a file, or to stdout
    Export(Export),
    /// Make the roles and agents that a file describes
    Import(Import),
    /// List the vendors that can be asked, or the models of one
    Models(Models),
    /// List the tools that agents have, and how the MCP servers stand; log in at a server
    Tools(Tools),
    /// List what is kept outside the log; get one, or remove what nothing names
    Artifacts(Artifacts),
    /// Make, list and revoke tokens that open the HTTP door for others
    Token(Tokens),
    /// Show what was spent on models, and what is left
    Usage(Look),
    /// Look whether everything is there, and say what to do
    Doctor(Doctor),
    /// Show what a folder's files would do and trust them; list and revoke what you trust
    Trust(TrustFolder),
    /// List what waits for a person
    Approvals(Look),
    /// Agree to what waits for a person
    Approve(Approve),
    /// Disagree with what waits for a person
    Deny(Deny),
    /// Answer a question that waits for a person
    Answer(Answer),
    /// Say something to an agent
    Send(Send),
    /// Call off a request and everything that is done for it
    Cancel(Cancel),
    /// List the societies of the data directory
    Societies(Look),
    /// Begin another society with the past of this one
    Fork(Fork),
    /// Go back to an event; what came after it is kept under another name
    Rewind(Rewind),
    /// Run every settled turn again against the log, calling nothing, and say where code or state differs
    Replay(Replay),
    #[cfg(feature = "authoring")]
    #[command(flatten)]
    Authoring(Authoring),
}

/// What the society works with, for commands that let it work.
#[derive(Debug, Args, Default)]
pub(crate) struct With {
    /// The model as vendor/name, or several with commas: the next one answers when one fails [default: the first vendor
    /// whose key is set, else an Ollama on this machine, else the offline model]
    #[arg(long, value_name = "MODEL", env = "POLIS_MODEL")]
    pub(crate) model: Option<String>,

    /// The folder that file tools may touch [default: the working directory]
    #[arg(long, value_name = "DIR", env = "POLIS_WORKSPACE")]
    pub(crate) workspace: Option<PathBuf>,

    /// When to ask a person about the plan of a workflow before it is carried out [default: never]
    #[arg(long, value_name = "WHEN", value_enum, env = "POLIS_PLAN_APPROVAL")]
    pub(crate) plan_approval: Option<AskAboutPlans>,

    /// What each request may spend: `none` for no limit, `3x` for three times the budget of polis.toml
    /// [default: 200 model calls, 4 million tokens, 5 USD, 60 minutes of waiting for models]
    #[arg(long, value_name = "none|Nx", env = "POLIS_BUDGET")]
    pub(crate) budget: Option<RequestBudget>,

    /// Record what the model is asked and answers to this cassette
    #[arg(long, value_name = "FILE", env = "POLIS_RECORD", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,

    /// Answer from this cassette instead of a model; no key and no network is needed
    #[arg(long, value_name = "FILE", env = "POLIS_REPLAY")]
    pub(crate) replay: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen; port 0 picks a free one [default: 127.0.0.1:3000]
    #[arg(long, value_name = "ADDRESS", env = "POLIS_LISTEN")]
    pub(crate) listen: Option<String>,

    /// Let everybody in who can connect; on loopback only
    #[arg(long)]
    pub(crate) no_auth: bool,

    /// Allow an address that other machines can reach, although nothing is encrypted
    #[arg(long)]
    pub(crate) insecure_listen: bool,

    /// Encrypt with this certificate and its chain, a PEM file; other machines may connect then
    #[arg(long, value_name = "FILE", env = "POLIS_TLS_CERT", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The private key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", env = "POLIS_TLS_KEY", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) with: With,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// What to do
    #[arg(required = true, value_name = "REQUEST")]
    pub(crate) request: Vec<String>,

    /// Print events as JSON lines instead of the answer
    #[arg(long)]
    pub(crate) json: bool,

    /// How to go about it
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) strategy: Strategy,

    /// What to do when a person is asked to agree
    #[arg(long, value_enum, default_value = "ask")]
    pub(crate) approve: Agree,

    #[command(flatten)]
    pub(crate) with: With,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strategy {
    /// Whatever fits: an SOP, or at once, or by a plan
    Auto,
    /// At once, in one loop of model and tools
    Simple,
    /// By the SOP in sops/ that fits
    Template,
    /// By a plan
    Workflow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Agree {
    /// Ask on a terminal; elsewhere stop with status 3
    Ask,
    /// Disagree with everything
    Never,
    /// Agree to everything
    All,
}

#[derive(Debug, Args)]
pub(crate) struct Chat {
    #[command(flatten)]
    pub(crate) with: With,
}

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    #[command(flatten)]
    pub(crate) with: With,
}

#[derive(Debug, Args)]
pub(crate) struct Log {
    /// Go on with what happens next
    #[arg(long)]
    pub(crate) follow: bool,

    /// Begin with this event
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) from: u64,

    /// Print JSON lines
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// A thread, with a path below it if you like
    #[arg(value_name = "THREAD[PATH]")]
    pub(crate) address: String,

    /// With everything below it
    #[arg(long)]
    pub(crate) tree: bool,

    /// Print the system message that the planner, executor or verifier of this thread was given
    #[arg(long, conflicts_with_all = ["tree", "json"])]
    pub(crate) prompt: bool,

    /// Print JSON in the documents' shape
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Look {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Terminate {
    /// Which agent
    pub(crate) agent: String,

    /// Why
    pub(crate) reason: Vec<String>,

    /// What becomes of its children
    #[arg(long, value_enum, default_value = "cascade")]
    pub(crate) children: Children,

    /// Let it go at once, with its work undone
    #[arg(long)]
    pub(crate) now: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Children {
    /// They go first
    Cascade,
    /// They become children of its parent
    Detach,
    /// It stays while it has any
    Refuse,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Where to write; never over a file that is there [default: stdout]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// As `polis export` writes it
    pub(crate) file: PathBuf,

    /// Let root's role become what the file says; else it stays as it is here
    #[arg(long)]
    pub(crate) root: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Models {
    /// Ask this vendor which models it has
    pub(crate) vendor: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) with: With,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Tools {
    #[command(subcommand)]
    pub(crate) login: Option<Login>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) with: With,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Login {
    /// Log in at an MCP server that wants it, in your browser
    Login {
        /// As polis.toml names it
        server: String,
    },
    /// Forget the login at an MCP server
    Logout {
        /// As polis.toml names it
        server: String,
    },
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
    /// Make one and print it, this once
    New {
        /// What to call it
        #[arg(long)]
        name: String,

        /// What it may do: read, send, approve, admin, with commas between them
        #[arg(long, value_name = "SCOPES", default_value = "read")]
        scope: String,
    },
    /// List them, without the secrets, which nobody has kept
    List,
    /// Have one open nothing any more
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

        /// The file; it is replaced
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Remove those that no log names; polis must not run
    Gc {
        /// Spare what was kept within this many hours [default: 24, or grace_hours in polis.toml]
        #[arg(long, value_name = "HOURS")]
        hours: Option<u32>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Ask the model for a word, which costs a little
    #[arg(long)]
    pub(crate) call: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) with: With,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// As `polis approvals` lists it
    pub(crate) id: String,

    /// For a write in doubt: it was done, and this came of it
    #[arg(long, value_name = "RESULT", conflicts_with = "again")]
    pub(crate) done: Option<String>,

    /// For a write in doubt, or a turn that stands still: do it again
    #[arg(long)]
    pub(crate) again: bool,

    /// For a call: make it with these arguments instead, as JSON
    #[arg(long, value_name = "JSON", conflicts_with_all = ["again", "done"])]
    pub(crate) arguments: Option<String>,

    /// For a call: do not ask again about calls like this one; `polis approvals` shows which calls that covers
    #[arg(long, value_name = "FOR", value_enum, conflicts_with_all = ["again", "done"])]
    pub(crate) always: Option<Always>,

    /// With --always: which calls, for example to=bob@corp.example, path=notes/*, amount<=100, or any
    #[arg(long = "where", value_name = "PATTERN", requires = "always")]
    pub(crate) matching: Vec<String>,

    #[command(flatten)]
    pub(crate) with: With,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Always {
    /// This agent
    Agent,
    /// Everybody who works on this request
    Task,
    /// Everybody
    Tool,
    /// Everybody, for all tools of the same server that only read by its word
    Reads,
}

#[derive(Debug, Args)]
pub(crate) struct Answer {
    /// As `polis approvals` lists it
    pub(crate) id: String,

    /// The words, one of the options, or the filled form as JSON
    #[arg(required = true)]
    pub(crate) answer: Vec<String>,

    #[command(flatten)]
    pub(crate) with: With,
}

#[derive(Debug, Args)]
pub(crate) struct Deny {
    /// As `polis approvals` lists it
    pub(crate) id: String,

    /// For a question of a server: say neither yes nor no
    #[arg(long, conflicts_with = "reason")]
    pub(crate) cancel: bool,

    /// Why, for the agent to read
    pub(crate) reason: Vec<String>,

    #[command(flatten)]
    pub(crate) with: With,
}

#[derive(Debug, Args)]
pub(crate) struct Send {
    /// Who is meant, for example root
    pub(crate) agent: String,

    /// What to say
    #[arg(required = true)]
    pub(crate) text: Vec<String>,

    /// The request that it belongs to; a new one when not given
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

    /// Why, for whoever waits
    pub(crate) reason: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Fork {
    /// The last event that it shares [default: the last one]
    #[arg(long, value_name = "N")]
    pub(crate) at: Option<u64>,

    /// What it is called [default: this one's name and a number]
    pub(crate) name: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Rewind {
    /// The last event that stays
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
    pub(crate) with: With,
}

#[derive(Debug, Args)]
pub(crate) struct Tasks {
    /// A request
    pub(crate) task: Option<String>,

    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Compress {
    /// Which agent
    pub(crate) agent: String,

    /// Undo the last compression instead
    #[arg(long)]
    pub(crate) undo: bool,
}

impl Command {
    /// What the society should work with; nothing special for commands that do not let it work.
    pub(crate) fn with(&self) -> Option<&With> {
        match self {
            Self::Serve(Serve { with, .. })
            | Self::Run(Run { with, .. })
            | Self::Chat(Chat { with })
            | Self::Mcp(Mcp { with })
            | Self::Models(Models { with, .. })
            | Self::Tools(Tools { with, .. })
            | Self::Doctor(Doctor { with, .. })
            | Self::Replay(Replay { with, .. })
            | Self::Approve(Approve { with, .. })
            | Self::Deny(Deny { with, .. })
            | Self::Answer(Answer { with, .. }) => Some(with),
            Self::Log(_)
            | Self::Show(_)
            | Self::Agents(_)
            | Self::Artifacts(_)
            | Self::Token(_)
            | Self::Org(_)
            | Self::Threads(_)
            | Self::Tasks(_)
            | Self::Compress(_)
            | Self::Terminate(_)
            | Self::Export(_)
            | Self::Import(_)
            | Self::Usage(_)
            | Self::Trust(_)
            | Self::Approvals(_)
            | Self::Send(_)
            | Self::Cancel(_)
            | Self::Societies(_)
            | Self::Fork(_)
            | Self::Rewind(_) => None,
            #[cfg(feature = "authoring")]
            Self::Authoring(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Typed::command().debug_assert();
    }
}
