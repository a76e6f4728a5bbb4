//! Procedures that people write: at most fifty steps and a plain name, or faults that each name a line of the file.

use polis_agents::role::Sop;

use super::text;
use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "sop",
    run,
    words: &[
        "---\n",
        "name: ",
        "when: [",
        "roles: @",
        "## Steps\n",
        "## 步骤\n",
        "1. ",
        "- ",
        "tool `read_file` {\"path\": \"a\"}",
        "{month}",
        "{task}",
        "@writer: ",
        "at the same time",
        "within 5 minutes",
        "工具 `",
        "：",
        "*",
    ],
};

fn run(input: &[u8]) {
    let Some(text) = text(input) else { return };
    match Sop::read(text) {
        Ok(sop) => {
            let is_plain = |c: char| c.is_alphanumeric() || "-_".contains(c);
            assert!(!sop.name.is_empty() && sop.name.chars().all(is_plain), "{:?}", sop.name);
            assert!((1..=50).contains(&sop.steps.len()));
            assert_eq!(Sop::read(text).ok(), Some(sop), "it reads the same twice");
        }
        Err(faults) => {
            assert!(!faults.is_empty());
            let lines = text.lines().count().max(1);
            assert!(faults.iter().all(|fault| (1..=lines).contains(&fault.line)), "{faults:?} in {lines} lines of {text:?}");
        }
    }
}
