//! The chore `release`: everything that a release consists of, for the system that it runs on, and each part tried: an archive, a Debian
//! package, packages for npm and PyPI that carry the program, a bill of materials, the licences of others, and checksums.

mod materials;
mod wrappers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::deb::{self, output};
use crate::workspace::{Workspace, succeed};

/// What releases are called where `polis` is taken: npm and PyPI.
const NAME: &str = "polis-society";

/// Systems that a release can be built on, and that this chore does not build for from elsewhere.
const OTHERS: &[&str] =
    &["aarch64-unknown-linux-gnu", "x86_64-unknown-linux-musl", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"];

/// A program and what its packages say of it.
struct Release<'a> {
    program: &'a Path,
    version: String,
    target: String,
    /// Where the files go.
    folder: &'a Path,
}

/// Builds the program with link-time optimisation, or takes the one that is named, and makes all files in `target/dist-files`.
pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let program = match args {
        [] => {
            succeed(workspace.cargo().args(["build", "--locked", "--profile", "dist", "--bin", "polis"]), "building polis")?;
            workspace.target_dir.join("dist/polis")
        }
        [program] => PathBuf::from(program),
        _ => anyhow::bail!("give at most the path of a program"),
    };
    let folder = workspace.target_dir.join("dist-files");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    for (file, how) in make(workspace, &program, &folder, "xz")? {
        println!("{}: {how}", file.display());
    }
    println!("{} crates: packaged without a registry, not built", crates(workspace)?);
    let target = target()?;
    let others: Vec<&str> = OTHERS.iter().copied().filter(|other| *other != target).collect();
    println!("not built here: {}; run this chore on them", others.join(", "));
    Ok(())
}

/// Packages all crates that can be published, as `cargo publish` would; how many there are.
fn crates(workspace: &Workspace) -> Result<usize> {
    let mut cargo = workspace.cargo();
    cargo.args(["package", "--quiet", "--workspace", "--offline", "--no-verify", "--allow-dirty"]);
    let mut count = 0;
    for package in &workspace.packages {
        let manifest = fs::read_to_string(workspace.root.join(package.manifest()))?;
        if manifest.contains("publish = false") {
            cargo.args(["--exclude", &package.name]);
        } else {
            count += 1;
        }
    }
    succeed(&mut cargo, "cargo package")?;
    Ok(count)
}

/// Makes all files in a folder and tries each; their paths with how they were tried. `compression` is that of the Debian package.
pub(crate) fn make(workspace: &Workspace, program: &Path, folder: &Path, compression: &str) -> Result<Vec<(PathBuf, String)>> {
    fs::create_dir_all(folder)?;
    let release = Release { program, version: deb::version(workspace)?, target: target()?, folder };
    let (bill, licences) = materials::write(workspace, &release)?;
    let mut made =
        vec![(bill.clone(), "components of the build, by cargo metadata".to_owned()), (licences.clone(), "written".to_owned())];
    made.push(archive(workspace, &release, &bill, &licences)?);
    if is_there("dpkg-deb") {
        let deb = deb::make(workspace, program, &folder.join("deb"), compression)?;
        let to = folder.join(deb.file_name().context("a file has a name")?);
        fs::rename(&deb, &to)?;
        fs::remove_dir_all(folder.join("deb"))?;
        made.push((to, "made; the step `packaging` installs and removes it".to_owned()));
    }
    made.extend(wrappers::npm(workspace, &release)?);
    made.extend(wrappers::wheel(workspace, &release)?);
    let names = made.iter().filter_map(|(path, _)| path.file_name()).collect::<Vec<_>>();
    let sums = output(Command::new("sha256sum").args(&names).current_dir(folder))?;
    fs::write(folder.join("SHA256SUMS"), sums)?;
    output(Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(folder))?;
    made.push((folder.join("SHA256SUMS"), "checked".to_owned()));
    Ok(made)
}

/// The program with its manual pages, completions, licences and bill of materials. Two builds of one commit give the same bytes around
/// the program.
fn archive(workspace: &Workspace, release: &Release<'_>, bill: &Path, licences: &Path) -> Result<(PathBuf, String)> {
    let name = format!("polis-{}-{}", release.version, release.target);
    let stage = release.folder.join(&name);
    fs::create_dir_all(stage.join("completions"))?;
    fs::copy(release.program, stage.join("polis")).with_context(|| format!("cannot copy {}", release.program.display()))?;
    for file in ["README.md", "README.zh.md", "LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md"] {
        fs::copy(workspace.root.join(file), stage.join(file))?;
    }
    for file in [bill, licences] {
        fs::copy(file, stage.join(file.file_name().context("a file has a name")?))?;
    }
    for (shell, file) in [("bash", "polis.bash"), ("zsh", "_polis"), ("fish", "polis.fish")] {
        fs::write(stage.join("completions").join(file), output(Command::new(release.program).args(["completions", shell]))?)?;
    }
    output(Command::new(release.program).arg("man").arg(stage.join("man")))?;
    let date = output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(&workspace.root))
        .unwrap_or_else(|_| "0".to_owned());
    let tarball = release.folder.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", &format!("--mtime=@{}", date.trim())]);
    tar.args(["--use-compress-program=gzip -9n", "-cf"]).arg(&tarball).arg(&name).current_dir(release.folder);
    output(&mut tar)?;
    fs::remove_dir_all(&stage)?;

    let tried = release.folder.join("tried");
    fs::create_dir_all(&tried)?;
    output(Command::new("tar").arg("-xf").arg(&tarball).arg("-C").arg(&tried))?;
    answers(&tried.join(&name).join("polis"), &tried)?;
    fs::remove_dir_all(&tried)?;
    Ok((tarball, "unpacked, and its program answers".to_owned()))
}

/// The program says its version and answers a request, without a key and a network.
fn answers(program: &Path, folder: &Path) -> Result<()> {
    let said = output(Command::new(program).arg("--version"))?;
    ensure!(said.starts_with("polis "), "{} says `{said}`", program.display());
    let mut run = Command::new(program);
    run.args(["run", "what is 6 times 7?"]).current_dir(folder).env("POLIS_MODEL", "offline").env("XDG_CONFIG_HOME", folder);
    let said = output(run.env_remove("POLIS_DATA").env_remove("POLIS_URL"))?;
    ensure!(said.contains("42"), "{} answers `{said}`", program.display());
    Ok(())
}

/// The system that this is built for.
fn target() -> Result<String> {
    let said = output(Command::new("rustc").arg("-vV"))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names its host")?;
    Ok(host.to_owned())
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}
