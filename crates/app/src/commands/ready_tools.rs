//! `polis tools add` and `polis tools remove`: write a known MCP server into `polis.toml`, or take one out. Lines that are there
//! stay as they are.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::cli::{AddTools, Cli, RemoveTools};
use crate::config::{self, FILE};
use crate::config_file;
use crate::error::{CliError, Exit};
use crate::out;
use crate::ready_tools::{self, NotRemoved, ReadyServer, find_program};
use crate::trust;

pub(crate) fn add(cli: &Cli, options: &AddTools) -> Result<Exit, CliError> {
    let all = ready_tools::all();
    let Some(typed) = &options.name else {
        for (name, server) in &all {
            let argument = server.argument.as_ref().map(|argument| format!(" {}", argument.name)).unwrap_or_default();
            out::line(&format!("{:<24} {}", format!("{name}{argument}"), server.about))?;
        }
        return Ok(Exit::Done);
    };
    let server = all.get(typed).ok_or_else(|| {
        let known = all.keys().cloned().collect::<Vec<_>>().join(", ");
        CliError::usage("unknown_server", format!("`{typed}` is not among the servers that can be added: {known}; write any other one into polis.toml yourself (docs/tools.md)")).meant(typed, all.keys().map(String::as_str))
    })?;
    let name = options.rename.as_ref().unwrap_or(typed);
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
        let message = format!("`{name}` cannot be the name of a server; use letters, digits, `-` and `_`");
        return Err(CliError::usage("bad_server_argument", message));
    }
    let file = SettingsFile::open(cli, options.user)?;
    if !server.is_program() && !options.more.is_empty() {
        return Err(CliError::usage(
            "bad_server_argument",
            format!("{typed} is an address and takes no arguments of a program"),
        ));
    }
    let argument = argument(cli, typed, server, options.argument.as_deref(), &file)?;
    let found = server.program.as_ref().and_then(|program| find_program(&program.names));
    let args = server.args(argument.as_deref(), found.as_deref(), &options.more);
    let section = server.section(name, &args);
    let (file, after) = file.with_section(name, &section, "choose another name with --as")?;
    if options.dry_run {
        out::text(&section)?;
        out::note(&format!("polis: nothing is written; without --dry-run this goes to the end of {}", file.path.display()));
    } else {
        file.write(&after)?;
        out::line(&format!("added [mcp.{name}] to {}", file.path.display()))?;
    }
    describe(name, server, &args, found.is_some());
    Ok(Exit::Done)
}

pub(crate) fn remove(cli: &Cli, options: &RemoveTools) -> Result<Exit, CliError> {
    let file = SettingsFile::open(cli, options.user)?;
    let (name, path) = (&options.name, file.path.display());
    let after = match ready_tools::without(file.text.as_deref().unwrap_or_default(), name) {
        Ok(after) => after,
        Err(NotRemoved::Missing) => {
            let known = config_file::parse(file.text.as_deref().unwrap_or_default(), &file.path)?.servers;
            let error = CliError::usage("unknown_server", format!("{path} has no section [mcp.{name}]"));
            return Err(error.meant(name, known.iter().map(|server| &*server.name)));
        }
        Err(NotRemoved::Entangled) => {
            let message = format!("{path} does not have `{name}` in a section of its own; remove it with an editor");
            return Err(CliError::usage("bad_config", message));
        }
    };
    file.write(&after)?;
    out::line(&format!("removed [mcp.{name}] from {path}"))?;
    Ok(Exit::Done)
}

/// What the person typed for the server, as it is written down.
fn argument(
    cli: &Cli,
    name: &str,
    server: &ReadyServer,
    typed: Option<&str>,
    file: &SettingsFile,
) -> Result<Option<String>, CliError> {
    let bad = |message: String| Err(CliError::usage("bad_server_argument", message));
    let (wanted, typed) = match (&server.argument, typed) {
        (None, None) => return Ok(None),
        (None, Some(typed)) => return bad(format!("{name} takes no `{typed}`; arguments of its program follow `--`")),
        (Some(wanted), None) => {
            return bad(format!(
                "{name} needs {}: {}; for example: polis tools add {name} {}",
                wanted.name, wanted.about, wanted.example
            ));
        }
        (Some(wanted), Some(typed)) => (wanted, typed),
    };
    if !wanted.is_folder {
        return Ok(Some(typed.to_owned()));
    }
    let folder = fs::canonicalize(typed).ok().filter(|folder| folder.is_dir());
    let Some(folder) = folder else { return bad(format!("{typed} is not a folder: {}", wanted.about)) };
    let governing = [file.path.clone(), PathBuf::from(FILE), config::data(cli)];
    let holds = |path: &PathBuf| {
        std::path::absolute(path)
            .ok()
            .and_then(|path| Some(fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?)))
            .is_some_and(|path| path.starts_with(&folder))
    };
    if wanted.without_polis && governing.iter().any(holds) {
        return bad(format!(
            "{} holds polis.toml or the data directory: agents could change their own rules; choose another folder",
            folder.display()
        ));
    }
    Ok(Some(folder.display().to_string()))
}

/// What the server is, what it needs, and how to go on.
fn describe(name: &str, server: &ReadyServer, args: &[String], found: bool) {
    let mut lines = vec![format!("{name}: {}", server.about)];
    match server.is_program() {
        true => lines.push(format!("runs, as you and outside the sandbox: {}", server.shown(args))),
        false => lines.push(format!("contacts {}", server.shown(args))),
    }
    lines.extend(server.needs.as_ref().map(|needs| format!("needs {needs}; the first start downloads the server")));
    if let Some(program) = server.program.as_ref().filter(|_| !found) {
        lines.push(format!("none of {} is on PATH; the server looks for one itself", program.names.join(", ")));
    }
    for variable in server.variables() {
        let state = if std::env::var_os(&variable).is_some() { "it is set" } else { "it is NOT set" };
        lines.push(format!("gets its key from the variable {variable}; {state}"));
    }
    lines.extend(server.advice.iter().cloned());
    lines.push(format!("next: polis tools    then: polis run \"{}\"", server.example));
    out::note(&lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"));
}

/// The file with settings that a command changes.
pub(super) struct SettingsFile {
    path: PathBuf,
    /// None if there is no such file yet.
    text: Option<String>,
    /// Whether the file counts only where it is trusted.
    is_folders: bool,
}

impl SettingsFile {
    /// The named file, the user's own, or the one that a run here would read.
    pub(super) fn open(cli: &Cli, user: bool) -> Result<Self, CliError> {
        let named = cli.config.clone().filter(|path| !path.as_os_str().is_empty());
        let in_data = config::data(cli).join(FILE);
        let (path, is_folders) = match (named, user) {
            (Some(path), _) => (path, false),
            (None, true) => (trust::user_folder().ok_or_else(trust::no_home)?.join(FILE), false),
            (None, false) if !Path::new(FILE).exists() && in_data.exists() => (in_data, true),
            (None, false) => (PathBuf::from(FILE), true),
        };
        // A folder's link could lead to the user's own settings, and a pipe is read for ever.
        if is_folders && fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
            let message = format!("{} is a link or no plain file, so it is left alone; write it yourself", path.display());
            return Err(CliError::usage("bad_config", message));
        }
        match fs::read_to_string(&path) {
            Ok(text) => {
                config_file::parse(&text, &path)?;
                Ok(Self { path, text: Some(text), is_folders })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self { path, text: None, is_folders }),
            Err(error) => Err(CliError::usage("bad_config", format!("{} cannot be read: {error}", path.display()))),
        }
    }

    /// What the file is to be with one more server at its end. `otherwise` says what to do if the name is taken.
    pub(super) fn with_section(self, name: &str, section: &str, otherwise: &str) -> Result<(Self, String), CliError> {
        self.check_free(name, otherwise)?;
        let before = self.text.as_deref().unwrap_or_default();
        let gap = match before {
            "" => "",
            text if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        let after = format!("{before}{gap}{section}");
        config_file::parse(&after, &self.path)?;
        Ok((self, after))
    }

    /// Refuses a name that this file or the user's own has, which would count instead.
    fn check_free(&self, name: &str, otherwise: &str) -> Result<(), CliError> {
        let users = trust::user_folder().map(|folder| folder.join(FILE)).filter(|path| *path != self.path);
        let users = users.and_then(|path| Some((fs::read_to_string(&path).ok()?, path)));
        let own = self.text.clone().map(|text| (text, self.path.clone()));
        for (text, path) in own.into_iter().chain(users) {
            if config_file::parse(&text, &path)?.servers.iter().any(|server| server.name == name) {
                let path = path.display();
                let message =
                    format!("{path} already has [mcp.{name}]; remove it with polis tools remove {name}, or {otherwise}");
                return Err(CliError::new("already_there", message));
            }
        }
        Ok(())
    }

    /// Replaces the file at once. What the user has trusted stays trusted with the change; a file that was not trusted before is
    /// not trusted now.
    pub(super) fn write(&self, after: &str) -> Result<(), CliError> {
        let failed = |error: io::Error| CliError::new("not_written", format!("{}: {error}", self.path.display()));
        let was_trusted = !self.is_folders || trust::is_trusted_text(&self.path, self.text.as_deref())?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(failed)?;
        // A link stays a link: its target is replaced.
        let target = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let temporary = target.with_extension("toml.new");
        fs::write(&temporary, after).map_err(failed)?;
        if let Ok(before) = fs::metadata(&target) {
            fs::set_permissions(&temporary, before.permissions()).map_err(failed)?;
        }
        fs::rename(&temporary, &target).map_err(failed)?;
        if self.is_folders && was_trusted {
            trust::trust_written(Path::new("."), &[(self.path.clone(), after.to_owned())])?;
        } else if !was_trusted {
            out::note(&format!("polis: {} is not trusted; look at it and type polis trust", self.path.display()));
        }
        Ok(())
    }
}
