//! A plan: todos with an order among them, which may begin next, and what a new plan makes of what is done.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::truncate::clipped;
use super::{TaskJudgement, Todo, TodoStatus};

/// Most todos of one plan.
pub const MOST_TODOS: usize = 50;

/// Most characters of an id.
pub(super) const LONGEST_ID: usize = 64;

/// Most bytes of all descriptions of a plan together. Every role is shown them.
const MOST_BYTES: usize = 64 * 1024;

/// Most failed attempts that a plan remembers, the newest ones, and most bytes of a heading or reason.
const MOST_TRIED: usize = 12;
const MOST_TRIED_BYTES: usize = 400;

/// Todos that fit together: ids once each, dependencies that are there, no circles.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Plan {
    todos: Vec<Todo>,
    /// What failed or was refused in plans that this one replaces, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tried: Vec<FailedAttempt>,
}

/// A todo of an earlier plan that came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedAttempt {
    /// The heading of the todo.
    pub todo: String,
    /// The reason of the executor, or of the verifier that refused the result.
    pub why: String,
    /// Whether there was a result, which the verifier refused.
    pub was_refused: bool,
}

/// Why todos are no plan. The text is meant for whoever wrote them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// There is nothing to do.
    #[error("todos: is empty; write at least one todo")]
    Empty,
    /// More than anybody can follow.
    #[error("todos: has {0} todos, more than {MOST_TODOS}; put some of them together")]
    TooMany(usize),
    /// More than anybody can read.
    #[error("todos: the descriptions have {0} bytes together, more than {MOST_BYTES}; write shorter ones")]
    TooLong(usize),
    /// An id that cannot be used.
    #[error("todos[{0}].id: must be 1 to {LONGEST_ID} characters, such as \"task-1\"")]
    BadId(usize),
    /// Two todos have one id.
    #[error("todos: the id \"{0}\" is used more than once; give each todo an id of its own")]
    Twice(String),
    /// A dependency that is not in the plan.
    #[error("todos: \"{todo}\" depends on \"{missing}\", which is not in the plan; name ids of this plan, or leave it out")]
    Unknown {
        /// The todo with the dependency.
        todo: String,
        /// The id that is not in the plan.
        missing: String,
    },
    /// Todos that wait for each other.
    #[error("todos: {} wait for each other in a circle; take one of these dependencies out", .0.join(" -> "))]
    Circle(Vec<String>),
}

impl Plan {
    /// A first plan. Nothing is done yet, whatever the todos say.
    pub fn new(todos: Vec<Todo>) -> Result<Self, PlanError> {
        let todos = todos.into_iter().map(|todo| Todo {
            status: TodoStatus::Pending,
            result: String::new(),
            last_result: String::new(),
            is_current: false,
            ..todo
        });
        Self::checked(todos.collect())
    }

    fn checked(todos: Vec<Todo>) -> Result<Self, PlanError> {
        match todos.len() {
            0 => return Err(PlanError::Empty),
            count if count > MOST_TODOS => return Err(PlanError::TooMany(count)),
            _ => {}
        }
        let bytes = todos.iter().map(|todo| todo.title.len() + todo.description.len()).sum();
        if bytes > MOST_BYTES {
            return Err(PlanError::TooLong(bytes));
        }
        let mut ids = BTreeSet::new();
        for (index, todo) in todos.iter().enumerate() {
            if todo.id.trim().is_empty() || todo.id.chars().count() > LONGEST_ID || todo.id.chars().any(char::is_control) {
                return Err(PlanError::BadId(index));
            }
            if !ids.insert(&*todo.id) {
                return Err(PlanError::Twice(todo.id.clone()));
            }
        }
        for todo in &todos {
            if let Some(missing) = todo.dependencies.iter().find(|id| !ids.contains(&***id)) {
                return Err(PlanError::Unknown { todo: todo.id.clone(), missing: missing.clone() });
            }
        }
        if let Some(circle) = circle(&todos) {
            return Err(PlanError::Circle(circle));
        }
        Ok(Self { todos, tried: Vec::new() })
    }

    /// The todos, in the order in which they were written.
    pub fn todos(&self) -> &[Todo] {
        &self.todos
    }

    /// What failed or was refused in earlier plans, oldest first.
    pub fn tried(&self) -> &[FailedAttempt] {
        &self.tried
    }

    /// What a next plan must not forget: the attempts known so far, and what failed or was refused in this plan. A todo that could
    /// not begin because another failed was not tried.
    fn tried_by_now(&self) -> Vec<FailedAttempt> {
        let has_failed = |id: &String| self.todo(id).is_some_and(|other| other.status == TodoStatus::Failed);
        let new = self.todos.iter().filter_map(|todo| {
            let was_refused = match todo.status {
                TodoStatus::Failed if !todo.dependencies.iter().any(has_failed) => false,
                TodoStatus::Pending if !todo.result.is_empty() => true,
                _ => return None,
            };
            Some(FailedAttempt {
                todo: clipped(&todo.heading(), MOST_TRIED_BYTES).into_owned(),
                why: clipped(&todo.result, MOST_TRIED_BYTES).into_owned(),
                was_refused,
            })
        });
        let all: Vec<_> = self.tried.iter().cloned().chain(new).collect();
        all[all.len().saturating_sub(MOST_TRIED)..].to_vec()
    }

    /// The todo with this id.
    pub fn todo(&self, id: &str) -> Option<&Todo> {
        self.todos.iter().find(|todo| todo.id == id)
    }

    /// The todos that may begin now, most important first, when so many may be worked on at once.
    pub fn runnable(&self, at_once: usize) -> Vec<&Todo> {
        let running = self.todos.iter().filter(|todo| todo.status == TodoStatus::Executing).count();
        let mut ready: Vec<&Todo> =
            self.todos.iter().filter(|todo| todo.status == TodoStatus::Pending && self.is_free(todo)).collect();
        ready.sort_by_key(|todo| todo.priority);
        ready.truncate(at_once.saturating_sub(running));
        ready
    }

    fn is_free(&self, todo: &Todo) -> bool {
        let is_over =
            |id: &String| self.todo(id).is_none_or(|other| matches!(other.status, TodoStatus::Completed | TodoStatus::Skipped));
        todo.dependencies.iter().all(is_over)
    }

    /// Whether nothing is left to do.
    pub fn is_settled(&self) -> bool {
        self.todos.iter().all(|todo| todo.status.is_settled())
    }

    /// Somebody begins with a todo. It is the current one.
    pub fn begin(&mut self, id: &str) {
        self.change(id, |todo| {
            todo.status = TodoStatus::Executing;
            todo.is_current = true;
        });
    }

    /// A todo ends, with what came of it. When it failed, those that depend on it fail too, since they cannot begin.
    pub fn settle(&mut self, id: &str, status: TodoStatus, result: &str) {
        self.change(id, |todo| {
            todo.status = status;
            todo.result = result.to_owned();
            todo.is_current = false;
        });
        if status == TodoStatus::Failed {
            self.fail_what_depends_on(id);
        }
    }

    fn fail_what_depends_on(&mut self, id: &str) {
        let mut failed = vec![id.to_owned()];
        while let Some(cause) = failed.pop() {
            for todo in &mut self.todos {
                if todo.status == TodoStatus::Pending && todo.dependencies.contains(&cause) {
                    todo.status = TodoStatus::Failed;
                    todo.result = format!("not begun: it depends on \"{cause}\", which failed");
                    failed.push(todo.id.clone());
                }
            }
        }
    }

    /// A todo that was thought done is not, and why. It can begin again.
    pub fn reopen(&mut self, id: &str, why: &str) {
        self.change(id, |todo| {
            todo.status = TodoStatus::Pending;
            todo.last_result = std::mem::replace(&mut todo.result, why.to_owned());
            todo.is_current = false;
        });
    }

    /// Takes over what a verifier says: what it does not accept is open again.
    pub fn take_judgements(&mut self, judgements: &[TaskJudgement]) {
        for judgement in judgements.iter().filter(|judgement| !judgement.completed) {
            if self.todo(&judgement.id).is_some_and(|todo| todo.status == TodoStatus::Completed) {
                self.reopen(&judgement.id, &judgement.feedback);
            }
        }
    }

    /// Takes over what an executor says about todos beside its own. What is settled or in somebody else's hands stays.
    pub fn apply(&mut self, current: &str, said: &[(String, TodoStatus)]) {
        for (id, status) in said {
            let is_open = self.todo(id).is_some_and(|todo| todo.status == TodoStatus::Pending);
            if is_open && id != current && status.is_settled() {
                self.settle(id, *status, &format!("said while working on \"{current}\""));
            }
        }
    }

    /// Puts a new plan in place of this one. What is completed stays, and is not planned again: a todo that says the same, or
    /// names a completed id as completed, is the old one. A new todo under a completed id gets an id of its own. What was not
    /// completed and is not planned again is gone.
    pub fn replan(&self, todos: Vec<Todo>) -> Result<Self, PlanError> {
        let done: Vec<&Todo> = self.todos.iter().filter(|todo| todo.status == TodoStatus::Completed).collect();
        let mut merged: Vec<Todo> = done.iter().map(|todo| (*todo).clone()).collect();
        let mut taken: BTreeSet<String> =
            todos.iter().map(|todo| todo.id.clone()).chain(done.iter().map(|todo| todo.id.clone())).collect();
        let mut renamed: BTreeMap<String, String> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let mut fresh = Vec::new();
        for todo in todos {
            if !seen.insert(todo.id.clone()) {
                return Err(PlanError::Twice(todo.id));
            }
            let same_id = done.iter().find(|old| old.id == todo.id);
            let says_same = |old: &&&Todo| words(&old.description).eq(words(&todo.description));
            match (same_id, done.iter().find(says_same)) {
                (Some(old), _) if todo.status == TodoStatus::Completed || says_same(&old) => {}
                (_, Some(old)) => {
                    renamed.insert(todo.id, old.id.clone());
                }
                (Some(_), None) => {
                    let id = free_id(&todo.id, &taken);
                    taken.insert(id.clone());
                    renamed.insert(todo.id.clone(), id.clone());
                    fresh.push(Todo { id, ..todo });
                }
                (None, None) => fresh.push(todo),
            }
        }
        // What was skipped holds nobody up.
        let is_skipped = |id: &str| self.todo(id).is_some_and(|old| old.status == TodoStatus::Skipped) && !taken.contains(id);
        for mut todo in fresh {
            todo.dependencies.retain(|id| !is_skipped(id));
            for dependency in &mut todo.dependencies {
                if let Some(id) = renamed.get(dependency) {
                    dependency.clone_from(id);
                }
            }
            let (result, last_result) = (String::new(), String::new());
            merged.push(Todo { status: TodoStatus::Pending, result, last_result, is_current: false, ..todo });
        }
        Ok(Self { tried: self.tried_by_now(), ..Self::checked(merged)? })
    }

    fn change(&mut self, id: &str, change: impl FnOnce(&mut Todo)) {
        if let Some(todo) = self.todos.iter_mut().find(|todo| todo.id == id) {
            change(todo);
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
}

fn free_id(id: &str, taken: &BTreeSet<String>) -> String {
    let stem: String = id.chars().take(LONGEST_ID - 4).collect();
    (2..).map(|number| format!("{stem}-{number}")).find(|id| !taken.contains(id)).unwrap_or(stem)
}

/// Todos that wait for each other, beginning and ending with the same one.
fn circle(todos: &[Todo]) -> Option<Vec<String>> {
    let places: BTreeMap<&str, usize> = todos.iter().enumerate().map(|(place, todo)| (&*todo.id, place)).collect();
    let needs = |place: usize| todos[place].dependencies.iter().filter_map(|id| places.get(&**id).copied());
    let mut is_free = vec![false; todos.len()];
    loop {
        let next = (0..todos.len()).find(|&place| !is_free[place] && needs(place).all(|other| is_free[other]));
        match next {
            Some(place) => is_free[place] = true,
            None => break,
        }
    }
    let mut walk = vec![is_free.iter().position(|free| !free)?];
    loop {
        let next = needs(*walk.last()?).find(|&other| !is_free[other])?;
        if let Some(begin) = walk.iter().position(|&place| place == next) {
            let names = walk[begin..].iter().chain([&next]);
            return Some(names.map(|&place| todos[place].id.clone()).collect());
        }
        walk.push(next);
    }
}

#[cfg(test)]
mod tests;
