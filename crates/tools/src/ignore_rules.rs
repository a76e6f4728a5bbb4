//! The rules of the workspace's `.gitignore` files, for walks. The files are read through the workspace, like any other.

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::text::text_of;
use crate::workspace::{RelativePath, Workspace};

const FILE: &str = ".gitignore";
/// Most bytes of rules that are read in one walk; a file beyond that does not count.
const MAX_RULE_BYTES: usize = 256 << 10;

/// The rules that hold in the folder that is walked.
pub(crate) struct IgnoreRules<'a> {
    workspace: &'a Workspace,
    /// Those of the folders on the way to it, outermost first.
    rules: Vec<Gitignore>,
    left: usize,
}

impl<'a> IgnoreRules<'a> {
    /// The rules that hold above the folder where a walk starts.
    pub(crate) fn above(workspace: &'a Workspace, start: &RelativePath) -> Self {
        let mut ignored = Self { workspace, rules: Vec::new(), left: MAX_RULE_BYTES };
        let above: Vec<RelativePath> = start.ancestors().collect();
        above.iter().rev().for_each(|folder| ignored.enter(folder));
        ignored
    }

    /// Adds the rules of a folder that is entered.
    pub(crate) fn enter(&mut self, folder: &RelativePath) {
        let file = text_of(self.workspace, &folder.join(FILE)).ok().filter(|text| text.len() <= self.left);
        let rules = file.map_or_else(Gitignore::empty, |text| {
            self.left -= text.len();
            let mut builder = GitignoreBuilder::new(folder.as_str());
            for line in text.lines() {
                // As git does, a rule that cannot be read is left out and the others hold.
                let _ = builder.add_line(None, line);
            }
            builder.build().unwrap_or_else(|_| Gitignore::empty())
        });
        self.rules.push(rules);
    }

    /// Drops the rules of the folder that was entered last.
    pub(crate) fn leave(&mut self) {
        self.rules.pop();
    }

    /// Whether an entry of the folder is ignored. The innermost rule that matches it decides.
    pub(crate) fn is_ignored(&self, path: &RelativePath, is_folder: bool) -> bool {
        let matched =
            self.rules.iter().rev().map(|rules| rules.matched(path.as_str(), is_folder)).find(|matched| !matched.is_none());
        matched.is_some_and(|matched| matched.is_ignore())
    }
}
