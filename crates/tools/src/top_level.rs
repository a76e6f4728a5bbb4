//! The top level of the workspace by names, for a model that is told where it is. Hidden names are left out.

use crate::walk::{EntryKind, Walk};
use crate::workspace::{RelativePath, Workspace};

/// At most so many names in the workspace's root, folders with a `/`, and how many there are. A workspace that cannot be read has none.
pub fn top_level(workspace: &Workspace, most: usize) -> (Vec<String>, usize) {
    let Ok(start) = RelativePath::folder(".") else { return (Vec::new(), 0) };
    let walk = Walk { start, recursive: false, hidden: false, ignored: true, pattern: None };
    let entries = walk.run(workspace).map(|result| result.entries).unwrap_or_default();
    let name = |entry: &crate::walk::WalkEntry| match entry.kind {
        EntryKind::Folder => format!("{}/", entry.path),
        EntryKind::File { .. } | EntryKind::Link | EntryKind::Other => entry.path.to_string(),
    };
    (entries.iter().take(most).map(name).collect(), entries.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed_in_order_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        ["b.csv", "a.md", ".hidden"].iter().for_each(|name| std::fs::write(dir.path().join(name), "").unwrap());
        std::fs::create_dir_all(dir.path().join("src/deep")).unwrap();
        let workspace = Workspace::open(dir.path()).unwrap();
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(top_level(&workspace, 9), (names(&["a.md", "b.csv", "src/"]), 3));
        assert_eq!(top_level(&workspace, 1), (names(&["a.md"]), 3));
    }
}
