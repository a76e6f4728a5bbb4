//! Todos: what the planner writes, the executor does and the verifier judges.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Where a todo stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TodoStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Somebody works on it.
    Executing,
    /// The executor completed it.
    Completed,
    /// Tried in vain, or not possible because another failed.
    Failed,
    /// Left out on purpose.
    Skipped,
}

impl TodoStatus {
    /// All of them, as JSON names them.
    pub const NAMES: [&'static str; 5] = ["pending", "executing", "completed", "failed", "skipped"];

    /// The name that JSON has for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Executing => "executing",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    /// The status with this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Pending, Self::Executing, Self::Completed, Self::Failed, Self::Skipped]
            .into_iter()
            .find(|status| status.name() == name)
    }

    /// Whether nothing more will be done about it.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Skipped)
    }
}

/// One piece of work.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Todo {
    /// Its name within the plan, such as `task-1`.
    pub id: String,
    /// A few words for a list.
    pub title: String,
    /// What to do, when it is done, and what one must know for it.
    pub description: String,
    /// 1 is done first.
    pub priority: u32,
    /// Ids of todos that must be done before.
    pub dependencies: Vec<String>,
    /// Whether it changes anything outside the conversation. Where nobody says, it may if a tool on offer does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<bool>,
    /// Where it stands.
    pub status: TodoStatus,
    /// It is the one that is being worked on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_current: bool,
    /// What came of it before, where that was not accepted.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_result: String,
    /// What came of it, or why nothing did.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub result: String,
}

/// Most characters of a title that is made from a description.
const TITLE_CHARS: usize = 60;

/// Most characters of a title that is shown.
const LONGEST_TITLE: usize = 300;

impl Todo {
    /// The title, or the beginning of the description.
    pub fn heading(&self) -> Cow<'_, str> {
        let title = self.title.trim();
        let from = if title.is_empty() { self.description.trim() } else { title };
        let line = from.lines().next().unwrap_or_default();
        let most = if title.is_empty() { TITLE_CHARS } else { LONGEST_TITLE };
        match line.char_indices().nth(most) {
            Some((end, _)) => format!("{}…", &line[..end]).into(),
            None => line.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_the_names_that_json_has() {
        for name in TodoStatus::NAMES {
            let status = TodoStatus::named(name).unwrap();
            assert_eq!(serde_json::to_value(status).unwrap(), name);
            assert_eq!(status.name(), name);
        }
        assert_eq!(TodoStatus::named("done"), None);
    }

    #[test]
    fn a_todo_without_a_title_is_headed_by_its_description() {
        let todo =
            |title: &str, description: &str| Todo { title: title.into(), description: description.into(), ..Todo::default() };
        assert_eq!(todo(" Read ", "long").heading(), "Read");
        assert_eq!(todo("", "  first\nsecond").heading(), "first");
        assert_eq!(todo("", &"字".repeat(61)).heading(), format!("{}…", "字".repeat(60)));
        assert_eq!(todo("", &"字".repeat(60)).heading(), "字".repeat(60));
    }
}
