//! The command line as shells, `man` and packagers see it: completions, pages, `--version`, `polis update`, examples.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::support::{Done, Home};

#[test]
fn completions_are_scripts_that_their_shells_can_read() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = home.polis(&["completions", shell]).ok();
        for word in ["conversations", "take-over"] {
            assert!(script.contains(word), "{shell} has no {word}");
        }
        let program = if shell == "powershell" { "pwsh" } else { shell };
        if shell != "bash" && shell != "zsh" && shell != "fish" {
            continue;
        }
        let checked = Command::new(program).arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let Ok(mut child) = checked else {
            let _ =
                writeln!(std::io::stderr(), "skipped: completions_are_scripts_that_their_shells_can_read: there is no {shell}");
            continue;
        };
        child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        let done = Done::from(child.wait_with_output().unwrap());
        assert_eq!((done.code, &*done.stderr), (0, ""), "{shell}");
    }
    assert_eq!(home.polis(&["completions", "cmd"]).code, 2);
    assert!(!home.data().exists());
}

#[test]
fn bash_completes_commands_and_options() {
    let home = Home::new();
    home.write("polis.bash", &home.polis(&["completions", "bash"]).ok());
    let complete = |words: &str| {
        let count = words.split(' ').count() - 1;
        let script = format!(
            "source polis.bash; COMP_WORDS=({words}); COMP_CWORD={count}; _polis polis \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        let output = Command::new("bash").args(["-c", &script]).current_dir(home.path()).output();
        output.map(|output| Done::from(output).ok())
    };
    let Ok(commands) = complete("polis conv") else {
        let _ = writeln!(std::io::stderr(), "skipped: bash_completes_commands_and_options: there is no bash");
        return;
    };
    assert_eq!(commands.trim(), "conversations");
    assert_eq!(complete("polis run --appr").unwrap().trim(), "--approve");
}

#[test]
fn every_command_has_a_page_with_its_options_and_examples() {
    let home = Home::new();
    home.polis(&["man", "pages/man1"]).ok();
    let page = |name: &str| std::fs::read_to_string(home.path().join("pages/man1").join(name)).unwrap();
    assert!(page("polis.1").contains("durable runtime"));
    assert!(page("polis-run.1").contains("polis run \"read README.md and sum it up\""));
    assert!(page("polis-tools-add.1").contains("dry\\-run"));
    home.write("file", "");
    home.polis(&["man", "file/pages"]).fails(1, "not_written");
}

#[test]
fn the_version_says_what_was_built() {
    let home = Home::new();
    let long = home.polis(&["--version"]).ok();
    let short = home.polis(&["-V"]).ok();
    assert_eq!(short, format!("polis {}\n", env!("CARGO_PKG_VERSION")));
    let mut lines = long.lines();
    assert!(lines.next().unwrap().starts_with(&format!("{} (", short.trim_end())), "{long}");
    assert_eq!(lines.next(), Some("features: authoring, offline, postgres"));
}

/// What the build script says for the program that is built with this optimisation.
fn built_with(level: &str, script: &Path, commit: Option<&str>) -> String {
    let mut command = Command::new(script);
    command.env("OPT_LEVEL", level).env("TARGET", "here").current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("POLIS_COMMIT");
    if let Some(commit) = commit {
        command.env("POLIS_COMMIT", commit);
    }
    Done::from(command.output().unwrap()).ok()
}

#[test]
fn an_optimised_build_knows_its_commit() {
    let home = Home::new();
    let script = home.path().join("script");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/build.rs");
    let compiled = Command::new("rustc").args(["--edition", "2024", "-o"]).arg(&script).arg(source).output();
    let head = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let (Ok(compiled), Ok(head)) = (compiled, head) else {
        let _ = writeln!(std::io::stderr(), "skipped: an_optimised_build_knows_its_commit: there is no rustc or no git");
        return;
    };
    Done::from(compiled).ok();
    let head = Done::from(head);
    if head.code == 0 {
        let commit = built_with("3", &script, None);
        let commit = commit.lines().find_map(|line| line.strip_prefix("cargo:rustc-env=POLIS_COMMIT=")).unwrap().to_owned();
        assert!(commit.len() >= 12 && head.stdout.starts_with(&commit), "{commit}");
    }
    assert!(built_with("0", &script, None).contains("POLIS_COMMIT=debug build\n"));
    assert!(built_with("3", &script, Some("abc123")).contains("POLIS_COMMIT=abc123\n"));
}

#[test]
fn update_says_how_and_changes_nothing() {
    let home = Home::new();
    let said = home.polis(&["update"]).ok();
    assert!(said.contains("in the checkout") && said.contains("  git pull\n") && said.contains("take-over"), "{said}");
    assert!(!home.data().exists());
}

#[test]
fn help_ends_with_examples() {
    let home = Home::new();
    for args in [&["--help"][..], &["run", "--help"], &["tools", "add", "-h"], &["help", "backup"]] {
        let help = home.polis(args).ok();
        let examples = help.rsplit_once("\n\nExample").unwrap_or_else(|| panic!("{args:?}: {help}")).1;
        assert!(examples.lines().skip(1).all(|line| line.starts_with("  polis ")), "{examples}");
    }
}
