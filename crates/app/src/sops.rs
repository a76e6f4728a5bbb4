//! Faults of the SOPs in `sops/*.md`.

use std::path::Path;

use polis_agents::role::{Sop, Sops};

use crate::trust::Trust;

/// Maximum number of faults reported for a file.
const MOST: usize = 3;

/// Why trusted files of a folder cannot be followed: the position, the fault, and the remedy.
pub(crate) fn faults(folder: &Path, trust: &Trust) -> Vec<String> {
    let mut lines = Vec::new();
    for path in Sops::files(folder) {
        let place = path.display();
        match trust.read(&path) {
            Err(error) => lines.push(format!("{place}: {error}; the SOP is not followed")),
            Ok(None) => {}
            Ok(Some(text)) => {
                let faults = Sop::read(&text).err().unwrap_or_default();
                let line = |fault: &polis_agents::role::SopFault| {
                    format!("{place}:{}: {}; {}; the SOP is not followed", fault.line, fault.wrong, fault.remedy)
                };
                lines.extend(faults.iter().take(MOST).map(line));
            }
        }
    }
    lines
}
