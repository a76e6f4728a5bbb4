//! Prompts: in the folder `prompt`, one for a phase, named after a phase that exists.

use super::tree::{PROMPT, PROMPT_ENDING, Tree};
use super::{Findings, Rule};

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for (at, folder) in tree.folders.iter().enumerate() {
        let registered: Vec<_> =
            tree.within(at)
                .flat_map(|inner| {
                    inner.files.iter().flat_map(move |file| {
                        file.source.registered.iter().map(move |registered| inner.resolve(&registered.phase))
                    })
                })
                .collect();
        // A phase that only the running program knows may be the one that is meant.
        let all_known = !registered.is_empty()
            && registered.iter().all(Option::is_some)
            && tree.within(at).all(|inner| inner.is_readable());
        for path in &folder.prompts {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.eq_ignore_ascii_case("readme.md") {
                continue;
            }
            if path.parent().and_then(|parent| parent.file_name()).is_none_or(|parent| parent != PROMPT) {
                let remedy = format!("move it to `{PROMPT}/{name}` in the folder of its agent");
                findings.add(path, 1, Rule::PromptFile, format!("the prompt is not in a folder `{PROMPT}`"), remedy);
                continue;
            }
            let Some(phase) = name.strip_suffix(PROMPT_ENDING).filter(|phase| !phase.is_empty()) else {
                let remedy = format!("call it `[phase_name]{PROMPT_ENDING}`");
                findings.add(path, 1, Rule::PromptFile, format!("`{name}` does not say which phase it is for"), remedy);
                continue;
            };
            if all_known && !registered.contains(&Some(phase)) {
                let wrong = format!("no agent here has a phase `{phase}`");
                findings.add(path, 1, Rule::PromptPhase, wrong, "name it after the phase that it is for, or delete it");
            }
        }
    }
}
