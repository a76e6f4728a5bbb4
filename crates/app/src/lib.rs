//! The `polis` program: parses the command line, runs one command, and returns its exit status. A program with agents of its own is
//! the same program with these agents: [`serve`].

mod address;
mod approval_prompt;
mod attached_files;
mod backups;
mod budget;
mod cli;
mod commands;
mod config;
mod config_file;
mod conversation_choice;
mod describe;
mod error;
mod file_limit;
mod follow;
mod form_prompt;
#[cfg_attr(not(unix), path = "no_handover.rs")]
mod handover;
mod installation;
#[cfg(feature = "authoring")]
mod known_names;
mod line_editor;
mod lineage;
mod logins;
mod machine_tools;
mod mcp_servers;
mod out;
mod own_node;
mod patience;
#[cfg_attr(not(feature = "postgres"), path = "no_postgres.rs")]
mod postgres_store;
mod progress;
mod protected_paths;
mod purpose;
mod ready_tools;
#[cfg(test)]
mod reference;
mod remotes;
mod request_text;
mod retention;
mod roles;
mod signals;
mod skills;
mod sops;
mod stdin_lines;
mod store;
mod stored_societies;
mod suggest;
mod telemetry;
mod terminal_language;
mod token;
mod transport;
mod trust;
mod wiring;
mod workflow_progress;
mod workflow_settings;

use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;

use polis_domain::Role;
use polis_engine::Cast;

#[cfg(feature = "authoring")]
use crate::cli::{Authoring, Check};
use crate::cli::{Cli, Command, Tools, ToolsCommand};
use crate::commands::{
    act, agents, approvals, approve, archive, artifacts, attach, backup, chat, conversations, deploy, docs, doctor, init, log,
    login, mcp, memory, models, nodes, org, replay, run, serve, shell, show, societies, tasks, threads, token as tokens, tools,
    trust as trusting, update, usage, verify,
};
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::patience::Patience;

/// Runs `polis`.
pub fn run() -> ExitCode {
    run_with(OwnAgents::default(), std::env::args_os().collect())
}

/// Runs `polis` with agents of one's own. Without arguments it is `polis serve`: the page, HTTP and all protocols; with arguments it is
/// any other command, on the same data directory and with the same settings.
///
/// `root` is the role of root in a data directory that this makes; an existing one keeps its own. The behaviours and tools of `polis`
/// are there as well, and `cast` must not have one of their names: `role`, `converse`, `workflow`, `a2a`.
///
/// Call it first in `main`, because commands of agents are confined by this program, started again.
///
/// ```no_run
/// use polis_engine::Cast;
/// # use polis_agents::Converse as TicketSupportAgent;
///
/// fn main() -> std::process::ExitCode {
///     let cast = Cast::new().with("ticket_support", TicketSupportAgent::default());
///     polis_app::serve(cast, polis_domain::Role::new("root", "ticket_support"))
/// }
/// ```
pub fn serve(cast: Cast, root: Role) -> ExitCode {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.len() < 2 {
        arguments.push("serve".into());
    }
    run_with(OwnAgents { cast, root: Some(root) }, arguments)
}

/// The agents of the program that runs, beside those of `polis`.
#[derive(Clone, Default)]
struct OwnAgents {
    cast: Cast,
    /// The role of root in a new data directory.
    root: Option<Role>,
}

impl fmt::Debug for OwnAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.cast.behaviours()).finish()
    }
}

fn run_with(own: OwnAgents, arguments: Vec<OsString>) -> ExitCode {
    // Commands of agents are confined by this program, started again.
    #[cfg(target_os = "linux")]
    if let Some(code) = polis_tools::sandbox::enter() {
        return code;
    }
    let cli = cli::parse(arguments);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return out::report_error(&CliError::new("no_threads", format!("cannot start: {error}"))).into(),
    };
    out::set_raw(cli.raw);
    let done = out::start_log().and_then(|()| runtime.block_on(run_command(cli, own)));
    done.unwrap_or_else(|error| out::report_error(&error)).into()
}

async fn run_command(cli: Cli, own: OwnAgents) -> Result<Exit, CliError> {
    // These commands about sources and settings need no society.
    match &cli.command {
        #[cfg(feature = "authoring")]
        Command::Authoring(Authoring::Check(args)) if args.against.is_none() => {
            return commands::check::check(&cli, &own.cast, args).await;
        }
        #[cfg(feature = "authoring")]
        Command::Authoring(Authoring::New(args)) => return commands::new::new(&cli, args),
        Command::Trust(options) => return trusting::trust(&cli, options),
        Command::Completions(args) => return shell::completions(args),
        Command::Man(args) => return shell::man(args),
        Command::Docs(args) => return docs::docs(args).await,
        Command::Update => return update::update(),
        Command::Tools(Tools { command: Some(ToolsCommand::Add(args)), .. }) => return commands::ready_tools::add(&cli, args),
        Command::Tools(Tools { command: Some(ToolsCommand::Remove(args)), .. }) => {
            return commands::ready_tools::remove(&cli, args);
        }
        _ => {}
    }
    let _patience = (!cli.command.converses()).then(|| Patience::start("still at work"));
    let mut config = Config::resolve(&cli)?;
    config.own = own;
    if config.url.is_none() && !matches!(cli.command, Command::Doctor(_) | Command::Restore(_)) {
        config.trust.check_data()?;
    }
    match cli.command {
        Command::Init(args) => init::init(&config, &args).await,
        Command::Serve(args) => serve::serve(&config, &args).await,
        Command::Run(args) => run::run(&config, &args.try_into()?).await,
        Command::Chat(args) => chat::chat(&config, &args).await,
        Command::Mcp(_) => mcp::mcp(&config).await,
        Command::Log(args) => log::log(&config, &args).await,
        Command::Show(args) => show::show(&config, &args).await,
        Command::Delete(args) => conversations::erase(&config, &args).await,
        Command::Conversations(args) => conversations::conversations(&config, &args).await,
        Command::Memory(args) => memory::memory(&config, &args).await,
        Command::Wait(args) => attach::wait(&config, &args).await,
        Command::Attach(args) => attach::attach(&config, &args).await,
        Command::Result(args) => attach::result(&config, &args).await,
        Command::Threads(args) => threads::threads(&config, args.json).await,
        Command::Compress(args) => act::compress(&config, &args).await,
        Command::Agents(args) => agents::agents(&config, args.json).await,
        Command::Tasks(args) => tasks::tasks(&config, &args).await,
        Command::Org(args) => org::org(&config, args.json).await,
        Command::Terminate(args) => act::terminate(&config, &args).await,
        Command::Export(args) => org::export(&config, &args).await,
        Command::Import(args) => org::import(&config, &args).await,
        Command::Models(args) => models::models(&config, &args).await,
        Command::Tools(args) => match args.command {
            Some(ToolsCommand::Login(args)) => login::login(&config, &args).await,
            Some(ToolsCommand::Add(_) | ToolsCommand::Remove(_)) => Ok(Exit::Done),
            None => tools::tools(&config, args.json).await,
        },
        Command::Token(args) => tokens::tokens(&config, &args).await,
        Command::Artifacts(args) => artifacts::artifacts(&config, &args).await,
        Command::Deploy(args) => deploy::deploy(&config, args.json).await,
        Command::Usage(args) => usage::usage(&config, args.json).await,
        Command::Doctor(args) => doctor::doctor(&config, &args).await,
        Command::Approvals(args) => approvals::approvals(&config, args.json).await,
        Command::Approve(args) => approve::approve(&config, &args).await,
        Command::Deny(args) => approve::deny(&config, &args).await,
        Command::Answer(args) => approve::answer(&config, &args).await,
        Command::Send(args) => act::send(&config, &args).await,
        Command::Cancel(args) => act::cancel(&config, &args).await,
        Command::Societies(args) => societies::societies(&config, args.json).await,
        Command::Nodes(args) => nodes::nodes(&config, args.json).await,
        Command::Drain(args) => nodes::drain(&config, &args).await,
        Command::Fork(args) => societies::fork(&config, &args).await,
        Command::Rewind(args) => societies::rewind(&config, &args).await,
        Command::Archive(args) => archive::archive(&config, &args).await,
        Command::Backup(args) => backup::backup(&config, &args).await,
        Command::Restore(args) => backup::restore(&config, &args).await,
        #[cfg(feature = "postgres")]
        Command::Migrate(args) => commands::migrate::migrate(&config, &args).await,
        Command::Verify(args) => verify::verify(&config, &args).await,
        Command::Replay(args) => replay::replay(&config, args.json).await,
        #[cfg(feature = "authoring")]
        Command::Authoring(Authoring::Skills(args)) => commands::skills::skills(&config, args.json),
        #[cfg(feature = "authoring")]
        Command::Authoring(Authoring::Check(Check { against: Some(data), json, .. })) => {
            commands::check::check_open(&config, &data, json).await
        }
        #[cfg(feature = "authoring")]
        Command::Authoring(_) => Ok(Exit::Done),
        Command::Trust(_) | Command::Completions(_) | Command::Man(_) | Command::Docs(_) | Command::Update => Ok(Exit::Done),
    }
}
