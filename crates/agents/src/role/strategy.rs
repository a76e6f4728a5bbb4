//! How to go about a task (R334-R336): as it is asked for, by a procedure that fits, or as the model judges while it answers.

use polis_domain::{Approach, Failure, Task};
use polis_engine::Turn;
use serde::{Deserialize, Serialize};

use super::message::TaskInfo;
use super::options::RoleParts;
use super::plan::InternalPlan;
use super::start_workflow::START_WORKFLOW;
use crate::end_tools::HandOver;
use crate::workflow::Language;

/// The key of a task's meta that says which strategy to use, and of an answer's that says which one was used.
pub const STRATEGY: &str = "strategy";

pub(super) const WORKFLOW: &str = "workflow";

/// The name under which a turn notes the procedure that it found.
const MATCHED: &str = "match_sop";

/// How to go about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanningStrategy {
    /// At once, in one loop of model and tools.
    Simple,
    /// By a procedure that somebody has written.
    ComplexTemplate,
    /// By a plan of its own.
    ComplexFreeform,
}

/// A strategy, and what decided it.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The strategy that was chosen.
    pub strategy: PlanningStrategy,
    /// The reason for the choice.
    pub reason: String,
    /// The plan, where a procedure gives it.
    pub plan: Option<InternalPlan>,
}

/// A procedure that fits, as the log keeps it: the file may change, the turn may not.
#[derive(Serialize, Deserialize)]
struct MatchedSop {
    reason: String,
    plan: InternalPlan,
}

impl PlanningStrategy {
    /// The name that people have for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::ComplexTemplate => "template",
            Self::ComplexFreeform => WORKFLOW,
        }
    }

    /// The strategy of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Simple, Self::ComplexTemplate, Self::ComplexFreeform].into_iter().find(|strategy| strategy.name() == name)
    }
}

impl Choice {
    fn new(strategy: PlanningStrategy, reason: impl Into<String>) -> Self {
        Self { strategy, reason: reason.into(), plan: None }
    }

    /// The model wants the task to be planned, for the reason that the failure tells.
    pub(super) fn by_model(failure: &Failure) -> Self {
        Self::new(PlanningStrategy::ComplexFreeform, format!("the model judges it complex: {}", failure.message))
    }

    /// As it is told to people.
    pub fn to_approach(&self) -> Approach {
        Approach { name: self.strategy.name().into(), reason: self.reason.clone() }
    }
}

/// The strategy that a task's meta asks for, if it asks for one.
fn forced(task: &Task) -> Result<Option<PlanningStrategy>, Failure> {
    let Some(name) = task.meta.get(STRATEGY).and_then(|name| name.as_str()).filter(|name| *name != "auto") else {
        return Ok(None);
    };
    let message = || format!("there is no strategy `{name}`; use auto, simple, template or workflow");
    PlanningStrategy::named(name).map(Some).ok_or_else(|| Failure::new("bad_strategy", message()))
}

pub(super) async fn choose(parts: &RoleParts, turn: &mut Turn, task: &TaskInfo) -> Result<Choice, Failure> {
    if turn.task().wants_compression() {
        return Ok(Choice::new(PlanningStrategy::Simple, "it is about the conversation itself"));
    }
    if turn.answer_rules().is_some_and(|rules| rules.are_binding()) {
        return Ok(Choice::new(PlanningStrategy::Simple, "the client prescribes the form of the answer"));
    }
    let wanted = forced(turn.task())?;
    if let Some(strategy @ (PlanningStrategy::Simple | PlanningStrategy::ComplexFreeform)) = wanted {
        return Ok(Choice::new(strategy, "it was asked for"));
    }
    if let Some(MatchedSop { reason, plan }) = matched(parts, turn, task).await {
        return Ok(Choice { plan: Some(plan), ..Choice::new(PlanningStrategy::ComplexTemplate, reason) });
    }
    if wanted.is_some() {
        let there = parts.sops.names();
        let there = if there.is_empty() { "there are none".to_owned() } else { format!("there are {}", there.join(", ")) };
        let message = format!("no SOP fits this task ({there}); add words of it to `when` of one, or use another strategy");
        return Err(Failure::new("no_sop", message));
    }
    let reason = match hand_over(parts, turn) {
        HandOver::Allowed => "the model answers it directly",
        HandOver::NotNow | HandOver::Never => "no SOP fits",
    };
    Ok(Choice::new(PlanningStrategy::Simple, reason))
}

/// Whether the model may decide that a task is complex, while it works on it by the simple strategy.
pub(super) fn hand_over(parts: &RoleParts, turn: &Turn) -> HandOver {
    let is_open = turn.role().is_none_or(|role| role.has_tool(START_WORKFLOW)) && !turn.is_denied(START_WORKFLOW);
    let is_bound = turn.answer_rules().is_some_and(|rules| rules.are_binding());
    let can_plan = parts.workflow.is_some() || !parts.collaborators.is_empty();
    match (can_plan && parts.llm_config.judges && is_open && !is_bound, forced(turn.task())) {
        (false, _) => HandOver::Never,
        (true, Ok(None)) => HandOver::Allowed,
        (true, _) => HandOver::NotNow,
    }
}

/// Whether the simple strategy ended because the model wants the task to be planned.
pub(super) fn is_handed_over(failure: &Failure) -> bool {
    &*failure.code == START_WORKFLOW
}

async fn matched(parts: &RoleParts, turn: &mut Turn, task: &TaskInfo) -> Option<MatchedSop> {
    let role = turn.role().map_or_else(|| parts.name.clone(), |role| role.id.as_str().into());
    let noted = turn.once(MATCHED, || {
        let found = parts.sops.find(&role, super::execute::own_part(task))?;
        serde_json::to_string(&MatchedSop { reason: found.reason, plan: found.plan }).ok()
    });
    serde_json::from_str(&noted.await?).ok()
}

/// The language that a task is in.
pub(super) fn language(task: &TaskInfo) -> Language {
    Language::of(&task.description)
}
