//! SOPs: files in the folder `sops` that agents can follow. Two of the same name would be ambiguous.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use polis_agents::role::{Sop, Sops};

use super::{Findings, Rule};

/// Where procedures live.
pub(super) const FOLDER: &str = "sops";

pub(super) fn check(root: &Path, findings: &mut Findings) {
    let is_folder = root.canonicalize().is_ok_and(|root| root.file_name().is_some_and(|name| name == FOLDER));
    let folder = if is_folder { root.to_owned() } else { root.join(FOLDER) };
    let mut named: BTreeMap<String, PathBuf> = BTreeMap::new();
    for path in Sops::files(&folder) {
        let shown = path.strip_prefix(root).unwrap_or(&path).to_owned();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                findings.add(&shown, 1, Rule::Sop, format!("it cannot be read: {error}"), "save it as UTF-8 text");
                continue;
            }
        };
        match Sop::read(&text) {
            Ok(sop) => {
                if let Some(other) = named.insert(sop.name.clone(), shown.clone()) {
                    let wrong = format!("`{}` is the name of {} too", sop.name, other.display());
                    findings.add(&shown, 1, Rule::Sop, wrong, "give one of them another name");
                }
            }
            Err(faults) => {
                faults.into_iter().for_each(|fault| findings.add(&shown, fault.line, Rule::Sop, fault.wrong, fault.remedy))
            }
        }
    }
}
