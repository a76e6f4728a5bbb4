//! How workflows run: `[workflow]` of `polis.toml` and `--plan-approval`.

use std::num::NonZeroUsize;

use clap::ValueEnum;
use polis_agents::workflow::{PlanApproval, RunSettings, WorkflowLimits};
use polis_api::AskAboutPlans;
use serde::Deserialize;

/// When a person is asked about a plan, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanApprovalFlag {
    /// Carry every plan out
    Never,
    /// Ask about plans that may write, and about long ones
    Ask,
    /// Ask about every plan
    Always,
}

impl From<PlanApprovalFlag> for AskAboutPlans {
    fn from(typed: PlanApprovalFlag) -> Self {
        match typed {
            PlanApprovalFlag::Never => Self::Never,
            PlanApprovalFlag::Ask => Self::Ask,
            PlanApprovalFlag::Always => Self::Always,
        }
    }
}

/// The section `[workflow]`.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkflowSection {
    plan_approval: Option<AskAboutPlans>,
    /// Todos that `ask` lets pass.
    ask_above: Option<usize>,
    planning_rounds: Option<Count<{ WorkflowLimits::MOST.planning_rounds }>>,
    executor_rounds: Option<Count<{ WorkflowLimits::MOST.executor_rounds }>>,
    verifier_rounds: Option<Count<{ WorkflowLimits::MOST.verifier_rounds }>>,
    cycles: Option<Count<{ WorkflowLimits::MOST.cycles }>>,
    at_once: Option<Count<{ WorkflowLimits::MOST.at_once }>>,
    repairs: Option<UpTo<{ WorkflowLimits::MOST.repairs }>>,
}

/// A number from 1 up to this.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "NonZeroUsize")]
struct Count<const MOST: usize>(usize);

impl<const MOST: usize> TryFrom<NonZeroUsize> for Count<MOST> {
    type Error = String;

    fn try_from(number: NonZeroUsize) -> Result<Self, String> {
        UpTo::<MOST>::try_from(number.get()).map(|UpTo(number)| Self(number))
    }
}

/// A number up to this.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "usize")]
struct UpTo<const MOST: usize>(usize);

impl<const MOST: usize> TryFrom<usize> for UpTo<MOST> {
    type Error = String;

    fn try_from(number: usize) -> Result<Self, String> {
        if number <= MOST { Ok(Self(number)) } else { Err(format!("{number} is more than the maximum of {MOST}")) }
    }
}

impl WorkflowSection {
    /// The settings: the flag wins over the file.
    pub(crate) fn settings(&self, typed: Option<AskAboutPlans>) -> RunSettings {
        let usual = WorkflowLimits::default();
        let limits = WorkflowLimits {
            planning_rounds: self.planning_rounds.map_or(usual.planning_rounds, |Count(number)| number),
            executor_rounds: self.executor_rounds.map_or(usual.executor_rounds, |Count(number)| number),
            verifier_rounds: self.verifier_rounds.map_or(usual.verifier_rounds, |Count(number)| number),
            cycles: self.cycles.map_or(usual.cycles, |Count(number)| number),
            at_once: self.at_once.map_or(usual.at_once, |Count(number)| number),
            repairs: self.repairs.map_or(usual.repairs, |UpTo(number)| number),
        };
        let approval = match typed.or(self.plan_approval) {
            None | Some(AskAboutPlans::Never) => PlanApproval::Never,
            Some(AskAboutPlans::Ask) => self.ask_above.map_or(PlanApproval::ASK, |todos| PlanApproval::Ask { todos }),
            Some(AskAboutPlans::Always) => PlanApproval::Always,
        };
        RunSettings { limits, approval }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_comes_before_what_is_written_and_that_before_what_is_usual() {
        let written = |text: &str| toml::from_str::<WorkflowSection>(text).unwrap();
        assert_eq!(WorkflowSection::default().settings(None), RunSettings::default());
        let some = written("plan_approval = \"ask\"\nask_above = 2\ncycles = 1\nrepairs = 0\n");
        let RunSettings { limits, approval } = some.settings(None);
        assert_eq!((limits.cycles, limits.repairs, limits.at_once), (1, 0, 3));
        assert_eq!(approval, PlanApproval::Ask { todos: 2 });
        assert_eq!(some.settings(Some(AskAboutPlans::Always)).approval, PlanApproval::Always);
        assert_eq!(written("plan_approval = \"ask\"\n").settings(None).approval, PlanApproval::ASK);
        assert_eq!(written("cycles = 100\nrepairs = 20\n").settings(None).limits.cycles, 100);
        for bad in [
            "plan_approval = \"sometimes\"",
            "cycles = 0",
            "rounds = 3",
            "cycles = 101",
            "repairs = 1000000000",
            "at_once = 51",
        ] {
            assert!(toml::from_str::<WorkflowSection>(bad).is_err(), "{bad}");
        }
    }
}
