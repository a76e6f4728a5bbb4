//! What each role is told about the work at hand: the request, the plan, what happened. The system messages say what the role
//! owes; these say what it is about now.

use std::fmt::Write;

use polis_ports::ToolSpec;

use super::{Evidence, Language, Plan, Todo, TodoStatus};

/// Most characters of a result, as other roles are shown it.
const RESULT_CHARS: usize = 4_000;

/// Most characters of a tool's description, as the planner is shown it.
const TOOL_CHARS: usize = 160;

/// The headings of the messages.
struct Words {
    request: &'static str,
    plan: &'static str,
    improvements: &'static str,
    plan_again: &'static str,
    current: &'static str,
    needed: &'static str,
    happened: &'static str,
    nothing: &'static str,
    judge: &'static str,
    priority: &'static str,
    after: &'static str,
    result: &'static str,
}

const ENGLISH: Words = Words {
    request: "The user's request",
    plan: "The plan so far",
    improvements: "Improvements that the Verifier demands",
    plan_again: "Plan what is left. Leave out what is completed.",
    current: "The current task",
    needed: "Results of the tasks that it depends on",
    happened: "What happened",
    nothing: "(nothing)",
    judge: "Judge each task, then the whole.",
    priority: "priority",
    after: "after",
    result: "result",
};

const CHINESE: Words = Words {
    request: "用户的需求",
    plan: "目前的计划",
    improvements: "验证者要求的改进措施",
    plan_again: "规划剩下的工作，已完成的不要再列。",
    current: "当前任务",
    needed: "它所依赖的任务的结果",
    happened: "实际发生的事情",
    nothing: "（没有）",
    judge: "先判断每个任务，再判断整体。",
    priority: "优先级",
    after: "依赖",
    result: "结果",
};

fn words(language: Language) -> &'static Words {
    match language {
        Language::En => &ENGLISH,
        Language::Zh => &CHINESE,
    }
}

/// What the planner is told: the request alone at first, later also the plan and what the verifier wants better.
pub fn planner_message(language: Language, request: &str, plan: Option<&Plan>, improvements: &[String]) -> String {
    let words = words(language);
    let mut message = section(words.request, request);
    let Some(plan) = plan else { return message };
    message += &section(words.plan, &list(plan, words, true));
    if !improvements.is_empty() {
        let lines: Vec<String> = improvements.iter().map(|improvement| format!("- {improvement}")).collect();
        message += &section(words.improvements, &lines.join("\n"));
    }
    message + words.plan_again
}

/// What the executor is told about the todo `current`.
pub fn executor_message(language: Language, request: &str, plan: &Plan, current: &Todo) -> String {
    let words = words(language);
    let mut message = section(words.request, request) + &section(words.plan, &list(plan, words, false));
    let needed = plan.todos().iter().filter(|todo| current.dependencies.contains(&todo.id) && !todo.result.is_empty());
    let needed: Vec<String> =
        needed.map(|todo| format!("### {}\n\n{}", todo.id, shortened(&todo.result, RESULT_CHARS))).collect();
    if !needed.is_empty() {
        message += &section(words.needed, &needed.join("\n\n"));
    }
    message + section(words.current, &format!("{}: {}", current.id, current.description)).trim_end()
}

/// What the verifier is told.
pub fn verifier_message(language: Language, request: &str, plan: &Plan, evidence: &Evidence) -> String {
    let words = words(language);
    let happened = evidence.list();
    let happened = if happened.is_empty() { words.nothing } else { &happened };
    section(words.request, request)
        + &section(words.plan, &list(plan, words, true))
        + &section(words.happened, happened)
        + words.judge
}

/// The tools as the planner reads them: a line each, name and first sentence.
pub fn tool_lines(tools: &[ToolSpec]) -> String {
    let line = |tool: &ToolSpec| {
        let first = tool.description.lines().next().unwrap_or_default();
        format!("- `{}`: {}", tool.name, shortened(first, TOOL_CHARS))
    };
    tools.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn section(heading: &str, text: &str) -> String {
    format!("## {heading}\n\n{}\n\n", text.trim())
}

fn list(plan: &Plan, words: &Words, with_results: bool) -> String {
    let mut lines = String::new();
    for todo in plan.todos() {
        let _ = write!(lines, "- {} [{}] ({} {}", todo.id, todo.status.name(), words.priority, todo.priority);
        if !todo.dependencies.is_empty() {
            let _ = write!(lines, "; {} {}", words.after, todo.dependencies.join(", "));
        }
        let text = if with_results { todo.description.clone() } else { todo.heading() };
        let _ = writeln!(lines, ") {text}");
        if with_results && todo.status != TodoStatus::Executing && !todo.result.is_empty() {
            let _ = writeln!(lines, "  {}: {}", words.result, shortened(&todo.result, RESULT_CHARS));
        }
    }
    lines
}

fn shortened(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let todo = |id: &str, priority, dependencies: &[&str]| Todo {
            id: id.into(),
            title: format!("Do {id}"),
            description: format!("Do {id} well"),
            priority,
            dependencies: dependencies.iter().map(|&id| id.to_owned()).collect(),
            ..Todo::default()
        };
        let mut plan = Plan::new(vec![todo("a", 1, &[]), todo("b", 2, &["a"])]).unwrap();
        plan.settle("a", TodoStatus::Completed, "There are 3.");
        plan
    }

    #[test]
    fn the_planner_is_told_what_is_done_and_what_is_wanted_better() {
        assert_eq!(planner_message(Language::En, " Count. ", None, &[]), "## The user's request\n\nCount.\n\n");
        assert_eq!(
            planner_message(Language::En, "Count.", Some(&plan()), &["Count all rows".into()]),
            "## The user's request\n\nCount.\n\n## The plan so far\n\n- a [completed] (priority 1) Do a well\n  result: There are 3.\n\
             - b [pending] (priority 2; after a) Do b well\n\n## Improvements that the Verifier demands\n\n- Count all rows\n\n\
             Plan what is left. Leave out what is completed."
        );
    }

    #[test]
    fn the_executor_is_told_its_task_and_the_results_it_needs() {
        let plan = plan();
        assert_eq!(
            executor_message(Language::En, "Count.", &plan, plan.todo("b").unwrap()),
            "## The user's request\n\nCount.\n\n## The plan so far\n\n- a [completed] (priority 1) Do a\n- b [pending] (priority 2; after a) Do b\n\n\
             ## Results of the tasks that it depends on\n\n### a\n\nThere are 3.\n\n## The current task\n\nb: Do b well"
        );
    }

    #[test]
    fn tools_are_a_line_each() {
        let tool = |name: &str, description: &str| -> ToolSpec {
            serde_json::from_value(serde_json::json!({ "name": name, "description": description, "parameters": {} })).unwrap()
        };
        let long = "x".repeat(161);
        let lines = tool_lines(&[tool("now", "The time.\nMore."), tool("long", &long)]);
        assert_eq!(lines, format!("- `now`: The time.\n- `long`: {}…", &long[1..]));
    }

    #[test]
    fn the_verifier_is_told_what_happened() {
        let mut evidence = Evidence::default();
        assert!(verifier_message(Language::Zh, "数一数", &plan(), &evidence).contains("## 实际发生的事情\n\n（没有）\n\n"));
        evidence.message("m", "a", "There are 3.");
        let message = verifier_message(Language::En, "Count.", &plan(), &evidence);
        assert!(
            message.contains("## What happened\n\n[m1] (a) the executor said: There are 3.\n\nJudge each task"),
            "{message}"
        );
    }
}
