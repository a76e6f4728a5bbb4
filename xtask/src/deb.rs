//! The chore `deb`: a Debian package of a program that is built already, by `dpkg-deb`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace::{Workspace, succeed};

/// Files of the repository, and where they are installed.
const FILES: &[(&str, &str)] = &[
    ("packaging/polis.service", "usr/lib/systemd/system/polis.service"),
    ("packaging/polis.socket", "usr/lib/systemd/system/polis.socket"),
    ("packaging/polis.sysusers", "usr/lib/sysusers.d/polis.conf"),
    ("README.md", "usr/share/doc/polis/README.md"),
    ("LICENSE-MIT", "usr/share/doc/polis/copyright"),
    ("LICENSE-APACHE", "usr/share/doc/polis/LICENSE-APACHE"),
];

/// Where each shell looks for completions.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "usr/share/bash-completion/completions/polis"),
    ("zsh", "usr/share/zsh/vendor-completions/_polis"),
    ("fish", "usr/share/fish/vendor_completions.d/polis.fish"),
];

/// Makes the package of the release build, or of the program that is named.
pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let program = match args {
        [] => {
            succeed(workspace.cargo().args(["build", "--locked", "--release", "--bin", "polis"]), "building polis")?;
            workspace.target_dir.join("release/polis")
        }
        [program] => PathBuf::from(program),
        _ => anyhow::bail!("give at most the path of a program"),
    };
    println!("{}", make(workspace, &program, &workspace.target_dir.join("deb"), "xz")?.display());
    Ok(())
}

/// Makes the package in a folder, compressed like this; its path.
pub(crate) fn make(workspace: &Workspace, program: &Path, folder: &Path, compression: &str) -> Result<PathBuf> {
    let stage = folder.join("stage");
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    let copy = |from: &Path, to: &str, mode: u32| -> Result<()> {
        let to = stage.join(to);
        fs::create_dir_all(to.parent().context("a path has a folder")?)?;
        fs::copy(from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
        Ok(fs::set_permissions(&to, fs::Permissions::from_mode(mode))?)
    };
    copy(program, "usr/bin/polis", 0o755)?;
    for (from, to) in FILES {
        copy(&workspace.root.join(from), to, 0o644)?;
    }
    for script in ["postinst", "prerm"] {
        copy(&workspace.root.join("packaging/debian").join(script), &format!("DEBIAN/{script}"), 0o755)?;
    }
    for (shell, to) in COMPLETIONS {
        let path = stage.join(to);
        fs::create_dir_all(path.parent().context("a path has a folder")?)?;
        fs::write(path, output(Command::new(program).args(["completions", shell]))?)?;
    }
    let pages = stage.join("usr/share/man/man1");
    succeed(Command::new(program).arg("man").arg(&pages).stderr(std::process::Stdio::null()), "polis man")?;
    let pages: Vec<PathBuf> = fs::read_dir(&pages)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    succeed(Command::new("gzip").args(["-9", "-n"]).args(&pages), "gzip")?;
    let control = control(workspace, &stage, program)?;
    fs::write(stage.join("DEBIAN/control"), control)?;
    let deb = folder.join(format!("polis_{}_{}.deb", version(workspace)?, architecture()?));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", &format!("-Z{compression}"), "--build"]).arg(&stage).arg(&deb);
    succeed(build.stdout(std::process::Stdio::null()), "dpkg-deb")?;
    Ok(deb)
}

/// What the package says of itself.
fn control(workspace: &Workspace, stage: &Path, program: &Path) -> Result<String> {
    let template = fs::read_to_string(workspace.root.join("packaging/debian/control"))?;
    let kilobytes = output(Command::new("du").args(["-sk", "--apparent-size"]).arg(stage))?;
    let kilobytes = kilobytes.split_whitespace().next().context("du gives a size")?;
    let text = template
        .replace("@VERSION@", &version(workspace)?)
        .replace("@ARCHITECTURE@", &architecture()?)
        .replace("@SIZE@", kilobytes)
        .replace("@DEPENDS@", &depends(program)?);
    ensure!(!text.contains('@') || text.matches('@').count() == 1, "a place of packaging/debian/control is not filled");
    Ok(text)
}

/// The C library that the program was linked with, or nothing special for one that is static.
fn depends(program: &Path) -> Result<String> {
    let table = output(Command::new("objdump").arg("-T").arg(program)).unwrap_or_default();
    Ok(match newest_glibc(&table) {
        Some((major, minor)) => format!("libc6 (>= {major}.{minor}), libgcc-s1"),
        None => "base-files".to_owned(),
    })
}

/// The newest version of the C library that a table of symbols names.
pub(crate) fn newest_glibc(table: &str) -> Option<(u32, u32)> {
    let versions = table.split("GLIBC_").skip(1).filter_map(|rest| {
        let version: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        let mut parts = version.split('.').map(str::parse);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    });
    versions.max()
}

pub(crate) fn version(workspace: &Workspace) -> Result<String> {
    let manifest: toml::Table = fs::read_to_string(workspace.root.join("Cargo.toml"))?.parse()?;
    let version = manifest["workspace"]["package"]["version"].as_str().context("the workspace has a version")?;
    Ok(version.to_owned())
}

fn architecture() -> Result<String> {
    Ok(output(Command::new("dpkg").arg("--print-architecture"))?.trim().to_owned())
}

/// What a command prints; it must succeed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot start {name}"))?;
    ensure!(output.status.success(), "{name} failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_c_library_is_what_the_program_depends_on() {
        let table = "(GLIBC_2.2.5) malloc\n(GLIBC_2.34) main\n(GLIBC_2.9) pipe2\n(GCC_3.0) unwind\n";
        assert_eq!(newest_glibc(table), Some((2, 34)));
        assert_eq!(newest_glibc("no symbols"), None);
    }
}
