//! One command per chore: `cargo xtask <chore>`. Each chore is a file of this crate; this one only picks it.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod acceptance;
mod bench;
mod corpus;
mod csv;
mod deb;
mod deny;
mod dictionary;
mod fresh;
mod fuzz;
mod picture;
mod record;
mod release;
mod sim;
mod test;
mod tidy;
mod workspace;

use std::fmt;
use std::process::ExitCode;

use workspace::Workspace;

const CHORES: &str = "\
cargo xtask <chore>

  test [--quick] [WORDS]      everything that must hold before a change goes in; with words, the steps that have one in their name
  tidy [--report]             import directions, file rules, lints, ARCHITECTURE.md; figures about the structure
  acceptance [--ran FILE]     every row of docs/acceptance.csv is shown by a test that ran and passed
  deny                        licences, sources and duplicate versions of dependencies, against deny.toml
  fuzz [TARGET] [--seconds N] inputs for the parsers of outside bytes, for a minute if not said otherwise
  deb [PROGRAM]               a Debian package of the release build, or of the program that is named
  picture [PROGRAM]           records a run that is killed and continued, and draws the picture of the README
  release [PROGRAM]           archive, packages, bill of materials, licences and checksums of a build, each tried
  fresh [PROGRAM]             follows the README on a bare Debian, from a clone or with the program that is named
  corpus                      adds a data directory of this version to those that the tests open
  dictionary                  makes the dictionary that event bodies are packed with
  sim --seeds N [--from S]    N simulated societies with faults, from seed S on
  bench [ARGS]                our figures against the floor of this machine";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (chore, rest) = match args.split_first() {
        Some((chore, rest)) => (chore.as_str(), rest),
        None => ("", &[][..]),
    };
    let outcome = match chore {
        "test" => Workspace::load().and_then(|workspace| test::run(workspace, rest)),
        "tidy" if rest == ["--report"] => Workspace::load().and_then(|workspace| tidy::report(&workspace)),
        "tidy" => nothing_more(rest).and_then(|()| tidy::run(&Workspace::load()?)),
        "deny" => nothing_more(rest).and_then(|()| deny::run(&Workspace::load()?)).map(|why| {
            why.iter().for_each(|why| println!("skipped: advisories: {why}"));
        }),
        "deb" => Workspace::load().and_then(|workspace| deb::run(&workspace, rest)),
        "picture" => Workspace::load().and_then(|workspace| picture::run(&workspace, rest)),
        "fresh" => Workspace::load().and_then(|workspace| fresh::run(&workspace, rest)),
        "release" => Workspace::load().and_then(|workspace| release::run(&workspace, rest)),
        "fuzz" => Workspace::load().and_then(|workspace| fuzz::run(&workspace, rest)),
        "corpus" => nothing_more(rest).and_then(|()| corpus::run(&Workspace::load()?)),
        "dictionary" => nothing_more(rest).and_then(|()| dictionary::run(&Workspace::load()?)),
        "acceptance" => acceptance::run_with_args(rest),
        "sim" => Workspace::load().and_then(|workspace| sim::run(&workspace, rest)),
        "bench" => Workspace::load().and_then(|workspace| bench::run(&workspace, rest)),
        "help" | "--help" | "-h" => {
            println!("{CHORES}");
            Ok(())
        }
        "" => Err(Usage("name a chore".to_owned()).into()),
        unknown => Err(Usage(format!("there is no chore `{unknown}`")).into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<Usage>() => {
            eprintln!("xtask: {error}\n\n{CHORES}");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The command line is wrong; the list of chores is shown and the exit status is 2.
#[derive(Debug)]
struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

fn nothing_more(args: &[String]) -> anyhow::Result<()> {
    match args.first() {
        None => Ok(()),
        Some(extra) => Err(Usage(format!("this chore takes no `{extra}`")).into()),
    }
}
