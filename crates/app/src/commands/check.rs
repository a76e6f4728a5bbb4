//! `polis check`: reports violations of the rules of names and layout, names that nothing has, and how to fix them; with `--against`, which open work this
//! program could not continue.

use std::path::Path;

use polis_authoring::check;
use polis_domain::SocietyId;
use polis_engine::Cast;
use serde_json::json;

use super::check_open::{self, DryRun};
use super::replay;
use crate::cli::{Check, Cli};
use crate::config::Config;
use crate::error::{CliError, Exit};
use crate::{known_names, out, suggest};

/// `own` are the agents of this program.
pub(crate) async fn check(cli: &Cli, own: &Cast, args: &Check) -> Result<Exit, CliError> {
    let root = args.dir.as_deref().unwrap_or(Path::new("."));
    let bad = |error| CliError::usage("bad_folder", format!("{}: {error}; name a folder that can be read", root.display()));
    let mut report = check::check_folder(root).map_err(bad)?;
    let hint = |name: &str, all: &[&str]| suggest::hint(name, all.iter().copied());
    let mut known = known_names::of_folder(cli, own, root);
    let mut unknown = check::check_names(root, &known, &hint).map_err(bad)?;
    // Agents make roles and agents, too.
    if !unknown.is_empty() {
        known_names::add_society(cli, &mut known).await;
        unknown = check::check_names(root, &known, &hint).map_err(bad)?;
    }
    report.findings.extend(unknown);
    report.findings.sort();
    if args.json {
        let report = serde_json::to_value(&report).map_err(|error| CliError::new("output_failed", error.to_string()))?;
        out::line(&format!("{report:#}"))?;
    } else {
        for check::Finding { file, line, rule, wrong, remedy } in &report.findings {
            let file = if root == Path::new(".") { file.clone() } else { root.join(file).display().to_string() };
            out::line(&format!("{file}:{line}: {}: {wrong}; {remedy}", rule.id()))?;
        }
        out::note(&format!(
            "polis: {} in {}",
            count(report.findings.len(), "finding"),
            count(report.agents, "folder of agents")
        ));
    }
    Ok(if report.findings.is_empty() { Exit::Done } else { Exit::Failed })
}

/// `polis check --against`: lists the open turns that this program cannot continue.
pub(crate) async fn check_open(config: &Config, data: &Path, json: bool) -> Result<Exit, CliError> {
    let DryRun { open, divergences } = check_open::dry_run(config, data).await?;
    let exit = if divergences.is_empty() { Exit::Done } else { Exit::Failed };
    if json {
        let as_json = |(society, it): &(SocietyId, _)| json!({ "society": society, "divergence": replay::as_json(it) });
        let list: Vec<_> = divergences.iter().map(as_json).collect();
        return out::line(&json!({ "open": open, "divergences": list }).to_string()).map(|()| exit);
    }
    for (society, it) in &divergences {
        out::line(&format!("{society}: {}", replay::describe(it)))?;
    }
    let turns = out::count(open, "open turn");
    match divergences.len() {
        0 => out::line(&format!("{turns}: this polis can continue all of them"))?,
        found => {
            out::line(&format!("{turns}, of which this polis cannot continue {found}"))?;
            out::note("polis: let them end with the old program, or cancel them (diverged)");
        }
    }
    Ok(exit)
}

fn count(number: usize, what: &str) -> String {
    let plural = what.replacen("folder", "folders", 1).replacen("finding", "findings", 1);
    if number == 1 { format!("1 {what}") } else { format!("{number} {plural}") }
}
