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
            let lent = lend(workspace, &root)?;
            let build = format!("git clone -q /lent/polis polis && cd polis && {}", install.text);
            inside(&root, &lent, &build, "the README's install command")?;
            fs::copy(root.join("srv/cargo/bin/polis"), root.join("usr/local/bin/polis"))?;
        }
    }
    println!("installed: {} s", began.elapsed().as_secs());

    let began = Instant::now();
    let script = Script::of(&example.text);
    let commands = "mkdir -p /tmp/first && cd /tmp/first && export POLIS_TRUST=all\n";
    let mut shell = chroot(&root, &[], &format!("{commands}{}", script.text));
    let printed = shell.output().context("cannot start unshare")?;
    let (out, err) = (String::from_utf8_lossy(&printed.stdout), String::from_utf8_lossy(&printed.stderr));
    ensure!(printed.status.success(), "the README's example ends with {}:\n{out}{err}", printed.status);
    script.check(&out).map_err(|why| anyhow::anyhow!("the README's example {why}"))?;
    println!("{} commands of the README print what it says: {:.1} s", script.wanted.len(), began.elapsed().as_secs_f64());
    Ok(())
}

/// A folder of this machine, and where it is inside.
type Lent = (PathBuf, &'static str);

/// The checkout, the toolchain and the packages that cargo has; nothing of it can be written from inside.
fn lend(workspace: &Workspace, root: &Path) -> Result<Vec<Lent>> {
    let toolchain = PathBuf::from(output(Command::new("rustc").args(["--print", "sysroot"]))?.trim());
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).context("cargo has a home")?;
    let cargo = root.join("srv/cargo");
    fs::create_dir_all(&cargo)?;
    // What cargo writes beside packages goes into a copy of its own.
    succeed(Command::new("cp").arg("-r").arg(home.join("registry")).arg(&cargo), "cp")?;
    let mut config = String::from("[net]\noffline = true\n");
    if let Ok(text) = fs::read_to_string(home.join("config.toml")) {
        config = format!("{text}\n{config}");
    }
    fs::write(cargo.join("config.toml"), config)?;
    Ok(vec![(workspace.root.clone(), "lent/polis"), (toolchain, "lent/rust")])
}

/// Runs commands inside, with our own output.
fn inside(root: &Path, lent: &[Lent], commands: &str, what: &str) -> Result<()> {
    succeed(&mut chroot(root, lent, commands), what)
}

/// A shell inside, in a namespace of mounts and processes of its own, with nothing of our environment.
fn chroot(root: &Path, lent: &[Lent], commands: &str) -> Command {
    let mut mounts = String::from("set -e\nmount -t proc proc \"$0/proc\"\n");
    for (from, to) in lent {
        mounts += &format!(
            "mkdir -p \"$0/{to}\"\nmount --bind '{0}' \"$0/{to}\"\nmount -o remount,bind,ro \"$0/{to}\"\n",
            from.display()
        );
    }
    let variables = "PATH=/lent/rust/bin:/usr/local/bin:/usr/bin:/bin CARGO_HOME=/srv/cargo HOME=/srv LANG=C.UTF-8 \
                     GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'";
    mounts += &format!("exec chroot \"$0\" /usr/bin/env -i {variables} /bin/sh -ec \"cd /srv\n$1\"");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--", "sh", "-c", &mounts]).arg(root).arg(commands);
    command
}
