//! The record of one run of the tests, `target/xtask/tests.json`: written by `test`, read by `acceptance`.
//!
//! A test is named by its crate and by what `cargo test` prints:
//!
//! ```text
//! polis-domain::path::tests::a_name        a unit test of a library
//! polis-app/polis::cli::tests::a_name      a unit test of the binary `polis`
//! polis-store-local/main::log::a_name      a test of tests/main.rs (or of another target of that name)
//! polis/doc::src/lib.rs::Society::ask      the examples in the documentation of one item
//! polis/doc::src/lib.rs                    the examples in the documentation of the file itself
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::workspace::Workspace;

/// Which tests ran, and how they ended.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) passed: BTreeSet<String>,
    pub(crate) failed: BTreeSet<String>,
    pub(crate) ignored: BTreeSet<String>,
    /// Those that ran and did nothing, because the machine lacks what they need.
    #[serde(default)]
    pub(crate) skipped: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    Failed,
    Ignored,
    Skipped,
}

impl Record {
    /// Notes one result. A name that stands for several examples passes only when all of them do.
    pub(crate) fn note(&mut self, test: String, verdict: Verdict) {
        match verdict {
            Verdict::Passed if [&self.failed, &self.ignored, &self.skipped].iter().any(|not| not.contains(&test)) => {}
            Verdict::Passed => {
                self.passed.insert(test);
            }
            Verdict::Failed => {
                self.passed.remove(&test);
                self.failed.insert(test);
            }
            Verdict::Ignored => {
                self.passed.remove(&test);
                self.ignored.insert(test);
            }
            Verdict::Skipped => {
                self.passed.remove(&test);
                self.skipped.insert(test);
            }
        }
    }

    /// Notes that the tests of this name, without its modules, said that they were skipped. False if no test has it.
    pub(crate) fn skip(&mut self, name: &str) -> bool {
        let end = format!("::{name}");
        let skipped: Vec<String> = self.passed.iter().filter(|test| test.ends_with(&end)).cloned().collect();
        let is_known = !skipped.is_empty() || self.skipped.iter().any(|test| test.ends_with(&end));
        skipped.into_iter().for_each(|test| self.note(test, Verdict::Skipped));
        is_known
    }

    /// Notes that a test that was skipped has passed in a step of its own. `test` is its name, with or without its crate.
    pub(crate) fn ran(&mut self, test: &str) {
        let end = format!("::{test}");
        let shown: Vec<String> = self.skipped.iter().filter(|name| *name == test || name.ends_with(&end)).cloned().collect();
        for test in shown {
            self.skipped.remove(&test);
            self.note(test, Verdict::Passed);
        }
    }

    pub(crate) fn path(workspace: &Workspace) -> PathBuf {
        workspace.scratch().join("tests.json")
    }

    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| {
            format!("there is no recorded run of the tests at {}; `cargo xtask test` makes one", path.display())
        })?;
        serde_json::from_str(&text).with_context(|| format!("{} is not a record of tests", path.display()))
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        }
        let text = serde_json::to_string_pretty(self).context("a record is always JSON")?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_skipped_has_not_passed_until_a_step_of_its_own_shows_it() {
        let mut record = Record::default();
        record.note("polis-app/main::cli::page::it_works".to_owned(), Verdict::Passed);
        record.note("polis-app/main::cli::page::it_works_too".to_owned(), Verdict::Passed);
        assert!(record.skip("it_works") && record.skip("it_works") && !record.skip("works"));
        record.note("polis-app/main::cli::page::it_works".to_owned(), Verdict::Passed);
        assert_eq!((record.passed.len(), record.skipped.len()), (1, 1));
        record.ran("page::it_wor");
        assert_eq!(record.skipped.len(), 1, "a part of a name is no name");
        record.ran("cli::page::it_works");
        assert_eq!((record.passed.len(), record.skipped.len()), (2, 0));
    }

    #[test]
    fn a_name_passes_only_when_all_that_share_it_pass() {
        use Verdict::{Failed, Ignored, Passed};
        for verdicts in [[Passed, Failed], [Failed, Passed], [Passed, Ignored], [Ignored, Passed]] {
            let mut record = Record::default();
            for verdict in verdicts {
                record.note("polis/doc::src/lib.rs".to_owned(), verdict);
            }
            assert!(record.passed.is_empty(), "{verdicts:?}");
        }
    }
}
