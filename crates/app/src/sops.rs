//! The procedures that people write in `sops/*.md`: what is wrong with them, in words.

use std::path::Path;

use polis_agents::role::{Sop, Sops};

use crate::trust::Trust;

/// Most faults of a file that are told.
const MOST: usize = 3;

/// What keeps trusted files of a folder from being followed: the place, what is wrong and what to do.
pub(crate) fn faults(folder: &Path, trust: &Trust) -> Vec<String> {
    let mut told = Vec::new();
    for path in Sops::files(folder) {
        let place = path.display();
        match trust.read(&path) {
            Err(error) => told.push(format!("{place}: {error}; the SOP is not followed")),
            Ok(None) => {}
            Ok(Some(text)) => {
                let faults = Sop::read(&text).err().unwrap_or_default();
                let line = |fault: &polis_agents::role::SopFault| {
                    format!("{place}:{}: {}; {}; the SOP is not followed", fault.line, fault.wrong, fault.remedy)
                };
                told.extend(faults.iter().take(MOST).map(line));
            }
        }
    }
    told
}
