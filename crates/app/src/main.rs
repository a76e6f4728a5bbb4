//! The `polis` program: parses the command line, runs one command, and returns its exit status.

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
mod line_editor;
mod lineage;
mod machine_tools;
mod mcp_servers;
mod out;
mod progress;
mod protected_paths;
mod purpose;
mod remotes;
mod request_text;
mod roles;
mod signals;
mod skills;
mod sops;
mod stdin_lines;
mod stored_societies;
mod telemetry;
mod token;
mod transport;
mod trust;
mod wiring;
mod workflow_progress;
mod workflow_settings;

use std::process::ExitCode;

use clap::Parser;

#[cfg(feature = "authoring")]
use crate::cli::Authoring;
use crate::cli::{Cli, Command};
use crate::commands::{
    act, agents, approvals, approve, artifacts, attach, backup, chat, conversations, doctor, log, login, mcp, memory, models,
    org, replay, run, serve, show, societies, tasks, threads, token as tokens, tools, trust as trusting, usage, verify,
};
use crate::config::Config;
use crate::error::{CliError, Exit};

/// A pass of a society makes and drops dozens of each kind of thing at once: with this it takes a quarter less time than with the
/// system's own.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Commands of agents are confined by this program, started again.
    #[cfg(target_os = "linux")]
    if let Some(code) = polis_tools::sandbox::enter() {
        return code;
    }
    // Wrong usage ends here with status 2, and a cry for help with 0.
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return out::report_error(&CliError::new("no_threads", format!("cannot start: {error}"))).into(),
    };
    out::set_raw(cli.raw);
    let done = out::start_log().and_then(|()| runtime.block_on(run_command(cli)));
    done.unwrap_or_else(|error| out::report_error(&error)).into()
}

async fn run_command(cli: Cli) -> Result<Exit, CliError> {
    // These commands about sources need no society and no settings.
    match &cli.command {
        #[cfg(feature = "authoring")]
        Command::Authoring(Authoring::Check(args)) => return commands::check::check(args),
        #[cfg(feature = "authoring")]
        Command::Authoring(Authoring::New(args)) => return commands::new::new(args),
        Command::Trust(options) => return trusting::trust(&cli, options),
        _ => {}
    }
    let config = Config::resolve(&cli)?;
    if config.url.is_none() && !matches!(cli.command, Command::Doctor(_) | Command::Restore(_)) {
        config.trust.check_data()?;
    }
    match cli.command {
        Command::Serve(args) => serve::serve(&config, &args).await,
        Command::Run(args) => run::run(&config, &args.try_into()?).await,
        Command::Chat(args) => chat::chat(&config, &args).await,
        Command::Mcp(_) => mcp::mcp(&config).await,
        Command::Log(args) => log::log(&config, &args).await,
        Command::Show(args) => show::show(&config, &args).await,
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
        Command::Tools(args) => match args.login {
            Some(args) => login::login(&config, &args).await,
            None => tools::tools(&config, args.json).await,
        },
        Command::Token(args) => tokens::tokens(&config, &args),
        Command::Artifacts(args) => artifacts::artifacts(&config, &args).await,
        Command::Usage(args) => usage::usage(&config, args.json).await,
        Command::Doctor(args) => doctor::doctor(&config, &args).await,
        Command::Approvals(args) => approvals::approvals(&config, args.json).await,
        Command::Approve(args) => approve::approve(&config, &args).await,
        Command::Deny(args) => approve::deny(&config, &args).await,
        Command::Answer(args) => approve::answer(&config, &args).await,
        Command::Send(args) => act::send(&config, &args).await,
        Command::Cancel(args) => act::cancel(&config, &args).await,
        Command::Societies(args) => societies::societies(&config, args.json).await,
        Command::Fork(args) => societies::fork(&config, &args).await,
        Command::Rewind(args) => societies::rewind(&config, &args).await,
        Command::Backup(args) => backup::backup(&config, &args).await,
        Command::Restore(args) => backup::restore(&config, &args).await,
        Command::Verify(args) => verify::verify(&config, &args).await,
        Command::Replay(args) => replay::replay(&config, args.json).await,
        #[cfg(feature = "authoring")]
        Command::Authoring(Authoring::Skills(args)) => commands::skills::skills(&config, args.json),
        #[cfg(feature = "authoring")]
        Command::Authoring(_) => Ok(Exit::Done),
        Command::Trust(_) => Ok(Exit::Done),
    }
}
