//! Proof of done: what the verifier may cite, and whether what it says is done is shown by something that happened.

use super::response::says_nothing;
use super::{AgentType, Component, TaskJudgement};
use super::{Plan, TodoStatus, Unreadable, VerifierResponse};

/// What happened while the todos were worked on, each with a short name that the verifier cites.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evidence {
    items: Vec<Item>,
    calls: usize,
    messages: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    name: String,
    /// Where it is found, such as a path of the conversation or the id of a call.
    source: String,
    line: String,
    is_failure: bool,
}

/// Most characters of what came of something, as the verifier is shown it.
const EXCERPT_CHARS: usize = 2_000;

impl Evidence {
    /// Notes a call of a tool and what came of it. Returns its name: `c1`, `c2` …
    pub fn call(&mut self, source: &str, todo: &str, tool: &str, arguments: &str, result: Result<&str, &str>) -> String {
        self.calls += 1;
        let name = format!("c{}", self.calls);
        let (word, text) = match result {
            Ok(text) => ("returned", text),
            Err(text) => ("FAILED", text),
        };
        let line = format!("[{name}] ({todo}) {tool} {} {word}: {}", excerpt(arguments), excerpt(text));
        self.items.push(Item { name: name.clone(), source: source.to_owned(), line, is_failure: result.is_err() });
        name
    }

    /// Notes what an executor said about a todo. Returns its name: `m1`, `m2` …
    pub fn message(&mut self, source: &str, todo: &str, text: &str) -> String {
        self.messages += 1;
        let name = format!("m{}", self.messages);
        let line = format!("[{name}] ({todo}) the executor said: {}", excerpt(text));
        self.items.push(Item { name: name.clone(), source: source.to_owned(), line, is_failure: false });
        name
    }

    /// Notes what somebody else said about the whole. Returns its name, as [`Evidence::message`] does.
    pub fn word(&mut self, source: &str, agent: &AgentType, text: &str) -> String {
        self.messages += 1;
        let name = format!("m{}", self.messages);
        let line = format!("[{name}] the {agent} said: {}", excerpt(text));
        self.items.push(Item { name: name.clone(), source: source.to_owned(), line, is_failure: false });
        name
    }

    /// Where something that was cited is found.
    pub fn source(&self, cited: &str) -> Option<&str> {
        self.find(cited).map(|item| &*item.source)
    }

    /// Everything, one entry each, as the verifier reads it.
    pub fn list(&self) -> String {
        self.items.iter().map(|item| &*item.line).collect::<Vec<_>>().join("\n")
    }

    /// Models write `c1`, `[c1]`, `C1` or `call c1`.
    fn find(&self, cited: &str) -> Option<&Item> {
        let bare = cited.trim().trim_matches(['[', ']', '(', ')', '`', '"', '#']);
        let bare = bare.rsplit([' ', ':']).next().unwrap_or(bare);
        self.items.iter().find(|item| item.name.eq_ignore_ascii_case(bare))
    }
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => format!("{} … ({} more bytes)", &text[..end], text.len() - end),
        None => text.to_owned(),
    }
}

/// Whether what a verifier calls done is shown by what happened. The error is meant for the verifier.
///
/// Each todo of the plan must be judged. Each that is called completed must cite a call or message that exists, and not only
/// calls that failed. If everything is called done, no todo may have failed and the summary must say something.
pub fn check_proof(response: &VerifierResponse, plan: &Plan, evidence: &Evidence) -> Result<(), Unreadable> {
    let mut problems = Vec::new();
    for todo in plan.todos() {
        let judgement = response.tasks.iter().find(|task| task.id == todo.id);
        match judgement {
            None if todo.status != TodoStatus::Skipped => problems.push(format!("tasks: \"{}\" is not judged", todo.id)),
            Some(task) if task.completed => problems.extend(unproved(task, todo.status, evidence)),
            _ => {}
        }
    }
    for task in response.tasks.iter().filter(|task| plan.todo(&task.id).is_none()) {
        problems.push(format!("tasks: there is no task \"{}\" in the plan", task.id));
    }
    if response.is_final() && says_nothing(&response.summary) {
        problems.push("summary: must be the whole answer for the user, with the results".to_owned());
    }
    if problems.is_empty() { Ok(()) } else { Err(Unreadable { component: VerifierResponse::NAME, problems }) }
}

fn unproved(task: &TaskJudgement, status: TodoStatus, evidence: &Evidence) -> Vec<String> {
    let id = &task.id;
    if status == TodoStatus::Failed {
        return vec![format!("tasks: \"{id}\" failed, so it cannot have completed: true")];
    }
    if status == TodoStatus::Skipped {
        return vec![];
    }
    if task.evidence.is_empty() {
        return vec![format!("tasks: \"{id}\" has completed: true without evidence; cite the calls or messages that show it")];
    }
    let (known, unknown): (Vec<_>, Vec<_>) =
        task.evidence.iter().map(|cited| (cited, evidence.find(cited))).partition(|(_, item)| item.is_some());
    let mut problems: Vec<String> =
        unknown.iter().map(|(cited, _)| format!("tasks: \"{id}\" cites \"{cited}\", which does not exist")).collect();
    if !known.is_empty() && known.iter().all(|(_, item)| item.is_some_and(|item| item.is_failure)) {
        problems.push(format!("tasks: \"{id}\" cites only calls that failed; they do not show that it is done"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::Todo;

    fn plan(todos: &[(&str, TodoStatus)]) -> Plan {
        let todo = |id: &str| Todo { id: id.to_owned(), description: "x".into(), priority: 1, ..Todo::default() };
        let mut plan = Plan::new(todos.iter().map(|(id, _)| todo(id)).collect()).unwrap();
        todos.iter().for_each(|(id, status)| plan.settle(id, *status, ""));
        plan
    }

    fn evidence() -> Evidence {
        let mut evidence = Evidence::default();
        assert_eq!(evidence.call("12.3", "a", "read_file", "{\"path\":\"a\"}", Ok("3 lines")), "c1");
        assert_eq!(evidence.call("12.4", "a", "read_file", "{}", Err("no such file")), "c2");
        assert_eq!(evidence.message("messages[1].meta._thread.messages[2]", "b", "It is 3."), "m1");
        evidence
    }

    fn response(summary: &str, tasks: &[(&str, bool, &[&str])]) -> VerifierResponse {
        let judged = |(id, completed, cited): &(&str, bool, &[&str])| TaskJudgement {
            id: (*id).to_owned(),
            completed: *completed,
            feedback: "seen".into(),
            evidence: cited.iter().map(|&cited| cited.to_owned()).collect(),
        };
        VerifierResponse {
            all_completed: tasks.iter().all(|(_, completed, _)| *completed),
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
        for cited in [&["c1"][..], &["[C1]", "c2"], &["call c1"], &["`m1`"]] {
            let good = response("There are 3 lines.", &[("a", true, cited), ("b", true, &["m1"])]);
            assert_eq!(check_proof(&good, &two, &evidence()), Ok(()), "{cited:?}");
        }
        let open = response("", &[("a", false, &[]), ("b", true, &["m1"]), ("s", true, &[])]);
        assert_eq!(check_proof(&open, &two, &evidence()), Ok(()), "what is not called done needs no proof");
    }

    #[test]
    fn done_without_proof_is_refused_with_the_reason() {
        let one = plan(&[("a", DONE)]);
        let failed = plan(&[("a", TodoStatus::Failed)]);
        let proved: &[(&str, bool, &[&str])] = &[("a", true, &["c1"])];
        for (plan, response, said) in [
            (&one, response("3 lines.", &[("a", true, &[])]), "\"a\" has completed: true without evidence"),
            (&one, response("3 lines.", &[("a", true, &["c9"])]), "\"a\" cites \"c9\", which does not exist"),
            (&one, response("3 lines.", &[("a", true, &["c1", "x"])]), "\"a\" cites \"x\", which does not exist"),
            (&one, response("3 lines.", &[("a", true, &["c2"])]), "\"a\" cites only calls that failed"),
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

    #[test]
    fn what_happened_is_listed_with_names_and_found_again() {
        let mut evidence = evidence();
        assert_eq!(
            evidence.list(),
            "[c1] (a) read_file {\"path\":\"a\"} returned: 3 lines\n[c2] (a) read_file {} FAILED: no such file\n\
             [m1] (b) the executor said: It is 3."
        );
        assert_eq!(evidence.source("c1"), Some("12.3"));
        assert_eq!(evidence.source("c7"), None);
        evidence.message("x", "b", &"字".repeat(2_001));
        assert!(evidence.list().ends_with("字 … (3 more bytes)"));
    }
}
