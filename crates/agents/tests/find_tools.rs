//! Where an agent has many tools, models find most of them by a search and call them by name.

use std::sync::{Arc, Mutex};

use polis_agents::Converse;
use polis_agents::society::with_society_tools;
use polis_domain::{CallResult, Effect, EffectClass, Event, Role};
use polis_engine::{Cast, Options, Ports, Society};
use polis_ports::{ChatMessage, ModelRequest};
use polis_testkit::{MemoryLog, ScriptedModel, ScriptedReply, ScriptedTools};
use serde_json::{Value, json};

fn call(tool: &str, arguments: Value) -> ScriptedReply {
    ScriptedReply::call("c", tool, &arguments.to_string())
}

struct Bed {
    society: Society,
    log: Arc<MemoryLog>,
    asked: Arc<Mutex<Vec<ModelRequest>>>,
}

/// A society with the society's own tools, whose model gives these replies in order.
async fn bed(role: Role, replies: Vec<ScriptedReply>) -> Bed {
    let (log, asked) = (Arc::new(MemoryLog::new()), Arc::<Mutex<Vec<ModelRequest>>>::default());
    let heard = asked.clone();
    let replies = Mutex::new(replies.into_iter());
    let model = ScriptedModel::new(move |request| {
        heard.lock().unwrap().push(request.clone());
        replies.lock().unwrap().next().unwrap()
    });
    let tools = (0..200).fold(ScriptedTools::new(), |tools, n| {
        tools.with(&format!("look_{n}"), EffectClass::Read, |_, _| CallResult::good("seen"))
    });
    let ports = Ports { log: log.clone(), model: Arc::new(model), toolbox: Arc::new(tools), ..Ports::new(MemoryLog::new()) };
    let cast = with_society_tools(Cast::new().with("converse", Converse::default()), "converse");
    let society = Society::open("main".into(), ports, cast, Options::new(7, role)).await.unwrap();
    Bed { society, log, asked }
}

impl Bed {
    async fn ask(&self, text: &str) -> String {
        let sent = self.society.submit(text).await.unwrap();
        self.society.answer(&sent).await.unwrap().payload.text.to_string()
    }

    fn names(&self, request: usize) -> Vec<String> {
        self.asked.lock().unwrap()[request].tools.iter().map(|tool| tool.name.to_string()).collect()
    }

    /// The result of the newest call that a request shows.
    fn result(&self, request: usize) -> String {
        match self.asked.lock().unwrap()[request].messages.last() {
            Some(ChatMessage::Tool { content, .. }) => content.to_string(),
            other => panic!("{other:?}"),
        }
    }

    fn called(&self) -> Vec<String> {
        let call = |event: &Event| match event {
            Event::EffectStarted { effect: Effect::Tool(call), .. } => Some(call.tool.to_string()),
            _ => None,
        };
        self.log.events(&"main".into()).iter().filter_map(|recorded| call(&recorded.event)).collect()
    }
}

#[tokio::test]
async fn a_tool_that_is_not_listed_is_found_and_called_and_the_list_stays() {
    let create = json!({ "tool": "create_role", "arguments": { "name": "Checker", "rolePrompt": "Check." } });
    let bed = bed(
        Role::new("root", "converse"),
        vec![
            call("find_tools", json!({ "query": "create a role" })),
            call("use_tool", create),
            call("list_roles", json!({})),
            call("use_tool", json!({ "tool": "fly" })),
            call("use_tool", json!({ "name": "list_roles" })),
            ScriptedReply::text("done"),
        ],
    )
    .await;
    assert_eq!(bed.ask("found a role").await, "done");
    let shown = bed.names(0);
    assert!(shown.contains(&"find_tools".to_owned()) && shown.contains(&"use_tool".to_owned()), "{shown:?}");
    assert!(!shown.contains(&"create_role".to_owned()), "{shown:?}");
    assert!((1..6).all(|request| bed.names(request) == shown), "vendors cache the list");
    let found = bed.result(1);
    assert!(found.contains("\"name\":\"create_role\"") && found.contains("rolePrompt"), "{found}");
    assert!(bed.result(2).contains("\"roleId\":\"checker\""), "{}", bed.result(2));
    assert!(bed.result(3).contains("checker"), "a tool that is not listed can be called by its own name too");
    assert!(bed.result(4).contains("fly") && bed.result(4).contains("find_tools lists"), "{}", bed.result(4));
    assert!(bed.result(5).contains("use_tool needs `tool`"), "{}", bed.result(5));
    assert_eq!(bed.called(), ["find_tools", "create_role", "list_roles"], "policy and log know the tool that is meant");
}

#[tokio::test]
async fn a_role_finds_no_tool_that_it_lacks() {
    let role = Role { tools: Some(Arc::new(["list_*".into(), "look_*".into()])), ..Role::new("root", "converse") };
    let bed = bed(
        role,
        vec![
            call("find_tools", json!({ "query": "role" })),
            call("use_tool", json!({ "tool": "create_role", "arguments": { "name": "x", "rolePrompt": "y" } })),
            ScriptedReply::text("done"),
        ],
    )
    .await;
    assert_eq!(bed.ask("found a role").await, "done");
    let found = bed.result(1);
    assert!(found.contains("\"list_roles\"") && !found.contains("create_role"), "{found}");
    assert!(bed.result(2).contains("policy_denied"), "{}", bed.result(2));
}
