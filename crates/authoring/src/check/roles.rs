//! Roles: each file in `roles/` can be read, and no two are for the same role.

use std::collections::BTreeMap;

use polis_agents::{BadRoleFile, read_role};

use super::tree::Tree;
use super::{Findings, Rule};

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let mut known = BTreeMap::new();
    for (path, text) in &tree.roles {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        match read_role(stem, text, "role") {
            Ok(role) => {
                if let Some(first) = known.insert(role.id.clone(), path) {
                    let wrong = format!("role `{}` is also in {}", role.id, first.display());
                    findings.add(path, 1, Rule::RoleFile, wrong, "give it another id");
                }
            }
            Err(BadRoleFile { line, wrong, remedy }) => findings.add(path, line, Rule::RoleFile, wrong, remedy),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::check::check_folder;

    #[test]
    fn roles_that_cannot_be_read_are_found_with_their_lines() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("roles")).unwrap();
        for (name, text) in [
            ("README.md", "about"),
            ("good.md", "---\ntools: read_*\n---\nWork."),
            ("bad.md", "---\nid: bad\ncolour: red\n---\nWork."),
            ("twin.md", "---\nid: good\n---\nWork."),
            ("notes.txt", "---"),
        ] {
            fs::write(dir.path().join("roles").join(name), text).unwrap();
        }
        let found: Vec<_> =
            check_folder(dir.path()).unwrap().findings.into_iter().map(|it| (it.file, it.line, it.rule.id())).collect();
        let file = |name: &str, line| (format!("roles/{name}"), line, "role_file");
        assert_eq!(found, [file("bad.md", 3), file("twin.md", 1)]);
    }
}
