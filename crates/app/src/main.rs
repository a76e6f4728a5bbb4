//! The `polis` program: reads the command line, does one thing, and says with its exit status how it went.

mod address;
mod budget;
mod check;
mod cli;
mod commands;
mod config;
mod describe;
mod door;
mod fence;
mod files;
mod follow;
mod form;
mod kin;
mod lines;
mod machine;
mod out;
mod person;
mod planning;
mod progress;
mod remotes;
mod roles;
mod scaffold;
mod servers;
mod signals;
mod sops;
mod team;
mod telemetry;
mod token;
mod trouble;
mod trust;
mod wiring;
mod written;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Command, Typed};
use crate::commands::{
    act, agents, approvals, approve, artifacts, chat, doctor, lists, log, login, mcp, models, org, replay, run, serve, show,
    societies, tasks, token as tokens, tools, trust as trusting, usage,
};
use crate::config::Config;
use crate::trouble::{Exit, Trouble};

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
    let typed = Typed::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return out::trouble(&Trouble::new("no_threads", format!("cannot start: {error}"))).into(),
    };
    out::set_raw(typed.raw);
    let done = out::start_log().and_then(|()| runtime.block_on(obey(typed)));
    done.unwrap_or_else(|trouble| out::trouble(&trouble)).into()
}

async fn obey(typed: Typed) -> Result<Exit, Trouble> {
    // What has to do with sources needs no society and no settings.
    match &typed.command {
        Command::Check(wish) => return commands::check::check(wish),
        Command::New(wish) => return commands::new::new(wish),
        Command::Trust(options) => return trusting::trust(&typed, options),
        _ => {}
    }
    let config = Config::resolve(&typed)?;
    if config.url.is_none() && !matches!(typed.command, Command::Doctor(_)) {
        config.trust.check_data()?;
    }
    match typed.command {
        Command::Serve(wish) => serve::serve(&config, &wish).await,
        Command::Run(wish) => run::run(&config, &wish.into()).await,
        Command::Chat(_) => chat::chat(&config).await,
        Command::Mcp(_) => mcp::mcp(&config).await,
        Command::Log(wish) => log::log(&config, &wish).await,
        Command::Show(wish) => show::show(&config, &wish).await,
        Command::Threads(wish) => lists::threads(&config, wish.json).await,
        Command::Compress(wish) => act::compress(&config, &wish).await,
        Command::Agents(wish) => agents::agents(&config, wish.json).await,
        Command::Tasks(wish) => tasks::tasks(&config, &wish).await,
        Command::Org(wish) => org::org(&config, wish.json).await,
        Command::Terminate(wish) => act::terminate(&config, &wish).await,
        Command::Export(wish) => org::export(&config, &wish).await,
        Command::Import(wish) => org::import(&config, &wish).await,
        Command::Models(wish) => models::models(&config, &wish).await,
        Command::Tools(wish) => match wish.login {
            Some(wish) => login::login(&config, &wish).await,
            None => tools::tools(&config, wish.json).await,
        },
        Command::Token(wish) => tokens::tokens(&config, &wish),
        Command::Artifacts(wish) => artifacts::artifacts(&config, &wish).await,
        Command::Usage(wish) => usage::usage(&config, wish.json).await,
        Command::Doctor(wish) => doctor::doctor(&config, &wish).await,
        Command::Approvals(wish) => approvals::approvals(&config, wish.json).await,
        Command::Approve(wish) => approve::approve(&config, &wish).await,
        Command::Deny(wish) => approve::deny(&config, &wish).await,
        Command::Answer(wish) => approve::answer(&config, &wish).await,
        Command::Send(wish) => act::send(&config, &wish).await,
        Command::Cancel(wish) => act::cancel(&config, &wish).await,
        Command::Societies(wish) => societies::societies(&config, wish.json).await,
        Command::Fork(wish) => societies::fork(&config, &wish).await,
        Command::Rewind(wish) => societies::rewind(&config, &wish).await,
        Command::Replay(wish) => replay::replay(&config, wish.json).await,
        Command::Check(wish) => commands::check::check(&wish),
        Command::New(wish) => commands::new::new(&wish),
        Command::Trust(_) => Ok(Exit::Done),
    }
}
