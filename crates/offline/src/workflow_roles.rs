//! The three roles of a workflow: splits a request into what this model can do, does one task, and judges by what is shown.
//!
//! A role is known by the shape that its answer must have, or by the name of that shape in what it is told. Nothing here knows
//! more than what stands in the messages.

use polis_ports::{ChatMessage, ModelRequest};
use serde_json::{Value, json};

use super::conversation::{Conversation, ModelReply, Stop};
use super::intent::{self, Intent};
use super::introduction;
use super::language::{self, Language, tell};

/// A role of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Planner,
    Executor,
    Verifier,
}

/// The role that a request speaks to, if it does to one.
pub(super) fn role(request: &ModelRequest) -> Option<Role> {
    let roles =
        [("planner_response", Role::Planner), ("executor_response", Role::Executor), ("verifier_response", Role::Verifier)];
    match &request.format {
        Some(format) => roles.into_iter().find(|(name, _)| format.name == *name).map(|(_, role)| role),
        // With tools no shape is demanded; it is described.
        None => {
            let describes = |name: &str| request.system.contains(&format!("`\"{}\"`", name.replace('_', "-")));
            roles.into_iter().find(|(name, _)| describes(name)).map(|(_, role)| role)
        }
    }
}

/// The next reply in a role.
pub(super) fn reply(request: &ModelRequest, role: Role) -> ModelReply {
    let prompt = request.messages.iter().find_map(|message| match message {
        ChatMessage::User { text, .. } if !text.starts_with("[polis]") => Some(&**text),
        _ => None,
    });
    let prompt = RolePrompt(prompt.unwrap_or_default());
    match role {
        Role::Planner => text_reply(plan(&prompt)),
        Role::Executor => execute(request, &prompt),
        Role::Verifier => text_reply(verify(&prompt)),
    }
}

fn text_reply(response: Value) -> ModelReply {
    ModelReply { text: response.to_string(), ..ModelReply::default() }
}

/// The prompt of a role: sections with headings, in either language.
struct RolePrompt<'a>(&'a str);

/// A task of the plan, as the prompt lists it.
struct ListedTask<'a> {
    id: &'a str,
    status: &'a str,
    result: String,
}

impl<'a> RolePrompt<'a> {
    /// What stands below a heading.
    fn section(&self, headings: [&str; 2]) -> Option<&'a str> {
        let at = headings.iter().find_map(|heading| {
            let line = format!("## {heading}\n\n");
            Some(self.0.find(&line)? + line.len())
        })?;
        let rest = &self.0[at..];
        Some(rest.split("\n\n## ").next().unwrap_or(rest).trim())
    }

    fn request(&self) -> &'a str {
        self.section(["The user's request", "用户的需求"]).unwrap_or(self.0)
    }

    fn language(&self) -> Language {
        language::of(alone(self.request()))
    }

    fn tasks(&self) -> Vec<ListedTask<'a>> {
        let plan = self.section(["The plan so far", "目前的计划"]).unwrap_or_default();
        let statuses = ["pending", "executing", "completed", "failed", "skipped"];
        let head = |line: &'a str| {
            let (id, rest) = line.strip_prefix("- ")?.split_once(" [")?;
            let (status, _) = rest.split_once("] (")?;
            statuses.contains(&status).then_some((id, status))
        };
        let lines: Vec<&str> = plan.lines().collect();
        let begins: Vec<usize> = (0..lines.len()).filter(|&at| head(lines[at]).is_some()).collect();
        let offset = |line: &str| line.as_ptr() as usize - plan.as_ptr() as usize;
        let mut tasks = Vec::new();
        for (n, &at) in begins.iter().enumerate() {
            let Some((id, status)) = head(lines[at]) else { continue };
            let end = begins.get(n + 1).map_or(plan.len(), |&next| offset(lines[next]));
            let text = &plan[offset(lines[at])..end];
            let result = ["\n  result:", "\n  结果:"]
                .iter()
                .find_map(|mark| text.split_once(mark))
                .map_or("", |(_, result)| result.trim());
            // What has several lines has a mark before each.
            let lines = result.lines().map(|line| {
                let line = line.strip_prefix("  ").unwrap_or(line);
                line.strip_prefix("| ").unwrap_or(line)
            });
            tasks.push(ListedTask { id, status, result: lines.collect::<Vec<_>>().join("\n") });
        }
        tasks
    }

    /// What shows that a task was done: calls that came to something, else what was said.
    fn evidence(&self, task: &str) -> Vec<&'a str> {
        let happened = self.section(["What happened", "实际发生的事情"]).unwrap_or_default();
        let entries = happened.lines().filter_map(|line| {
            let (name, rest) = line.strip_prefix('[')?.split_once("] (")?;
            let (about, rest) = rest.split_once(") ")?;
            (about == task && !rest.contains(" FAILED: ")).then_some(name)
        });
        let (calls, words): (Vec<_>, Vec<_>) = entries.partition(|name| name.starts_with('c'));
        if calls.is_empty() { words } else { calls }
    }
}

/// Words that end what is to be done in a description.
const DONE_WHEN: [&str; 2] = [" Done when: ", " 完成标准："];

fn plan(prompt: &RolePrompt<'_>) -> Value {
    let language = prompt.language();
    let improvements = prompt.section(["Improvements that the Verifier demands", "验证者要求的改进措施"]);
    if improvements.is_some() {
        let summary = tell!(
            language,
            "(offline model) I know no other way to do what is missing; a real model may.",
            "（离线模型）缺少的部分我没有别的办法；真正的模型也许可以。"
        );
        return planner(summary, true, Vec::new());
    }
    let parts = all_parts(prompt.request());
    let mut todos: Vec<Value> = Vec::new();
    let mut writes: Vec<String> = Vec::new();
    for (n, part) in (1..).zip(&parts) {
        let intent = intent::of(part, &parts.iter().map(|part| &**part).collect::<Vec<_>>());
        // What is written may need what comes before it, and what comes after it may need what was written.
        let dependencies: Vec<String> = match intent {
            Intent::Write { .. } => (1..n).map(|before| format!("task-{before}")).collect(),
            _ => writes.clone(),
        };
        if matches!(intent, Intent::Write { .. }) {
            writes.push(format!("task-{n}"));
        }
        let mark = DONE_WHEN[usize::from(language == Language::Chinese)];
        let done = tell!(language, "the result is stated with its data.", "给出结果和数据。");
        todos.push(json!({
            "id": format!("task-{n}"), "title": part, "description": format!("{part}{mark}{done}"),
            "priority": n, "dependencies": dependencies, "status": "pending",
            "writes": matches!(intent, Intent::Write { .. }),
        }));
    }
    let count = todos.len();
    let summary = tell!(
        language,
        "(offline model) I split the request into {count} parts that can be done with the tools.",
        "（离线模型）我把需求分成 {count} 个可以用工具完成的部分。"
    );
    planner(summary, false, todos)
}

fn planner(summary: String, needs_more: bool, todos: Vec<Value>) -> Value {
    json!({ "type": "component", "component": "planner-response", "summary": summary, "needsMorePlanning": needs_more, "todos": todos })
}

/// The parts of a request, also those that mean nothing to this model: whoever plans must not pass over them.
fn all_parts(request: &str) -> Vec<String> {
    let request = alone(request);
    let unknown = unknown(request);
    if unknown.is_empty() {
        return parts(request);
    }
    known_parts(request).into_iter().chain(unknown).collect()
}

/// The parts of those sentences that this model understands.
fn known_parts(request: &str) -> Vec<String> {
    let known = sentences(request).into_iter().filter(|sentence| is_known(sentence, request));
    known.flat_map(|sentence| if sentence == request { vec![sentence] } else { parts(&sentence) }).collect()
}

fn is_known(part: &str, request: &str) -> bool {
    !matches!(intent::of(part, &[request]), Intent::Chat)
}

/// The parts of a request that this model does: its lines, sentences and steps, where each of them can be understood alone; else
/// the sentences that it understands, where there are several.
pub(super) fn parts(request: &str) -> Vec<String> {
    let request = alone(request);
    if matches!(intent::of(request, &[]), Intent::Write { .. }) {
        return vec![request.to_owned()];
    }
    let mut parts = vec![request.to_owned()];
    for mark in [
        "\n",
        "; ",
        "；",
        "。",
        ". ",
        "? ",
        "？",
        ", and then ",
        " and then ",
        ", then ",
        ", and ",
        "，然后",
        "，再",
        "，并且",
        "，最后",
    ] {
        parts =
            parts.iter().flat_map(|part| part.split(mark).map(bare).filter(|part| is_part(part)).collect::<Vec<_>>()).collect();
    }
    parts = parts.iter().flat_map(|part| joined(part)).collect();
    // A comma parts two intents only where each of them is one.
    let finer = |part: &String| {
        let parts = part.split(", ").flat_map(|part| part.split('，')).map(bare);
        let parts: Vec<_> = parts.filter(|part| is_part(part)).collect();
        if is_one_table_question(part, &parts) { vec![part.clone()] } else { parts }
    };
    let finer: Vec<String> = parts.iter().flat_map(finer).collect();
    let is_whole = |parts: &Vec<String>| parts.len() > 1 && parts.iter().all(|part| is_known(part, request));
    let parted = [finer, parts].into_iter().find(is_whole);
    let known = || Some(known_parts(request)).filter(|known| known.len() > 1);
    parted.or_else(known).unwrap_or_else(|| vec![request.trim().to_owned()])
}

/// Whether a sentence asks one thing of a table, with a comma before or behind the file or a condition: then some of its clauses
/// ask something of a table and name none.
fn is_one_table_question(sentence: &str, clauses: &[String]) -> bool {
    let names_table = |text: &str| matches!(intent::of(text, &[]), Intent::Table { path: Some(_), .. });
    let asks_table = |text: &str| matches!(intent::of(text, &[sentence]), Intent::Table { .. });
    names_table(sentence) && clauses.iter().any(|clause| asks_table(clause) && !names_table(clause))
}

/// A request without what was said before it and what the person has before them.
fn alone(request: &str) -> &str {
    request.split("\n\n### ").next().unwrap_or(request)
}

fn sentences(request: &str) -> Vec<String> {
    let mut sentences = vec![request.to_owned()];
    for mark in ["\n", ". ", "? ", "。", "？", "；", "; ", ", then ", " and then ", "，然后"] {
        sentences = sentences.iter().flat_map(|part| part.split(mark).map(bare)).filter(|part| is_part(part)).collect();
    }
    sentences.iter().flat_map(|sentence| joined(sentence)).collect()
}

/// Whether something is left but the number that counted it.
fn is_part(part: &str) -> bool {
    !part.chars().all(|c| c.is_ascii_digit())
}

/// What "and" joins where something else is asked for behind it; two files, say, stay together.
fn joined(part: &str) -> Vec<String> {
    const BEGINS: [&str; 15] = [
        "what is ",
        "what time ",
        "how many ",
        "how often ",
        "read ",
        "count ",
        "list ",
        "write ",
        "summarise ",
        "summarize ",
        "analyse ",
        "analyze ",
        "compute ",
        "calculate ",
        "tell me a ",
    ];
    let lower = part.to_lowercase();
    let mut joined = Vec::new();
    let mut begin = 0;
    for (at, and) in lower.match_indices(" and ") {
        let next = at + and.len();
        // Lengths may differ where a message has no lower case of its own length; then it stays whole.
        if BEGINS.iter().any(|words| lower[next..].starts_with(words)) && part.len() == lower.len() {
            joined.push(bare(&part[begin..at]));
            begin = next;
        }
    }
    joined.push(bare(&part[begin..]));
    joined
}

/// The sentences of a request that mean nothing to this model, where others do. Courtesies need no answer.
pub(super) fn unknown(request: &str) -> Vec<String> {
    // Polis notes there what was sent along.
    let request = request.split("\n[sent along: ").next().unwrap_or(request);
    if matches!(intent::of(request, &[]), Intent::Write { .. } | Intent::Chat) {
        return Vec::new();
    }
    let is_courtesy = |part: &str| {
        let part = part.to_lowercase();
        let polite = ["hello", "hi", "hey", "please", "thank", "good morning", "你好", "您好", "请", "谢谢", "麻烦"];
        part.chars().count() <= 24 && polite.iter().any(|word| part.starts_with(word))
    };
    let (unknown, known): (Vec<_>, Vec<_>) =
        sentences(request).into_iter().partition(|part| matches!(intent::of(part, &[request]), Intent::Chat));
    if known.is_empty() { Vec::new() } else { unknown.into_iter().filter(|part| !is_courtesy(part)).collect() }
}

/// A part without what counts or joins it.
fn bare(part: &str) -> String {
    let part = part.trim().trim_start_matches(['-', '*', '•']).trim_start();
    let digits = part.chars().take_while(char::is_ascii_digit).count();
    let part = match part[digits..].strip_prefix(['.', ')', '、', '）']) {
        Some(rest) if digits > 0 => rest.trim_start(),
        _ => part,
    };
    let joins = ["then ", "and ", "also ", "first, ", "First, ", "然后", "再", "并且", "最后", "先"];
    let part = joins.iter().find_map(|join| part.strip_prefix(join)).unwrap_or(part);
    part.trim().trim_end_matches(['.', '。', '，', ',', ';', '；']).to_owned()
}

fn execute(request: &ModelRequest, prompt: &RolePrompt<'_>) -> ModelReply {
    let current = prompt.section(["The current task", "当前任务"]).unwrap_or_default();
    let (id, description) = current.split_once(": ").unwrap_or(("", current));
    let asked = DONE_WHEN.iter().find_map(|mark| Some(description.split_once(mark)?.0)).unwrap_or(description);
    let mut conversation = Conversation::about(request, asked, vec![prompt.request()]);
    let intent = intent::of(asked, &conversation.earlier);
    let is_one_of_several = prompt.tasks().len() > 1;
    let (answer, is_done) = match super::answer(&mut conversation, &intent) {
        Ok(_) | Err(Stop::Say(_)) if matches!(intent, Intent::Chat) && is_one_of_several => {
            (introduction::not_understood(conversation.language, asked), false)
        }
        Ok(answer) => (answer, !introduction::asks_who(asked) && !conversation.has_failed()),
        Err(Stop::Say(answer)) => (answer, false),
        Err(stop @ Stop::Call(_)) => return conversation.reply(stop),
    };
    let statuses = prompt.tasks().into_iter().map(|task| {
        let status = match (task.id == id, is_done) {
            (true, true) => "completed",
            (true, false) => "failed",
            (false, _) => task.status,
        };
        json!({ "id": task.id, "status": status })
    });
    let next = if is_done { "complete" } else { "continue" };
    let response = json!({
        "type": "component", "component": "executor-response", "summary": answer, "taskCompleted": is_done,
        "shouldContinue": false, "nextAction": next, "todos": statuses.collect::<Vec<_>>(),
    });
    ModelReply { text: response.to_string(), ..conversation.reply(Stop::Say(String::new())) }
}

fn verify(prompt: &RolePrompt<'_>) -> Value {
    let language = prompt.language();
    let tasks = prompt.tasks();
    let judged: Vec<(bool, Vec<&str>)> = tasks
        .iter()
        .map(|task| {
            let evidence = prompt.evidence(task.id);
            (task.status == "completed" && !evidence.is_empty(), evidence)
        })
        .collect();
    let is_done = |n: usize| judged[n].0 || tasks[n].status == "skipped";
    let all = (0..tasks.len()).all(is_done);
    let results: Vec<&str> = tasks.iter().map(|task| &*task.result).filter(|result| !result.is_empty()).collect();
    let summary = match (all, &results[..]) {
        (false, _) => String::new(),
        (true, [one]) => language::signed(language, one),
        (true, several) => language::signed(language, &several.join("\n\n")),
    };
    let lacking = (0..tasks.len()).filter(|&n| !is_done(n)).map(|n| format!("{}: {}", tasks[n].id, tasks[n].result));
    let improvements: Vec<String> = lacking.collect();
    let tasks: Vec<Value> = tasks
        .iter()
        .zip(&judged)
        .map(|(task, (completed, evidence))| {
            let feedback = match completed {
                true => tell!(language, "what happened shows it", "实际发生的事情可以证明"),
                false => tell!(language, "nothing shows that it is done", "没有证据表明已经完成"),
            };
            let evidence = if *completed { &evidence[..] } else { &[] };
            json!({ "id": task.id, "completed": completed, "feedback": feedback, "evidence": evidence })
        })
        .collect();
    let overall = match all {
        true => tell!(language, "Each task is done, and shown.", "每个任务都已完成，并有证据。"),
        false => tell!(language, "Not every task is done.", "还有任务没有完成。"),
    };
    json!({
        "type": "component", "component": "verifier-response", "tasks": tasks, "allCompleted": all, "userNeedsSatisfied": all,
        "overallFeedback": overall, "summary": summary, "improvements": improvements,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_split_where_each_part_can_be_understood() {
        for (request, want) in [
            ("how many files are here", vec!["how many files are here"]),
            (
                "how many files are here? what is 15% of 240? read NOTES.md",
                vec!["how many files are here", "what is 15% of 240", "read NOTES.md"],
            ),
            (
                "1. count the lines in src\n2. read a.txt\n3. what time is it",
                vec!["count the lines in src", "read a.txt", "what time is it"],
            ),
            ("analyse sales.csv, then summarise README.md", vec!["analyse sales.csv", "summarise README.md"]),
            ("统计 docs 目录有多少文件；然后读 a.txt；最后计算 2+2", vec!["统计 docs 目录有多少文件", "读 a.txt", "计算 2+2"]),
            (
                "分析 sales.csv，数一数 notes.txt 有多少个词，然后计算 240 的 15%",
                vec!["分析 sales.csv", "数一数 notes.txt 有多少个词", "计算 240 的 15%"],
            ),
            ("read a.txt. write me a poem", vec!["read a.txt. write me a poem"]),
            ("write a.txt: one; two", vec!["write a.txt: one; two"]),
            ("read a.txt. sing me a song. what is 2+2?", vec!["read a.txt", "what is 2+2?"]),
            ("count the lines in a.csv, and read b.txt. sing me a song.", vec!["count the lines in a.csv", "read b.txt"]),
            ("What is 2+2 and read a.txt", vec!["What is 2+2", "read a.txt"]),
            ("read b.txt; what is 2+2 and read a.txt", vec!["read b.txt", "what is 2+2", "read a.txt"]),
            ("analyse sales.csv, count the files here. sing me a song.", vec!["analyse sales.csv", "count the files here"]),
            ("count the files here and what is 5*5?", vec!["count the files here", "what is 5*5?"]),
            ("how many lines have a.txt and b.txt", vec!["how many lines have a.txt and b.txt"]),
            ("1. read a.txt. 2. read b.txt. 3. what is 15% of 240?", vec!["read a.txt", "read b.txt", "what is 15% of 240?"]),
        ] {
            assert_eq!(parts(request), want, "{request}");
        }
    }

    #[test]
    fn a_plan_has_the_parts_that_nobody_understands_too() {
        for (request, want) in [
            ("read a.txt. sing me a song. what is 2+2?", vec!["read a.txt", "what is 2+2?", "sing me a song"]),
            ("读 a.txt。写一首诗", vec!["读 a.txt", "写一首诗"]),
            ("read a.txt and tell me a joke", vec!["read a.txt", "tell me a joke"]),
            ("1. read a.txt. 2. sing me a song.", vec!["read a.txt", "sing me a song"]),
            (
                "count the lines in a.csv, and read b.txt. sing me a song.",
                vec!["count the lines in a.csv", "read b.txt", "sing me a song"],
            ),
            ("Hello. What time is it?", vec!["Hello. What time is it?"]),
            ("how many files are here\n\n### Context\n\n- a: sing", vec!["how many files are here"]),
        ] {
            assert_eq!(all_parts(request), want, "{request}");
        }
    }

    #[test]
    fn what_comes_after_a_write_waits_for_it() {
        let plan = plan(&RolePrompt("read a.txt, then write out.txt: hello, and then how many files are here?"));
        let waits: Vec<_> = plan["todos"].as_array().unwrap().iter().map(|todo| todo["dependencies"].clone()).collect();
        assert_eq!(waits, [json!([]), json!(["task-1"]), json!(["task-2"])], "{plan:#}");
    }

    #[test]
    fn a_sentence_that_means_nothing_is_noticed_beside_others() {
        for (request, want) in [
            ("read a.txt. write me a poem", vec!["write me a poem"]),
            ("which file is largest? how many lines has a.txt?", vec!["which file is largest"]),
            ("读 a.txt。写一首诗", vec!["写一首诗"]),
            ("Hello. What time is it? Please be kind.", vec![]),
            ("read a.txt, then compute 2+2", vec![]),
            ("write me a poem. sing it", vec![]),
            ("write a.txt: one. two three", vec![]),
        ] {
            assert_eq!(unknown(request), want, "{request}");
        }
    }

    #[test]
    fn the_plan_is_read_as_it_is_shown() {
        let prompt = RolePrompt(
            "## The user's request\n\nread a.txt\n\n## The plan so far\n\n- task-1 [completed] (priority 1) Read a.txt\n  result:\n  | two\n  | lines [x]\n\
             - task-2 [failed] (priority 2; after task-1) Write\n  result: no\n\n## What happened\n\n[c1] (task-1) read_file {} returned: x\n\
             [c2] (task-2) write_file {} FAILED: no\n[m1] (task-2) the executor said: no\n\nJudge each task, then the whole.",
        );
        let tasks: Vec<_> = prompt.tasks().iter().map(|task| (task.id, task.status, task.result.clone())).collect();
        assert_eq!(tasks, [("task-1", "completed", "two\nlines [x]".to_owned()), ("task-2", "failed", "no".to_owned())]);
        assert_eq!(prompt.evidence("task-1"), ["c1"]);
        assert_eq!(prompt.evidence("task-2"), ["m1"]);
        let judged = verify(&prompt);
        assert_eq!((&judged["allCompleted"], &judged["improvements"]), (&json!(false), &json!(["task-2: no"])));
    }
}
