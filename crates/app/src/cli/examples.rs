//! The examples at the end of `--help`, one entry for each command. A test parses every line.

use clap::Command;

/// A command, without the `polis` at its beginning, and its examples.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("", &["polis run \"what is 6 times 7?\"", "polis serve", "polis doctor"]),
    ("init", &["polis init", "polis init --yes --model ollama/qwen3:4b --workspace notes --allow web"]),
    ("serve", &["polis serve", "polis serve --listen 127.0.0.1:8080 --model anthropic/claude-sonnet-5"]),
    (
        "run",
        &[
            "polis run \"read README.md and sum it up\"",
            "polis run --continue \"and in Chinese?\"",
            "polis run --role reviewer \"review README.md\"",
            "polis run \"sum it up\" - < notes.txt",
        ],
    ),
    ("chat", &["polis chat", "polis chat --continue --model ollama/qwen3:4b"]),
    ("mcp", &["polis mcp --workspace notes"]),
    ("log", &["polis log --from 100", "polis log --follow --json"]),
    ("show", &["polis show root", "polis show root --tree --json", "polis show \"root.messages[3].meta._thread\""]),
    ("agents", &["polis agents", "polis agents --json"]),
    ("conversations", &["polis conversations", "polis conversations search sales", "polis conversations --archived"]),
    ("conversations search", &["polis conversations search monthly report"]),
    ("conversations rename", &["polis conversations rename c-kqfv34k Sales of May"]),
    ("conversations archive", &["polis conversations archive c-kqfv34k"]),
    ("conversations unarchive", &["polis conversations unarchive c-kqfv34k"]),
    ("conversations pin", &["polis conversations pin c-kqfv34k"]),
    ("conversations unpin", &["polis conversations unpin c-kqfv34k"]),
    ("conversations delete", &["polis conversations delete c-kqfv34k", "polis conversations delete c-kqfv34k --erase --yes"]),
    ("delete", &["polis delete c-kqfv34k"]),
    ("memory", &["polis memory", "polis memory search invoices", "polis memory --json"]),
    ("memory list", &["polis memory list"]),
    ("memory search", &["polis memory search invoices"]),
    ("memory add", &["polis memory add I write dates as 2026-12-31"]),
    ("memory edit", &["polis memory edit memory_01a1f45e-2fc4-7981-acb3-a8f0577c0c76 I write dates as 31.12.2026"]),
    ("memory forget", &["polis memory forget memory_01a1f45e-2fc4-7981-acb3-a8f0577c0c76", "polis memory forget --all --yes"]),
    ("memory export", &["polis memory export > memories.json"]),
    ("memory on", &["polis memory on"]),
    ("memory off", &["polis memory off"]),
    ("threads", &["polis threads", "polis threads --json"]),
    ("docs", &["polis docs", "polis docs --list", "polis docs tutorial", "polis docs unknown_agent", "polis docs --out site"]),
    ("tasks", &["polis tasks", "polis tasks 01a1e602-7c1f-7d59-9b3a-51b6c8a1f0d2"]),
    ("wait", &["polis wait 01a1e602-7c1f-7d59-9b3a-51b6c8a1f0d2"]),
    ("attach", &["polis attach 01a1e602-7c1f-7d59-9b3a-51b6c8a1f0d2"]),
    ("result", &["polis result 01a1e602-7c1f-7d59-9b3a-51b6c8a1f0d2 > answer.md"]),
    ("compress", &["polis compress root", "polis compress root --undo"]),
    ("org", &["polis org", "polis org --json"]),
    ("nodes", &["polis nodes", "polis nodes --json"]),
    ("drain", &["polis drain node-1", "polis drain node-1 --undo"]),
    ("terminate", &["polis terminate reviewer no longer needed", "polis terminate reviewer --now --children detach"]),
    ("export", &["polis export org.json"]),
    ("import", &["polis import org.json"]),
    ("models", &["polis models", "polis models anthropic", "polis models pull"]),
    ("tools", &["polis tools", "polis tools add --list", "polis tools add playwright"]),
    (
        "tools add",
        &["polis tools add --list", "polis tools add filesystem /srv/documents", "polis tools add playwright --dry-run"],
    ),
    ("tools remove", &["polis tools remove playwright"]),
    ("tools login", &["polis tools login github"]),
    ("tools logout", &["polis tools logout github"]),
    ("artifacts", &["polis artifacts", "polis artifacts get 73cb3858 --out report.pdf"]),
    ("artifacts get", &["polis artifacts get 73cb3858 > report.pdf"]),
    ("artifacts gc", &["polis artifacts gc", "polis artifacts gc --hours 1"]),
    ("token", &["polis token new --name phone --scope read,send", "polis token list", "polis token revoke phone"]),
    ("token new", &["polis token new --name phone --person ada --scope read,send,approve"]),
    ("token list", &["polis token list"]),
    ("token revoke", &["polis token revoke phone"]),
    ("usage", &["polis usage", "polis usage --json"]),
    ("deploy", &["polis deploy"]),
    ("doctor", &["polis doctor", "polis doctor --call"]),
    ("trust", &["polis trust", "polis trust projects/report --yes", "polis trust list"]),
    ("trust list", &["polis trust list"]),
    ("trust revoke", &["polis trust revoke projects/report"]),
    ("approvals", &["polis approvals", "polis approvals --json"]),
    (
        "approve",
        &["polis approve 12.3", "polis approve 12.3 --always agent --where \"path=notes/*\"", "polis approve 12.3 --again"],
    ),
    ("deny", &["polis deny 12.3 use another file"]),
    ("answer", &["polis answer 12.3 the first one"]),
    ("send", &["polis send root \"the figures of May are in may.csv\""]),
    ("cancel", &["polis cancel 01a1e602-7c1f-7d59-9b3a-51b6c8a1f0d2 no longer needed"]),
    ("societies", &["polis societies"]),
    ("fork", &["polis fork --at 120 attempt", "polis --society attempt run \"try it another way\""]),
    ("rewind", &["polis rewind --to 120"]),
    ("archive", &["polis archive --days 90"]),
    ("backup", &["polis backup polis.backup", "polis backup backups --keep 7"]),
    ("restore", &["polis restore polis.backup --to restored"]),
    ("verify", &["polis verify", "polis verify polis.backup"]),
    #[cfg(feature = "postgres")]
    ("migrate", &["polis migrate --from .polis --to postgres://polis@db/polis"]),
    ("replay", &["polis replay"]),
    ("completions", &["polis completions bash > ~/.local/share/bash-completion/completions/polis", "polis completions fish"]),
    ("man", &["polis man ~/.local/share/man/man1"]),
    ("update", &["polis update"]),
    #[cfg(feature = "authoring")]
    ("check", &["polis check", "polis check --against .polis"]),
    #[cfg(feature = "authoring")]
    ("skills", &["polis skills"]),
    #[cfg(feature = "authoring")]
    ("new", &["polis new role reviewer", "polis new sop monthly_report", "polis new agent order_tracking"]),
    #[cfg(feature = "authoring")]
    ("new agent", &["polis new agent order_tracking --sub parcel_search"]),
    #[cfg(feature = "authoring")]
    ("new sop", &["polis new sop monthly_report"]),
    #[cfg(feature = "authoring")]
    ("new role", &["polis new role reviewer"]),
    #[cfg(feature = "authoring")]
    ("new skill", &["polis new skill monthly-report"]),
    #[cfg(feature = "authoring")]
    ("new tool", &["polis new tool word_count"]),
    #[cfg(feature = "authoring")]
    (
        "new workflow",
        &[
            "polis new workflow tea_trade",
            "polis new workflow --language Python --platform FastAPI --business shop.md > prompt.md",
        ],
    ),
];

/// The command line with its examples.
pub(super) fn add_to(command: Command) -> Command {
    with_examples(command, "")
}

fn with_examples(command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let command = match EXAMPLES.iter().find(|(name, _)| *name == path) {
        Some((_, [one])) => command.after_help(format!("Example:\n  {one}")),
        Some((_, lines)) => command.after_help(format!("Examples:\n  {}", lines.join("\n  "))),
        None => command,
    };
    names.into_iter().fold(command, |command, name| {
        let path = format!("{path} {name}").trim_start().to_owned();
        command.mut_subcommand(name, |below| with_examples(below, &path))
    })
}

/// Parses a line as a shell and the program would, up to a redirection or a comment.
#[cfg(test)]
pub(crate) fn typed(line: &str) -> Result<(), String> {
    use clap::Parser;

    let (mut words, mut quote) = (vec![String::new()], None);
    for c in line.chars() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (' ', None) => words.push(String::new()),
            ('<' | '>' | '|' | '#', None) => break,
            (c, _) => words.last_mut().ok_or("no word")?.push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    super::Cli::try_parse_from(words).map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cli;

    fn paths(command: &Command, path: &str, found: &mut BTreeSet<String>) {
        found.insert(path.to_owned());
        for below in command.get_subcommands() {
            paths(below, format!("{path} {}", below.get_name()).trim_start(), found);
        }
    }

    #[test]
    fn every_command_has_an_example_and_no_example_is_of_another() {
        let mut found = BTreeSet::new();
        paths(&cli::command(), "", &mut found);
        let with: BTreeSet<String> = EXAMPLES.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(with, found);
        assert_eq!(with.len(), EXAMPLES.len(), "one entry for each command");
    }

    #[test]
    fn every_example_can_be_typed() {
        for (path, lines) in EXAMPLES {
            assert!(lines[0].starts_with(format!("polis {path}").trim_end()), "{path}: {lines:?}");
            for line in *lines {
                typed(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            }
        }
    }
}
