//! `polis check`: reports violations of the rules of names and layout, and how to fix them.

use std::path::Path;

use polis_authoring::check;

use crate::cli::Check;
use crate::error::{CliError, Exit};
use crate::out;

pub(crate) fn check(args: &Check) -> Result<Exit, CliError> {
    let root = args.dir.as_deref().unwrap_or(Path::new("."));
    let bad = |error| CliError::usage("bad_folder", format!("{}: {error}; name a folder that can be read", root.display()));
    let report = check::check_folder(root).map_err(bad)?;
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

fn count(number: usize, what: &str) -> String {
    let plural = what.replacen("folder", "folders", 1).replacen("finding", "findings", 1);
    if number == 1 { format!("1 {what}") } else { format!("{number} {plural}") }
}
