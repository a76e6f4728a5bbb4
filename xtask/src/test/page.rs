//! The step for the page: its built files are those of its sources, its own checks hold, and it does in a real browser what it
//! promises. Packages go into a temporary folder; where Node, npm or a browser cannot be had, the step says so.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::packages::npm_locked;
use super::tools::{apt_install, is_on_path};
use super::{Done, page_checks};
use crate::workspace::Workspace;

/// The oldest `node` that builds the page.
const OLDEST_NODE: (u32, u32) = (20, 19);

/// What the folder of the sources holds that is needed to build them.
const SOURCES: &[&str] =
    &["package.json", "package-lock.json", ".npmrc", "index.html", "vite.config.ts", "tsconfig.json", "src", "test"];

/// A browser, and messages for everything that the page says.
const PACKAGES: &[&str] = &["chromium", "fonts-noto-cjk", "fonts-dejavu-core"];

/// Names the folder with the checks and their packages to the test.
const FOLDER: &str = "POLIS_TEST_PAGE";

const TEST: &str = "cli::page::it_does_in_a_browser_what_it_promises";

pub(super) fn run(workspace: &Workspace) -> Result<Done> {
    let folder = workspace.temp_dir().join("page");
    let done = checked(workspace, &folder);
    super::remove(&folder);
    done
}

fn checked(workspace: &Workspace, folder: &Path) -> Result<Done> {
    let web = workspace.root.join("web");
    if let Err(why) = install(&web, folder) {
        return Ok(Done::Skipped(why));
    }
    let mut said = String::new();
    for script in ["check", "build"] {
        let output = Command::new("npm").args(["run", "--silent", script]).current_dir(folder).stdin(Stdio::null()).output();
        let output = output.context("cannot start npm")?;
        let printed = String::from_utf8_lossy(&output.stdout);
        print!("{printed}{}", String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "`npm run {script}` failed in web/");
        said += &printed;
    }
    let (built, committed) = (files(&folder.join("dist"))?, files(&web.join("dist"))?);
    if let Some(differing) = built.keys().chain(committed.keys()).find(|name| built.get(*name) != committed.get(*name)) {
        anyhow::bail!(
            "web/dist/{differing} is not what its sources give; run `npm ci && npm run build` in web/ and commit web/dist"
        );
    }
    if !is_on_path("chromium") {
        println!("installing {}", PACKAGES.join(", "));
        if let Err(why) = apt_install(PACKAGES) {
            return Ok(Done::Skipped(format!("web/dist matches its sources; no browser: {why}")));
        }
    }
    said += &super::show(workspace, TEST, (FOLDER, folder))?;
    let declared = page_checks::declared(&web)?;
    super::update_record(workspace, |record| page_checks::note(record, &declared, &said))?;
    println!("{} checks of the page passed", declared.len());
    Ok(Done::Passed)
}

/// Leaves a copy of the sources with their packages in the folder.
fn install(web: &Path, folder: &Path) -> Result<(), String> {
    let asked =
        Command::new("node").arg("--version").stdin(Stdio::null()).output().map_err(|_| "there is no node".to_owned())?;
    let version = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
    if !is_new_enough(&version) {
        return Err(format!("node {version} is too old; {}.{} is needed", OLDEST_NODE.0, OLDEST_NODE.1));
    }
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    for name in SOURCES {
        copy(&web.join(name), &folder.join(name)).map_err(|error| format!("cannot copy web/{name}: {error}"))?;
    }
    println!("installing the page's packages into a temporary folder");
    npm_locked(folder)
}

fn is_new_enough(version: &str) -> bool {
    let mut parts = version.trim_start_matches('v').split('.').map_while(|part| part.parse::<u32>().ok());
    let (major, minor) = (parts.next(), parts.next());
    major.zip(minor).is_some_and(|version| version >= OLDEST_NODE)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        return std::fs::copy(from, to).map(drop);
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// The files below a folder, by their paths from it.
fn files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(here) = folders.pop() {
        for entry in std::fs::read_dir(&here).with_context(|| format!("cannot read {}", here.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
                found.insert(name, std::fs::read(&path)?);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_first_two_numbers() {
        assert!(is_new_enough("v20.19.0") && is_new_enough("v22.0.1") && is_new_enough("v100.1.2"));
        assert!(!is_new_enough("v20.18.3") && !is_new_enough("v18.20.0") && !is_new_enough(""));
    }
}
