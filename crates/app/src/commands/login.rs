//! `polis tools login` and `logout`: the login at an MCP server. A polis that runs on the same data finds it
//! by itself.

use polis_tools::mcp::{self, ServerSettings};

use crate::cli::Login;
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::{out, store};

pub(crate) async fn login(config: &Config, args: &Login) -> Result<Exit, CliError> {
    let failed = |error: mcp::McpError| CliError::new("login_failed", error.to_string());
    match args {
        Login::Login { server } => {
            let show =
                |address: &str| out::note(&format!("polis: open this in your browser to log in to {server}:\n{address}"));
            config.trust.claim_data()?;
            mcp::login(find(config, server)?, store::stored_logins(config).await?, &config.network()?, show)
                .await
                .map_err(failed)?;
            out::line(&format!("logged in at {server}"))?;
        }
        Login::Logout { server } => {
            let was_there = mcp::logout(find(config, server)?, store::stored_logins(config).await?).await.map_err(failed)?;
            out::line(&format!("{} at {server}", if was_there { "logged out" } else { "not logged in" }))?;
        }
    }
    Ok(Exit::Done)
}

fn find<'a>(config: &'a Config, name: &str) -> Result<&'a ServerSettings, CliError> {
    let known = || config.servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>().join(", ");
    config.servers.iter().find(|server| server.name == name).ok_or_else(|| {
        let known = if config.servers.is_empty() { "none is set up".to_owned() } else { format!("there are: {}", known()) };
        CliError::usage("unknown_server", format!("there is no MCP server `{name}`; {known}"))
            .meant(name, config.servers.iter().map(|server| &*server.name))
    })
}
