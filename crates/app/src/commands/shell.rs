//! `polis completions` and `polis man`: the command line as shells and `man` read it.

use crate::cli::{self, Completions, Man};
use crate::error::{CliError, Exit};
use crate::out;

pub(crate) fn completions(args: &Completions) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "polis", &mut script);
    out::text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

pub(crate) fn man(args: &Man) -> Result<Exit, CliError> {
    let failed = |error: std::io::Error| {
        let message = format!("{}: {error}; name a folder that can be written", args.dir.display());
        CliError::new("not_written", message)
    };
    std::fs::create_dir_all(&args.dir).map_err(failed)?;
    // Subcommands are pages of their own: polis-run.1, polis-tools-add.1.
    let command = cli::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, &args.dir).map_err(failed)?;
    out::note(&format!("polis: the pages are in {}; read one with man -l {}/polis.1", args.dir.display(), args.dir.display()));
    Ok(Exit::Done)
}
