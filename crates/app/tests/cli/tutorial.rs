//! The tutorial, followed to the message: every file is written, every command is run, and what is promised comes of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use polis_docs::Block;

use super::support::{Done, Home};

const TUTORIAL: &str = include_str!("../../../../docs/tutorial.md");
const CHINESE: &str = include_str!("../../../../docs/tutorial.zh.md");

/// What the document has the reader do.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Write this file.
    Write { path: String, text: String },
    /// Type these commands.
    Run(String),
    /// See these lines, in this order.
    See(Vec<String>),
}

/// The steps of a document: every block of it, in order. A block that is nothing to do is an error.
fn steps(document: &str) -> Vec<Step> {
    let step = |block: Block| match (&*block.language, block.file) {
        ("sh", _) => Step::Run(block.text),
        ("text", _) => Step::See(block.text.lines().map(str::to_owned).collect()),
        ("rust" | "md", Some(path)) => Step::Write { path, text: block.text },
        (other, _) => panic!("line {}: nobody knows what to do with a block of {other}", block.line),
    };
    Block::all(document).into_iter().map(step).collect()
}

#[test]
fn somebody_who_has_only_the_tutorial_writes_a_three_phase_agent() {
    let home = Home::new();
    let Some(shell) = Shell::new(&home) else {
        use std::io::Write;
        let _ = writeln!(
            std::io::stderr(),
            "skipped: somebody_who_has_only_the_tutorial_writes_a_three_phase_agent: there is no cargo"
        );
        return;
    };
    let (mut folder, mut seen) = (home.path().to_owned(), String::new());
    for step in steps(TUTORIAL) {
        match step {
            Step::Write { path, text } => {
                let file = folder.join(path);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            Step::Run(commands) => {
                let done = shell.run(&folder, &commands);
                assert_eq!(done.code, 0, "{commands}{}{}", done.stdout, done.stderr);
                assert!(!done.stderr.contains("warning"), "{commands}{}", done.stderr);
                let (told, place) = done.stdout.trim_end().rsplit_once("at: ").unwrap();
                (folder, seen) = (PathBuf::from(place), told.to_owned());
            }
            Step::See(lines) => {
                let mut rest = seen.as_str();
                for line in lines {
                    rest = rest.split_once(&*line).unwrap_or_else(|| panic!("`{line}` is not to be seen in:\n{seen}")).1;
                }
            }
        }
    }
}

#[test]
fn the_tutorial_has_the_same_steps_in_both_languages() {
    let steps = (steps(TUTORIAL), steps(CHINESE));
    assert_eq!(steps.0, steps.1);
    let commands = steps.0.iter().filter(|step| matches!(step, Step::Run(_))).count();
    assert!(commands >= 5 && steps.0.len() > 2 * commands, "{} steps, {commands} of them commands", steps.0.len());
}

/// A shell whose `polis` and `cargo` are those of this test, with the artifacts of this project at hand and nothing from outside.
struct Shell<'a> {
    home: &'a Home,
    path: String,
}

impl<'a> Shell<'a> {
    fn new(home: &'a Home) -> Option<Self> {
        let cargo = PathBuf::from(std::env::var_os("CARGO")?);
        let polis = Path::new(env!("CARGO_BIN_EXE_polis"));
        let target = polis.ancestors().nth(2)?.display();
        fs::create_dir(home.path().join(".cargo")).ok()?;
        let config = format!(
            "[build]\ntarget-dir = \"{target}\"\n[net]\noffline = true\n[term]\ncolor = \"never\"\n[profile.dev]\ndebug = \
             \"line-tables-only\"\n[profile.dev.package.\"*\"]\ndebug = false\n"
        );
        fs::write(home.path().join(".cargo/config.toml"), config).ok()?;
        let folders = [polis.parent()?, cargo.parent()?].map(|folder| folder.display().to_string());
        let path = format!("{}:{}", folders.join(":"), std::env::var("PATH").unwrap_or_default());
        Some(Self { home, path })
    }

    fn run(&self, folder: &Path, commands: &str) -> Done {
        let mut shell = Command::new("sh");
        shell.arg("-ec").arg(format!("{commands}echo \"at: $PWD\"")).current_dir(folder);
        for (name, value) in self.home.command(&[]).get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell.env("PATH", &self.path).env("POLIS", concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        shell.env_remove("CARGO_TARGET_DIR");
        shell.output().unwrap().into()
    }
}
