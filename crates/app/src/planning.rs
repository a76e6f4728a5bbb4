//! How workflows run: what `[workflow]` of `polis.toml` and `--plan-approval` say.

use std::num::NonZeroUsize;

use clap::ValueEnum;
use polis_agents::workflow::{PlanApproval, RunSettings, WorkflowLimits};
use serde::Deserialize;

/// When a person is asked about a plan before it is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AskAboutPlans {
    /// Carry every plan out
    Never,
    /// Ask about plans that name a tool that writes, and about long ones
    Ask,
    /// Ask about every plan
    Always,
}

/// What `[workflow]` may say.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenWorkflow {
    plan_approval: Option<AskAboutPlans>,
    /// Todos that `ask` lets pass.
    ask_above: Option<usize>,
    planning_rounds: Option<NonZeroUsize>,
    executor_rounds: Option<NonZeroUsize>,
    verifier_rounds: Option<NonZeroUsize>,
    cycles: Option<NonZeroUsize>,
    at_once: Option<NonZeroUsize>,
    repairs: Option<usize>,
}

impl WrittenWorkflow {
    /// What is meant, with what was typed before what is written.
    pub(crate) fn settings(&self, typed: Option<AskAboutPlans>) -> RunSettings {
        let usual = WorkflowLimits::default();
        let or = |written: Option<NonZeroUsize>, usual: usize| written.map_or(usual, NonZeroUsize::get);
        let limits = WorkflowLimits {
            planning_rounds: or(self.planning_rounds, usual.planning_rounds),
            executor_rounds: or(self.executor_rounds, usual.executor_rounds),
            verifier_rounds: or(self.verifier_rounds, usual.verifier_rounds),
            cycles: or(self.cycles, usual.cycles),
            at_once: or(self.at_once, usual.at_once),
            repairs: self.repairs.unwrap_or(usual.repairs),
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
        let written = |text: &str| toml::from_str::<WrittenWorkflow>(text).unwrap();
        assert_eq!(WrittenWorkflow::default().settings(None), RunSettings::default());
        let some = written("plan_approval = \"ask\"\nask_above = 2\ncycles = 1\nrepairs = 0\n");
        let RunSettings { limits, approval } = some.settings(None);
        assert_eq!((limits.cycles, limits.repairs, limits.at_once), (1, 0, 3));
        assert_eq!(approval, PlanApproval::Ask { todos: 2 });
        assert_eq!(some.settings(Some(AskAboutPlans::Always)).approval, PlanApproval::Always);
        assert_eq!(written("plan_approval = \"ask\"\n").settings(None).approval, PlanApproval::ASK);
        for bad in ["plan_approval = \"sometimes\"", "cycles = 0", "rounds = 3"] {
            assert!(toml::from_str::<WrittenWorkflow>(bad).is_err(), "{bad}");
        }
    }
}
