//! The chore `tidy`: what the compiler cannot see but the house promises. The rules are data in the files below
//! this one; here they are only applied to the workspace and reported.

mod crates;
mod imports;
mod mentions;
mod report;
mod text;
mod translation;

use std::fmt;

use anyhow::{Context, Result, bail};

pub(crate) use report::print as report;

use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let read = |file: &str| std::fs::read(workspace.root.join(file)).with_context(|| format!("cannot read {file}"));

    let mut violations = imports::check(&workspace.packages);
    for package in &workspace.packages {
        let manifest = String::from_utf8(read(&package.manifest())?)?;
        violations.extend(crates::check_manifest(package, &manifest));
    }
    let map = std::fs::read_to_string(workspace.root.join(crates::MAP)).unwrap_or_default();
    violations.extend(crates::check_map(&workspace.packages, &map));

    let files = workspace.files()?;
    let mut sources = Vec::new();
    for file in &files {
        // What is not UTF-8 is not text, and the rules are about text.
        let Ok(text) = String::from_utf8(read(file)?) else { continue };
        violations.extend(text::check(file, &text));
        if let Some(original) = translation::original(file) {
            let english = std::fs::read_to_string(workspace.root.join(original)).ok();
            violations.extend(translation::check(file, english.as_deref(), &text));
        }
        if file.ends_with(".rs") {
            sources.push(text);
        }
    }
    violations.extend(mentions::check(&map, &files, &mentions::words(sources.iter().map(String::as_str))));

    for violation in &violations {
        println!("{violation}");
    }
    if !violations.is_empty() {
        bail!("{} things to tidy", violations.len());
    }
    println!("tidy: {} crates, {} files", workspace.packages.len(), files.len());
    Ok(())
}

/// What is wrong where, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    place: String,
    wrong: String,
    remedy: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.wrong, self.remedy)
    }
}
