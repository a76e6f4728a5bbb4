//! A new role: one file.

use std::path::Path;

use polis_agents::{ROLES_FOLDER, role_file};

use super::NewFiles;
use super::ScaffoldError;

/// The file of a role of this name.
pub fn role(name: &str, folder: &Path) -> Result<NewFiles, ScaffoldError> {
    let words: Vec<_> = name.split(char::is_whitespace).filter(|word| !word.is_empty()).collect();
    let id = words.join("-").to_lowercase();
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if id.is_empty() || id.starts_with('.') || !id.chars().all(fits) {
        return Err(ScaffoldError::usage(
            "bad_name",
            format!("`{name}` cannot be a role's name; use letters, digits, `-`, `_` or `.`"),
        ));
    }
    let path = folder.join(ROLES_FOLDER).join(format!("{id}.md"));
    let advice =
        "describe the role in it; `polis check` validates it, and a running society picks it up, otherwise the next start"
            .to_owned();
    Ok(NewFiles { files: vec![(path, role_file(&id, &words.join(" ")))], advice: vec![advice] })
}
