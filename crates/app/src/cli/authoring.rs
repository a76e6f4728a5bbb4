//! What `polis check`, `polis skills` and `polis new` take.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ListOptions;

/// Commands about sources; they need no society.
#[derive(Debug, Subcommand)]
pub(crate) enum Authoring {
    /// Report violations of the naming and layout rules for agents: docs/naming.md
    Check(Check),
    /// List the skills of agents, and what is wrong with those that are not used
    Skills(ListOptions),
    /// Generate an agent, an SOP, a role, a skill, a tool or a workflow
    #[command(subcommand)]
    New(New),
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The folder to check, including subfolders [default: the working directory]
    pub(crate) dir: Option<PathBuf>,

    /// Check instead whether this polis can continue the open work of a data directory, also while another one runs it
    #[arg(long, value_name = "DATA", conflicts_with = "dir")]
    pub(crate) against: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum New {
    /// An agent: its folder, files, prompts and a passing test
    Agent(NewAgent),
    /// A procedure for agents: sops/NAME.md
    Sop(NewSop),
    /// A role: a file in roles/
    Role(NewRole),
    /// A skill: a folder in skills/ with a SKILL.md that agents read when they need it
    Skill(NewSkill),
    /// A tool: an MCP server in Python without dependencies, in tools/, and its section in polis.toml
    Tool(NewTool),
    /// A workflow of planner, executor and verifier: a project, or the prompt that has a model write one in another language
    Workflow(NewWorkflow),
}

#[derive(Debug, Args)]
pub(crate) struct NewWorkflow {
    /// What it is for, such as tea_trade; gives a Rust project that runs without a key
    #[arg(required_unless_present = "language", conflicts_with_all = ["language", "platform", "business", "provider"])]
    pub(crate) name: Option<String>,

    /// Print a prompt for this programming language instead, for any coding tool
    #[arg(long, requires_all = ["platform", "business"])]
    pub(crate) language: Option<String>,

    /// The platform or framework, such as FastAPI
    #[arg(long, requires = "language")]
    pub(crate) platform: Option<String>,

    /// A Markdown file that describes your business: docs/workflow.md
    #[arg(long, value_name = "FILE", requires = "language")]
    pub(crate) business: Option<PathBuf>,

    /// The provider of models [default: any OpenAI-compatible API]
    #[arg(long, requires = "language")]
    pub(crate) provider: Option<String>,

    /// The folder of the project [default: the working directory]
    #[arg(long, value_name = "DIR", conflicts_with = "language")]
    pub(crate) dir: Option<PathBuf>,

    /// The library for the project: a checkout of Polis or its git address [default: the checkout that this program was built from]
    #[arg(long, value_name = "WHERE", env = "POLIS_SOURCE")]
    pub(crate) polis: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NewSop {
    /// What it is for, such as monthly_report; a Chinese name gives a Chinese file
    pub(crate) name: String,

    /// The folder that contains sops/, or will contain it [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct NewRole {
    /// Its name, such as reviewer or "Code Reviewer"
    pub(crate) name: String,

    /// The folder that contains roles/ [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct NewSkill {
    /// Its name, such as monthly-report
    pub(crate) name: String,

    /// The folder that contains skills/, or will contain it [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct NewTool {
    /// Its name, such as word_count
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct NewAgent {
    /// What it does, such as order_tracking or OrderTracking
    pub(crate) name: String,

    /// A sub-thread that it starts; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) sub: Vec<String>,

    /// The folder: modules if it is in a crate, otherwise a project in a new folder [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// The library for a new project: a checkout of Polis or its git address [default: the checkout that this program was
    /// built from]
    #[arg(long, value_name = "WHERE", env = "POLIS_SOURCE")]
    pub(crate) polis: Option<String>,
}
