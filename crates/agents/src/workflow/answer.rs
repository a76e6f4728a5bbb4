//! Answers that the workflow writes itself: what is done and what is missing, when nobody could do everything.

use std::fmt::Write;

use super::phrases::phrases;
use super::truncate::{clipped, share};
use super::{Language, Plan, SummaryResponse, Todo, TodoStatus};

/// Most bytes of all results in an answer, and of all reasons.
const RESULTS_BYTES: usize = 64 * 1024;

/// No text is cut to less.
const LEAST_BYTES: usize = 200;

/// What is done and what is missing. What could only not be checked is said to be so.
pub(super) fn partial(
    language: Language,
    plan: Option<&Plan>,
    mut missing: Vec<String>,
    is_unchecked: bool,
) -> SummaryResponse {
    let words = phrases(language);
    let todos = plan.map(Plan::todos).unwrap_or_default();
    let is_over = |todo: &Todo| matches!(todo.status, TodoStatus::Completed | TodoStatus::Skipped);
    let first = if is_unchecked && todos.iter().all(is_over) { words.unchecked } else { words.partial };
    let mut summary = format!("{first}\n\n{}\n", words.done);
    let done: Vec<_> = todos.iter().filter(|todo| todo.status == TodoStatus::Completed).collect();
    let most = share(done.iter().map(|todo| todo.result.len()), RESULTS_BYTES).max(LEAST_BYTES);
    for todo in &done {
        let _ = writeln!(summary, "- {}: {}", todo.heading(), clipped(&todo.result, most));
    }
    if done.is_empty() {
        let _ = writeln!(summary, "{}", words.nothing_done);
    }
    let open = todos.iter().filter(|todo| !is_over(todo));
    // It is told below, with its heading.
    missing.retain(|what| !open.clone().any(|todo| *what == format!("{}: {}", todo.id, todo.result)));
    missing.extend(open.map(|todo| {
        let why = [todo.result.trim(), todo.last_result.trim()].into_iter().filter(|text| !text.is_empty());
        let why: Vec<&str> = why.collect();
        match why.as_slice() {
            [] => todo.heading().into_owned(),
            [why] => format!("{}: {why}", todo.heading()),
            [why, last, ..] => format!("{}: {why}\n  {} {last}", todo.heading(), words.not_accepted),
        }
    }));
    fit(&mut missing);
    let _ = write!(summary, "\n{}", words.missing);
    for what in &missing {
        let _ = write!(summary, "\n- {what}");
    }
    SummaryResponse { summary, verified: false, missing }
}

/// A verifier's answer that it did not prove.
pub(super) fn unverified(language: Language, summary: String, mut problems: Vec<String>) -> SummaryResponse {
    fit(&mut problems);
    let reasons: Vec<String> = problems.iter().map(|problem| format!("- {problem}")).collect();
    let summary = format!("{}\n\n{}\n{}", summary.trim_end(), phrases(language).unverified, reasons.join("\n"));
    SummaryResponse { summary, verified: false, missing: problems }
}

/// Cuts texts so that all together fit.
fn fit(texts: &mut [String]) {
    let most = share(texts.iter().map(String::len), RESULTS_BYTES).max(LEAST_BYTES);
    for text in texts.iter_mut().filter(|text| text.len() > most) {
        *text = clipped(text, most).into_owned();
    }
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
