//! What each role is told about the work at hand: the request, the plan, what happened. The system messages say what the role
//! owes; these say what it is about now.

use std::fmt::Write;

use polis_engine::{brief_description, tool_names};
use polis_ports::ToolSpec;

use super::truncate::{head, one_line, quoted, share};
use super::{Evidence, FailedAttempt, Language, Plan, Todo, TodoStatus};

/// Most bytes of a result, as other roles are shown it.
const RESULT_BYTES: usize = 12_000;

/// Most bytes of all results of a plan, as other roles are shown them.
const RESULTS_BYTES: usize = 48 * 1024;

/// Most characters of a tool's description, as the planner is shown it, and of all lines about tools.
const TOOL_CHARS: usize = 160;
const TOOLS_CHARS: usize = 12_000;

/// The headings of the messages.
struct Words {
    request: &'static str,
    tools: &'static str,
    plan: &'static str,
    improvements: &'static str,
    refused: &'static str,
    remarks: &'static str,
    plan_as_wanted: &'static str,
    plan_again: &'static str,
    current: &'static str,
    needed: &'static str,
    happened: &'static str,
    nothing: &'static str,
    judge: &'static str,
    priority: &'static str,
    after: &'static str,
    result: &'static str,
    not_accepted: &'static str,
    failed: &'static str,
    tried: &'static str,
    last_result: &'static str,
}

const ENGLISH: Words = Words {
    request: "The user's request",
    tools: "Tools that the Executor has",
    plan: "The plan so far",
    improvements: "Improvements that the Verifier demands",
    refused: "The plan that the user refused",
    remarks: "What the user said about it, and about earlier ones",
    plan_as_wanted: "Plan anew, as the user wants it.",
    plan_again: "Plan what is left. Leave out what is completed.",
    current: "The current task",
    needed: "Results of the tasks that it depends on",
    happened: "What happened",
    nothing: "(nothing)",
    judge: "Judge each task, then the whole.",
    priority: "priority",
    after: "after",
    result: "result",
    not_accepted: "refused, because",
    failed: "failed, because",
    tried: "What earlier plans tried in vain",
    last_result: "the result that was refused",
};

const CHINESE: Words = Words {
    request: "用户的需求",
    tools: "执行者可以使用的工具",
    plan: "目前的计划",
    improvements: "验证者要求的改进措施",
    refused: "用户没有同意的计划",
    remarks: "用户对它以及之前的计划说的话",
    plan_as_wanted: "请按用户的意思重新规划。",
    plan_again: "规划剩下的工作，已完成的不要再列。",
    current: "当前任务",
    needed: "它所依赖的任务的结果",
    happened: "实际发生的事情",
    nothing: "（没有）",
    judge: "先判断每个任务，再判断整体。",
    priority: "优先级",
    after: "依赖",
    result: "结果",
    not_accepted: "被退回，原因",
    failed: "失败，原因",
    tried: "以前的计划里没有成功的尝试",
    last_result: "被退回的结果",
};

fn words(language: Language) -> &'static Words {
    match language {
        Language::En => &ENGLISH,
        Language::Zh => &CHINESE,
    }
}

/// A plan that the person did not agree to, and what they said about it and about earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refused {
    /// The plan that was refused last.
    pub plan: Plan,
    /// What they said, oldest first.
    pub remarks: Vec<String>,
}

/// What the planner is told: the request alone at first, later also the plan and what the verifier wants better, and what the
/// person did not agree to.
pub fn planner_message(
    language: Language,
    request: &str,
    plan: Option<&Plan>,
    improvements: &[String],
    refused: Option<&Refused>,
) -> String {
    let words = words(language);
    let lines = |texts: &[String]| texts.iter().map(|text| format!("-{}", quoted(text))).collect::<Vec<_>>().join("\n");
    let mut message = section(words.request, request);
    if let Some(plan) = plan {
        message += &(section(words.plan, &list(plan, words, true)) + &tried(plan, words));
        if !improvements.is_empty() {
            message += &section(words.improvements, &lines(improvements));
        }
    }
    match (plan, refused) {
        (None, None) => message,
        (Some(_), None) => message + words.plan_again,
        (_, Some(refused)) => {
            message += &section(words.refused, &list(&refused.plan, words, true));
            message += &section(words.remarks, &lines(&refused.remarks));
            message + words.plan_as_wanted
        }
    }
}

/// What the executor is told about the todo `current`.
pub fn executor_message(language: Language, request: &str, plan: &Plan, current: &Todo) -> String {
    let words = words(language);
    let mut message = section(words.request, request) + &section(words.plan, &list(plan, words, false));
    let needed = plan.todos().iter().filter(|todo| current.dependencies.contains(&todo.id) && !todo.result.is_empty());
    let needed: Vec<&Todo> = needed.collect();
    let most = share(needed.iter().map(|todo| todo.result.len()), RESULTS_BYTES).min(RESULT_BYTES);
    let result = |todo: &&Todo| {
        let result = head(&todo.result, todo.result.len(), most, "");
        format!("### {}\n\n{}:{}", todo.id, words.result, quoted(&result))
    };
    let needed: Vec<String> = needed.iter().map(result).collect();
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
    let tools = match evidence.tools.as_slice() {
        [] => String::new(),
        tools => section(words.tools, &tool_names(tools.iter().map(String::as_str))),
    };
    section(words.request, request)
        + &tools
        + &section(words.plan, &list(plan, words, true))
        + &tried(plan, words)
        + &section(words.happened, happened)
        + words.judge
}

/// The plan with its results and what happened, for agents that want to know more than the answer; empty if nothing did.
pub(super) fn record_text(language: Language, plan: Option<&Plan>, evidence: &Evidence) -> String {
    let words = words(language);
    if plan.is_none() && evidence.is_empty() {
        return String::new();
    }
    let plan = plan.map(|plan| section(words.plan, &list(plan, words, true)) + &tried(plan, words)).unwrap_or_default();
    plan + section(words.happened, &evidence.list()).trim_end()
}

/// The tools as the planner reads them: a line each, name and first line of the description. Of those beyond a limit the names.
pub fn tool_lines(language: Language, tools: &[ToolSpec]) -> String {
    let (described, rest) = tools.split_at(described_tools(tools));
    let mut lines: Vec<String> = described.iter().map(tool_line).collect();
    if !rest.is_empty() {
        let names = tool_names(rest.iter().map(|tool| &*tool.name));
        lines.push(match language {
            Language::En => format!("- and {} more, which `find_tools` describes if you have it: {names}", rest.len()),
            Language::Zh => format!("- 另有 {} 个，如果你有 `find_tools`，可以用它查看说明：{names}", rest.len()),
        });
    }
    lines.join("\n")
}

/// How many of these tools the planner is shown with their descriptions.
pub(super) fn described_tools(tools: &[ToolSpec]) -> usize {
    let mut chars = 0;
    let fits = |tool: &&ToolSpec| {
        chars += tool_line(tool).chars().count() + 1;
        chars <= TOOLS_CHARS
    };
    tools.iter().take_while(fits).count()
}

fn tool_line(tool: &ToolSpec) -> String {
    format!("- `{}`: {}", tool.name, brief_description(&tool.description, TOOL_CHARS))
}

fn section(heading: &str, text: &str) -> String {
    format!("## {heading}\n\n{}\n\n", text.trim())
}

fn list(plan: &Plan, words: &Words, with_results: bool) -> String {
    let mut lines = String::new();
    let results = plan.todos().iter().map(|todo| todo.result.len() + todo.last_result.len());
    let most = share(results, RESULTS_BYTES).min(RESULT_BYTES);
    for todo in plan.todos() {
        let _ = write!(lines, "- {} [{}] ({} {}", todo.id, todo.status.name(), words.priority, todo.priority);
        if !todo.dependencies.is_empty() {
            let _ = write!(lines, "; {} {}", words.after, todo.dependencies.join(", "));
        }
        let _ = match with_results {
            true => writeln!(lines, "){}", quoted(&todo.description)),
            false => writeln!(lines, ") {}", one_line(&todo.heading())),
        };
        if with_results && todo.status != TodoStatus::Executing && !todo.result.is_empty() {
            let told = |label: &str, text: &str| format!("  {label}:{}\n", quoted(&head(text, text.len(), most, "")));
            // What is open again has the reason where others have their result.
            lines += &match todo.status {
                TodoStatus::Pending => told(words.not_accepted, &todo.result),
                _ => told(words.result, &todo.result),
            };
            if todo.status == TodoStatus::Pending && !todo.last_result.is_empty() {
                lines += &told(words.last_result, &todo.last_result);
            }
        }
    }
    lines
}

/// What earlier plans tried in vain, as a section of its own; nothing where they did not.
fn tried(plan: &Plan, words: &Words) -> String {
    let line = |attempt: &FailedAttempt| {
        let how = if attempt.was_refused { words.not_accepted } else { words.failed };
        format!("- {}\n  {how}:{}", one_line(&attempt.todo), quoted(&attempt.why))
    };
    let lines: Vec<_> = plan.tried().iter().map(line).collect();
    if lines.is_empty() { String::new() } else { section(words.tried, &lines.join("\n")) }
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
        assert_eq!(planner_message(Language::En, " Count. ", None, &[], None), "## The user's request\n\nCount.\n\n");
        assert_eq!(
            planner_message(Language::En, "Count.", Some(&plan()), &["Count all rows".into()], None),
            "## The user's request\n\nCount.\n\n## The plan so far\n\n- a [completed] (priority 1) Do a well\n  result: There are 3.\n\
             - b [pending] (priority 2; after a) Do b well\n\n## Improvements that the Verifier demands\n\n- Count all rows\n\n\
             Plan what is left. Leave out what is completed."
        );
    }

    #[test]
    fn a_refused_todo_has_the_reason_and_no_result() {
        let mut plan = plan();
        plan.reopen("a", "It counts the heading.");
        let message = planner_message(Language::En, "Count.", Some(&plan), &[], None);
        let todo = "- a [pending] (priority 1) Do a well\n  refused, because: It counts the heading.\n  the result that was \
                    refused: There are 3.\n- b";
        assert!(message.contains(todo), "{message}");
    }

    #[test]
    fn what_earlier_plans_tried_in_vain_is_told_to_planner_and_verifier() {
        let mut plan = plan();
        plan.reopen("a", "It counts the heading.");
        plan.settle("b", TodoStatus::Failed, "no key\n## Heading");
        let next = |id: &str| vec![Todo { id: id.into(), description: id.into(), priority: 1, ..Todo::default() }];
        let mut second = plan.replan(next("c")).unwrap();
        second.settle("c", TodoStatus::Failed, "too slow");
        let told = "## What earlier plans tried in vain\n\n- Do a\n  refused, because: It counts the heading.\n- Do b\n  failed, \
                    because:\n  | no key\n  | ## Heading\n";
        let message = planner_message(Language::En, "Count.", Some(&second), &[], None);
        assert!(message.contains(&format!("{told}\nPlan what is left.")), "{message}");
        let third = second.replan(next("d")).unwrap();
        let message = verifier_message(Language::En, "Count.", &third, &Evidence::default());
        assert!(message.contains(&format!("{told}- c\n  failed, because: too slow\n\n## What happened")), "{message}");
        assert!(!verifier_message(Language::En, "Count.", &plan, &Evidence::default()).contains("in vain"));
    }

    #[test]
    fn the_planner_is_told_what_was_refused_in_the_persons_own_words() {
        let refused = Refused { plan: plan(), remarks: vec!["no c".into(), "only two\n## Heading".into()] };
        let message = planner_message(Language::En, "Count.", None, &[], Some(&refused));
        let (_, after) = message.split_once("## The plan that the user refused\n\n").unwrap();
        assert_eq!(
            after,
            "- a [completed] (priority 1) Do a well\n  result: There are 3.\n- b [pending] (priority 2; after a) Do b well\n\n\
             ## What the user said about it, and about earlier ones\n\n- no c\n-\n  | only two\n  | ## Heading\n\n\
             Plan anew, as the user wants it."
        );
        assert!(!message.contains("Verifier"), "{message}");
    }

    #[test]
    fn long_results_are_cut_so_that_all_together_fit() {
        let todo = |n: usize| Todo { id: format!("t{n}"), description: "d".into(), priority: 1, ..Todo::default() };
        let mut plan = Plan::new((0..50).map(todo).collect()).unwrap();
        (0..50).for_each(|n| plan.settle(&format!("t{n}"), TodoStatus::Completed, &"字\n".repeat(10_000)));
        let message = verifier_message(Language::En, "Count.", &plan, &Evidence::default());
        assert!(message.len() < 192 * 1024, "{}", message.len());
        assert!(message.contains(" more bytes)"));
    }

    #[test]
    fn the_executor_is_told_its_task_and_the_results_it_needs() {
        let plan = plan();
        assert_eq!(
            executor_message(Language::En, "Count.", &plan, plan.todo("b").unwrap()),
            "## The user's request\n\nCount.\n\n## The plan so far\n\n- a [completed] (priority 1) Do a\n- b [pending] (priority 2; after a) Do b\n\n\
             ## Results of the tasks that it depends on\n\n### a\n\nresult: There are 3.\n\n## The current task\n\nb: Do b well"
        );
    }

    #[test]
    fn tools_are_a_line_each() {
        let tool = |name: &str, description: &str| -> ToolSpec {
            serde_json::from_value(serde_json::json!({ "name": name, "description": description, "parameters": {} })).unwrap()
        };
        let long = "x".repeat(161);
        let tool_lines = |tools: &[ToolSpec]| tool_lines(Language::En, tools);
        let lines = tool_lines(&[tool("now", "The time.\nMore."), tool("long", &long)]);
        assert_eq!(lines, format!("- `now`: The time.\n- `long`: {}…", &long[1..]));
        let marked = tool_lines(&[tool("send", "⟦mail describes it⟧ Sends.\nMore. ⟦end⟧")]);
        assert_eq!(marked, "- `send`: ⟦mail describes it⟧ Sends. ⟦end⟧");
        let many: Vec<_> = (0..300).map(|n| tool(&format!("git__command_{n}"), &long)).collect();
        let lines = tool_lines(&many);
        assert!(lines.chars().count() < TOOLS_CHARS + 200, "{}", lines.chars().count());
        let shown = described_tools(&many);
        let rest = format!("- and {0} more, which `find_tools` describes if you have it: git__* ({0} tools)", 300 - shown);
        assert!(shown > 60 && lines.ends_with(&rest), "{lines}");
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
