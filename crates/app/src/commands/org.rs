//! `polis org`, `polis export` and `polis import`: the organisation, to look at and as a document.

use std::fs::OpenOptions;
use std::io::Write;

use polis_api::Imported;
use polis_domain::{Org, OrgStatus};
use serde_json::Value;

use crate::cli::{Export, Import};
use crate::config::Config;
use crate::door::{Door, Purpose};
use crate::out::{self, count, harmless, short};
use crate::trouble::{Exit, Trouble};

const ROUTE: &str = "/api/org";

/// Longest name and longest reason that are shown; `--json` has all of it.
const NAME: usize = 128;
const REASON: usize = 300;

pub(crate) async fn org(config: &Config, json: bool) -> Result<Exit, Trouble> {
    let door = Door::open(config, Purpose::Look).await?;
    let written: Value = door.get(ROUTE).await?;
    if json {
        out::line(&format!("{written:#}"))?;
        return Ok(Exit::Done);
    }
    let org: Org = serde_json::from_value(written).map_err(|error| Trouble::new("bad_answer", error.to_string()))?;
    out::line("roles")?;
    for role in &org.roles {
        let models = role.role.models.join(", ");
        shown(&format!("  {:<16}  {}  by {}  {models}", role.role.id, short(&role.role.name, NAME), role.created_by))?;
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
        shown(&format!("{}{} ({})", "  ".repeat(depth), agent.id, agent.role_id))?;
        next.extend(living(Some(agent.id.as_str())).into_iter().rev().map(|child| (depth + 1, child)));
    }
    if !org.terminations.is_empty() {
        out::line("terminated")?;
    }
    for gone in &org.terminations {
        shown(&format!("  {}  by {}  {}", gone.agent_id, gone.terminated_by, short(&gone.reason, REASON)))?;
    }
    Ok(Exit::Done)
}

/// A line that agents have had a hand in.
fn shown(line: &str) -> Result<(), Trouble> {
    out::line(harmless(line).trim_end())
}

pub(crate) async fn export(config: &Config, args: &Export) -> Result<Exit, Trouble> {
    let door = Door::open(config, Purpose::Look).await?;
    let written: Value = door.get(ROUTE).await?;
    let Some(file) = &args.file else {
        out::line(&format!("{written:#}"))?;
        return Ok(Exit::Done);
    };
    let created = OpenOptions::new().write(true).create_new(true).open(file);
    let saved = created.and_then(|mut file| writeln!(file, "{written:#}").and_then(|()| file.sync_all()));
    saved.map_err(|error| {
        Trouble::new("not_written", format!("{}: {error}; name a file that does not exist yet", file.display()))
    })?;
    out::note(&format!("polis: organisation written to {}", file.display()));
    Ok(Exit::Done)
}

pub(crate) async fn import(config: &Config, args: &Import) -> Result<Exit, Trouble> {
    let unread = |error: String| Trouble::new("bad_org", format!("{}: {error}", args.file.display()));
    let text = std::fs::read_to_string(&args.file).map_err(|error| unread(error.to_string()))?;
    let body: Value = serde_json::from_str(&text).map_err(|error| unread(error.to_string()))?;
    let door = Door::open(config, Purpose::Bring).await?;
    let target = if args.root { format!("{ROUTE}?root=true") } else { ROUTE.to_owned() };
    let made: Result<Imported, Trouble> = door.post(&target, &body).await;
    door.close(false).await;
    let Imported { roles, agents, changed, left } = made?;
    out::note(&format!("polis: created {} and {}", count(roles, "role"), count(agents, "agent")));
    if changed.is_some() {
        out::note("polis: root's role replaced with the file's");
    }
    left.iter().for_each(|what| out::note(&format!("polis: not imported: {what}")));
    Ok(Exit::Done)
}
