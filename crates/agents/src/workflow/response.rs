//! What the three roles answer, as JSON has it, and how it is read. Names of fields are the documents'.

use std::collections::BTreeMap;

use polis_domain::Meta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::empty_summary::says_nothing;
use super::fields::{Field, Parsed, Reading, Unreadable};
use super::plan::LONGEST_ID;
use super::{PlanError, Todo, TodoStatus};

/// Most characters of a title.
const TITLE_CHARS: usize = 300;

/// Most characters of a description, a reason or a wish.
const WORDS_CHARS: usize = 8_000;

/// Most characters of a result or an answer.
const RESULT_CHARS: usize = 40_000;

/// Most characters of the name of something that is cited.
const CITED_CHARS: usize = 200;

/// The planner's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannerResponse {
    /// How it goes about it; what is missing, if more planning is needed.
    pub summary: String,
    /// The plan is not whole yet.
    pub needs_more_planning: bool,
    /// What is to be done.
    pub todos: Vec<Todo>,
}

/// An executor's answer about one todo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutorResponse {
    /// The result itself, or what stands in the way.
    pub summary: String,
    /// Whether the todo is done. It decides if it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_completed: Option<bool>,
    /// Whether it will go on with this todo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub should_continue: Option<bool>,
    /// What it wants next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_action: Option<NextAction>,
    /// Where the todos of the plan stand.
    #[serde(default)]
    pub todos: Vec<TodoState>,
}

/// Where a todo stands, as an executor sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TodoState {
    /// The todo's.
    pub id: String,
    /// Where it stands.
    pub status: TodoStatus,
}

/// What an executor wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NextAction {
    /// Go on with this todo.
    Continue,
    /// End it as done.
    Complete,
    /// Permit it out.
    Skip,
    /// Begin it again.
    Retry,
}

/// What becomes of a todo after a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is done.
    Completed,
    /// Another round.
    Continue,
    /// It is left out.
    Skipped,
    /// Its rounds begin again.
    Retry,
    /// It is given up.
    Failed,
}

/// The verifier's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VerifierResponse {
    /// Every todo is done.
    pub all_completed: bool,
    /// What was asked is answered.
    pub user_needs_satisfied: bool,
    /// The judgement in a sentence.
    pub overall_feedback: String,
    /// The answer for whoever asked. Empty unless both are true.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// What the next plan must do better. Empty if both are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub improvements: Vec<String>,
    /// A judgement for each todo.
    pub tasks: Vec<TaskJudgement>,
}

/// What the verifier says about one todo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskJudgement {
    /// The todo's.
    pub id: String,
    /// Whether it is done.
    pub completed: bool,
    /// The reasons for the judgement.
    pub feedback: String,
    /// The calls and messages that show it.
    #[serde(default)]
    pub evidence: Vec<String>,
}

/// A list of todos, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoList {
    /// The todos.
    pub todos: Vec<Todo>,
}

/// The answer of a workflow, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryResponse {
    /// The answer.
    pub summary: String,
    /// Whether the verifier accepted it and proved it.
    pub verified: bool,
    /// What was asked and is not in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// Something that pages show by its component's name.
pub trait Component: Serialize {
    /// The component's name.
    const NAME: &'static str;

    /// Where its fields stand, if not beside `type` and `component`.
    const PLACE: Option<&'static str> = None;

    /// `{"type": "component", "component": …}` with its fields.
    fn to_component(&self) -> Meta {
        let (fields, placed) = match Self::PLACE {
            None => (Some(self), None),
            Some(place) => (None, Some(BTreeMap::from([(place, self)]))),
        };
        Meta::of(&ComponentJson { kind: "component", component: Self::NAME, fields, placed })
    }
}

/// A component as JSON.
#[derive(Serialize)]
struct ComponentJson<'a, T: ?Sized> {
    #[serde(rename = "type")]
    kind: &'static str,
    component: &'static str,
    #[serde(flatten)]
    fields: Option<&'a T>,
    #[serde(flatten)]
    placed: Option<BTreeMap<&'static str, &'a T>>,
}

impl Component for PlannerResponse {
    const NAME: &'static str = "planner-response";
}

impl Component for ExecutorResponse {
    const NAME: &'static str = "executor-response";
}

impl Component for VerifierResponse {
    const NAME: &'static str = "verifier-response";
}

impl Component for TodoList {
    const NAME: &'static str = "todo-list";
    const PLACE: Option<&'static str> = Some("props");
}

impl Component for SummaryResponse {
    const NAME: &'static str = "summary-response";
}

impl ExecutorResponse {
    /// Whether the todo is done: by `taskCompleted`, else by `nextAction`, else by what `todos` says of it.
    pub fn is_completed(&self, current: &str) -> bool {
        match (self.task_completed, self.next_action) {
            (Some(completed), _) => completed,
            (None, Some(NextAction::Complete)) => true,
            (None, _) => self.status_of(current) == Some(TodoStatus::Completed),
        }
    }

    /// What becomes of the todo.
    pub fn verdict(&self, current: &str) -> Verdict {
        let said = if self.task_completed.is_none() && self.next_action.is_none() { self.status_of(current) } else { None };
        match (self.next_action, self.should_continue, said) {
            _ if self.is_completed(current) => Verdict::Completed,
            (Some(NextAction::Skip), _, _) | (_, _, Some(TodoStatus::Skipped)) => Verdict::Skipped,
            (Some(NextAction::Retry), _, _) => Verdict::Retry,
            (_, Some(false), _) | (_, _, Some(TodoStatus::Failed)) => Verdict::Failed,
            _ => Verdict::Continue,
        }
    }

    /// What it says about todos, by id.
    pub fn states(&self) -> Vec<(String, TodoStatus)> {
        self.todos.iter().map(|todo| (todo.id.clone(), todo.status)).collect()
    }

    fn status_of(&self, id: &str) -> Option<TodoStatus> {
        self.todos.iter().find(|todo| todo.id == id).map(|todo| todo.status)
    }
}

impl VerifierResponse {
    /// Whether the summary is the answer.
    pub fn is_final(&self) -> bool {
        self.all_completed && self.user_needs_satisfied
    }
}

impl NextAction {
    /// All of them, as JSON names them.
    pub const NAMES: [&'static str; 4] = ["continue", "complete", "skip", "retry"];

    fn named(name: &str) -> Option<Self> {
        match name {
            "continue" => Some(Self::Continue),
            "complete" => Some(Self::Complete),
            "skip" => Some(Self::Skip),
            "retry" => Some(Self::Retry),
            _ => None,
        }
    }
}

impl From<PlanError> for Unreadable {
    fn from(error: PlanError) -> Self {
        Self { component: PlannerResponse::NAME, problems: vec![error.to_string()] }
    }
}

/// Reads what a planner wrote.
pub fn parse_planner_response(text: &str) -> Result<Parsed<PlannerResponse>, Unreadable> {
    let (mut reading, object) = Reading::begin(text, PlannerResponse::NAME, &["summary", "needsMorePlanning", "todos"])?;
    let summary = reading.words(object.get("summary"), "summary", WORDS_CHARS);
    let flag = reading.flag(object.get("needsMorePlanning"), "needsMorePlanning");
    let needs_more_planning = reading.need(flag, "needsMorePlanning", "true or false");
    let list = reading.list(object.get("todos"), "todos");
    let todos = reading.need(list, "todos", "a list of todos").map(|list| planned(&mut reading, list));
    if needs_more_planning == Some(false) && todos.as_ref().is_some_and(Vec::is_empty) && reading.is_good() {
        reading.problem("todos", "is empty; write at least one todo, or set needsMorePlanning to true and say what you need");
    }
    let response = summary.zip(needs_more_planning).zip(todos);
    reading.end(response.map(|((summary, needs_more_planning), todos)| PlannerResponse { summary, needs_more_planning, todos }))
}

/// Todos as a planner writes them.
pub(super) fn planned(reading: &mut Reading, list: &[Value]) -> Vec<Todo> {
    let mut todos = Vec::new();
    for (at, object) in reading.objects(list, "todos") {
        let id = reading.words(object.get("id"), &format!("{at}.id"), LONGEST_ID);
        let title = reading.text(object.get("title"), &format!("{at}.title"), TITLE_CHARS).ok().unwrap_or_default();
        let description = reading.words(object.get("description"), &format!("{at}.description"), WORDS_CHARS);
        let priority = reading.count(object.get("priority"), &format!("{at}.priority"));
        let priority = reading.need(priority, &format!("{at}.priority"), "a whole number from 1 up");
        let dependencies = reading.texts(object.get("dependencies"), &format!("{at}.dependencies"), LONGEST_ID);
        let dependencies = dependencies.ok().unwrap_or_default();
        let status = status(reading, object, &at).ok().unwrap_or_default();
        let writes = reading.flag(object.get("writes"), &format!("{at}.writes")).ok();
        if let ((Some(id), Some(description)), Some(priority)) = ((id, description), priority) {
            todos.push(Todo { id, title, description, priority, dependencies, status, writes, ..Todo::default() });
        }
    }
    todos
}

fn status(reading: &mut Reading, object: &Map<String, Value>, at: &str) -> Field<TodoStatus> {
    let loosely = |word: &str| match word {
        "done" | "complete" => Some(TodoStatus::Completed),
        "in_progress" | "in-progress" | "running" => Some(TodoStatus::Executing),
        "todo" => Some(TodoStatus::Pending),
        word => TodoStatus::named(word),
    };
    reading.choice(object.get("status"), &format!("{at}.status"), &TodoStatus::NAMES, TodoStatus::named, loosely)
}

/// Reads what an executor wrote about the todo `current`. A summary that only says that it is done is no result.
pub fn parse_executor_response(text: &str, current: &str) -> Result<Parsed<ExecutorResponse>, Unreadable> {
    let parsed = read_executor_response(text, current)?;
    refuse_empty_word(&parsed.response, current)?;
    Ok(parsed)
}

/// Refuses a summary that only says that the todo `current` is done.
pub(super) fn refuse_empty_word(response: &ExecutorResponse, current: &str) -> Result<(), Unreadable> {
    if response.is_completed(current) && says_nothing(&response.summary) {
        let problem = "summary: only says that it is done; write the result itself: what was found, made or changed";
        return Err(Unreadable { component: ExecutorResponse::NAME, problems: vec![problem.to_owned()] });
    }
    Ok(())
}

/// The same, whatever the summary says.
pub(super) fn read_executor_response(text: &str, current: &str) -> Result<Parsed<ExecutorResponse>, Unreadable> {
    let (mut reading, object) =
        Reading::begin(text, ExecutorResponse::NAME, &["summary", "taskCompleted", "shouldContinue", "nextAction", "todos"])?;
    let summary = reading.words(object.get("summary"), "summary", RESULT_CHARS);
    let completed = reading.flag(object.get("taskCompleted"), "taskCompleted");
    let is_missing = matches!(completed, Field::Missing);
    let task_completed = completed.ok();
    let should_continue = reading.flag(object.get("shouldContinue"), "shouldContinue").ok();
    let next_action =
        reading.choice(object.get("nextAction"), "nextAction", &NextAction::NAMES, NextAction::named, NextAction::named).ok();
    let todos = match reading.list(object.get("todos"), "todos") {
        Field::Is(list) => states(&mut reading, list),
        Field::Missing | Field::Wrong => {
            reading.repaired();
            Vec::new()
        }
    };
    let summary_text = summary.clone().unwrap_or_default();
    let response = ExecutorResponse { summary: summary_text, task_completed, should_continue, next_action, todos };
    let says_otherwise = response.next_action.is_some() || response.status_of(current).is_some();
    if is_missing && says_otherwise {
        reading.repaired();
    } else if is_missing {
        reading.problem("taskCompleted", "is missing; must be true or false");
    }
    reading.end(summary.map(|_| response))
}

fn states(reading: &mut Reading, list: &[Value]) -> Vec<TodoState> {
    let mut states = Vec::new();
    for (at, object) in reading.objects(list, "todos") {
        let id = reading.words(object.get("id"), &format!("{at}.id"), LONGEST_ID);
        let status = status(reading, object, &at);
        let status = reading.need(status, &format!("{at}.status"), "a status");
        states.extend(id.zip(status).map(|(id, status)| TodoState { id, status }));
    }
    states
}

/// Reads what a verifier wrote. Whether its proofs hold and its answer says something is for [`super::check_proof`] to say.
pub fn parse_verifier_response(text: &str) -> Result<Parsed<VerifierResponse>, Unreadable> {
    let (mut reading, object) = Reading::begin(
        text,
        VerifierResponse::NAME,
        &["allCompleted", "userNeedsSatisfied", "overallFeedback", "summary", "improvements", "tasks"],
    )?;
    let list = reading.list(object.get("tasks"), "tasks");
    let tasks = reading.need(list, "tasks", "a list with a judgement for each task").map(|list| judged(&mut reading, list));
    let mut needed = |name: &str| {
        let flag = reading.flag(object.get(name), name);
        reading.need(flag, name, "true or false")
    };
    let (all_completed, user_needs_satisfied) = (needed("allCompleted"), needed("userNeedsSatisfied"));
    let overall_feedback = reading.text(object.get("overallFeedback"), "overallFeedback", WORDS_CHARS).ok().unwrap_or_default();
    let summary = reading.text(object.get("summary"), "summary", RESULT_CHARS);
    let is_wrong = matches!(summary, Field::Wrong);
    let summary = summary.ok().unwrap_or_default();
    let improvements = reading.texts(object.get("improvements"), "improvements", WORDS_CHARS).ok().unwrap_or_default();
    let (Some(all_completed), Some(user_needs_satisfied), Some(tasks)) = (all_completed, user_needs_satisfied, tasks) else {
        return reading.end(None);
    };
    let mut response = VerifierResponse { all_completed, user_needs_satisfied, overall_feedback, summary, improvements, tasks };
    if response.is_final() {
        response.improvements.clear();
        if response.summary.trim().is_empty() && !is_wrong {
            reading.problem("summary", "is missing; with both flags true it must be the whole answer for the user");
        }
    } else {
        response.summary.clear();
        if response.improvements.is_empty() {
            reading
                .problem("improvements", "is missing; unless both flags are true it must say what to do better, one text each");
        }
    }
    reading.end(Some(response))
}

fn judged(reading: &mut Reading, list: &[Value]) -> Vec<TaskJudgement> {
    let mut tasks = Vec::new();
    for (at, object) in reading.objects(list, "tasks") {
        let id = reading.words(object.get("id"), &format!("{at}.id"), LONGEST_ID);
        let completed = reading.flag(object.get("completed"), &format!("{at}.completed"));
        let completed = reading.need(completed, &format!("{at}.completed"), "true or false");
        let feedback = reading.text(object.get("feedback"), &format!("{at}.feedback"), WORDS_CHARS).ok().unwrap_or_default();
        let evidence = reading.texts(object.get("evidence"), &format!("{at}.evidence"), CITED_CHARS).ok().unwrap_or_default();
        tasks.extend(id.zip(completed).map(|(id, completed)| TaskJudgement { id, completed, feedback, evidence }));
    }
    tasks
}

#[cfg(test)]
mod tests;
