//! Answers that the workflow writes itself: what is done and what is missing, when nobody could do everything.

use std::fmt::Write;

use super::phrases::phrases;
use super::{Language, Plan, SummaryResponse, TodoStatus};

/// What is done and what is missing.
pub(super) fn partial(language: Language, plan: Option<&Plan>, mut missing: Vec<String>) -> SummaryResponse {
    let words = phrases(language);
    let todos = plan.map(Plan::todos).unwrap_or_default();
    let mut summary = format!("{}\n\n{}\n", words.partial, words.done);
    let done: Vec<_> = todos.iter().filter(|todo| todo.status == TodoStatus::Completed).collect();
    for todo in &done {
        let _ = writeln!(summary, "- {}: {}", todo.heading(), todo.result);
    }
    if done.is_empty() {
        let _ = writeln!(summary, "{}", words.nothing_done);
    }
    let open = todos.iter().filter(|todo| !matches!(todo.status, TodoStatus::Completed | TodoStatus::Skipped));
    missing.extend(open.map(|todo| {
        let why = [todo.result.trim(), todo.last_result.trim()].into_iter().filter(|text| !text.is_empty());
        let why: Vec<&str> = why.collect();
        match why.as_slice() {
            [] => todo.heading(),
            [why] => format!("{}: {why}", todo.heading()),
            [why, last, ..] => format!("{}: {why}\n  {} {last}", todo.heading(), words.not_accepted),
        }
    }));
    let _ = write!(summary, "\n{}", words.missing);
    for what in &missing {
        let _ = write!(summary, "\n- {what}");
    }
    SummaryResponse { summary, verified: false, missing }
}

/// A verifier's answer that it did not prove.
pub(super) fn unverified(language: Language, summary: String, problems: Vec<String>) -> SummaryResponse {
    let reasons: Vec<String> = problems.iter().map(|problem| format!("- {problem}")).collect();
    let summary = format!("{}\n\n{}\n{}", summary.trim_end(), phrases(language).unverified, reasons.join("\n"));
    SummaryResponse { summary, verified: false, missing: problems }
}

/// A plan, a line for each todo.
pub(super) fn listed(plan: &Plan, language: Language) -> String {
    let mut text = format!("{}:", phrases(language).plan);
    for todo in plan.todos() {
        let mark = match todo.status {
            TodoStatus::Pending => ' ',
            TodoStatus::Executing => '>',
            TodoStatus::Completed => 'x',
            TodoStatus::Failed => '!',
            TodoStatus::Skipped => '-',
        };
        let _ = write!(text, "\n- [{mark}] {}", todo.heading());
    }
    text
}
