//! What every crate owes the house: the lints of the workspace, and a place on the map.

use super::Violation;
use crate::workspace::Package;

/// The page that says what each crate is for.
pub(super) const MAP: &str = "ARCHITECTURE.md";

/// The manifest takes its lints from the workspace.
pub(super) fn check_manifest(package: &Package, manifest: &str) -> Option<Violation> {
    let mut lines = manifest.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let inherits = lines.any(|line| line == "[lints]") && lines.next() == Some("workspace = true");
    (!inherits).then(|| Violation {
        place: package.manifest(),
        wrong: "does not take the lints of the workspace".to_owned(),
        remedy: "add `[lints]` and `workspace = true`".to_owned(),
    })
}

/// The map mentions each crate, by its path (`crates/domain`) or as an entry of a tree (`domain/`).
pub(super) fn check_map(packages: &[Package], map: &str) -> Vec<Violation> {
    let words: Vec<&str> = map
        .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/' | '.')))
        .map(|word| word.trim_end_matches('.'))
        .collect();
    let mentions = |package: &Package| {
        let dir = package.dir.as_str();
        let entry = dir.rsplit('/').next().unwrap_or(dir);
        words.iter().any(|word| match word.strip_suffix('/') {
            Some(word) => word == dir || word == entry,
            None => *word == dir && dir.contains('/'),
        })
    };
    packages
        .iter()
        .filter(|package| !mentions(package))
        .map(|package| Violation {
            place: MAP.to_owned(),
            wrong: format!("does not mention {}/", package.dir),
            remedy: "say in the code map what it is for and what it must never know".to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(dir: &str) -> Package {
        Package { name: "made-up".to_owned(), dir: dir.to_owned(), dependencies: vec![] }
    }

    #[test]
    fn a_manifest_without_the_lints_of_the_workspace_is_reported() {
        for (manifest, fine) in [
            ("[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n", true),
            ("[lints]\n# as everywhere\nworkspace = true\n", true),
            ("[package]\nname = \"a\"\n", false),
            ("[lints.rust]\nunsafe_code = \"allow\"\n", false),
            ("[lints]\n[package]\nworkspace = true\n", false),
            ("#[lints]\nworkspace = true\n", false),
        ] {
            assert_eq!(check_manifest(&package("crates/a"), manifest).is_none(), fine, "{manifest:?}");
        }
    }

    #[test]
    fn a_crate_that_the_map_leaves_out_is_reported() {
        for (map, dir, fine) in [
            ("| `crates/domain` | what is true |", "crates/domain", true),
            ("crates/\n  domain/   what is true", "crates/domain", true),
            ("see [ports](crates/ports/).", "crates/ports", true),
            ("`xtask/` has the chores", "xtask", true),
            ("Types live in crates/ports.", "crates/ports", true),
            ("run cargo xtask", "xtask", false),
            ("crates/store-local", "crates/store", false),
            ("the domain is pure", "crates/domain", false),
            ("", "crates/domain", false),
        ] {
            assert_eq!(check_map(&[package(dir)], map).is_empty(), fine, "{map:?} {dir}");
        }
    }
}
