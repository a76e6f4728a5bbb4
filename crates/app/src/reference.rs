//! The reference pages in `docs/reference`, generated from the command line, `polis.toml` as it is read, the routes and the events:
//! `UPDATE_REFERENCE=1 cargo test -p polis-app --lib reference` writes them anew.

mod configuration;
mod http;

use std::fmt::Write as _;
use std::path::Path;

use clap::Command;
use polis_docs::{Block, Page};

use crate::{cli, config_file};

/// A generated page is what it was generated as, or it is written.
fn check(name: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, wanted).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    let what = "write it anew with UPDATE_REFERENCE=1 cargo test -p polis-app --lib reference";
    assert!(there == wanted, "docs/reference/{name} is not what the code says; {what}");
}

/// A cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|").replace('<', "\\<")
}

#[test]
fn the_reference_of_the_command_line_is_current() {
    let mut page = "# Command line\n\nGenerated from the program. `polis COMMAND --help` prints the same, and `polis man DIR` \
                    writes it as manual pages.\n"
        .to_owned();
    let mut whole = cli::command();
    whole.build();
    page.push_str("\n## Options of every command\n");
    options(&mut page, &whole, true);
    for command in whole.get_subcommands().filter(|command| command.get_name() != "help") {
        describe(&mut page, command, "polis", 2);
    }
    check("command-line.md", &page);
}

fn describe(page: &mut String, command: &Command, above: &str, level: usize) {
    let name = format!("{above} {}", command.get_name());
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").split_whitespace().collect::<Vec<_>>().join(" ");
    let _ = write!(page, "\n{} {name}\n\n{}.\n\n`{usage}`\n", "#".repeat(level), about.trim().trim_end_matches('.'));
    options(page, command, false);
    if let Some(examples) = command.get_after_help() {
        let lines = examples.to_string();
        let lines: Vec<&str> = lines.lines().skip(1).map(|line| line.trim()).collect();
        let _ =
            write!(page, "\nFor example {}.\n", lines.iter().map(|line| format!("`{line}`")).collect::<Vec<_>>().join(", "));
    }
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        describe(page, below, &name, (level + 1).min(4));
    }
}

fn options(page: &mut String, command: &Command, is_global: bool) {
    let mut rows = String::new();
    for argument in command.get_arguments().filter(|it| it.is_global_set() == is_global && !it.is_hide_set()) {
        if ["help", "version"].contains(&argument.get_id().as_str()) {
            continue;
        }
        let value = argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
        let takes = argument.get_action().takes_values();
        let name = match (argument.get_long(), value) {
            (Some(long), Some(value)) if takes => format!("--{long} {value}"),
            (Some(long), _) => format!("--{long}"),
            (None, value) => value.unwrap_or_else(|| argument.get_id().to_string().to_uppercase()),
        };
        let mut help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let choices: Vec<String> = argument.get_possible_values().iter().map(|it| format!("`{}`", it.get_name())).collect();
        if takes && !choices.is_empty() {
            let _ = write!(help, ": {}", choices.join(", "));
        }
        if let Some(variable) = argument.get_env() {
            let _ = write!(help, " (`{}`)", variable.display());
        }
        let _ = writeln!(rows, "| `{name}` | {} |", cell(&help));
    }
    if !rows.is_empty() {
        let _ = write!(page, "\n| option | does |\n|---|---|\n{rows}");
    }
}

#[test]
fn the_reference_of_the_events_is_current() {
    let contract = polis_server::contract();
    let event = &contract["components"]["schemas"]["Event"];
    let mut page =
        "# Events\n\nGenerated from the types of the log. `polis log` prints events as lines, `polis log --json` and `GET \
                    /api/events` as JSON: `{\"seq\", \"at\", \"thread\", \"event\": {NAME: {...}}}`.\n"
            .to_owned();
    let variants = event["oneOf"].as_array().or(event["anyOf"].as_array()).unwrap();
    for variant in variants {
        let about = variant["description"].as_str().unwrap_or_default();
        if let Some(name) = variant["const"].as_str() {
            let _ = write!(page, "\n## {name}\n\n{about}\n");
            continue;
        }
        let (name, body) = variant["properties"].as_object().unwrap().iter().next().unwrap();
        let _ = write!(page, "\n## {name}\n\n{about}\n");
        let Some(fields) = body["properties"].as_object().filter(|fields| !fields.is_empty()) else { continue };
        let _ = write!(page, "\n| field | holds |\n|---|---|\n");
        for (field, schema) in fields {
            let _ = writeln!(page, "| `{field}` | {} |", cell(schema["description"].as_str().unwrap_or_default()));
        }
    }
    check("events.md", &page);
}

/// Every page with blocks: those of the site, and no page in `docs/errors` or `docs/reference` has one.
fn blocks(language: &str) -> Vec<(String, Block)> {
    let all = Page::all().flat_map(|page| Block::all(page.text).into_iter().map(move |block| (page.source, block)));
    all.filter(|(_, block)| block.language == language).map(|(page, block)| (format!("{page}:{}", block.line), block)).collect()
}

#[test]
fn every_block_of_settings_in_the_documents_is_read() {
    let mut seen = 0;
    for (place, block) in blocks("toml").into_iter().filter(|(_, block)| block.mark("not run").is_none()) {
        seen += 1;
        config_file::parse(&block.text, Path::new("polis.toml")).unwrap_or_else(|error| panic!("{place}: {error}"));
    }
    assert!(seen > 50, "only {seen} blocks were read");
}

#[test]
fn every_command_in_the_documents_can_be_typed() {
    let mut seen = 0;
    for (place, block) in blocks("sh") {
        let joined = block.text.replace("\\\n", " ");
        for line in joined.lines().filter(|line| line.starts_with("polis ")) {
            seen += 1;
            if let Err(error) = cli::examples::typed(line) {
                panic!("{place}: {line}: {error}");
            }
        }
    }
    assert!(seen > 60, "only {seen} commands were seen");
}
