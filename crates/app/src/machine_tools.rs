//! The tools that touch the machine and the network, and those that vendors of models run, as far as `[tools]` in `polis.toml` offers them.

use polis_ports::Tool;
use polis_tools::{AllowedAddresses, FetchUrl, OfVendor, ProtectedPaths, WebSearch, is_plain_http};

use crate::config::Config;
use crate::error::CliError;
use crate::out;

/// The tools that are offered. Protected paths are protected from commands too.
pub(crate) async fn tools(config: &Config, protected: &ProtectedPaths) -> Result<Vec<Box<dyn Tool>>, CliError> {
    let bad = |what: String| CliError::usage("bad_config", what);
    let allowed = check(config).map_err(bad)?;
    recover(config);
    let mut tools: Vec<Box<dyn Tool>> = Vec::new();
    if config.tools.commands {
        tools.push(commands(config, protected).await.map_err(bad)?);
    }
    if config.tools.fetch {
        tools.push(Box::new(FetchUrl::new(allowed, &config.network()?)));
    }
    match web_search(config)? {
        Some(Ok(search)) => tools.push(Box::new(search)),
        Some(Err(missing)) => out::note(&format!("polis: web_search is not offered: {missing}")),
        None => {}
    }
    tools.extend(config.tools.vendor.iter().map(|tool| Box::new(OfVendor(*tool)) as Box<dyn Tool>));
    Ok(tools)
}

/// The addresses that may be fetched, or what is wrong with `[tools]`.
pub(crate) fn check(config: &Config) -> Result<AllowedAddresses, String> {
    let bad = |what: String| format!("in [tools] of polis.toml {what}");
    if let Some(relative) = config.tools.readable.iter().find(|folder| config.tools.commands && !folder.is_absolute()) {
        return Err(bad(format!("`readable` has {}, which is not an absolute path", relative.display())));
    }
    #[cfg(target_os = "linux")]
    {
        let least = polis_tools::sandbox::Limits::LEAST_MEMORY_BYTES >> 20;
        if let Some(memory) = config.tools.memory_mb.filter(|memory| config.tools.commands && u64::from(memory.get()) < least) {
            return Err(bad(format!("`memory_mb` is {memory}, too little to start a shell; the minimum is {least}")));
        }
    }
    AllowedAddresses::read(&config.tools.fetch_allow).map_err(|error| bad(error.to_string()))
}

/// The search tool if a service is set, or which key is missing.
pub(crate) fn web_search(config: &Config) -> Result<Option<Result<WebSearch, String>>, CliError> {
    let Some(search) = &config.tools.search else { return Ok(None) };
    let name = search.service.name();
    let Some(address) = search.address() else {
        let message = format!(
            "in [tools] of polis.toml `search` needs the address of your {name}: search = {{ service = \"{name}\", url = \"http://127.0.0.1:8080\" }}"
        );
        return Err(CliError::usage("bad_config", message));
    };
    let key = search.key_variable().map(|variable| config.variable(variable).ok_or(variable)).transpose();
    let key = match key {
        Ok(key) => key,
        Err(variable) => return Ok(Some(Err(format!("{variable} is not set; it holds the key for {name}")))),
    };
    if key.is_some() && is_plain_http(address) {
        let message =
            format!("in [tools] of polis.toml `search` would send the key for {name} in clear to {address}; use https");
        return Err(CliError::usage("plain_http", message));
    }
    Ok(Some(Ok(WebSearch::new(search.service, address, key, &config.network()?))))
}

/// Why each command needs approval on this machine, if it does.
#[cfg(target_os = "linux")]
fn approval_reason(offered: &Result<polis_tools::sandbox::SandboxFeatures, String>) -> Option<String> {
    match offered {
        Ok(features) if features.may_run_unattended() => None,
        Ok(features) => Some(format!("This machine cannot confine commands well enough: {features}.")),
        Err(reason) => Some(format!("This machine cannot confine commands: {reason}.")),
    }
}

/// The folder with a note for each command that runs.
#[cfg(target_os = "linux")]
const JOURNAL: &str = "commands";

/// Moves away the files of commands that were running when Polis or the machine stopped, and reports them.
#[cfg(target_os = "linux")]
fn recover(config: &Config) {
    for aside in polis_tools::sandbox::recover(&config.data.join(JOURNAL)) {
        out::note(&format!("polis: an interrupted command left files that agents may not write: {aside}"));
    }
}

#[cfg(not(target_os = "linux"))]
fn recover(_: &Config) {}

#[cfg(target_os = "linux")]
fn limits(config: &Config) -> polis_tools::sandbox::Limits {
    use polis_tools::sandbox::Limits;

    let tools = &config.tools;
    let bytes = |megabytes: Option<std::num::NonZeroU32>, default: u64| megabytes.map_or(default, |n| u64::from(n.get()) << 20);
    let default = Limits::default();
    Limits {
        wall: tools.seconds.map_or(default.wall, |seconds| std::time::Duration::from_secs(seconds.get().into())),
        memory_bytes: bytes(tools.memory_mb, default.memory_bytes),
        file_bytes: bytes(tools.file_mb, default.file_bytes),
        processes: tools.processes.map_or(default.processes, |most| most.get().into()),
        written_bytes: bytes(tools.written_mb, default.written_bytes),
        kept_bytes: bytes(tools.output_mb, default.kept_bytes),
        ..default
    }
}

#[cfg(target_os = "linux")]
async fn commands(config: &Config, protected: &ProtectedPaths) -> Result<Box<dyn Tool>, String> {
    use polis_tools::sandbox::Sandbox;
    use polis_tools::{CommandOptions, RunCommand};

    let (tools, limits) = (&config.tools, limits(config));
    // Where the workspace is another folder, commands may still run the scripts of skills.
    let skills = crate::skills::project_folders(config).into_iter().filter(|folder| folder.is_absolute() && folder.is_dir());
    let readable = tools.readable.iter().cloned().chain(skills).collect();
    let commands = CommandOptions {
        protected: protected.clone(),
        journal: Some(config.data.join(JOURNAL)),
        readable,
        environment: tools.environment.clone(),
        network: tools.network,
        limits: limits.clone(),
        ..CommandOptions::new(&config.workspace)
    };
    let sandbox = Sandbox::default();
    let offered = match sandbox.features_under(&limits).await {
        Err(reason) if sandbox.features().await.is_ok() => {
            return Err(format!("in [tools] of polis.toml the limits are too low to run any command: {reason}"));
        }
        offered => offered,
    };
    let approval_reason = approval_reason(&offered);
    Ok(Box::new(RunCommand::new(sandbox, commands).with_caution(approval_reason)))
}

#[cfg(not(target_os = "linux"))]
async fn commands(_: &Config, _: &ProtectedPaths) -> Result<Box<dyn Tool>, String> {
    Err("in [tools] of polis.toml `commands` is true, but commands run only on Linux".to_owned())
}

/// What this machine offers to confine commands, in a line for `polis doctor`.
#[cfg(target_os = "linux")]
pub(crate) async fn sandbox(config: &Config) -> Result<String, String> {
    let limits = if config.tools.commands { limits(config) } else { polis_tools::sandbox::Limits::default() };
    let offered = polis_tools::sandbox::Sandbox::default().features_under(&limits).await;
    let state = if config.tools.commands { "commands are offered" } else { "commands are not offered ([tools] in polis.toml)" };
    match offered {
        Ok(features) if features.may_run_unattended() => Ok(format!("{features}; {state}")),
        Ok(features) => Ok(format!("{features}: too little to run commands unattended; {state}")),
        Err(reason) if config.tools.commands => Err(format!("{reason}; {state}, but none can run")),
        Err(reason) => Ok(format!("none: {reason}; {state}")),
    }
}

/// What this machine offers to confine commands, in a line for `polis doctor`.
#[cfg(not(target_os = "linux"))]
pub(crate) async fn sandbox(_: &Config) -> Result<String, String> {
    Ok("none: commands run only on Linux".to_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use polis_tools::sandbox::SandboxFeatures;

    use super::*;

    #[test]
    fn where_too_little_holds_commands_each_needs_a_word() {
        let offers = |landlock, namespaces| Ok(SandboxFeatures { landlock, seccomp: true, namespaces, process_limit: true });
        assert_eq!([approval_reason(&offers(Some(3), true)), approval_reason(&offers(Some(6), false))], [None, None]);
        for weak in [offers(None, true), offers(Some(5), false), Err("no kernel".to_owned())] {
            assert!(approval_reason(&weak).is_some_and(|why| why.contains("commands")), "{weak:?}");
        }
    }
}
