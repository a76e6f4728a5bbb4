//! The step that installs the programs which tests start. A test whose program is missing all the same says
//! `skipped: …` itself, so a machine where nothing can be installed still runs the rest.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;

use super::Done;
use crate::workspace::Workspace;

/// A program and the Debian package it comes with.
struct Tool {
    program: &'static str,
    package: &'static str,
}

const TOOLS: &[Tool] = &[
    // Kills a process at, and injects errors into, a chosen system call.
    Tool { program: "strace", package: "strace" },
    // Gives a process a clock that jumps.
    Tool { program: "faketime", package: "faketime" },
    // The servers of the store in PostgreSQL. Debian keeps the server's programs beside the PATH, by version.
    Tool { program: "initdb", package: "postgresql" },
    Tool { program: "pgbouncer", package: "pgbouncer" },
    // A cluster of them that fails over.
    Tool { program: "patroni", package: "patroni" },
    Tool { program: "etcd", package: "etcd-server" },
    // Reads the configuration of the load balancer in packaging/.
    Tool { program: "haproxy", package: "haproxy" },
];

pub(super) fn install(_: &Workspace) -> Result<Done> {
    let missing: Vec<&Tool> = TOOLS.iter().filter(|tool| !is_installed(tool.program)).collect();
    if missing.is_empty() {
        return Ok(Done::Passed);
    }
    let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    println!("installing {}", packages.join(", "));
    if let Err(why) = apt_install(&packages) {
        return Ok(Done::Skipped(format!("cannot install {}: {why}", packages.join(", "))));
    }
    let still: Vec<&str> = missing.iter().map(|tool| tool.program).filter(|program| !is_installed(program)).collect();
    Ok(if still.is_empty() {
        Done::Passed
    } else {
        Done::Skipped(format!("{} is installed but cannot be found", still.join(", ")))
    })
}

/// Tries with the package lists at hand first: on a fresh machine they are empty, elsewhere they save a minute.
pub(super) fn apt_install(packages: &[&str]) -> Result<(), String> {
    if !is_on_path("apt-get") {
        return Err("this machine has no apt-get".to_owned());
    }
    let install = [&["install", "-y", "--no-install-recommends"][..], packages].concat();
    apt_get(&install).or_else(|_| apt_get(&["update"]).and_then(|()| apt_get(&install)))
}

fn apt_get(args: &[&str]) -> Result<(), String> {
    let mut command = if is_root() {
        Command::new("apt-get")
    } else if is_on_path("sudo") {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "apt-get"]);
        sudo
    } else {
        return Err("we are not root and there is no sudo".to_owned());
    };
    let output = command
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(complaint.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("apt-get failed").trim().to_owned())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn is_installed(program: &str) -> bool {
    find(program).is_some()
}

/// A program that is on the path, or where Debian puts servers.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|dir| dir.path().join("bin"));
    let folders = std::env::split_paths(&path).chain(versions).chain(["/usr/sbin".into()]);
    folders.map(|dir| dir.join(program)).find(|file| is_program(file))
}

pub(super) fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|dir| dir.join(program)).any(|file| is_program(&file))
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_on_the_path() {
        assert!(is_on_path("sh"));
        assert!(!is_on_path("no-such-program-anywhere"));
    }
}
