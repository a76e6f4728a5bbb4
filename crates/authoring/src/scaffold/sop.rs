//! `polis new sop`: a procedure that can be read, changed and followed at once.

use std::path::Path;

use polis_agents::role::Sop;

use super::NewFiles;
use super::ScaffoldError;

/// The procedure of this name in the folder `sops`, in the language of the name.
pub fn sop(name: &str, folder: &Path) -> Result<NewFiles, ScaffoldError> {
    let name = name.trim().trim_end_matches(".md");
    let is_chinese = name.chars().any(|c| ('\u{4E00}'..='\u{9FFF}').contains(&c));
    let template = if is_chinese { include_str!("templates/sop.zh.md.txt") } else { include_str!("templates/sop.md.txt") };
    let words = name.replace(['_', '-'], " ");
    let text = template.replace("__name__", name).replace("__words__", &words);
    if let Err(faults) = Sop::read(&text) {
        let wrong = faults.into_iter().map(|fault| format!("{}; {}", fault.wrong, fault.remedy)).next().unwrap_or_default();
        return Err(ScaffoldError::usage("bad_sop_name", wrong));
    }
    let path = folder.join("sops").join(format!("{name}.md"));
    let advice = vec![
        format!("edit {}; polis check reports errors in it", path.display()),
        format!("try it: polis run --strategy template \"{words}\""),
    ];
    Ok(NewFiles { files: vec![(path, text)], advice })
}
