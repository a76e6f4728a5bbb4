//! The step that proves our checks can fail: builds with a bug planted in them must be caught, each by the very
//! check that is there for it.
//!
//! A planted bug is code under `#[cfg(feature = "mutants")]` that acts up when `POLIS_PLANT` has its name. The dev-dependencies of
//! `polis-app` turn that feature on, so tests of the whole workspace have the bugs built in and need no build of their own here.
//! To plant another one, add a row to `PLANTS`.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Done, suite, tools};
use crate::workspace::Workspace;

/// A check on a build with a bug. It must fail, and say why.
struct Plant {
    /// The value of `POLIS_PLANT`.
    bug: &'static str,
    check: Check,
    /// What the check says when it has caught this bug; any other failure is not good enough.
    says: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    /// Tests of a program, by the beginning of their names.
    Tests(&'static str, &'static str),
    Simulator,
}

const KILL: Check = Check::Tests("polis-app/main", "kill::");

const SIM: Check = Check::Simulator;

/// Needs a server of PostgreSQL.
const OWNERS: Check = Check::Tests("polis-store-postgres/main", "owners::");

/// Needs one too: three nodes, of which one is cut off.
const NODES: Check = Check::Tests("polis-app/main", "cli::chaos::what_an_owner_sent_before_it_was_cut_off");

impl Check {
    fn command(self, workspace: &Workspace) -> Result<Command> {
        Ok(match self {
            Self::Tests(program, filter) => suite::program(workspace, program)?.tests(workspace, filter),
            Self::Simulator => {
                let mut cargo = workspace.cargo();
                cargo.args(["run", "--release", "-p", "polis-testkit", "--features", "mutants"]);
                cargo.args(["--bin", "sim", "--", "--seeds", "300"]);
                cargo
            }
        })
    }

    fn needs_postgres(self) -> bool {
        self == OWNERS || self == NODES
    }
}

const PLANTS: &[Plant] = &[
    // Someone is told before the store has it: a kill loses an accepted message. A real process with this bug often gets stuck
    // before a kill can show the loss, so the simulator alone is asked.
    Plant { bug: "ack-before-commit", check: SIM, says: "an accepted message is missing" },
    // The same, but only while appends are pipelined: the store has the append before, not the sender's own.
    Plant { bug: "ack-with-predecessor", check: SIM, says: "an accepted message is missing" },
    // The tool is called before its intent is logged: a kill makes the write happen twice.
    Plant { bug: "act-before-intent", check: KILL, says: "a write happened twice" },
    Plant { bug: "act-before-intent", check: SIM, says: "a write happened twice" },
    // A write begins while its intent is held back: a kill makes it happen twice.
    Plant { bug: "repeat-writes", check: SIM, says: "a write happened twice" },
    // A parked turn is not owed after a restart: the run never ends as the undisturbed one did.
    Plant { bug: "forget-a-wait", check: KILL, says: "the society is stuck: a wait was forgotten" },
    Plant { bug: "forget-a-wait", check: SIM, says: "the society is stuck: a wait was forgotten" },
    // An append looks at the position alone: an owner that has lost its society writes to it.
    Plant {
        bug: "no-fence",
        check: OWNERS,
        says: "test owners::whatever_two_owners_do_in_turn_only_the_one_that_may_writes ... FAILED",
    },
    // The same in the simulated world of two nodes, by the statement that it has in the place of a store's.
    Plant { bug: "no-fence", check: SIM, says: "wrote without a lease" },
    // The same with real nodes: an append that is delayed until another node owns the society.
    Plant { bug: "no-fence", check: NODES, says: "wrote without a lease" },
];

pub(super) fn run(workspace: &Workspace) -> Result<Done> {
    let has_postgres = tools::find("initdb").is_some();
    for plant in PLANTS {
        if plant.check.needs_postgres() && !has_postgres {
            println!("the planted bug `{}` is not tried: there is no PostgreSQL", plant.bug);
            continue;
        }
        let mut command = plant.check.command(workspace)?;
        command.env("POLIS_PLANT", plant.bug);
        let call = in_words(&command);
        println!("{call}");
        let output = command.output().context("cannot start the check")?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        if let Some(why) = why_missed(plant, output.status.success(), &said) {
            println!("{}", tail(&said));
            bail!("{why}; see for yourself: {call}");
        }
    }
    Ok(Done::Passed)
}

fn why_missed(plant: &Plant, succeeded: bool, said: &str) -> Option<String> {
    let Plant { bug, says, .. } = plant;
    if succeeded {
        Some(format!("the planted bug `{bug}` went unnoticed"))
    } else if !said.contains(says) {
        Some(format!("with the planted bug `{bug}` the check fails without saying \"{says}\""))
    } else {
        None
    }
}

/// The call as a person would type it.
fn in_words(command: &Command) -> String {
    let bug = command.get_envs().find_map(|(name, value)| value.filter(|_| name == "POLIS_PLANT"));
    let words = bug.map(|bug| format!("POLIS_PLANT={}", bug.display())).into_iter();
    let words = words.chain([command.get_program().display().to_string()]);
    words.chain(command.get_args().map(|word| word.display().to_string())).collect::<Vec<_>>().join(" ")
}

/// The last lines, enough to see what went on.
fn tail(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bug_counts_as_caught_only_by_the_check_that_is_there_for_it() {
        let plant = Plant { bug: "b", check: SIM, says: "lost" };
        assert_eq!(why_missed(&plant, false, "panicked: one is lost"), None);
        assert_eq!(why_missed(&plant, true, "one is lost").unwrap(), "the planted bug `b` went unnoticed");
        assert_eq!(
            why_missed(&plant, false, "error: could not compile").unwrap(),
            "with the planted bug `b` the check fails without saying \"lost\""
        );
    }

    #[test]
    fn only_the_last_lines_are_shown() {
        let said: Vec<String> = (1..=100).map(|line| line.to_string()).collect();
        assert_eq!(tail(&said.join("\n")).lines().next(), Some("61"));
        assert_eq!(tail("one"), "one");
    }
}
