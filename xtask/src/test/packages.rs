//! Packages that steps install from npm and PyPI into temporary folders. An install that cannot be had, or takes too long, is an
//! error with the reason, so that the step can say why it is skipped.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The longest that one install may take.
const PATIENCE: Duration = Duration::from_secs(240);

/// Installs these packages from npm into the folder.
pub(super) fn npm(folder: &Path, packages: &[impl AsRef<str>]) -> Result<(), String> {
    ran(asked("install", folder).args(packages.iter().map(AsRef::as_ref)))
}

/// Installs exactly what the lock file of the folder names.
pub(super) fn npm_locked(folder: &Path) -> Result<(), String> {
    ran(&mut asked("ci", folder))
}

fn asked(verb: &str, folder: &Path) -> Command {
    let mut npm = Command::new("npm");
    npm.args([verb, "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--fetch-retries", "1"]);
    npm.arg("--prefix").arg(folder).current_dir(folder);
    npm
}

/// Installs these packages from PyPI into the folder, with these further options and without building anything.
pub(super) fn pip(folder: &Path, packages: &[&str], options: &[&str]) -> Result<(), String> {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:"]);
    pip.args(["--retries", "1", "--target"]).arg(folder).args(options).args(packages);
    ran(&mut pip)
}

/// Runs a program; otherwise says which, and the last thing that it said.
pub(super) fn ran(command: &mut Command) -> Result<(), String> {
    ran_within(command, PATIENCE)
}

fn ran_within(command: &mut Command, patience: Duration) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |why: &dyn std::fmt::Display| format!("{program}: {why}");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    let mut stderr = child.stderr.take().expect("stderr is piped");
    let complaint = std::thread::spawn(move || {
        let mut said = Vec::new();
        let _ = stderr.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    });
    let started = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| failed(&error))? {
            Some(status) => break status,
            None if started.elapsed() < patience => std::thread::sleep(Duration::from_millis(20)),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(&format!("it did not finish within {} s", patience.as_secs())));
            }
        }
    };
    if status.success() {
        return Ok(());
    }
    let complaint = complaint.join().unwrap_or_default();
    Err(failed(&complaint.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it failed").trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_or_takes_too_long_is_named_with_the_reason() {
        let shell = |script: &str| ran_within(Command::new("sh").args(["-c", script]), Duration::from_secs(1));
        assert_eq!(shell("exit 0"), Ok(()));
        assert_eq!(shell("echo first >&2; echo last >&2; exit 3"), Err("sh: last".to_owned()));
        assert_eq!(shell("exec sleep 60"), Err("sh: it did not finish within 1 s".to_owned()));
        assert!(ran(&mut Command::new("no-such-program-anywhere")).unwrap_err().starts_with("no-such-program-anywhere: "));
    }
}
