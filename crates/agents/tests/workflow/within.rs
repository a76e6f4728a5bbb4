//! A workflow as part of a conversation: what later turns see of it, and what its roles are told about where they work.

use std::sync::{Arc, Mutex};

use polis_agents::role::RoleParts;
use polis_agents::workflow::Workflow;
use polis_agents::{Environment, FileList, RoleAgent};
use polis_domain::{AgentId, CallResult, EffectClass, Role};
use polis_engine::{Cast, FindTools, Options, Ports, Society};
use polis_ports::{ChatMessage, ModelError, ModelRequest};
use polis_testkit::{MemoryArtifacts, MemoryLog, ScriptedModel, ScriptedReply, ScriptedTools};
use serde_json::json;

use super::bed::{Asked, Heard, Team, engine, executed, given_up, team, tools};

/// A conversing root with a workflow, which hands over what is `hard`.
struct Within {
    society: Society,
    asked: Asked,
}

fn is_of_workflow(request: &ModelRequest) -> bool {
    let roles = ["planner", "executor", "verifier"];
    roles.iter().any(|role| request.system.contains(&format!("\"{role}-response\"")))
}

async fn open(team: &Team, tools: ScriptedTools) -> Within {
    open_in(team, tools, Environment::default()).await
}

async fn open_in(team: &Team, tools: ScriptedTools, environment: Environment) -> Within {
    let asked = Asked::default();
    let (team, heard) = (team.clone(), asked.clone());
    let model = ScriptedModel::new(move |request| {
        heard.lock().unwrap().push(request.clone());
        if is_of_workflow(request) {
            return team.reply(request);
        }
        match Heard::new(request).last {
            last if last.contains("hard") => ScriptedReply::call("s", "start_workflow", r#"{"reason":"two parts"}"#),
            _ => ScriptedReply::text("done"),
        }
    });
    let workflow = Workflow::new(engine()).with_environment(environment.clone());
    let parts = RoleParts::new("role").with_environment(environment).with_workflow(workflow);
    let ports = Ports {
        toolbox: Arc::new(tools),
        ..Ports::new(MemoryLog::new()).with_model(model).with_artifacts(MemoryArtifacts::default())
    };
    let cast = Cast::new().with("role", RoleAgent { parts }).with_tool(FindTools);
    let options = Options::new(7, Role::new("root", "role"));
    Within { society: Society::open("main".into(), ports, cast, options).await.unwrap(), asked }
}

impl Within {
    async fn say(&self, text: &str, strategy: &str) {
        let meta = serde_json::Map::from_iter([("strategy".to_owned(), json!(strategy))]);
        let sent = self.society.send_with_meta(AgentId::root(), text, None, meta).await.unwrap();
        self.society.answer(&sent).await.unwrap();
    }

    fn last(&self) -> ModelRequest {
        self.asked.lock().unwrap().last().unwrap().clone()
    }
}

fn texts(request: &ModelRequest) -> Vec<String> {
    let text = |message: &ChatMessage| match message {
        ChatMessage::User { text, .. } => format!("user: {text}"),
        ChatMessage::Assistant { text, .. } => format!("assistant: {text}"),
        ChatMessage::Tool { content, .. } => format!("tool: {content}"),
    };
    request.messages.iter().map(text).collect()
}

fn with_artifacts() -> ScriptedTools {
    tools().with("get_artifact", EffectClass::Read, |_, _| CallResult::good(""))
}

#[tokio::test(start_paused = true)]
async fn the_next_turn_sees_the_todos_of_a_workflow_and_where_the_rest_is() {
    let bed = open(&team(), with_artifacts()).await;
    bed.say("a hard one", "auto").await;
    bed.say("thanks", "auto").await;
    let shown = texts(&bed.last());
    assert_eq!(shown[..3], ["user: a hard one", "assistant: ", "tool: handed over; the answer follows"]);
    assert_eq!(shown[4..], ["assistant: a is 1 and b is 2.", "user: thanks"]);
    let (note, rest) = shown[3].split_once("\nget_artifact with the id ").unwrap();
    assert!(note.starts_with("user: [polis] The next answer was made by a plan."), "{note}");
    assert!(note.ends_with("\n- a [completed] Do a: a is 1\n- b [completed] Do b: b is 2"), "{note}");
    let id = rest.split(' ').next().unwrap().parse().unwrap();
    let content = bed.society.artifacts().read(&id, 0, 10_000).await.unwrap();
    let record = String::from_utf8_lossy(&content.bytes);
    assert!(
        record.contains("Do b. Done when: it is seen.") && record.contains("[c2] (b) look {\"at\":\"b\"} returned: 2"),
        "{record}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_workflow_sees_the_todos_of_the_one_before() {
    let bed = open(&team(), tools()).await;
    bed.say("first", "workflow").await;
    bed.say("second", "workflow").await;
    let planner =
        bed.asked.lock().unwrap().iter().rfind(|request| request.system.contains("\"planner-response\"")).unwrap().clone();
    let shown = texts(&planner).join("\n");
    assert!(shown.contains("program:\n  | The next answer was made by a plan."), "{shown}");
    assert!(shown.contains("- b [completed] Do b: b is 2") && !shown.contains("get_artifact"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn the_todos_of_a_workflow_that_failed_are_seen_shortened() {
    let mut team = team();
    team.executor = Arc::new(|todo, _| match todo {
        "a" => executed("a", &"字\n".repeat(1_000)),
        _ => given_up("no key"),
    });
    team.verifier = Arc::new(|_| ScriptedReply::error(ModelError::Rejected { reason: "on holiday".to_owned() }));
    let bed = open(&team, tools()).await;
    bed.say("first", "workflow").await;
    bed.say("thanks", "simple").await;
    let shown = texts(&bed.last());
    let note = shown.iter().find(|text| text.starts_with("user: [polis] The next answer")).unwrap();
    assert!(note.contains("- a [completed] Do a:\n  | 字") && note.contains("more bytes)"), "{note}");
    assert!(note.ends_with("- b [failed] Do b: no key") && note.len() < 1_500, "{note}");
}

#[tokio::test(start_paused = true)]
async fn a_planner_knows_the_tools_that_executors_find_by_a_search() {
    for (count, is_cut) in [(150, false), (600, true)] {
        let tools = (0..count).fold(tools().deferring("mail__"), |tools, n| {
            tools.with(&format!("mail__command_{n}"), EffectClass::Read, |_, _| CallResult::good("sent"))
        });
        let mut team = team();
        team.executor = Arc::new(|todo, heard| match heard.replies {
            0 => ScriptedReply::call("m", "use_tool", r#"{"tool":"mail__command_7","arguments":{}}"#),
            _ => executed(todo, "sent"),
        });
        let bed = open(&team, tools).await;
        bed.say("a", "workflow").await;
        let asked = bed.asked.lock().unwrap();
        let of = |role: &str| asked.iter().find(|request| request.system.contains(&format!("\"{role}-response\""))).unwrap();
        let has = |request: &ModelRequest, tool: &str| request.tools.iter().any(|offered| &*offered.name == tool);
        assert!(has(of("executor"), "use_tool") && !has(of("executor"), "mail__command_7"));
        assert!(of("planner").system.contains("- `mail__command_7`: mail__command_7\n"));
        assert_eq!(has(of("planner"), "find_tools"), is_cut, "{count}");
        assert_eq!(of("planner").system.contains(" more, which `find_tools` describes"), is_cut, "{count}");
        assert!(!has(of("planner"), "use_tool"));
        let judged = texts(of("verifier")).join("\n");
        assert!(judged.contains("## Tools that the Executor has\n\nlook, write_note, mail__"), "{judged}");
        assert!(judged.contains("[c1] (a) mail__command_7 {} returned: sent"), "{judged}");
    }
}

/// A workspace with one file, to which `write_note` adds another.
fn workspace() -> (Environment, ScriptedTools) {
    let files = Arc::new(Mutex::new(vec!["a.txt".to_owned()]));
    let listed = files.clone();
    let environment = Environment::default().with_files(move |_| {
        let names = listed.lock().unwrap().clone();
        FileList { total: names.len(), names }
    });
    let tools = ScriptedTools::new().with("write_note", EffectClass::Write, move |_, _| {
        files.lock().unwrap().push("b.txt".to_owned());
        CallResult::good("written")
    });
    (environment, tools)
}

#[tokio::test(start_paused = true)]
async fn where_it_works_is_told_once_where_a_model_hands_over() {
    let (environment, tools) = workspace();
    let mut team = team();
    team.executor = Arc::new(|todo, _| executed(todo, "it is in a.txt"));
    let bed = open_in(&team, tools, environment).await;
    bed.say("a hard one", "auto").await;
    bed.say("thanks", "auto").await;
    let shown = texts(&bed.last());
    let told: Vec<_> = shown.iter().filter(|text| text.contains("Workspace, top level: a.txt")).collect();
    assert_eq!(told.len(), 1, "{shown:#?}");
    let planner = bed.asked.lock().unwrap().iter().find(|request| is_of_workflow(request)).unwrap().clone();
    assert!(texts(&planner)[0].contains("Workspace, top level: a.txt"), "{:?}", texts(&planner));
}

#[tokio::test(start_paused = true)]
async fn roles_of_a_workflow_see_files_that_were_made_meanwhile() {
    let (environment, tools) = workspace();
    let mut team = team();
    team.executor = Arc::new(|todo, heard| match (todo, heard.replies) {
        ("a", 0) => ScriptedReply::call("w", "write_note", "{}"),
        _ => executed(todo, "it is in a.txt"),
    });
    let bed = open_in(&team, tools, environment).await;
    bed.say("write it", "workflow").await;
    let asked = bed.asked.lock().unwrap();
    let of = |role: &str| {
        let requests = asked.iter().filter(|request| request.system.contains(&format!("\"{role}-response\"")));
        requests.map(texts).collect::<Vec<_>>()
    };
    let (executors, verifiers) = (of("executor"), of("verifier"));
    let now = "user: [polis] The workspace has changed. Top level now: a.txt, b.txt\n[/polis]";
    assert!(executors[0].iter().all(|text| text != now) && executors[1].iter().all(|text| text != now), "{executors:#?}");
    assert_eq!(executors[2].last().unwrap(), now);
    assert_eq!(executors[2][0], executors[0][0], "what was told before stays");
    assert!(verifiers[0].contains(&now.to_owned()), "{verifiers:#?}");
}
