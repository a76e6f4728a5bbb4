//! `polis update`: says how this installation is updated.

use std::path::PathBuf;

use crate::error::{CliError, Exit};
use crate::installation::{Installation, Machine};
use crate::out;

pub(crate) fn update() -> Result<Exit, CliError> {
    let program = std::env::current_exe().unwrap_or_else(|_| "polis".into());
    let program = program.canonicalize().unwrap_or(program);
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_bin = cargo_home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).map(|folder| folder.join("bin"));
    let (found, commands) = Installation::of(&program, &Machine { cargo_bin, exists: &|path| path.exists() }).advice();
    out::line(&format!("polis {} {found}. To update it:", env!("CARGO_PKG_VERSION")))?;
    out::line("")?;
    commands.iter().try_for_each(|command| out::line(&format!("  {command}")))?;
    out::line("")?;
    out::line(
        "Before: polis backup FILE. Then: polis check --against DATA says whether the new program can continue the open",
    )?;
    out::line("work, and polis serve --take-over replaces a running server (docs/upgrades.md).")?;
    Ok(Exit::Done)
}
