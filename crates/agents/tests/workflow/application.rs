//! Another application with a backend of its own: what it gives a run, and what it is told (R245-R249, R258).

use std::sync::{Arc, Mutex};

use polis_agents::workflow::{
    AgentBackend, AgentType, AiMessage, ChatOptions, Listeners, McpServerInfo, RunOptions, StreamCallbacks, ToolScope,
    WorkflowCallbacks, available_tools, find_tool_server, run_agent_workflow,
};
use polis_domain::{CallResult, Failure, Finish, Reply, Timestamp, ToolCall, ToolChoice};
use polis_ports::{Delta, ToolSpec};
use polis_testkit::{ScriptedModel, ScriptedReply};
use serde_json::{Map, Value, json};

use super::bed::{Asked, Heard, Team, engine, given_up, plan, role, team, unsatisfied};

/// An application: it asks its own model, calls its own servers and keeps messages by conversation.
struct OwnBackend {
    model: ScriptedModel,
    chat: String,
    kept: Vec<(String, AiMessage)>,
    called: Vec<String>,
    options: Vec<ChatOptions>,
    listeners: Listeners,
}

impl AgentBackend for OwnBackend {
    async fn chat_completion(&mut self, options: ChatOptions) -> Result<Reply, Failure> {
        use polis_ports::{Collector, Model, ModelRequest};
        self.options.push(options.clone());
        let ChatOptions { event_id, model, system, messages, tools, tool_choice, format } = options;
        let request = ModelRequest { model, system, messages, tools, tool_choice, format, ..ModelRequest::default() };
        let failed = |error: polis_ports::ModelError| Failure::new(error.code(), error.to_string());
        let mut stream = self.model.stream(request).await.map_err(failed)?;
        let mut collector = Collector::default();
        while let Some(delta) = futures_util::StreamExt::next(&mut stream).await {
            let delta = delta.map_err(failed)?;
            self.listeners.tell(&event_id, &delta);
            collector.push(delta);
        }
        collector.finish().map_err(failed)
    }

    async fn execute_tool(
        &mut self,
        server_name: &str,
        tool_name: &str,
        arguments: Value,
        context: &Map<String, Value>,
    ) -> CallResult {
        if server_name.is_empty() {
            return CallResult::failed(format!("there is no tool `{tool_name}`"));
        }
        self.called.push(format!("{server_name}.{tool_name} {arguments} for {}", context["currentResourceId"]));
        CallResult::good(if arguments["at"] == "b" { "2" } else { "1" })
    }

    fn begin_chat(&mut self, chat_id: &str) {
        chat_id.clone_into(&mut self.chat);
    }

    async fn save_message(&mut self, message: AiMessage) -> Result<(), Failure> {
        self.kept.push((self.chat.clone(), message));
        Ok(())
    }

    fn listeners(&mut self) -> &mut Listeners {
        &mut self.listeners
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        Arc::default()
    }

    fn now(&self) -> Timestamp {
        Timestamp(1_000)
    }
}

fn servers() -> Vec<McpServerInfo> {
    let tool = json!({ "name": "look", "description": "Looks.", "inputSchema": { "type": "object" } });
    let servers = json!([
        { "key": "off", "name": "Off", "config": { "enabled": false }, "status": "connected", "tools": [tool] },
        { "key": "down", "name": "Down", "config": {}, "status": "failed", "tools": [tool] },
        { "key": "eyes", "name": "Eyes", "config": { "enabled": true }, "status": "connected", "tools": [tool] },
        { "key": "more", "name": "More", "status": "connected", "tools": [tool, { "name": "listen" }] },
    ]);
    serde_json::from_value(servers).unwrap()
}

fn own_backend(team: &Team, asked: &Asked) -> OwnBackend {
    let (chat, kept, called, options) = (String::new(), Vec::new(), Vec::new(), Vec::new());
    OwnBackend { model: team.model(asked), chat, kept, called, options, listeners: Listeners::default() }
}

/// Notes what it is told.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Notes>>);

#[derive(Default)]
struct Notes {
    counts: Vec<usize>,
    last: Vec<AiMessage>,
    lines: Vec<String>,
    failures: Vec<String>,
}

impl WorkflowCallbacks for Told {
    fn on_message_update(&mut self, messages: &[AiMessage]) {
        let mut notes = self.0.lock().unwrap();
        notes.counts.push(messages.len());
        notes.last = messages.to_vec();
    }
    fn on_log(&mut self, line: &str) {
        self.0.lock().unwrap().lines.push(line.to_owned());
    }
    fn on_error(&mut self, failure: &Failure) {
        self.0.lock().unwrap().failures.push(failure.code.to_string());
    }
}

fn options() -> RunOptions {
    RunOptions {
        chat_id: "chat-7".to_owned(),
        model: "acme/large".to_owned(),
        system_message: "Be brief.".to_owned(),
        initial_messages: vec![AiMessage::user("We talked about letters.")],
        context: json!({ "currentResourceId": "r1", "currentTaskId": "t1" }).as_object().unwrap().clone(),
        mcp_servers: servers(),
        ..RunOptions::from("What are a and b?")
    }
}

#[test]
fn the_tools_of_servers_that_are_enabled_and_connected_can_be_used() {
    let names: Vec<_> = available_tools(&servers()).iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!(names, ["look", "listen"]);
    assert_eq!(find_tool_server(&servers(), "look").map(|server| &*server.key), Some("eyes"));
    assert_eq!(find_tool_server(&servers(), "smell"), None, "nobody else is asked in its place");
}

#[tokio::test(start_paused = true)]
async fn an_application_gives_its_tools_and_context_and_hears_every_message_and_step() {
    let (asked, told) = (Asked::default(), Told::default());
    let mut own = own_backend(&team(), &asked);
    let result = run_agent_workflow(&engine(), &mut own, options(), Box::new(told.clone())).await.unwrap();
    assert_eq!(result.answer.summary, "a is 1 and b is 2.");
    assert_eq!(own.called, ["eyes.look {\"at\":\"a\"} for \"r1\"", "eyes.look {\"at\":\"b\"} for \"r1\""]);
    assert!(own.kept.iter().all(|(chat, _)| chat == "chat-7"));

    let asked = asked.lock().unwrap();
    for request in asked.iter() {
        assert_eq!(&*request.model, "acme/large");
        assert!(request.system.ends_with("Be brief."), "{}", request.system);
        let tools = if role(request) == "executor" { 2 } else { 0 };
        assert_eq!(request.tools.len(), tools, "{}", role(request));
        let first = Heard::new(request).first;
        assert!(first.contains("- currentResourceId: \"r1\"\n- currentTaskId: \"t1\""), "{first}");
        assert!(first.contains("user: We talked about letters."), "{first}");
    }

    let notes = told.0.lock().unwrap();
    assert_eq!(notes.counts, [1, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9], "the plan is one message, however often it changes");
    let kept: Vec<_> = own.kept.iter().map(|(_, message)| &*message.content).collect();
    assert!(notes.last.iter().all(|message| kept.contains(&&*message.content)), "they hear of what is kept");
    let lines = ["plan 1", "planner: My plan.", "todo a: completed", "todo b: completed", "verifier: a is 1 and b is 2."];
    assert_eq!((notes.lines.as_slice(), notes.failures.len()), (lines.map(str::to_owned).as_slice(), 0));
}

#[tokio::test(start_paused = true)]
async fn a_verifier_calls_the_servers_of_an_application_with_its_own_arguments() {
    let tool = json!({ "name": "look", "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true } });
    let eyes =
        json!([{ "key": "eyes", "name": "Eyes", "config": { "trusted": true }, "status": "connected", "tools": [tool] }]);
    let verify = team().verifier;
    let looking = move |heard: &Heard| match heard.replies {
        0 => ScriptedReply::call("v", "look", r#"{"at":"c"}"#),
        _ => verify(heard),
    };
    let mut own = own_backend(&Team { verifier: Arc::new(looking), ..team() }, &Asked::default());
    let options = RunOptions { mcp_servers: serde_json::from_value(eyes).unwrap(), ..options() };
    run_agent_workflow(&engine(), &mut own, options, Box::new(Told::default())).await.unwrap();
    assert_eq!(
        own.called[2], "eyes.look {\"at\":\"c\"} for \"r1\"",
        "nothing is reused here, so nothing asks for a fresh result"
    );
}

#[tokio::test(start_paused = true)]
async fn a_backend_is_given_all_that_a_model_is_to_be_asked() {
    let mut own = own_backend(&team(), &Asked::default());
    run_agent_workflow(&engine(), &mut own, options(), Box::new(Told::default())).await.unwrap();
    let given = own.options.iter().map(|options| {
        let tools: Vec<_> = options.tools.iter().map(|tool| &*tool.name).collect();
        let role = options.event_id.split('-').next().unwrap();
        assert!(options.system.contains(&format!("\"{role}-response\"")), "{}", options.event_id);
        assert!(!options.messages.is_empty() && options.tool_choice == ToolChoice::Auto);
        (&*options.event_id, tools, options.format.is_some())
    });
    let (none, both) = (Vec::new, || vec!["look", "listen"]);
    let expected = [
        ("planner-1", none(), true),
        ("executor-1", both(), false),
        ("executor-3", both(), false),
        ("executor-1", both(), false),
        ("executor-3", both(), false),
        ("verifier-1", none(), true),
    ];
    assert_eq!(given.collect::<Vec<_>>(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_arguments_cannot_be_read_or_whose_tool_is_unknown_has_one_error_result() {
    let mut own = own_backend(&team(), &Asked::default());
    let call = |name: &str, arguments: &str| ToolCall { id: "c".into(), name: name.into(), arguments: arguments.into() };
    let scope = ToolScope { servers: [("look".to_owned(), "eyes".to_owned())].into(), context: options().context };
    let calls = vec![call("look", "{\"at\""), call("look", "[1]"), call("smell", ""), call("look", "")];
    let results = own.execute_tools(calls, &scope).await;
    assert_eq!(results.iter().map(|result| result.is_error).collect::<Vec<_>>(), [true, true, true, false]);
    assert!(results[0].content.starts_with("look was not called: its arguments are no JSON"), "{}", results[0].content);
    assert_eq!(&*results[2].content, "there is no tool `smell`");
    assert_eq!(own.called, ["eyes.look {} for \"r1\""]);
}

#[tokio::test(start_paused = true)]
async fn variables_of_an_applications_own_templates_are_filled_by_the_run_or_the_engine() {
    let mut engine = engine().with_place("season", "winter").with_place("city", "Ulm");
    let template = "{{businessContext}} It is {{season}} in {{city}}. \"planner-response\"";
    engine.prompts.set_core_template(AgentType::PLANNER, template).unwrap();
    let asked = Asked::default();
    let options = RunOptions { places: [("city".to_owned(), "Kiel".to_owned())].into(), ..options() };
    run_agent_workflow(&engine, &mut own_backend(&team(), &asked), options, Box::new(Told::default())).await.unwrap();
    let planner = asked.lock().unwrap()[0].system.to_string();
    assert!(planner.contains("It is winter in Kiel."), "{planner}");
}

#[tokio::test(start_paused = true)]
async fn it_hears_of_what_goes_wrong_and_of_what_ends_the_run() {
    let stumbling = Team {
        planner: Arc::new(|_| plan(&[("a", 1, &[]), ("b", 1, &[])])),
        executor: Arc::new(|todo, _| if todo == "a" { ScriptedReply::text("?") } else { given_up("no") }),
        verifier: Arc::new(|_| unsatisfied("do it", &[("a", false, &[]), ("b", false, &[])])),
    };
    let told = Told::default();
    let mut first = own_backend(&stumbling, &Asked::default());
    run_agent_workflow(&engine(), &mut first, "a and b?".into(), Box::new(told.clone())).await.unwrap();
    assert_eq!(told.0.lock().unwrap().failures, ["unreadable_reply"; 3], "one a plan; giving up is no failure of the machine");

    let told = Told::default();
    let hopeless = Team { planner: Arc::new(|_| ScriptedReply::text("")), ..team() };
    let mut second = own_backend(&hopeless, &Asked::default());
    run_agent_workflow(&engine(), &mut second, "a?".into(), Box::new(told.clone())).await.unwrap_err();
    assert_eq!(told.0.lock().unwrap().failures, ["unreadable_reply", "no_reply", "unreadable_reply"]);
    assert!(
        told.0.lock().unwrap().lines.iter().any(|line| line.contains("answered without one")),
        "it is told of the fallback"
    );
}

/// Which of the six were called.
#[derive(Clone, Default)]
struct Six(Arc<Mutex<Vec<&'static str>>>);

impl Six {
    fn note(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }
}

impl StreamCallbacks for Six {
    fn on_content(&mut self, _text: &str) {
        self.note("content");
    }
    fn on_tool_calls(&mut self, _index: u32, _name: Option<&str>, _arguments: &str) {
        self.note("tool calls");
    }
    fn on_reasoning(&mut self, _text: &str) {
        self.note("reasoning");
    }
    fn on_done(&mut self, _finish: &Finish) {
        self.note("done");
    }
    fn on_error(&mut self, _failure: &Failure) {
        self.note("error");
    }
    fn on_stopped(&mut self) {
        self.note("stopped");
    }
}

#[test]
fn each_kind_of_chunk_has_its_callback() {
    let (six, mut listeners) = (Six::default(), Listeners::default());
    listeners.listen("s", Box::new(six.clone()));
    let call = Delta::ToolCall { index: 0, id: None, name: Some("look".into()), arguments: "{}".to_owned() };
    let chunks = [
        Delta::Content("a".to_owned()),
        call,
        Delta::Reasoning("hm".to_owned()),
        Delta::Done(Finish::Stop),
        Delta::Error(Failure::new("x", "y")),
        Delta::Stopped,
    ];
    for chunk in &chunks {
        listeners.tell("s", chunk);
        listeners.tell("another", chunk);
    }
    assert_eq!(*six.0.lock().unwrap(), ["content", "tool calls", "reasoning", "done", "error", "stopped"]);
}
