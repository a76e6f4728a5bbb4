//! Packages for npm and PyPI that carry the program, so that `npx polis-society` and `uvx polis-society` run it. Each is installed from its
//! file into a folder, without a registry, and answers there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::{NAME, Release, answers, is_there};
use crate::deb::{self, output};
use crate::workspace::Workspace;

/// Calls the program beside it, under the name that `uvx` looks for.
const SAME: &str = "#!/bin/sh\nexec \"$(dirname \"$0\")/polis\" \"$@\"\n";

/// The package for npm, or nothing where there is no npm.
pub(super) fn npm(workspace: &Workspace, release: &Release<'_>) -> Result<Option<(PathBuf, String)>> {
    if !is_there("npm") {
        println!("skipped: the package for npm: there is no npm");
        return Ok(None);
    }
    let (os, cpu) = platform(&release.target)?;
    let stage = release.folder.join("npm");
    carry(workspace, release, &stage)?;
    let manifest = json!({
        "name": NAME,
        "version": release.version,
        "description": "A durable runtime for teams of AI agents.",
        "license": "MIT OR Apache-2.0",
        "bin": { NAME: "polis", "polis": "polis" },
        "os": [os],
        "cpu": [cpu],
        "files": ["polis", "THIRD-PARTY-LICENCES.txt", "LICENSE-MIT", "LICENSE-APACHE"],
    });
    fs::write(stage.join("package.json"), serde_json::to_string_pretty(&manifest)? + "\n")?;
    output(Command::new("npm").args(["pack", "--silent", "--pack-destination"]).arg(release.folder).current_dir(&stage))?;
    fs::remove_dir_all(&stage)?;
    let file = release.folder.join(format!("{NAME}-{}.tgz", release.version));

    let tried = release.folder.join("tried");
    fs::create_dir_all(&tried)?;
    let mut install = Command::new("npm");
    install
        .args(["install", "--offline", "--no-audit", "--no-fund", "--silent", "--global", "--prefix"])
        .arg(&tried)
        .arg(&file);
    output(install.arg("--cache").arg(tried.join("cache")))?;
    answers(&tried.join("bin").join(NAME), &tried)?;
    fs::remove_dir_all(&tried)?;
    Ok(Some((file, "installed by npm, and its program answers".to_owned())))
}

/// The wheel for PyPI, or nothing where there is no Python.
pub(super) fn wheel(workspace: &Workspace, release: &Release<'_>) -> Result<Option<(PathBuf, String)>> {
    if !is_there("python3") {
        println!("skipped: the package for PyPI: there is no python3");
        return Ok(None);
    }
    let dashed = NAME.replace('-', "_");
    let stage = release.folder.join("wheel");
    let (scripts, about) = (
        stage.join(format!("{dashed}-{}.data/scripts", release.version)),
        stage.join(format!("{dashed}-{}.dist-info", release.version)),
    );
    carry(workspace, release, &about.join("licenses"))?;
    fs::create_dir_all(&scripts)?;
    fs::rename(about.join("licenses/polis"), scripts.join("polis"))?;
    fs::write(scripts.join(NAME), SAME)?;
    let tag = format!("py3-none-{}", python_platform(release)?);
    let version = &release.version;
    let summary = "Summary: A durable runtime for teams of AI agents.\nLicense-Expression: MIT OR Apache-2.0";
    fs::write(about.join("METADATA"), format!("Metadata-Version: 2.4\nName: {NAME}\nVersion: {version}\n{summary}\n"))?;
    fs::write(
        about.join("WHEEL"),
        format!("Wheel-Version: 1.0\nGenerator: cargo-xtask\nRoot-Is-Purelib: false\nTag: {tag}\n"),
    )?;
    let file = release.folder.join(format!("{dashed}-{version}-{tag}.whl"));
    let script = workspace.root.join("packaging/wheel.py");
    output(Command::new("python3").arg(script).arg(&stage).arg(&file))?;
    fs::remove_dir_all(&stage)?;

    let tried = release.folder.join("tried");
    fs::create_dir_all(&tried)?;
    let mut install = Command::new("python3");
    install.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-warn-script-location"]);
    install.args(["--disable-pip-version-check", "--ignore-installed", "--prefix"]).arg(&tried).arg(&file);
    output(&mut install)?;
    answers(&installed(&tried)?, &tried)?;
    fs::remove_dir_all(&tried)?;
    Ok(Some((file, "installed by pip, and its program answers".to_owned())))
}

/// Where pip puts programs below a prefix: Debian adds `local`.
fn installed(prefix: &Path) -> Result<PathBuf> {
    let places = ["bin", "local/bin"].map(|folder| prefix.join(folder).join(NAME));
    places.into_iter().find(|file| file.exists()).context("pip has installed no program")
}

/// The program and the licences.
fn carry(workspace: &Workspace, release: &Release<'_>, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::copy(release.program, folder.join("polis"))?;
    fs::set_permissions(folder.join("polis"), fs::Permissions::from_mode(0o755))?;
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        fs::copy(workspace.root.join(file), folder.join(file))?;
    }
    fs::copy(release.folder.join("THIRD-PARTY-LICENCES.txt"), folder.join("THIRD-PARTY-LICENCES.txt"))?;
    Ok(())
}

/// How npm calls a system and its processor.
fn platform(target: &str) -> Result<(&'static str, &'static str)> {
    let cpu = match target.split('-').next() {
        Some("x86_64") => "x64",
        Some("aarch64") => "arm64",
        _ => bail!("npm has no name for {target}"),
    };
    let systems = [("linux", "linux"), ("apple", "darwin"), ("windows", "win32")];
    let os = systems.iter().find(|(part, _)| target.contains(part)).map(|(_, os)| *os);
    Ok((os.with_context(|| format!("npm has no name for {target}"))?, cpu))
}

/// How PyPI calls the systems on which the program runs: by the C library that it was linked with.
fn python_platform(release: &Release<'_>) -> Result<String> {
    let cpu = release.target.split('-').next().unwrap_or_default();
    let table = output(Command::new("objdump").arg("-T").arg(release.program)).unwrap_or_default();
    match deb::newest_glibc(&table) {
        Some((major, minor)) => Ok(format!("manylinux_{major}_{minor}_{cpu}")),
        None if release.target.contains("linux") => Ok(format!("linux_{cpu}")),
        None => bail!("this chore makes no wheel for {}", release.target),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_have_the_names_of_npm() {
        assert_eq!(platform("x86_64-unknown-linux-gnu").unwrap(), ("linux", "x64"));
        assert_eq!(platform("aarch64-apple-darwin").unwrap(), ("darwin", "arm64"));
        assert!(platform("riscv64gc-unknown-linux-gnu").is_err());
    }
}
