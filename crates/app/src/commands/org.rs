//! `polis org`, `polis export` and `polis import`: the organisation, to look at and as a document.

use std::fs::OpenOptions;
use std::io::Write;

use polis_api::{ImportRequest, Imported};
use polis_domain::OrgStatus;
use serde_json::{Value, json};

use crate::cli::{Export, Import};
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::out::{self, count, harmless, short};
use crate::purpose::Purpose;
use crate::transport::Transport;

/// Longest name and longest reason that are shown; `--json` has all of it.
const NAME: usize = 128;
const REASON: usize = 300;

pub(crate) async fn org(config: &Config, json: bool) -> Result<Exit, CliError> {
    let transport = Transport::open(config, Purpose::Read).await?;
    let org = transport.api().org().await?;
    if json {
        return out::json(&org).map(|()| Exit::Done);
    }
    out::line("roles")?;
    for role in &org.roles {
        let models = role.role.models.join(", ");
        print_line(&format!("  {:<16}  {}  by {}  {models}", role.role.id, short(&role.role.name, NAME), role.created_by))?;
    }
    out::line("agents")?;
    let living = |parent: Option<&str>| {
        let below = move |agent: &&polis_domain::OrgAgent| {
            agent.status == OrgStatus::Active && agent.parent_agent_id.as_ref().map(|id| id.as_str()) == parent
        };
        org.agents.iter().filter(below).collect::<Vec<_>>()
    };
    let mut next: Vec<_> = living(None).into_iter().map(|agent| (1, agent)).collect();
    while let Some((depth, agent)) = next.pop() {
        print_line(&format!("{}{} ({})", "  ".repeat(depth), agent.id, agent.role_id))?;
        next.extend(living(Some(agent.id.as_str())).into_iter().rev().map(|child| (depth + 1, child)));
    }
    if !org.terminations.is_empty() {
        out::line("terminated")?;
    }
    for gone in &org.terminations {
        print_line(&format!("  {}  by {}  {}", gone.agent_id, gone.terminated_by, short(&gone.reason, REASON)))?;
    }
    Ok(Exit::Done)
}

/// A line that agents have had a hand in.
fn print_line(line: &str) -> Result<(), CliError> {
    out::line(harmless(line).trim_end())
}

pub(crate) async fn export(config: &Config, args: &Export) -> Result<Exit, CliError> {
    let transport = Transport::open(config, Purpose::Read).await?;
    let org = transport.api().org().await?;
    let Some(file) = &args.file else { return out::json(&org).map(|()| Exit::Done) };
    let written = json!(org);
    let created = OpenOptions::new().write(true).create_new(true).open(file);
    let saved = created.and_then(|mut file| writeln!(file, "{written:#}").and_then(|()| file.sync_all()));
    saved.map_err(|error| {
        CliError::new("not_written", format!("{}: {error}; name a file that does not exist yet", file.display()))
    })?;
    out::note(&format!("polis: organisation written to {}", file.display()));
    Ok(Exit::Done)
}

pub(crate) async fn import(config: &Config, args: &Import) -> Result<Exit, CliError> {
    let unread = |error: String| CliError::new("bad_org", format!("{}: {error}", args.file.display()));
    let text = std::fs::read_to_string(&args.file).map_err(|error| unread(error.to_string()))?;
    let document: Value = serde_json::from_str(&text).map_err(|error| unread(error.to_string()))?;
    let transport = Transport::open(config, Purpose::Import).await?;
    let made = transport.api().import(document, ImportRequest { root: args.root }).await;
    transport.close(false).await;
    let Imported { roles, agents, changed, left } = made?;
    out::note(&format!("polis: created {} and {}", count(roles, "role"), count(agents, "agent")));
    if changed.is_some() {
        out::note("polis: root's role replaced with the file's");
    }
    left.iter().for_each(|what| out::note(&format!("polis: not imported: {what}")));
    Ok(Exit::Done)
}
