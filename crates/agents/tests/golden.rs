//! What a model sees in ten situations, as text files that people read: `tests/golden/*.txt`, in English and in Chinese.
//! `UPDATE_GOLDEN=1` writes them anew.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use polis_agents::role::{RoleParts, Sop, Sops};
use polis_agents::society::with_society_tools;
use polis_agents::workflow::{AgentWorkflowEngine, PromptManager, Workflow};
use polis_agents::{ContextLimits, Environment, FileList, PlanTool, ReadSkill, RoleAgent, Skills, root_role};
use polis_domain::{AgentId, CallResult, EffectClass, Role, Timestamp};
use polis_engine::{Cast, Options, Ports, Society};
use polis_ports::{ChatMessage, ModelRequest};
use polis_testkit::{ManualClock, MemoryLog, ScriptedModel, ScriptedReply, ScriptedTools};
use serde_json::{Value, json};

type Asked = Arc<Mutex<Vec<ModelRequest>>>;

/// The words of the person and of the agents in a language.
struct Words {
    language: &'static str,
    question: &'static str,
    answer: &'static str,
    thanks: &'static str,
    weekly: &'static str,
    sop: &'static str,
    report: &'static str,
    compare: &'static str,
    ask: &'static str,
    role_prompt: &'static str,
    instructions: &'static str,
    skill: &'static str,
    notes: &'static str,
}

const ENGLISH: Words = Words {
    language: "en",
    question: "Which city sells most in sales.csv?",
    answer: "Ulm sells most: 42.",
    thanks: "Thanks. And which one least?",
    weekly: "weekly report for Ulm",
    sop: "---\nname: weekly\nwhen: weekly report for {city}\n---\n1. Sum the sales of {city}.\n2. Write one sentence about it.\n",
    report: "Write the report for March.",
    compare: "Compare Ulm and Kiel, and check the sums.",
    ask: "Check that 42 is the sum of the amounts of Ulm in sales.csv. Answer yes or no, with the sum.",
    role_prompt: "You check figures. Answer with what you found, in one sentence.",
    instructions: "Amounts are in euros. Do not change sales.csv.",
    skill: "---\nname: monthly-report\ndescription: Writes the report of a month from sales.csv. Use it when a monthly report is \
            wanted.\n---\n# Monthly report\n\n1. Sum the amounts by city.\n2. Name the month first.\n",
    notes: "The person asks about sales.csv. Ulm sells most (42).",
};

const CHINESE: Words = Words {
    language: "zh",
    question: "sales.csv 里哪个城市卖得最多？",
    answer: "Ulm 最多：42。",
    thanks: "谢谢。哪个最少？",
    weekly: "Ulm 的周报",
    sop: "---\n名称: 周报\n适用: \"{city} 的周报\"\n---\n## 步骤\n1. 汇总 {city} 的销售额。\n2. 就此写一句话。\n",
    report: "写三月的报告。",
    compare: "比较 Ulm 和 Kiel，并核对合计。",
    ask: "核对 sales.csv 中 Ulm 的金额合计是否为 42。回答是或否，并给出合计。",
    role_prompt: "你负责核对数字。用一句话回答你的发现。",
    instructions: "金额以欧元计。不要修改 sales.csv。",
    skill: "---\nname: monthly-report\ndescription: 根据 sales.csv 写月度报告。需要月报时使用。\n---\n# 月度报告\n\n1. 按城市汇总金额。\n2. \
            先写月份。\n",
    notes: "用户询问 sales.csv。Ulm 最多（42）。",
};

/// A workspace, and what was asked of the model there.
struct Bed {
    folder: tempfile::TempDir,
    asked: Asked,
    words: &'static Words,
}

fn bed(words: &'static Words) -> Bed {
    let bed = Bed { folder: tempfile::tempdir().unwrap(), asked: Asked::default(), words };
    bed.write("AGENTS.md", words.instructions);
    bed.write("skills/monthly-report/SKILL.md", words.skill);
    bed.write("skills/monthly-report/scripts/sum.py", "print(42)\n");
    bed
}

/// The role of the workflow that a request speaks to, if it does to one.
fn role(request: &ModelRequest) -> Option<&'static str> {
    let is_for = |role: &&str| request.system.contains(&format!("\"{role}-response\""));
    ["planner", "executor", "verifier"].into_iter().find(is_for)
}

/// What a role of the workflow says.
fn role_reply(role: &str, has_result: bool) -> ScriptedReply {
    let said = |mut fields: Value| {
        fields["type"] = "component".into();
        fields["component"] = format!("{role}-response").into();
        ScriptedReply::text(&fields.to_string())
    };
    match role {
        "planner" => said(json!({ "summary": "One task.", "needsMorePlanning": false, "todos": [{
            "id": "sums", "title": "Sum the amounts", "description": "Sum the amounts by city. Done when: both sums are known.",
            "priority": 1, "dependencies": [], "writes": false, "status": "pending",
        }] })),
        "executor" if !has_result => ScriptedReply::call("c1", "read_file", r#"{"path":"sales.csv"}"#),
        "executor" => said(json!({ "summary": "Ulm 42, Kiel 7", "taskCompleted": true, "nextAction": "complete",
            "shouldContinue": false, "todos": [{ "id": "sums", "status": "completed" }] })),
        _ => said(json!({ "allCompleted": true, "userNeedsSatisfied": true, "overallFeedback": "good", "improvements": [],
            "summary": "Ulm 42, Kiel 7.", "tasks": [{ "id": "sums", "completed": true, "feedback": "seen", "evidence": ["c1"] }] })),
    }
}

/// What the model says: to a role of the workflow by its prompt, otherwise to the newest message that is not of the program.
fn script(words: &Words, request: &ModelRequest) -> ScriptedReply {
    if request.system.starts_with("Summarise") {
        return ScriptedReply::text(words.notes);
    }
    if let Some(role) = role(request) {
        return role_reply(role, matches!(request.messages.last(), Some(ChatMessage::Tool { .. })));
    }
    if request.format.is_some() {
        let steps = json!({ "steps": [{ "type": "EXECUTE_ACTION", "description": words.compare }] });
        return ScriptedReply::text(&steps.to_string());
    }
    let is_asked = |message: &ChatMessage| matches!(message, ChatMessage::User { text, .. } if !text.starts_with("[polis]"));
    let last = request.messages.iter().rposition(is_asked).unwrap();
    let ChatMessage::User { text, .. } = &request.messages[last] else { unreachable!() };
    let results = request.messages[last..].iter().filter(|message| matches!(message, ChatMessage::Tool { .. })).count();
    let call = |tool: &str, arguments: Value| ScriptedReply::call("c1", tool, &arguments.to_string());
    match (&**text, results) {
        (text, 0) if text == words.question => call("read_file", json!({ "path": "sales.csv" })),
        (text, 0) if text == words.report => call("read_skill", json!({ "name": "monthly-report" })),
        (text, 0) if text == words.compare => {
            let role = json!({ "name": "Checker", "rolePrompt": words.role_prompt, "tools": ["read_file"] });
            call("create_role", role).and_call("c2", "spawn_agent", r#"{"roleId":"checker","agentId":"ann"}"#)
        }
        (text, 2) if text == words.compare => {
            call("request_collaboration", json!({ "requests": [{ "to": "ann", "text": words.ask }] }))
        }
        _ => ScriptedReply::text(words.answer),
    }
}

impl Bed {
    fn write(&self, file: &str, text: &str) {
        let path = self.folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A society whose agents have a workflow if it is wanted.
    async fn open(&self, root: Role, limits: ContextLimits, has_workflow: bool) -> Society {
        let (asked, words) = (self.asked.clone(), self.words);
        let model = ScriptedModel::new(move |request| {
            asked.lock().unwrap().push(request.clone());
            script(words, request)
        });
        let skills = Skills::default().with_folder(self.folder.path().join("skills"));
        let names = ["AGENTS.md", "sales.csv", "skills/"].map(str::to_owned).to_vec();
        let environment = Environment::default()
            .with_date(|_| "2026-11-18 (Wednesday), Europe/Berlin".to_owned())
            .with_files(move |_| FileList { names: names.clone(), total: 3 })
            .with_instructions(self.folder.path().join("AGENTS.md"), Default::default())
            .with_skills(skills.clone());
        let sop = Sop::read(words.sop).unwrap();
        let mut parts = RoleParts::new("role").with_sops(Sops::default().with(sop)).with_environment(environment);
        parts.llm_config.context = limits;
        if has_workflow {
            parts = parts.with_workflow(Workflow::new(AgentWorkflowEngine::new(PromptManager::default())));
        }
        let cast = Cast::new().with("role", RoleAgent { parts }).with_tool(ReadSkill::new(skills)).with_tool(PlanTool);
        let table = |_: &str, _: &polis_ports::CallContext| CallResult::good("city,amount\nUlm,40\nKiel,7\nUlm,2");
        let tools = ScriptedTools::new().with("read_file", EffectClass::Read, table);
        let ports = Ports {
            clock: Arc::new(ManualClock::at(Timestamp(1_700_000_000_000))),
            toolbox: Arc::new(tools),
            model: Arc::new(model),
            ..Ports::new(MemoryLog::new())
        };
        Society::open("main".into(), ports, with_society_tools(cast, "role"), Options::new(7, root)).await.unwrap()
    }

    async fn say(&self, society: &Society, text: &str, strategy: &str) {
        let meta = serde_json::Map::from_iter([("strategy".to_owned(), json!(strategy))]);
        let sent = society.send_with_meta(AgentId::root(), text, None, meta).await.unwrap();
        society.answer(&sent).await.unwrap();
    }

    fn find(&self, which: impl Fn(&ModelRequest) -> bool) -> ModelRequest {
        self.asked.lock().unwrap().iter().rfind(|request| which(request)).expect("the situation was met").clone()
    }

    /// Compares a request with its file.
    fn check(&self, situation: &str, request: &ModelRequest, wrong: &mut Vec<PathBuf>) {
        let folder = self.folder.path().to_str().unwrap();
        let text = render(request).replace(folder, "/workspace");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{situation}.{}.txt", self.words.language));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        if std::fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            wrong.push(path);
        }
    }
}

/// A request as people read it: instructions, tools by name and description, messages.
fn render(request: &ModelRequest) -> String {
    let mut text = format!("===== system\n{}\n\n===== tools\n", request.system.trim_end());
    for tool in &*request.tools {
        let _ = writeln!(text, "{}: {}", tool.name, tool.description);
    }
    if let Some(format) = &request.format {
        let _ = writeln!(text, "\n===== format\n{}", format.name);
    }
    for message in &request.messages {
        let _ = match message {
            ChatMessage::User { text: said, .. } => writeln!(text, "\n===== user\n{said}"),
            ChatMessage::Assistant { text: said, tool_calls, .. } => {
                let calls = tool_calls.iter().map(|call| format!("\n-> {} {}", call.name, call.arguments)).collect::<String>();
                writeln!(text, "\n===== assistant\n{}", format!("{said}{calls}").trim_start())
            }
            ChatMessage::Tool { content, is_error, .. } => {
                writeln!(text, "\n===== tool{}\n{content}", if *is_error { " (failed)" } else { "" })
            }
        };
    }
    text
}

fn says(request: &ModelRequest, text: &str) -> bool {
    matches!(request.messages.last(), Some(ChatMessage::User { text: said, .. }) if said.contains(text))
}

async fn situations(words: &'static Words) -> Vec<PathBuf> {
    let mut wrong = Vec::new();
    let bed = bed(words);
    let usual = ContextLimits::default();

    let society = bed.open(root_role("role"), usual, true).await;
    bed.say(&society, words.question, "simple").await;
    bed.check("root_first_request", &bed.find(|request| says(request, words.question)), &mut wrong);
    bed.say(&society, words.thanks, "simple").await;
    bed.check("root_second_turn", &bed.find(|request| says(request, words.thanks)), &mut wrong);
    bed.say(&society, words.weekly, "auto").await;
    bed.check("sop_step", &bed.find(|_| true), &mut wrong);
    bed.say(&society, words.compare, "simple").await;
    let is_child = |request: &ModelRequest| says(request, words.ask);
    bed.check("child_asked_by_its_parent", &bed.find(is_child), &mut wrong);

    let society = bed.open(root_role("role"), usual, true).await;
    bed.say(&society, words.compare, "workflow").await;
    for name in ["planner", "executor", "verifier"] {
        bed.check(&format!("workflow_{name}"), &bed.find(|request| role(request) == Some(name)), &mut wrong);
    }

    let society = bed.open(root_role("role"), usual, false).await;
    bed.say(&society, words.compare, "workflow").await;
    bed.check("role_planner", &bed.find(|request| request.format.is_some() && role(request).is_none()), &mut wrong);

    let skilled = Role { skills: Some(["monthly-*".into()].into()), ..Role::new("root", "role") };
    let society = bed.open(skilled.with_prompt(words.role_prompt), usual, true).await;
    bed.say(&society, words.report, "simple").await;
    let has_read = |request: &ModelRequest| &*request.system == words.role_prompt;
    bed.check("role_with_a_skill", &bed.find(has_read), &mut wrong);

    let short = ContextLimits { max_context_messages: 4, keep_recent_count: 2, compress: true };
    let society = bed.open(root_role("role"), short, true).await;
    bed.say(&society, words.question, "simple").await;
    bed.say(&society, words.thanks, "simple").await;
    bed.say(&society, words.thanks, "simple").await;
    bed.check("after_a_summary", &bed.find(|request| says(request, words.thanks)), &mut wrong);
    wrong
}

#[tokio::test(start_paused = true)]
async fn models_see_what_the_golden_files_say() {
    let mut wrong = situations(&ENGLISH).await;
    wrong.extend(situations(&CHINESE).await);
    assert!(wrong.is_empty(), "these differ; look at them and set UPDATE_GOLDEN=1 if they should: {wrong:#?}");
}
