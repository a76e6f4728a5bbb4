//! `polis init`: sets a folder up. At a terminal it asks for what is not given; elsewhere the defaults are taken.

use std::fs::OpenOptions;
use std::io::{BufRead, Write, stdin};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use polis_providers::Models;
use polis_providers::vendors::OpenError;
use toml::Value;

use crate::cli::{Allowed, Init};
use crate::config::{Config, FILE};
use crate::error::{CliError, Exit};
use crate::{config_file, out, suggest, trust, wiring};

/// The answers.
struct Answers {
    /// None for what is found at each start.
    model: Option<String>,
    workspace: PathBuf,
    allow: Allowed,
}

pub(crate) async fn init(config: &Config, args: &Init) -> Result<Exit, CliError> {
    if std::fs::symlink_metadata(FILE).is_ok() {
        let message = format!("{FILE} already exists; change it with an editor, or look at the setup with polis doctor");
        return Err(CliError::new("already_there", message));
    }
    let models = wiring::models(config).await?;
    let answers = answers(args, &models, !args.yes && trust::is_terminal())?;
    let text = answers.settings();
    config_file::parse(&text, Path::new(FILE))?;
    let file = OpenOptions::new().write(true).create_new(true).open(FILE);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| CliError::new("not_written", format!("{FILE}: {error}; choose a folder that can be written")))?;
    trust::trust_written(Path::new("."), &[(FILE.into(), text)])?;
    out::line(&format!("wrote {FILE}"))?;
    let next = match answers.model.is_none() && models.is_offline() {
        true => "polis models pull    (how to get a model; until then the offline model answers)",
        false => "polis run \"what can you do here?\"",
    };
    out::note(&format!("polis: try this next: {next}"));
    Ok(Exit::Done)
}

fn answers(args: &Init, models: &Models, asks: bool) -> Result<Answers, CliError> {
    let found = models.default_name().to_string();
    let model = match (&args.model, asks) {
        (Some(model), _) => Some(model.clone()),
        (None, true) => given(ask("1. Which model, as vendor/name?", &found)?, &found),
        (None, false) => None,
    };
    match model.as_ref().map(|model| models.find(model)) {
        Some(Err(error @ OpenError::Unknown { .. })) => return Err(suggest::about_model(&error)),
        Some(Err(error)) => out::note(&format!("polis: {error}")),
        Some(Ok(_)) | None => {}
    }
    let workspace = match (&args.workspace, asks) {
        (Some(folder), _) => folder.clone(),
        (None, true) => ask("2. Which folder may agents' file tools access?", ".")?.into(),
        (None, false) => ".".into(),
    };
    if !workspace.is_dir() {
        let message = format!("{} is not a folder; create it, or name another", workspace.display());
        return Err(CliError::usage("bad_workspace", message));
    }
    let allow = match (args.allow, asks) {
        (Some(allow), _) => allow,
        (None, true) => {
            let typed =
                ask("3. What else may they do: nothing, commands (in a sandbox), web (with approval) or both?", "nothing")?;
            Allowed::from_str(&typed, true)
                .map_err(|_| CliError::usage("bad_answer", format!("`{typed}` is none of nothing, commands, web and both")))?
        }
        (None, false) => Allowed::Nothing,
    };
    Ok(Answers { model, workspace, allow })
}

/// What was typed, unless it is what would be taken anyway.
fn given(typed: String, default: &str) -> Option<String> {
    (typed != default).then_some(typed)
}

/// Asks at the terminal. An empty line takes the default; the end of input stops before anything is written.
fn ask(question: &str, default: &str) -> Result<String, CliError> {
    out::prompt(&format!("{question} [{default}] "));
    let mut line = String::new();
    if stdin().lock().read_line(&mut line).unwrap_or(0) == 0 {
        let error = CliError::new("not_confirmed", "no answer, so nothing is written; --yes takes the defaults");
        return Err(CliError { exit: Exit::NeedsPerson, ..error });
    }
    let line = line.trim();
    Ok(if line.is_empty() { default.to_owned() } else { line.to_owned() })
}

impl Answers {
    /// The file.
    fn settings(&self) -> String {
        let model = match &self.model {
            Some(model) => format!("model = {}", Value::from(model.as_str())),
            None => {
                "# model = \"vendor/name\"    # not set: the first vendor whose key is set, else a model server on this machine"
                    .to_owned()
            }
        };
        let workspace = Value::from(self.workspace.display().to_string());
        let (commands, fetch) = match self.allow {
            Allowed::Nothing => (false, false),
            Allowed::Commands => (true, false),
            Allowed::Web => (false, true),
            Allowed::Both => (true, true),
        };
        format!(
            "# Settings of Polis for this folder.\n\n{model}\nworkspace = {workspace}    # the folder that file tools may access\n\n\
             [tools]\ncommands = {commands}    # run commands in a sandbox\nfetch = {fetch}    # read web pages; each call needs approval\n"
        )
    }
}
