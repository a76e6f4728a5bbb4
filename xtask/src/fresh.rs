//! The chore `fresh`: a bare Debian without anything of this machine, in which the README is followed to its first answers. From a clone,
//! with what the README asks for (Rust, git, a C compiler), or with a program that is built already.
//!
//! Debian's own Rust is older than what the project needs, so the toolchain of this machine is lent to it, and so are the packages that
//! cargo has downloaded: nothing is downloaded but Debian's packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use polis_docs::{Block, Page, Script};

use crate::deb::output;
use crate::workspace::{Workspace, succeed};

/// The release of Debian, as `rust-version` and the Dockerfile have it.
const DEBIAN: &str = "bookworm";

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let program = match args {
        [] => None,
        [program] => Some(PathBuf::from(program)),
        _ => bail!("give at most the path of a program"),
    };
    ensure!(output(Command::new("id").arg("-u"))?.trim() == "0", "a bare Debian needs root, for chroot and mounts");
    let folder = std::env::temp_dir().join(format!("polis-fresh-{}", std::process::id()));
    let outcome = follow(workspace, program.as_deref(), &folder);
    // All mounts were in namespaces that are gone with their processes.
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    outcome
}

fn follow(workspace: &Workspace, program: Option<&Path>, folder: &Path) -> Result<()> {
    let readme = Page::at("README.md").context("there is a README")?;
    let blocks = Block::all(readme.text);
    let named = |what: &str| {
        let block = blocks.iter().find(|block| block.language == "sh" && block.text.contains(what));
        block.with_context(|| format!("README.md has no block with `{what}`"))
    };
    let (install, example) = (named("cargo install")?, named("polis run")?);

    let root = folder.join("root");
    fs::create_dir_all(&root)?;
    let packages = if program.is_some() { "ca-certificates" } else { "ca-certificates,git,gcc,libc6-dev,make" };
    let began = Instant::now();
    // It mounts the system's folders; in a namespace of its own, so that nothing of them is there when the root is removed.
    let mut debootstrap = Command::new("unshare");
    debootstrap
        .args(["--mount", "--", "debootstrap", "--variant=minbase", &format!("--include={packages}"), DEBIAN])
        .arg(&root);
    output(&mut debootstrap).context("a bare Debian cannot be made (is debootstrap installed?)")?;
    println!("a bare Debian {DEBIAN} with {packages}: {} s", began.elapsed().as_secs());

    let began = Instant::now();
    match program {
        Some(program) => {
            fs::copy(program, root.join("usr/local/bin/polis"))
                .with_context(|| format!("cannot copy {}", program.display()))?;
        }
        None => {
            let toolchain = lend(&root)?;
            // By the git of this machine, which knows where the repository of a work tree is.
            let clone = root.join("srv/polis");
            succeed(Command::new("git").args(["clone", "--quiet"]).arg(&workspace.root).arg(&clone), "git clone")?;
            let build = format!("cd polis\n{}", install.text);
            succeed(&mut chroot(&root, Some(&toolchain), &build), "the README's install command")?;
            fs::copy(root.join("srv/cargo/bin/polis"), root.join("usr/local/bin/polis"))?;
        }
    }
    println!("installed: {} s", began.elapsed().as_secs());

    let began = Instant::now();
    let script = Script::of(&example.text);
    let commands = "mkdir -p /tmp/first && cd /tmp/first && export POLIS_TRUST=all\n";
    let mut shell = chroot(&root, None, &format!("{commands}{}", script.text));
    let printed = shell.output().context("cannot start unshare")?;
    let (out, err) = (String::from_utf8_lossy(&printed.stdout), String::from_utf8_lossy(&printed.stderr));
    ensure!(printed.status.success(), "the README's example ends with {}:\n{out}{err}", printed.status);
    script.check(&out).map_err(|why| anyhow::anyhow!("the README's example {why}"))?;
    println!("{} commands of the README print what it says: {:.1} s", script.wanted.len(), began.elapsed().as_secs_f64());
    Ok(())
}

/// The packages that cargo has are copied inside; gives the toolchain.
fn lend(root: &Path) -> Result<PathBuf> {
    let toolchain = PathBuf::from(output(Command::new("rustc").args(["--print", "sysroot"]))?.trim());
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).context("cargo has a home")?;
    let cargo = root.join("srv/cargo");
    fs::create_dir_all(&cargo)?;
    succeed(Command::new("cp").arg("-r").arg(home.join("registry")).arg(&cargo), "cp")?;
    let mut config = String::from("[net]\noffline = true\n");
    if let Ok(text) = fs::read_to_string(home.join("config.toml")) {
        config = format!("{text}\n{config}");
    }
    fs::write(cargo.join("config.toml"), config)?;
    Ok(toolchain)
}

/// A shell inside, in a namespace of mounts and processes of its own, with nothing of our environment.
fn chroot(root: &Path, toolchain: Option<&Path>, commands: &str) -> Command {
    let mut mounts = String::from("set -e\nmount -t proc proc \"$0/proc\"\n");
    if let Some(toolchain) = toolchain {
        let to = "\"$0/srv/rust\"";
        mounts += &format!("mkdir {to}\nmount --bind '{}' {to}\nmount -o remount,bind,ro {to}\n", toolchain.display());
    }
    let variables = "PATH=/srv/rust/bin:/usr/local/bin:/usr/bin:/bin CARGO_HOME=/srv/cargo HOME=/srv LANG=C.UTF-8";
    mounts += &format!("exec chroot \"$0\" /usr/bin/env -i {variables} /bin/sh -ec \"cd /srv\n$1\"");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--", "sh", "-c", &mounts]).arg(root).arg(commands);
    command
}
