//! The chore `fuzz`: gives the fuzz targets inputs for a while. libFuzzer does it where it can be built (a C++ compiler and the crate
//! libfuzzer-sys), as it sees which code an input reaches; otherwise inputs of the corpus are changed at random.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::Usage;
use crate::workspace::{Workspace, succeed};

/// How long it takes when nobody says.
const SECONDS: u64 = 60;

/// The package around libFuzzer. The workspace leaves it out, so that nobody else pays for it.
const PACKAGE: &str = "fuzz/libfuzzer";

/// What makes LLVM count the branches that an input takes. All of these are stable options.
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions",
    "-Ccodegen-units=1",
];

#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    target: Option<String>,
    seconds: u64,
}

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let wanted = read(args)?;
    let targets = targets(workspace)?;
    if let Some(target) = wanted.target.as_ref().filter(|target| !targets.contains(target)) {
        return Err(Usage(format!("there is no target `{target}`; there are {}", targets.join(", "))).into());
    }
    match libfuzzer(workspace) {
        Ok(program) => {
            let targets = wanted.target.clone().map_or(targets, |target| vec![target]);
            let each = (wanted.seconds / targets.len() as u64).max(1);
            targets.iter().try_for_each(|target| guided(workspace, &program, target, each))
        }
        Err(why) => {
            println!("fuzz: libFuzzer cannot be used: {why}; inputs of the corpus are changed at random instead");
            let mut cargo = workspace.cargo();
            cargo.args(["run", "--quiet", "--release", "-p", "polis-fuzz", "--bin", "fuzz", "--"]).args(wanted.target);
            succeed(cargo.args(["--seconds", &wanted.seconds.to_string()]), "fuzz")
        }
    }
}

fn read(args: &[String]) -> Result<Wanted, Usage> {
    let (mut wanted, mut args) = (Wanted { target: None, seconds: SECONDS }, args.iter());
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seconds" => {
                let number = args.next().and_then(|number| number.parse().ok()).filter(|number| *number > 0);
                wanted.seconds = number.ok_or_else(|| Usage("--seconds wants a number from 1 on".to_owned()))?;
            }
            name if name.starts_with('-') || wanted.target.is_some() => {
                return Err(Usage(format!("fuzz takes no `{name}`")));
            }
            name => wanted.target = Some(name.to_owned()),
        }
    }
    Ok(wanted)
}

/// The targets, by their folders.
fn targets(workspace: &Workspace) -> Result<Vec<String>> {
    let folder = workspace.root.join("fuzz/corpus");
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    ensure!(!names.is_empty(), "{} is empty", folder.display());
    Ok(names)
}

/// Builds the program around libFuzzer; or says why it cannot be built.
fn libfuzzer(workspace: &Workspace) -> Result<PathBuf, String> {
    let package = workspace.root.join(PACKAGE);
    // The same versions as everywhere; what only libFuzzer needs is added to the copy.
    std::fs::copy(workspace.root.join("Cargo.lock"), package.join("Cargo.lock")).map_err(|error| error.to_string())?;
    let host = Command::new("rustc").arg("-vV").output().map_err(|error| format!("rustc: {error}"))?;
    let host = String::from_utf8_lossy(&host.stdout).into_owned();
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc does not name its platform")?;
    let target_dir = workspace.scratch().join("libfuzzer");
    println!("fuzz: building with libFuzzer; the first time takes some minutes");
    let mut cargo = workspace.cargo();
    // With a target named, build scripts and macros are built without these options.
    cargo.args(["build", "--release", "--target", host, "--manifest-path"]).arg(package.join("Cargo.toml"));
    cargo.arg("--target-dir").arg(&target_dir).env("RUSTFLAGS", COVERAGE.join(" ")).stdout(Stdio::null());
    let output = cargo.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let why = said.lines().find(|line| line.trim_start().starts_with("error")).unwrap_or("it does not build");
        return Err(why.trim().to_owned());
    }
    Ok(target_dir.join(host).join("release/polis-libfuzzer"))
}

/// Runs one target under libFuzzer. What it learns stays in the scratch folder; what it finds is printed with its file.
fn guided(workspace: &Workspace, program: &Path, target: &str, seconds: u64) -> Result<()> {
    let learnt = workspace.scratch().join("fuzz").join(target);
    std::fs::create_dir_all(&learnt).with_context(|| format!("cannot make {}", learnt.display()))?;
    let mut command = Command::new(program);
    command.env("POLIS_FUZZ_TARGET", target).arg(&learnt).arg(workspace.root.join("fuzz/corpus").join(target));
    command.args([format!("-max_total_time={seconds}"), "-max_len=4096".to_owned(), "-timeout=10".to_owned()]);
    command.arg(format!("-artifact_prefix={}/found-{target}-", workspace.scratch().display()));
    command.args(["-print_final_stats=1", "-verbosity=0"]);
    println!("fuzz: {target}, {seconds} s");
    succeed(&mut command, &format!("fuzzing {target}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_names_a_target_and_a_time() {
        let read = |args: &[&str]| read(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>()).ok();
        let wanted = |target: Option<&str>, seconds| Some(Wanted { target: target.map(str::to_owned), seconds });
        assert_eq!(read(&[]), wanted(None, SECONDS));
        assert_eq!(read(&["json"]), wanted(Some("json"), SECONDS));
        assert_eq!(read(&["--seconds", "5", "json"]), wanted(Some("json"), 5));
        for bad in [&["--seconds"][..], &["--seconds", "0"], &["--seconds", "x"], &["a", "b"], &["--fast"]] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}
