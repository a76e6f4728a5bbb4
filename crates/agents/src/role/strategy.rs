//! How to go about a task (R334-R336): the cheap signs first, and the model only where they say nothing.

use polis_domain::{Approach, Failure, Task};
use polis_engine::Turn;
use polis_ports::{ChatMessage, ModelRequest, estimate_tokens};
use serde::{Deserialize, Serialize};

use super::message::TaskInfo;
use super::options::RoleParts;
use super::plan::InternalPlan;
use crate::workflow::Language;

/// The key of a task's meta that says which strategy to use, and of an answer's that says which one was used.
pub const STRATEGY: &str = "strategy";

pub(super) const WORKFLOW: &str = "workflow";

/// A task of at most so many tokens is simple unless it lists several things.
const SHORT_TOKENS: u64 = 120;

/// So many items of a list make a task long.
const MANY_ITEMS: usize = 4;

/// The name under which a turn notes the procedure that it found.
const MATCHED: &str = "match_sop";

const JUDGE: &str = "Say how the task of the person should be gone about. Answer with one word. `simple`: one assistant can do it \
in one go, with tools if it needs them. `complex`: it takes several pieces of work that build on each other, or the help of others, \
and should be planned first. Do not do the task.";

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
    let tokens = estimate_tokens(&task.description);
    let items = items(&task.description);
    if tokens <= SHORT_TOKENS && items < MANY_ITEMS {
        return Ok(Choice::new(PlanningStrategy::Simple, format!("it is short (about {tokens} tokens), and no SOP fits")));
    }
    if !parts.llm_config.judges {
        return Ok(Choice::new(PlanningStrategy::Simple, "no SOP fits"));
    }
    Ok(judged(turn, task).await)
}

async fn matched(parts: &RoleParts, turn: &mut Turn, task: &TaskInfo) -> Option<MatchedSop> {
    let role = turn.role().map_or_else(|| parts.name.clone(), |role| role.id.as_str().into());
    let noted = turn.once(MATCHED, || {
        let found = parts.sops.find(&role, super::execute::own_part(task))?;
        serde_json::to_string(&MatchedSop { reason: found.reason, plan: found.plan }).ok()
    });
    serde_json::from_str(&noted.await?).ok()
}

/// Asks the model. Whatever it says that is not clear counts as simple.
async fn judged(turn: &mut Turn, task: &TaskInfo) -> Choice {
    let request = ModelRequest {
        system: JUDGE.into(),
        messages: vec![ChatMessage::user(task.description.clone())],
        aside: true,
        ..ModelRequest::default()
    };
    let simple = |reason: &str| Choice::new(PlanningStrategy::Simple, reason);
    match turn.model(request).await {
        Ok(reply) => {
            let said = reply.text.to_lowercase();
            let says = |words: [&str; 2]| words.into_iter().any(|word| said.contains(word));
            match (says(["complex", "复杂"]), says(["simple", "简单"])) {
                (true, false) => Choice::new(PlanningStrategy::ComplexFreeform, "the model judges it complex, and no SOP fits"),
                (false, true) => simple("the model judges it simple"),
                _ => simple("the model did not judge it clearly"),
            }
        }
        Err(failure) => simple(&format!("it could not be judged: {failure}")),
    }
}

/// How many items of lists a text has.
fn items(text: &str) -> usize {
    let is_item = |line: &str| {
        let line = line.trim_start();
        let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let numbered = number.len() < line.len() && number.starts_with(['.', ')', '、', '．']);
        numbered || line.starts_with("- ") || line.starts_with("* ")
    };
    text.lines().filter(|line| is_item(line)).count()
}

/// The language that a task is in.
pub(super) fn language(task: &TaskInfo) -> Language {
    Language::of(&task.description)
}
