//! Tool servers that are still starting, and what a turn does about them.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use polis_domain::{AgentId, CallResult, EffectClass, Failure, Response, Role, ToolCall};
use polis_engine::{Agent, Cast, Options, Ports, Society, Turn, WatchEvent};
use polis_ports::{CallContext, ChatMessage, ModelRequest, ServerState, ServerWait, ToolError, ToolServer, ToolSpec, Toolbox};
use polis_testkit::{ScriptedModel, ScriptedReply};
use serde_json::json;
use tokio::sync::watch;

use crate::bed::*;

/// A toolbox with a tool of its own and the server `slow`, which the test starts.
struct Slow {
    state: watch::Sender<ServerState>,
    /// How long a turn waits: not at all, or until the server has started.
    turns_wait: bool,
    waits: Mutex<Vec<ServerWait>>,
}

#[async_trait]
impl Toolbox for Slow {
    fn tools(&self) -> Arc<[ToolSpec]> {
        let tool = |name: &&str| ToolSpec {
            name: (*name).into(),
            description: String::new(),
            parameters: json!({ "type": "object" }),
            class: EffectClass::Read,
            volatile: true,
        };
        let is_here = *self.state.borrow() == ServerState::Connected;
        ["look", "slow__words"].iter().filter(|name| is_here || **name == "look").map(tool).collect()
    }

    async fn call(&self, tool: &str, _: &str, _: &CallContext) -> Result<CallResult, ToolError> {
        Ok(CallResult::good(format!("{tool} was called")))
    }

    async fn wait_for_server(&self, server: &str, purpose: ServerWait) {
        assert_eq!(server, "slow");
        self.waits.lock().unwrap().push(purpose);
        if self.turns_wait || purpose == ServerWait::Call {
            let _ = self.state.subscribe().wait_for(|state| *state != ServerState::Starting).await;
        }
    }

    fn servers(&self) -> Vec<ToolServer> {
        let state = *self.state.borrow();
        let detail = if state == ServerState::Down { "it broke" } else { "starting" };
        let (name, detail, reach) = ("slow".to_owned(), detail.to_owned(), String::new());
        vec![ToolServer { name, reach, state, detail, trusted: false, tools: Vec::new() }]
    }
}

/// Shows a model its tools and answers with what the model saw; or calls the tool that it is told to.
struct Seer;

impl Agent for Seer {
    async fn execute_task(&self, turn: &mut Turn) -> Result<Response, Failure> {
        if let Some(tool) = turn.task().message.strip_prefix("call ").map(str::to_owned) {
            let call = ToolCall { id: "c".into(), name: tool.as_str().into(), arguments: "{}".into() };
            let results = turn.call_tools(vec![call]).await;
            return Ok(Response::new(results[0].content.to_string()));
        }
        let request = ModelRequest { system: "Be brief.".into(), tools: turn.tools(), ..turn.task().message.clone().into() };
        turn.model(request).await.map(|reply| Response::new(reply.text))
    }
}

async fn open(turns_wait: bool) -> (Society, Arc<Slow>) {
    let toolbox = Arc::new(Slow { state: watch::Sender::new(ServerState::Starting), turns_wait, waits: Mutex::default() });
    let model = ScriptedModel::new(|request| {
        let tools: Vec<_> = request.tools.iter().map(|tool| &*tool.name).collect();
        let told: Vec<_> = request.messages.iter().skip(1).map(|message| format!(" {message:?}")).collect();
        ScriptedReply::text(&format!("{} | {}{}", tools.join(" "), request.system, told.concat()))
    });
    let bed = Bed::new();
    let ports = Ports { toolbox: toolbox.clone(), model: Arc::new(model), ..bed.ports(bed.log.clone()) };
    let options = Options::new(7, Role::new("root", "seer"));
    let society = Society::open("main".into(), ports, Cast::new().with("seer", Seer), options).await.unwrap();
    (society, toolbox)
}

async fn ask(society: &Society, to: &str, text: &str) -> String {
    let sent = society.send(to.into(), text, None).await.unwrap();
    society.answer(&sent).await.unwrap().payload.text.to_string()
}

/// The next two live steps that are about a server, or all that come until the answer.
async fn asked_with_steps(society: &Society, text: &str) -> (String, Vec<(String, String)>) {
    let mut watch = society.watch(society.log().head(society.id()).await.unwrap());
    let sent = society.submit(text).await.unwrap();
    let mut steps = Vec::new();
    loop {
        match watch.next().await.unwrap().unwrap() {
            WatchEvent::Step(step) => {
                assert_eq!(step.task, sent.task_id);
                steps.push((step.action.to_string(), step.component.as_deref().unwrap_or_default().to_owned()));
            }
            WatchEvent::Event(recorded) if matches!(&recorded.event, polis_domain::Event::TurnSettled { .. }) => break,
            _ => {}
        }
    }
    (society.answer(&sent).await.unwrap().payload.text.to_string(), steps)
}

fn step(action: &str) -> (String, String) {
    (action.to_owned(), "slow".to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_turn_waits_for_a_server_whose_tools_it_would_be_offered_and_holds_up_no_other() {
    let (society, toolbox) = open(true).await;
    for (name, tools) in [("narrow", &["look"][..]), ("other", &["other__*"]), ("wide", &["sl*"])] {
        let tools = Some(tools.iter().map(|tool| (*tool).into()).collect());
        society.create_role(Role { tools, ..Role::new(name, "seer") }).await.unwrap();
        society.spawn(name.into(), name.into(), AgentId::root()).await.unwrap();
    }
    let waiting = society.send("wide".into(), "what is there?", None).await.unwrap();
    assert_eq!(ask(&society, "narrow", "what is there?").await, "look | Be brief.");
    assert_eq!(ask(&society, "other", "what is there?").await, " | Be brief.");
    assert_eq!(*toolbox.waits.lock().unwrap(), [ServerWait::Turn]);
    toolbox.state.send_replace(ServerState::Connected);
    assert_eq!(&*society.answer(&waiting).await.unwrap().payload.text, "slow__words | Be brief.");
    let (answer, steps) = asked_with_steps(&society, "what is there?").await;
    assert_eq!((answer.as_str(), steps.len()), ("look slow__words | Be brief.", 0), "nothing is waited for any more");
}

#[tokio::test(start_paused = true)]
async fn the_person_and_the_model_are_told_which_server_is_missing() {
    let (society, toolbox) = open(false).await;
    let note = |why: &str| {
        let told = format!(
            "[polis] The tools of these MCP servers are missing at present: `slow` ({why}). If you need them, say so in your answer."
        );
        format!("look | Be brief. {:?}", ChatMessage::user(told))
    };
    let (answer, steps) = asked_with_steps(&society, "what is there?").await;
    assert_eq!((answer, steps), (note("starting"), vec![step("waiting_for_server"), step("server_missing")]));
    toolbox.state.send_replace(ServerState::Down);
    let (answer, steps) = asked_with_steps(&society, "what is there?").await;
    assert_eq!((answer, steps), (note("not running"), vec![step("server_missing")]));
    toolbox.state.send_replace(ServerState::Off);
    assert_eq!(ask(&society, "root", "what is there?").await, "look | Be brief.");
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_server_that_is_starting_waits_for_it() {
    let (society, toolbox) = open(false).await;
    let called = society.submit("call slow__words").await.unwrap();
    while !toolbox.waits.lock().unwrap().contains(&ServerWait::Call) {
        tokio::task::yield_now().await;
    }
    toolbox.state.send_replace(ServerState::Connected);
    assert_eq!(&*society.answer(&called).await.unwrap().payload.text, "slow__words was called");
    toolbox.state.send_replace(ServerState::Starting);
    assert_eq!(ask(&society, "root", "call look").await, "look was called");
    assert!(ask(&society, "root", "call nothing").await.contains("there is no tool `nothing`"));
    let calls = toolbox.waits.lock().unwrap().iter().filter(|purpose| **purpose == ServerWait::Call).count();
    assert_eq!(calls, 1, "other calls do not wait");
}
