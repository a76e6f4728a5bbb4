//! The reference pages in `docs/reference`, generated from the command line, `polis.toml` as it is read, the routes and the events:
//! `UPDATE_REFERENCE=1 cargo test -p polis-app --lib reference` writes them anew.

use std::fmt::Write as _;
use std::path::Path;

use clap::Command;
use polis_docs::{Block, Page};
use serde_json::Value;

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

/// The sections of `polis.toml`, as a file with an entry of each would have them. `X` is a name of one's own.
const SECTIONS: &[&str] = &[
    "",
    "model_settings",
    "models.\"openai/x\"",
    "[policy]",
    "budget",
    "budget.task",
    "budget.agent",
    "budget.call",
    "budget.roles.x",
    "providers.x",
    "network",
    "tools",
    "workflow",
    "artifacts",
    "backup",
    "retention",
    "store",
    "memory",
    "embeddings",
    "server",
    "society.x",
    "page",
    "telemetry",
    "mcp.x",
    "a2a.x",
    "trust",
];

/// The keys that a section takes, as the reader of the file names them when it meets one that it does not know.
fn keys(section: &str) -> Vec<String> {
    let header = if section.is_empty() { String::new() } else { format!("[{section}]\n") };
    let error = config_file::parse(&format!("{header}no_such_key = 1\n"), Path::new("polis.toml")).unwrap_err().to_string();
    let (_, listed) = error.split_once("expected ").unwrap_or_else(|| panic!("[{section}]: {error}"));
    let listed = listed.split("; did you mean").next().unwrap_or_default();
    // A name with a capital letter is another spelling of one without.
    let names = listed.split('`').skip(1).step_by(2).filter(|name| !name.contains(char::is_uppercase));
    names.map(str::to_owned).collect()
}

#[test]
fn the_reference_of_the_configuration_is_current_and_every_key_is_explained() {
    let mut page = "# Configuration\n\nGenerated from what the program reads. `polis.toml` is in the working directory or else in the data \
                    directory; your own is `~/.config/polis/polis.toml`. An unknown key is an error that names the nearest \
                    one. Names such as `x` are your own.\n"
        .to_owned();
    let mut lacking = Vec::new();
    for section in SECTIONS {
        let title = match *section {
            "" => "top level".to_owned(),
            "[policy]" => "`[[policy]]`".to_owned(),
            section => format!("`[{section}]`"),
        };
        let _ = write!(page, "\n## {title}\n\n| key | explained in |\n|---|---|\n");
        for key in keys(section) {
            let pages: Vec<Page> = Page::all().filter(|it| explains(it, section, &key)).collect();
            let links: Vec<String> = pages
                .iter()
                .filter(|it| !it.source.ends_with(".zh.md"))
                .map(|it| {
                    format!(
                        "[{}](../{})",
                        it.title(),
                        it.source.strip_prefix("docs/").map_or(format!("../{}", it.source), str::to_owned)
                    )
                })
                .collect();
            if links.is_empty() {
                lacking.push(format!("{title} {key}"));
            }
            let _ = writeln!(page, "| `{key}` | {} |", links.join(", "));
        }
    }
    assert!(lacking.is_empty(), "no page of docs explains {}", lacking.join(", "));
    check("configuration.md", &page);
}

/// Whether a page has the key in the example of its section, or in words.
fn explains(page: &Page, section: &str, key: &str) -> bool {
    if ["docs/reference/", "docs/errors/", "docs/from-", "docs/concepts", "CHANGELOG"]
        .iter()
        .any(|it| page.source.starts_with(it))
    {
        return false;
    }
    let table = section.trim_matches(['[', ']']).split('.').next().unwrap_or_default();
    let is_named = page.text.contains(&format!("[{table}")) || page.text.contains(&format!("`{table}`"));
    if table.is_empty() {
        let starts =
            [format!("\n{key} ="), format!("\n[{key}]"), format!("\n[{key}."), format!("\n[[{key}]]"), format!("`[{key}]`")];
        return starts.iter().any(|it| page.text.contains(it));
    }
    let in_words = [
        format!("`{key}`"),
        format!("`{key} ="),
        format!("\n{key} ="),
        format!("[{key}]"),
        format!("[{key}."),
        format!(".{key}."),
    ];
    let in_words = in_words.iter().any(|it| page.text.contains(it)) || page.text.contains(&format!(".{key}]"));
    in_words && is_named
}

#[test]
fn the_reference_of_the_routes_is_current() {
    let contract = polis_server::contract();
    let mut page = "# HTTP routes\n\nGenerated from the table of routes. [HTTP](../http.md) explains what they share; a running server has \
                    every type at `/docs` and `/openapi.json`.\n\n| route | does | scope | errors |\n|---|---|---|---|\n"
        .to_owned();
    for (path, operations) in contract["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let mut codes: Vec<&str> = operation["responses"]
                .as_object()
                .unwrap()
                .values()
                .filter_map(|it| it["x-codes"].as_array())
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            codes.sort_unstable();
            codes.dedup();
            let codes: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
            let scope = operation["x-scope"].as_str().map(|scope| format!("`{scope}`")).unwrap_or_default();
            let summary = cell(operation["summary"].as_str().unwrap());
            let _ = writeln!(page, "| `{} {path}` | {summary} | {scope} | {} |", method.to_uppercase(), codes.join(", "));
        }
    }
    check("http.md", &page);
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
