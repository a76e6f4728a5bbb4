//! The check that every task which a verifier calls done is shown by what was recorded (D27, D39).

use std::collections::BTreeSet;

use super::empty_summary::says_nothing;
use super::evidence::Item;
use super::{Component, Evidence, Plan, TaskJudgement, Todo, TodoStatus, Unreadable, VerifierResponse};

/// Whether what a verifier calls done is shown by what happened. The error is meant for the verifier.
///
/// Each todo of the plan must be judged. Each that is called completed must cite something of its own that happened, not only
/// calls that failed or attempts that were refused, and not only words where all its calls failed or where the todo is about
/// something that words cannot show ([`beyond_words`]). If everything is called done, each todo must be completed or
/// skipped, and the summary must say something.
pub fn check_proof(response: &VerifierResponse, plan: &Plan, evidence: &Evidence) -> Result<(), Unreadable> {
    let mut problems = Vec::new();
    for todo in plan.todos() {
        let judgement = response.tasks.iter().find(|task| task.id == todo.id);
        let is_skipped = todo.status == TodoStatus::Skipped;
        match judgement {
            None if !is_skipped => problems.push(format!("tasks: \"{}\" is not judged", todo.id)),
            Some(task) if task.completed => problems.extend(unproved(task, todo, plan, evidence)),
            Some(task) if response.all_completed && !is_skipped => problems.push(format!(
                "allCompleted: is true, but task \"{}\" has completed: false and was not skipped; make them agree",
                task.id
            )),
            _ => {}
        }
    }
    for task in response.tasks.iter().filter(|task| plan.todo(&task.id).is_none()) {
        problems.push(format!("tasks: there is no task \"{}\" in the plan", task.id));
    }
    let is_shown = plan.todos().iter().any(|todo| todo.status == TodoStatus::Completed)
        || evidence.items.iter().any(|item| item.is_call && !item.is_failure && !item.is_refused)
        || response.tasks.iter().flat_map(|task| &task.evidence).any(|cited| evidence.find(cited).is_some());
    if response.is_final() && !is_shown {
        problems
            .push("allCompleted: is true, but every task was skipped; cite what shows that nothing was to be done".to_owned());
    }
    if response.is_final() && says_nothing(&response.summary) {
        problems.push("summary: must be the whole answer for the user, with the results".to_owned());
    }
    if problems.is_empty() { Ok(()) } else { Err(Unreadable { component: VerifierResponse::NAME, problems }) }
}

/// The todos that are called done although nothing shows it, or that were not judged.
pub(super) fn unproved_todos<'p>(response: &VerifierResponse, plan: &'p Plan, evidence: &Evidence) -> Vec<&'p Todo> {
    let is_unproved = |todo: &&Todo| match response.tasks.iter().find(|task| task.id == todo.id) {
        Some(task) if task.completed => !unproved(task, todo, plan, evidence).is_empty(),
        judgement => todo.status != TodoStatus::Skipped && (judgement.is_none() || response.all_completed),
    };
    plan.todos().iter().filter(is_unproved).collect()
}

fn unproved(task: &TaskJudgement, todo: &Todo, plan: &Plan, evidence: &Evidence) -> Vec<String> {
    let id = &task.id;
    if todo.status == TodoStatus::Failed {
        return vec![format!("tasks: \"{id}\" failed, so it cannot have completed: true")];
    }
    let is_skipped = todo.status == TodoStatus::Skipped;
    if task.evidence.is_empty() && is_skipped {
        return vec![];
    }
    if task.evidence.is_empty() {
        return vec![format!("tasks: \"{id}\" has completed: true without evidence; cite the calls or messages that show it")];
    }
    let (known, unknown): (Vec<_>, Vec<_>) =
        task.evidence.iter().map(|cited| (cited, evidence.find(cited))).partition(|(_, item)| item.is_some());
    let mut problems: Vec<String> =
        unknown.iter().map(|(cited, _)| format!("tasks: \"{id}\" cites \"{cited}\", which does not exist")).collect();
    let known: Vec<&Item> = known.into_iter().filter_map(|(_, item)| item).collect();
    if known.is_empty() || is_skipped {
        return problems;
    }
    let known: Vec<&Item> = known.into_iter().filter(|item| !item.is_refused).collect();
    if known.is_empty() {
        problems.push(format!("tasks: \"{id}\" cites only an attempt that was refused; cite what was done since"));
        return problems;
    }
    let is_own = |item: &&Item| item.todo.as_ref() == Some(id) || item.is_look;
    let calls: Vec<&Item> = evidence.of(id).filter(|item| item.is_call && !item.is_refused).collect();
    // A change is shown by the call that made it, or by what the verifier has read since.
    let can_show = |item: &Item| todo.writes != Some(true) || !item.is_read || item.is_look;
    let shows =
        |item: &&Item| item.is_call && !item.is_failure && can_show(item) && (is_own(item) || comes_before(item, todo, plan));
    if known.iter().all(|item| item.is_failure) {
        problems.push(format!("tasks: \"{id}\" cites only calls that failed; they do not show that it is done"));
    } else if evidence.of(id).next().is_some() && !known.iter().any(is_own) {
        problems.push(format!("tasks: \"{id}\" cites only what belongs to other tasks; cite what was done for it"));
    } else if !calls.is_empty()
        && calls.iter().all(|call| call.is_failure)
        && !known.iter().any(|item| item.is_call && !item.is_failure)
    {
        problems.push(format!("tasks: every call of \"{id}\" failed; what the executor says does not show that it is done"));
    } else if let Some(what) = beyond_words(todo, plan, evidence).filter(|_| !known.iter().any(shows)) {
        problems.push(format!(
            "tasks: \"{id}\" {what}, and words alone do not show that it is done{}; cite a call of this attempt that succeeded, or \
             set completed to false and say in improvements what has to be looked up or done",
            if todo.writes == Some(true) { ", nor does a call that only reads" } else { "" }
        ));
    }
    problems
}

/// Whether something was done for a todo that this one depends on.
fn comes_before(item: &Item, todo: &Todo, plan: &Plan) -> bool {
    let mut open: Vec<&str> = todo.dependencies.iter().map(String::as_str).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if item.todo.as_deref() == Some(id) {
            return true;
        }
        if seen.insert(id) {
            open.extend(plan.todo(id).into_iter().flat_map(|todo| todo.dependencies.iter().map(String::as_str)));
        }
    }
    false
}

/// What a todo is about that words cannot show, if it is: a change, a file, a tool, or figures that were given nowhere.
fn beyond_words(todo: &Todo, plan: &Plan, evidence: &Evidence) -> Option<String> {
    if todo.writes == Some(true) {
        return Some("changes something".to_owned());
    }
    for text in [&todo.title, &todo.description] {
        if let Some(file) = named_file(text) {
            return Some(format!("names {file}"));
        }
        if let Some(tool) = evidence.tools.iter().find(|tool| names_tool(text, tool)) {
            return Some(format!("names the tool {tool}"));
        }
    }
    let others = plan.todos().iter().filter(|other| other.id != todo.id);
    let results = others.map(|other| format!("{} {} {} {}", other.id, other.title, other.description, other.result));
    let given = format!("{} {} {} {} {}", evidence.request, todo.id, todo.title, todo.description, results.collect::<String>());
    let mut given: BTreeSet<String> = figures(&given).collect();
    let result = without_numbering(&todo.result);
    // What comes of given figures is shown by the calculation itself: `15% × 240 = 36`.
    for (left, right) in result.lines().filter_map(|line| line.split_once('=')) {
        let of: Vec<String> = figures(left).collect();
        if of.len() > 1 && of.iter().all(|figure| given.contains(figure)) {
            given.extend(figures(right).take(1));
        }
    }
    let figure = figures(&result).find(|figure| !given.contains(figure))?;
    Some(format!("has the figure {figure} as its result"))
}

/// A tool with an everyday word for a name is named only where it is marked as code.
fn names_tool(text: &str, tool: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(tool).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + tool.len()..].chars().next());
        let is_marked = before == Some('`') && after == Some('`');
        let is_alone =
            !before.is_some_and(|c| c.is_ascii() && is_word(c)) && !after.is_some_and(|c| c.is_ascii() && is_word(c));
        is_marked || (tool.contains('_') && is_alone)
    })
}

/// The first name in a text that looks like a file or a page: `notes.md`, `/etc/hosts`, `https://…`.
fn named_file(text: &str) -> Option<&str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '\\' | '~' | '.' | ':');
    let words = text.split(|c: char| !is_part(c)).map(|word| word.trim_matches(['.', ':', '-']));
    words.filter(|word| !word.is_empty()).find_map(|word| {
        let is_path =
            word.contains("://") || (word.starts_with(['/', '~']) && word.len() > 1) || word.matches(['/', '\\']).count() > 1;
        if is_path {
            return Some(word);
        }
        word.match_indices('.').find_map(|(at, _)| {
            let stem = word[..at].chars().rev().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-')).count();
            let ending: &str = &word[at + 1..];
            let length = ending.chars().take_while(char::is_ascii_alphanumeric).count();
            let is_ending = (1..=5).contains(&length) && ending[..length].contains(|c: char| c.is_ascii_alphabetic());
            // `e.g.` and `i.e.` are no files.
            (is_ending && stem > 0 && (stem > 1 || length > 1)).then(|| &word[..at + 1 + length])
        })
    })
}

/// The numbers in a text, without separators.
fn figures(text: &str) -> impl Iterator<Item = String> {
    let runs = text.split(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ','))).map(|run| run.trim_matches(['.', ',']));
    runs.filter(|run| !run.is_empty()).map(|run| run.replace([',', '.'], ""))
}

/// A text without the numbers of its numbered lines.
fn without_numbering(text: &str) -> String {
    let bare = |line: &str| {
        let rest = line.trim_start();
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_numbered = after.len() < rest.len() && after.starts_with(['.', ')', '、', '．']);
        // A number such as 3.5 does not number a line.
        let is_number = after.get(1..2).is_some_and(|next| next.bytes().all(|byte| byte.is_ascii_digit()));
        if is_numbered && !is_number { after.to_owned() } else { line.to_owned() }
    };
    text.lines().map(bare).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::Todo;
    use crate::workflow::evidence::tests::evidence;

    fn plan(todos: &[(&str, TodoStatus)]) -> Plan {
        let todo = |id: &str| Todo { id: id.to_owned(), description: "x".into(), priority: 1, ..Todo::default() };
        let mut plan = Plan::new(todos.iter().map(|(id, _)| todo(id)).collect()).unwrap();
        todos.iter().for_each(|(id, status)| plan.settle(id, *status, ""));
        plan
    }

    fn response(summary: &str, tasks: &[(&str, bool, &[&str])]) -> VerifierResponse {
        let judged = |(id, completed, cited): &(&str, bool, &[&str])| TaskJudgement {
            id: (*id).to_owned(),
            completed: *completed,
            feedback: "seen".into(),
            evidence: cited.iter().map(|&cited| cited.to_owned()).collect(),
        };
        VerifierResponse {
            all_completed: !summary.is_empty(),
            user_needs_satisfied: true,
            overall_feedback: String::new(),
            summary: summary.to_owned(),
            improvements: vec![],
            tasks: tasks.iter().map(judged).collect(),
        }
    }

    const DONE: TodoStatus = TodoStatus::Completed;

    #[test]
    fn done_is_what_something_shows() {
        let two = plan(&[("a", DONE), ("b", DONE), ("s", TodoStatus::Skipped)]);
        for cited in [&["c1"][..], &["[C1]", "c2"], &["call c1"], &["`c1`", "m1"]] {
            let good = response("There are 3 lines.", &[("a", true, cited), ("b", true, &["m1"])]);
            assert_eq!(check_proof(&good, &two, &evidence()), Ok(()), "{cited:?}");
        }
        let open = response("", &[("a", false, &[]), ("b", true, &["m1"]), ("s", true, &[])]);
        assert_eq!(check_proof(&open, &two, &evidence()), Ok(()), "what is not called done needs no proof");
        let skipped = response("3 lines.", &[("a", true, &["c1"]), ("b", true, &["m1"]), ("s", false, &[])]);
        assert_eq!(check_proof(&skipped, &two, &evidence()), Ok(()), "what was rightly skipped is not completed");
    }

    #[test]
    fn what_was_skipped_proves_nothing() {
        let skipped = plan(&[("s", TodoStatus::Skipped)]);
        let told = |answer: &VerifierResponse, evidence: &Evidence| check_proof(answer, &skipped, evidence).err();
        let final_word = response("It is 42.", &[("s", false, &[])]);
        assert_eq!(told(&final_word, &evidence()), None, "a call shows why");
        let why = told(&final_word, &Evidence::default()).unwrap().problems.join("; ");
        assert!(why.starts_with("allCompleted: is true, but every task was skipped"), "{why}");
        let mut words = Evidence::default();
        words.message("12.6", "s", "nobody needs it");
        assert_eq!(told(&response("Not needed.", &[("s", false, &["m1"])]), &words), None);
        let invented = response("It is 42.", &[("s", true, &["m9"])]);
        let why = told(&invented, &evidence()).unwrap().problems.join("; ");
        assert_eq!(why, "tasks: \"s\" cites \"m9\", which does not exist");
    }

    #[test]
    fn a_change_is_not_shown_by_a_call_that_only_reads() {
        let todo = Todo { id: "a".into(), description: "x".into(), priority: 1, writes: Some(true), ..Todo::default() };
        let mut plan = Plan::new(vec![todo]).unwrap();
        plan.settle("a", TodoStatus::Completed, "");
        let judged = |evidence: &Evidence, cited: &[&str]| {
            check_proof(&response("The report is written.", &[("a", true, cited)]), &plan, evidence).is_ok()
        };
        let mut evidence = Evidence::about("write report.md", ["read_file".to_owned()]).with_readers(["read_file".to_owned()]);
        evidence.call("1", "a", "read_file", "{}", Ok("3 apples"));
        evidence.message("2", "a", "I wrote report.md.");
        assert!(!judged(&evidence, &["c1", "m1"]), "a read and words");
        let mut looked = evidence.clone();
        looked.look("3", "read_file", "{}", Ok("apples: 3"));
        assert!(judged(&looked, &["v1"]), "the verifier has read it");
        evidence.call("3", "a", "write_file", "{}", Ok("written"));
        assert!(judged(&evidence, &["c1", "c2"]));
    }

    #[test]
    fn done_without_proof_is_refused_with_the_reason() {
        let one = plan(&[("a", DONE)]);
        let failed = plan(&[("a", TodoStatus::Failed)]);
        let only_failed = plan(&[("f", DONE)]);
        let proved: &[(&str, bool, &[&str])] = &[("a", true, &["c1"])];
        for (plan, response, said) in [
            (&one, response("3 lines.", &[("a", true, &[])]), "\"a\" has completed: true without evidence"),
            (&one, response("3 lines.", &[("a", true, &["c9"])]), "\"a\" cites \"c9\", which does not exist"),
            (&one, response("3 lines.", &[("a", true, &["c1", "x"])]), "\"a\" cites \"x\", which does not exist"),
            (&one, response("3 lines.", &[("a", true, &["c2"])]), "\"a\" cites only calls that failed"),
            (&one, response("3 lines.", &[("a", true, &["m1"])]), "\"a\" cites only what belongs to other tasks"),
            (&one, response("3 lines.", &[("a", false, &[])]), "allCompleted: is true, but task \"a\" has completed: false"),
            (&only_failed, response("3 lines.", &[("f", true, &["m2"])]), "every call of \"f\" failed"),
            (&one, response("3 lines.", &[]), "\"a\" is not judged"),
            (&one, response("3 lines.", &[("a", true, &["c1"]), ("z", true, &["c1"])]), "there is no task \"z\" in the plan"),
            (&failed, response("3 lines.", proved), "\"a\" failed, so it cannot have completed: true"),
            (&one, response(" ", proved), "summary: must be the whole answer"),
            (&one, response("任务已完成。", proved), "summary: must be the whole answer"),
            (&one, response("**Done!**", proved), "summary: must be the whole answer"),
        ] {
            let refused = check_proof(&response, plan, &evidence()).unwrap_err();
            assert!(refused.to_string().contains(said), "{refused}");
            assert_eq!(refused.problems.len(), 1, "{refused}");
        }
    }
}
