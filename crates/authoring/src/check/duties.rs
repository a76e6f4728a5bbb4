//! What the parts of an agent persist (R122): the structure of a thread is the agent's, phases are the handlers', and the pair of
//! messages of a round is the units'. A turn gives all of them the same methods, so that the duty is a rule and not a type.

use super::source::Part;
use super::tree::{Folder, Tree};
use super::{Findings, Rule};

/// The methods of a turn that change the structure of threads.
const STRUCTURE: &[&str] = &["save_thread", "update_thread_settings"];
const SUB_THREADS: &[&str] = &["batch_update", "open_sub_thread", "open_sub_thread_at"];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for (file, found) in tree.folders.iter().flat_map(Folder::declared) {
        let (is_beyond, duty): (fn(&str) -> bool, _) = match found.part {
            Part::Agent | Part::SubThreadAgent => continue,
            Part::Handler => (|method| STRUCTURE.contains(&method), "a handler persists phases: use `suggest_phase`"),
            Part::Unit => {
                (|method| STRUCTURE.contains(&method) || SUB_THREADS.contains(&method), "a unit persists its pair of messages")
            }
        };
        for call in found.calls.iter().filter(|call| is_beyond(&call.name)) {
            let wrong = format!("`{}` calls `{}`, which changes the structure of a thread", found.spot.name, call.name);
            findings.add(&file.path, call.line, Rule::Duty, wrong, format!("{duty}, and leave the rest to the agent"));
        }
    }
}
